package storage

import "encoding/binary"

// Seal returns a value as the file holds it. The bucket is one of a collection, "" for the collection's own values, or
// one of the whole file if uid is 0.
func Seal(uid uint32, bucket, key string, value []byte) []byte {
	t := table{seed: sealSeed(uid, []byte(bucket))}
	return binary.LittleEndian.AppendUint32(append([]byte{}, value...), t.crc([]byte(key), value))
}
