package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/internal/format"
)

// Limits of stored values. The root package has tighter limits for values of users.
const (
	maxNameBytes = 4096      // keys, tags and names: well below bbolt's limit of 32768
	maxDim       = 1 << 20   // float32s in a row
	maxBlobBytes = 1 << 30   // payloads, decoders, meta values: bbolt takes up to 2 GiB
	maxID        = 1<<32 - 2 // so that NextID fits a uint32

	// So that counting on never wraps, nor reaches a number that the name of a file cannot have.
	maxGeneration = 1<<62 - 1
	maxLSN        = 1<<62 - 1
)

// A Node is what is stored about a live id, apart from its row and links.
type Node struct {
	Key     string
	Tags    []string // sorted, no duplicates
	Payload []byte
}

// appendRecord appends the value of the bucket keys. Tags must be sorted and without duplicates.
func appendRecord(b []byte, key string, tags []string, payload []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(key)))
	b = append(b, key...)
	b = binary.AppendUvarint(b, uint64(len(tags)))
	for _, tag := range tags {
		b = binary.AppendUvarint(b, uint64(len(tag)))
		b = append(b, tag...)
	}
	return append(b, payload...)
}

// recordSize returns an upper bound of what appendRecord appends.
func recordSize(key string, tags []string, payload []byte) int {
	n := 2*binary.MaxVarintLen32 + len(key) + len(payload)
	for _, tag := range tags {
		n += binary.MaxVarintLen32 + len(tag)
	}
	return n
}

// The decoders below do not say in an error where the bytes came from. Their callers add that with
// located, because composing the text costs more than decoding.

// decodeRecord reads the value of the bucket keys. Key and tags are copies, the payload is a part
// of b.
func decodeRecord(b []byte) (Node, error) {
	r := format.NewReader("", "value", 0, b)
	n := Node{Key: r.String(), Tags: decodeTags(r)}
	if r.Len() > 0 {
		n.Payload = r.Rest()
	}
	return n, r.Err()
}

// recordKey reads only the key of a value of the bucket keys. It is a part of b.
func recordKey(b []byte) ([]byte, error) {
	r := format.NewReader("", "value", 0, b)
	key := r.Blob()
	return key, r.Err()
}

func encodeInfo(c *collection) []byte {
	var w format.Writer
	encodeSchema(&w, c.schema)
	w.Uvarint(uint64(c.count))
	w.Uvarint(uint64(c.nextID))
	w.String(c.name)
	if len(c.across) > 0 { // from version 4 on
		w.Uvarint(uint64(len(c.across)))
		for _, uid := range c.across {
			w.Uvarint(uint64(uid))
		}
	}
	return w.Data()
}

func decodeInfo(uid uint32, b []byte) (*collection, error) {
	r := format.NewReader("", "value", 0, b)
	c := &collection{uid: uid, schema: decodeSchema(r)}
	c.count = int(uvarint32(r))
	c.nextID = uvarint32(r)
	c.name = decodeCollectionName(r)
	if r.Len() > 0 {
		c.across = make([]uint32, r.Count(1))
		for i := range c.across {
			c.across[i] = uvarint32(r)
		}
	}
	return c, r.End()
}

// decodeCollectionName reads the name of a collection.
func decodeCollectionName(r *format.Reader) string {
	name := r.String()
	if r.Err() != nil {
		return ""
	}
	if err := CheckCollectionName(name); err != nil {
		r.Fail("%w", err)
	}
	return name
}

func encodeGeneration(g generation) []byte {
	var w format.Writer
	w.Uvarint(g.number)
	w.Uvarint(g.buildLSN)
	if len(g.segments) > 0 { // from version 8 on
		w.Uvarint(uint64(len(g.segments)))
		for _, s := range g.segments {
			w.Uvarint(s.Number)
			w.Uvarint(s.LSN)
		}
	}
	return w.Data()
}

func decodeGeneration(b []byte) (generation, error) {
	r := format.NewReader("", "value", 0, b)
	g := generation{number: r.Uvarint(), buildLSN: r.Uvarint()}
	if r.Len() > 0 {
		g.segments = make([]Segment, r.Count(2))
		for i := range g.segments {
			g.segments[i] = Segment{Number: r.Uvarint(), LSN: r.Uvarint()}
		}
	}
	if r.Err() == nil {
		if err := g.validate(); err != nil {
			r.Fail("%w", err)
		}
	}
	return g, r.End()
}

func decodeUint32(b []byte) (uint32, error) {
	r := format.NewReader("", "value", 0, b)
	v := r.Uint32()
	return v, r.End()
}

func decodeUint64(b []byte) (uint64, error) {
	r := format.NewReader("", "value", 0, b)
	v := r.Uint64()
	return v, r.End()
}

// encodeBitmap returns the portable roaring serialization, run containers included. It does not
// change b, which readers may be using.
func encodeBitmap(b *roaring.Bitmap) ([]byte, error) {
	compact := b.Clone()
	compact.RunOptimize()
	return compact.ToBytes()
}

// decodeBitmap reads a serialized bitmap that may be damaged. The result owns its memory.
func decodeBitmap(data []byte) (*roaring.Bitmap, error) {
	b := roaring.New()
	n, err := b.FromBuffer(bytes.Clone(data))
	if err == nil && n != int64(len(data)) {
		err = fmt.Errorf("%d bytes too many", int64(len(data))-n)
	}
	if err == nil {
		err = b.Validate()
	}
	if err != nil {
		return nil, format.Corrupt("", "bitmap", 0, "%w", err)
	}
	return b, nil
}

// located says in a decoder's error where the bytes came from. It passes nil on.
func located(err error, file, section string, args ...any) error {
	var corrupt *format.CorruptError
	if !errors.As(err, &corrupt) {
		return err
	}
	located := *corrupt
	located.File, located.Section = file, fmt.Sprintf(section, args...)
	return &located
}

// bigEndian writes id as a bbolt key into k and returns it.
func bigEndian(k *[4]byte, id uint32) []byte {
	binary.BigEndian.PutUint32(k[:], id)
	return k[:]
}

func checkName(what, name string) error {
	if len(name) == 0 || len(name) > maxNameBytes {
		return fmt.Errorf("%s has %d bytes, want 1 to %d", what, len(name), maxNameBytes)
	}
	return nil
}

func checkBlob(what string, n int) error {
	if n > maxBlobBytes {
		return fmt.Errorf("%s has %d bytes, want at most %d", what, n, maxBlobBytes)
	}
	return nil
}

// firstNonFinite returns the index of the first NaN or infinity in row, or -1.
func firstNonFinite(row []float32) int {
	for i, x := range row {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return i
		}
	}
	return -1
}
