// Package snapshot reads and writes the list of the files of a snapshot: a read-only copy of a
// database, which any number of processes open at a time. The list names each file with its length
// and checksum. A directory that has a part of them, or parts of two snapshots, is found out by it.
//
// The package touches no file system, and its functions keep no state.
//
// # Format, version 1
//
// All numbers are little-endian.
//
//	+--------+-------+-------+-----+---------+
//	| header | entry | entry | ... | trailer |
//	+--------+-------+-------+-----+---------+
//
//	header, 32 bytes
//	 0  magic "flashsnp"   8 bytes
//	 8  version            uint32, 1
//	12  entries            uint32, how many follow
//	16  bytes              uint64, the sum of their sizes
//	24  LSN                uint64, of the last change that the files hold
//
//	entry, 14 bytes and the name
//	 0  length of the name uint16
//	 2  name               relative, with slashes; ascending, none twice
//	 .  size               uint64, of the file
//	 .  CRC32C             uint32, of the file
//
//	trailer, 4 bytes
//	 0  CRC32C             uint32, of everything before
//
// Nothing follows the trailer.
package snapshot
