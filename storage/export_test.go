package storage

import "encoding/binary"

// Layouts are the versions of a file's layout.
var Layouts = []uint32{uint32(versionPlain), uint32(versionSealed), uint32(versionBlocks)}

// OptionsFor are those of a store that is not synced, whose file is created with a layout, and
// which makes runs of minRun new nodes; zeros are the defaults.
func OptionsFor(version uint32, minRun int) *Options {
	return &Options{NoSync: true, layout: layout(version), minRun: minRun}
}

// SmallMapping are those of a store that is not synced and reserves little address space, so that
// its file is mapped again as it grows.
func SmallMapping() *Options { return &Options{NoSync: true, mmapBytes: 1 << 16} }

// RowsPerBlock is rowsPerBlock.
func RowsPerBlock(dim int) int { return rowsPerBlock(dim) }

// Seal returns a value as the file holds it. The bucket is one of a collection, "" for the
// collection's own values, or one of the whole file if uid is 0.
func Seal(uid uint32, bucket, key string, value []byte) []byte {
	t := table{seed: sealSeed(uid, []byte(bucket))}
	return binary.LittleEndian.AppendUint32(append([]byte{}, value...), t.crc([]byte(key), value))
}

// RoundTripRelease decodes the record of a release and encodes it again.
func RoundTripRelease(name string, b []byte) ([]byte, error) {
	r, err := decodeRelease(name, b)
	if err != nil {
		return nil, err
	}
	return encodeRelease(r), nil
}

// RoundTripRecent decodes a value of bucket recent and encodes it again.
func RoundTripRecent(b []byte) ([]byte, error) {
	r, err := decodeRecent(b)
	if err != nil {
		return nil, err
	}
	return r.encode(), nil
}
