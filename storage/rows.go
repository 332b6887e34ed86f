package storage

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/flashdb/flashdb/internal/format"
)

// Most rows, and about most bytes of rows, that one call of the function given to Rows gets.
const (
	chunkRows  = 2048
	chunkBytes = 4 << 20
)

// Rows calls fn for the rows of all live nodes from an id on, in chunks in id order: rows is
// row-major, len(ids) x dim. Both slices are valid until fn returns. It sees what has been flushed.
// It reads each chunk in a short transaction, so nodes that change meanwhile may be seen before or
// after their change. It returns the first error of fn.
//
// In a store opened read-only it also sees what was replayed into it. That comes last.
func (s *Store) Rows(ctx context.Context, uid, fromID uint32, fn func(ids []uint32, rows []float32) error) error {
	if s.opts.ReadOnly {
		return s.tailRows(ctx, uid, fromID, fn)
	}
	return s.fileRows(ctx, "", uid, fromID, fn)
}

// RowsOf is Rows of a release: see ViewOf.
func (s *Store) RowsOf(ctx context.Context, release string, uid, fromID uint32, fn func(ids []uint32, rows []float32) error) error {
	if release == "" {
		return s.Rows(ctx, uid, fromID, fn)
	}
	return s.fileRows(ctx, release, uid, fromID, fn)
}

func (s *Store) fileRows(ctx context.Context, release string, uid, fromID uint32, fn func(ids []uint32, rows []float32) error) error {
	return s.rowsIn(ctx, s.viewer(release), uid, fromID, fn)
}

// A viewer calls a function with a View.
type viewer func(fn func(*View) error) error

// viewer returns the viewer of a release: see ViewOf.
func (s *Store) viewer(release string) viewer {
	return func(fn func(*View) error) error { return s.ViewOf(release, fn) }
}

// rowsIn is Rows in views, each of which is short.
func (s *Store) rowsIn(ctx context.Context, in viewer, uid, fromID uint32, fn func(ids []uint32, rows []float32) error) error {
	var col *collection
	if err := in(func(v *View) error { col = v.catalog.byUID[uid]; return nil }); err != nil {
		return err
	}
	if col == nil {
		return fmt.Errorf("read rows: %w", collectionNotFound(uid))
	}
	dim := col.schema.Dim
	chunk := max(1, min(chunkRows, chunkBytes/(4*dim)))
	ids := make([]uint32, 0, chunk)
	rows := make([]float32, 0, chunk*dim)
	size := 1 // ids in a value
	if s.layout.blocked() {
		size = rowsPerBlock(dim)
	}
	for from, more := uint64(fromID), true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		ids, rows = ids[:0], rows[:0]
		more = false
		err := scan(in, uid, rowsBucket, uint32(from)/uint32(size), func(e entry) (bool, error) {
			if more = len(ids)+size > chunk; more {
				return false, nil
			}
			var err error
			ids, rows, err = s.appendRows(ids, rows, dim, size, uint32(from), e)
			return true, err
		})
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			return nil
		}
		from = uint64(ids[len(ids)-1]) + 1
		if err := fn(ids, rows); err != nil {
			return err
		}
	}
	return nil
}

// appendRows appends what a value of bucket rows holds of the ids from an id on.
func (s *Store) appendRows(ids []uint32, rows []float32, dim, size int, from uint32, e entry) ([]uint32, []float32, error) {
	if !s.layout.blocked() {
		value, err := e.value()
		if err == nil && len(value) != 4*dim {
			err = format.Corrupt("", "", 0, "%d bytes, want %d", len(value), 4*dim)
		}
		if err != nil {
			return ids, rows, err
		}
		return append(ids, e.number), append(rows, format.Float32s(value)...), nil
	}
	b, err := e.table.rowBlock(e.key, e.stored, size, dim)
	if err != nil {
		return ids, rows, err
	}
	// As b.all and b.row do, in a loop that costs little beside the checksums.
	for mask, rest := b.mask, b.rows; mask != 0; mask, rest = mask&(mask-1), rest[b.width:] {
		id, err := idInBlock(e.number, size, bits.TrailingZeros64(mask))
		if err != nil {
			return ids, rows, err
		}
		if id < from {
			continue
		}
		row, err := e.table.open(bigEndian(e.scratch, id), rest[:b.width])
		if err != nil {
			return ids, rows, err
		}
		ids, rows = append(ids, id), append(rows, format.Float32s(row)...)
	}
	return ids, rows, nil
}

// An entry is one of a bucket whose keys are ids or numbers of blocks.
type entry struct {
	table       table
	number      uint32 // the key
	key, stored []byte // as in bbolt
	scratch     *[4]byte
}

// value returns the verified value.
func (e entry) value() ([]byte, error) { return e.table.open(e.key, e.stored) }

// scan calls fn for the entries of a bucket whose keys are ids or numbers of blocks, from one on,
// in one transaction. Values are valid until fn returns.
func scan(in viewer, uid uint32, b bucket, from uint32, fn func(e entry) (more bool, err error)) error {
	return in(func(v *View) error {
		if v.catalog.byUID[uid] == nil {
			return fmt.Errorf("read %s: %w", b, collectionNotFound(uid))
		}
		v.scan(uid, b, from, fn)
		return nil
	})
}

func (r *reader) scan(uid uint32, b bucket, from uint32, fn func(e entry) (more bool, err error)) {
	defer r.db.guard(&r.err)
	defer faults(faults(true))
	t := r.table(uid, b)
	if t.Bucket == nil {
		return
	}
	c := t.Cursor()
	for k, stored := c.Seek(bigEndian(&r.key, from)); k != nil; k, stored = c.Next() {
		if len(k) != 4 {
			r.damaged(uid, b, fmt.Sprintf("%x", k), format.Corrupt("", "", 0, "the key has %d bytes, want 4", len(k)))
			return
		}
		n := binary.BigEndian.Uint32(k)
		more, err := fn(entry{t, n, k, stored, &r.key})
		if err != nil {
			r.damaged(uid, b, r.layout.shown(b, n), err)
			return
		}
		if !more {
			return
		}
	}
}
