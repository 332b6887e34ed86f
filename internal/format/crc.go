package format

import "hash/crc32"

// castagnoli is the polynomial that amd64 and arm64 compute in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC returns the CRC32C (Castagnoli) of b.
func CRC(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// CRCUpdate returns the CRC32C of the bytes crc was computed over followed by b. The CRC of no
// bytes is 0.
func CRCUpdate(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }
