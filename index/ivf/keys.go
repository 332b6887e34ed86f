package ivf

import (
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/internal/format"
)

// The keys section maps ids to keys, so that a query gets the keys of its hits without a lookup in
// the store for each. The key of an id never changes. Whether the node still exists is known to the
// store only. Ids are dense except for deleted ones, so the offsets form a table by id. The section
// is written in one pass over the keys in the order of their ids:
//
//	bytes    the keys one after the other, and zeros up to a multiple of 8
//	bases    uint64, ceil(ids / 4096): where the keys of each 4096 ids begin
//	ends     uint32, ids: where the key of an id ends, counted from its base; an id without a key has no bytes
//	         and zeros up to a multiple of 8
//	ids      uint64, one more than the highest id of the index
//	length   uint64, of the bytes, without zeros
//
// It is left out if fewer than a quarter of the ids are in the index, because most of the table
// would be empty.
const (
	idsPerBase   = 4096
	keysFooter   = 16
	maxIDsPerRow = 4       // ids up to the highest, for each row of the index; with more there is no section
	keysBuffer   = 1 << 20 // bytes written at a time
	maxKeyLength = 1 << 16 // no end overflows: 4096 keys of this length
)

// KeySource streams the keys of the rows to be indexed.
type KeySource interface {
	// Keys calls fn with keys in ascending order of their ids. fn keeps neither slice, nor the
	// bytes.
	Keys(ctx context.Context, fn func(ids []uint32, keys [][]byte) error) error
}

// keyTable is the keys section of an open index. Its slices are views of the mapping.
type keyTable struct {
	bytes []byte
	bases []uint64
	ends  []uint32
}

// Key returns the key that an id had at the build. The key is a part of the mapping, not a copy. It
// returns false if the index has no key for the id.
func (ix *Index) Key(id uint32) (key []byte, ok bool) {
	for i := range ix.parts {
		if key, ok := ix.parts[i].of.keys.key(id); ok {
			return key, true
		}
	}
	return nil, false
}

func (t *keyTable) key(id uint32) (key []byte, ok bool) {
	if uint64(id) >= uint64(len(t.ends)) {
		return nil, false
	}
	base := t.bases[id/idsPerBase]
	begin, end := base, base+uint64(t.ends[id])
	if id%idsPerBase > 0 {
		begin += uint64(t.ends[id-1])
	}
	// Open does not verify the section, so it may be damaged.
	if begin >= end || end > uint64(len(t.bytes)) || end < base {
		return nil, false
	}
	return t.bytes[begin:end:end], true
}

// loadKeys finds the parts of the section.
func (ix *Index) loadKeys(s *section) error {
	b := ix.bytes(s)
	if len(b) < keysFooter {
		return ix.corrupt(s, 0, "%d bytes, want at least %d", len(b), keysFooter)
	}
	footer := format.Uint64s(b[len(b)-keysFooter:])
	ids, length := footer[0], footer[1]
	if want := uint64(ix.maxID) + 1; ids != want {
		return ix.corrupt(s, s.length-keysFooter, "keys of %d ids, want %d", ids, want)
	}
	bases := (int64(ids) + idsPerBase - 1) / idsPerBase
	tables := 8*bases + align8(4*int64(ids)) + keysFooter
	if length > uint64(len(b)) || align8(int64(length))+tables != int64(len(b)) {
		return ix.corrupt(s, s.length-8, "%d bytes of keys and %d of tables, the section has %d", length, tables, len(b))
	}
	at := align8(int64(length))
	ix.keys.bytes = b[:length:length]
	ix.keys.bases = format.Uint64s(b[at : at+8*bases])
	ix.keys.ends = format.Uint32s(b[at+8*bases:][:4*ids])
	return nil
}

func align8(n int64) int64 { return (n + 7) &^ 7 }

// checkKeys verifies that the offsets ascend, that only rows have keys, and the padding. A row may
// lack a key: its node was deleted during the build.
func (ix *Index) checkKeys(s *section, rows *roaring.Bitmap) error {
	if s == nil {
		return nil
	}
	t, at := &ix.keys, uint64(0)
	for i, base := range t.bases {
		if base != at {
			return ix.corrupt(s, 0, "the keys from id %d on begin at %d, want %d", i*idsPerBase, base, at)
		}
		last := uint32(0)
		for id, end := range t.ends[i*idsPerBase : min((i+1)*idsPerBase, len(t.ends))] {
			if end < last {
				return ix.corrupt(s, 0, "the key of id %d ends at %d, that before it at %d", i*idsPerBase+id, end, last)
			}
			if id += i * idsPerBase; end > last && !rows.Contains(uint32(id)) {
				return ix.corrupt(s, 0, "id %d has a key and is not in the index", id)
			}
			last = end
		}
		at += uint64(last)
	}
	if at != uint64(len(t.bytes)) {
		return ix.corrupt(s, 0, "the last key ends at %d, want %d", at, len(t.bytes))
	}
	if err := ix.checkZeros(s, int64(at), align8(int64(at)), "the last key"); err != nil {
		return err
	}
	ends := align8(int64(at)) + 8*int64(len(t.bases)) + 4*int64(len(t.ends))
	return ix.checkZeros(s, ends, align8(ends), "the last end")
}

