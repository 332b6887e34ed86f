package storage

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
)

// Versions of the layout that the package comment shows.
const (
	versionPlain      layout = 1 // values as they are: a flipped bit in a row is believed
	versionSealed     layout = 2 // values end in a checksum
	versionBlocks     layout = 3 // rows and dirty hold blocks of ids
	versionAcross     layout = 4 // version 3 with links to other collections
	versionTyped      layout = 5 // version 4 with links that have a relation
	versionAttributed layout = 6 // version 5 with attributes
	versionSets       layout = 7 // version 6 with releases
	versionSegments   layout = 8 // version 7 with index segments
	versionRecent     layout = 9 // version 8 with the times of new links
	formatVersion            = versionRecent
)

// sealBytes is what a seal adds to a value.
const sealBytes = 4

// A layout is the version of a file's layout. A file keeps the one it was created with.
type layout uint32

func (l layout) sealed() bool  { return l >= versionSealed }
func (l layout) blocked() bool { return l >= versionBlocks }

// needsBlocks is the error for what a file cannot have that is not blocked.
func (l layout) needsBlocks(file, what string) error {
	return fmt.Errorf("%w: %s is of version %d, and %s need %d or later: export the collections, and import them into a new database",
		format.ErrVersion, file, l, what, versionBlocks)
}

// A table is a bbolt bucket with sealed values. The zero table is a bucket that does not exist.
type table struct {
	*bolt.Bucket
	layout  layout
	uid     uint32 // of the collection, or of the set of rows, that it is of
	seed    uint32 // checksum of what names the bucket: a page of another one does not pass for it
	counted bool   // the bucket's sequence is the number of its entries
}

// counted are the buckets whose loss of entries nothing else in the file would show.
var counted = [bucketCount]bool{linksBucket: true, acrossBucket: true, typedBucket: true, recentBucket: true, attributesBucket: true, decodersBucket: true, metaBucket: true, encoderBucket: true}

// table returns bucket b of collection uid.
func (l layout) table(bkt *bolt.Bucket, uid uint32, b bucket) table {
	return table{bkt, l, uid, sealSeed(uid, bucketNames[b]), counted[b]}
}

// collection returns the bucket of a collection, whose values are info, index and tombs.
func (l layout) collection(bkt *bolt.Bucket, uid uint32) table {
	return table{Bucket: bkt, layout: l, uid: uid, seed: sealSeed(uid, nil)}
}

// top returns the bucket meta or names of the whole file.
func (l layout) top(bkt *bolt.Bucket, name []byte) table {
	return table{Bucket: bkt, layout: l, seed: sealSeed(0, name)}
}

func sealSeed(uid uint32, name []byte) uint32 {
	var key [4]byte
	return format.CRCUpdate(format.CRC(bigEndian(&key, uid)), name)
}

// get returns the value of a key, or nil if there is none. It is a part of bbolt's memory.
func (t table) get(key []byte) ([]byte, error) {
	stored := t.Get(key)
	if stored == nil {
		return nil, nil
	}
	return t.open(key, stored)
}

// open verifies and takes off the seal of a stored value.
func (t table) open(key, stored []byte) ([]byte, error) {
	if !t.layout.sealed() {
		return stored, nil
	}
	n := len(stored) - sealBytes
	if n < 0 {
		return nil, format.Corrupt("", "value", t.offset(stored), "%d bytes, want at least the %d of a checksum", len(stored), sealBytes)
	}
	if got, want := t.crc(key, stored[:n]), binary.LittleEndian.Uint32(stored[n:]); got != want {
		return nil, format.Corrupt("", "value", t.offset(stored), "checksum is %08x, want %08x", got, want)
	}
	return stored[:n:n], nil
}

func (t table) crc(key, value []byte) uint32 {
	return format.CRCUpdate(format.CRCUpdate(t.seed, key), value)
}

// offset returns where in the file a value begins that lies in bbolt's mapping of it.
func (t table) offset(stored []byte) int64 {
	at := int64(uintptr(unsafe.Pointer(unsafe.SliceData(stored))) - t.Tx().DB().Info().Data)
	if at < 0 || at >= t.Tx().Size() {
		return 0 // on a page of a transaction that writes
	}
	return at
}

// put stores a value, or removes it if it is nil. What bbolt keeps until it commits is a copy in
// memory from s.
func (t table) put(key, value []byte, s *slab) error {
	if t.counted && t.layout.sealed() {
		if err := t.count(key, value != nil); err != nil {
			return err
		}
	}
	if value == nil {
		return t.Delete(key)
	}
	return t.Put(key, t.seal(key, append(s.alloc(len(value)+sealBytes), value...)))
}

// seal appends the seal of a value to it.
func (t table) seal(key, value []byte) []byte {
	if !t.layout.sealed() {
		return value
	}
	return binary.LittleEndian.AppendUint32(value, t.crc(key, value))
}

// count keeps the number of entries when key is about to be there or not.
func (t table) count(key []byte, will bool) error {
	switch had := t.Get(key) != nil; {
	case will && !had:
		return t.SetSequence(t.Sequence() + 1)
	case had && !will:
		return t.SetSequence(t.Sequence() - 1)
	}
	return nil
}
