// Package backup reads and writes flashdb's backup stream: the files of a database, one after the
// other, in a form in which every byte is covered by a checksum, and an end that is missing is
// noticed.
//
// It knows nothing of what the files mean, and touches no file system: whoever reads a stream
// decides by an [Entry]'s kind and name where its bytes may go. A [Writer] and a [Reader] belong to
// one goroutine at a time. Both work in memory that does not depend on the length of the stream.
//
// # Format, version 1
//
// The stream is one Zstandard frame sequence (with its content checksum) around what follows. All
// numbers are little-endian.
//
//	+--------+-------+-----------+-----------+-----+-------+-----------+-----+---------+
//	| header | entry | its chunk | its chunk | ... | entry | its chunk | ... | trailer |
//	+--------+-------+-----------+-----------+-----+-------+-----------+-----+---------+
//
//	header, 36 bytes
//	 0  magic "flashbak"   8 bytes
//	 8  version            uint32, 1
//	12  entries            uint32, how many follow
//	16  bytes              uint64, the sum of their sizes
//	24  LSN                uint64, of the last change that the files hold
//	32  CRC32C             uint32, of the 32 bytes before
//
//	entry, 16 bytes and the name
//	 0  kind               uint8: 1 bbolt file, 2 log segment, 3 generation file
//	 1  zero               uint8
//	 2  length of the name uint16
//	 4  size               uint64, of the file
//	12  name               relative, with slashes
//	 .  CRC32C             uint32, of the entry's bytes before
//
//	chunk, up to 262,148 bytes
//	 0  bytes              262,144 of the file, in its last chunk what is left
//	 .  CRC32C             uint32, of the chunk's bytes before
//
//	trailer, 20 bytes
//	 0  zero               4 bytes: no entry has kind 0
//	 4  entries            uint32, as in the header
//	 8  bytes              uint64, as in the header
//	16  CRC32C             uint32, of everything before, from the header on
//
// An empty file has no chunk. Nothing follows the trailer.
package backup