// checkZeros verifies that a part of a section is zero. behind says in the error what it follows.
func (ix *Index) checkZeros(s *section, from, to int64, behind string) error {
	for i, b := range ix.bytes(s)[from:to] {
		if b != 0 {
			return ix.corrupt(s, from+int64(i), "byte %02x after %s, want zero", b, behind)
		}
	}
	return nil
}

// wantsKeys reports whether the file is to have keys.
func (b *builder) wantsKeys() bool {
	y := &b.layout
	return b.opt.Keys != nil && uint64(y.ids[len(y.ids)-1])+1 <= maxIDsPerRow*uint64(len(y.ids))
}

// errKeysDone ends a stream of keys whose rest is not needed.
var errKeysDone = errors.New("no more keys are wanted")

// writeKeys writes the keys behind all other sections and sets the length of the file.
func (w *writer) writeKeys(ctx context.Context) error {
	s := w.section(kindKeys)
	if s == nil {
		return nil
	}
	y := &w.layout
	k := keyWriter{writer: w, s: s, ids: uint64(y.ids[len(y.ids)-1]) + 1}
	next := 0 // first of y.ids not yet passed
	err := w.opt.Keys.Keys(ctx, func(ids []uint32, keys [][]byte) error {
		for i, id := range ids {
			for next < len(y.ids) && y.ids[next] < id {
				next++
			}
			if next == len(y.ids) {
				return errKeysDone
			}
			if y.ids[next] != id {
				continue
			}
			if len(keys[i]) == 0 || len(keys[i]) > maxKeyLength {
				return fmt.Errorf("id %d has a key of %d bytes, want 1 to %d", id, len(keys[i]), maxKeyLength)
			}
			k.skip(id)
			if err := k.add(keys[i]); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if err != nil && !errors.Is(err, errKeysDone) {
		return err
	}
	return k.finish()
}

// keyWriter appends to the section.
type keyWriter struct {
	*writer
	s      *section
	ids    uint64 // one more than the highest of the index
	buf    []byte
	length uint64   // bytes of keys so far
	bases  []uint64 // see the section
	ends   []uint32
}

// skip records that the ids before id have no key.
func (k *keyWriter) skip(id uint32) {
	for uint64(len(k.ends)) < uint64(id) {
		k.next(nil)
	}
}

// add records the key of the next id.
func (k *keyWriter) add(key []byte) error {
	k.next(key)
	return k.write(key)
}

func (k *keyWriter) next(key []byte) {
	if len(k.ends)%idsPerBase == 0 {
		k.bases = append(k.bases, k.length)
	}
	k.length += uint64(len(key))
	k.ends = append(k.ends, uint32(k.length-k.bases[len(k.bases)-1]))
}

// write appends b, which may be large, to the section through the buffer.
func (k *keyWriter) write(b []byte) error {
	if k.buf == nil {
		k.buf = make([]byte, 0, keysBuffer)
	}
	for len(b) > 0 {
		n := min(len(b), keysBuffer-len(k.buf))
		k.buf, b = append(k.buf, b[:n]...), b[n:]
		if len(k.buf) < keysBuffer {
			break
		}
		if err := k.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (k *keyWriter) flush() error {
	if _, err := k.f.WriteAt(k.buf, k.s.end()); err != nil {
		return err
	}
	k.s.crc = format.CRCUpdate(k.s.crc, k.buf)
	k.s.length += int64(len(k.buf))
	k.buf = k.buf[:0]
	return nil
}

// finish writes the tables.
func (k *keyWriter) finish() error {
	for uint64(len(k.ends)) < k.ids {
		k.next(nil)
	}
	pad := make([]byte, align8(int64(k.length))-int64(k.length))
	ends := format.Uint32Bytes(k.ends)
	for _, part := range [][]byte{
		pad, format.Uint64Bytes(k.bases), ends, make([]byte, align8(int64(len(ends)))-int64(len(ends))),
		format.Uint64Bytes([]uint64{uint64(len(k.ends)), k.length}),
	} {
		if err := k.write(part); err != nil {
			return err
		}
	}
	if err := k.flush(); err != nil {
		return err
	}
	k.header.length = k.s.end()
	return nil
}
