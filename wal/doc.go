// Package wal is flashdb's log. A [Write] is one change to be logged. When its caller is told that
// it is durable, it is in the log and synced. After a crash it is read back.
//
// A write hands its record to [Log.Do], which returns when the record is on disk. Writes that wait
// at the same time are written together and share one sync. The first of them leads, and the others
// wait. The log has no goroutine of its own. Records are numbered from 1 without gaps. The number
// is an [LSN]. A Log is safe for concurrent use, but a callback must not call its own Log.
//
// # Files
//
// A log is a directory of segments. A segment is named by the LSN of its first record, in 16
// hexadecimal digits:
//
//	0000000000000001.log   records 1 to 4095
//	0000000000001000.log   records 4096 and on: the active segment, the only one written to
//
// A segment is a header and then frames without gaps, one for each record. All numbers are
// little-endian.
//
//	header, 24 bytes, the same in every version
//	+----------+---------+-----------+--------+
//	| magic    | version | first LSN | CRC32C |
//	| FLASHWAL | uint32  | uint64    | uint32 |
//	+----------+---------+-----------+--------+
//	0          8         12          20       24
//
//	frame, 24 bytes and the payload
//	+--------+--------+--------+--------+--------+- - - - -+
//	| CRC32C | length | LSN    | flags  | group  | payload |
//	| uint32 | uint32 | uint64 | uint32 | uint32 | length  |
//	+--------+--------+--------+--------+--------+- - - - -+
//	0        4        8        16       20       24
//
// The header's CRC covers the bytes before it, the frame's all bytes of the frame after it. Length
// counts the bytes that are stored. Flag 1 says that they are an S2 block, which states the length
// of the record it unpacks to: at most MaxPayload, and at most 256 times what is stored, so that
// reading takes memory in proportion to the file. No other flag is known. Group is the frame's
// place, from 0, among the frames that one sync made durable.
//
// # What a crash may leave
//
// The header is synced, and so is the directory, before the first frame is written, and a segment
// is complete and synced before the next is made. Open cuts off, as torn, only what a crash can
// have left under these rules:
//
//   - a last segment that ends within its header, or is all zeros;
//   - from the first bad frame of the last segment on, if nothing after it was written later than
//     that frame's sync: a whole frame further on is such evidence unless LSN and group place it in
//     the bad frame's own group, whose pages may reach the disk in any order.
//
// Records that are cut off were never acknowledged. Any other damage is a [format.CorruptError],
// and nothing is changed: a bad frame with later groups after it or in an earlier segment, an LSN
// out of order, a segment missing in the middle. Only damage to the very last group cannot be told
// from a torn write.
package wal
