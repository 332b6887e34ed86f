package storage

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/flashdb/flashdb/internal/format"
)

// Most rows, and about most bytes of rows, that one call of the function given to Rows gets.
const (
	blockRows  = 2048
	blockBytes = 4 << 20
)

// Rows calls fn for the rows of all live nodes from an id on, in blocks in id order: rows is row-major, len(ids) x dim.
// Both slices are valid until fn returns. It sees what has been flushed, through one short transaction a block: nodes that
// change meanwhile may be seen as they were or as they are. It returns the first error of fn.
//
// A store opened read-only also has what was replayed into it; that comes last.
func (s *Store) Rows(ctx context.Context, uid, fromID uint32, fn func(ids []uint32, rows []float32) error) error {
	if s.opts.ReadOnly {
		return s.tailRows(ctx, uid, fromID, fn)
	}
	return s.fileRows(ctx, uid, fromID, fn)
}

func (s *Store) fileRows(ctx context.Context, uid, fromID uint32, fn func(ids []uint32, rows []float32) error) error {
	col := s.state.Load().catalog.byUID[uid]
	if col == nil {
		return fmt.Errorf("read rows: %w", collectionNotFound(uid))
	}
	dim := col.schema.Dim
	block := max(1, min(blockRows, blockBytes/(4*dim)))
	ids := make([]uint32, 0, block)
	rows := make([]float32, 0, block*dim)
	for from := uint64(fromID); from <= maxID; {
		if err := ctx.Err(); err != nil {
			return err
		}
		ids, rows = ids[:0], rows[:0]
		err := s.scan(uid, rowsBucket, uint32(from), func(id uint32, value []byte) (more bool, err error) {
			if len(value) != 4*dim {
				return false, format.Corrupt("", "", 0, "%d bytes, want %d", len(value), 4*dim)
			}
			ids, rows = append(ids, id), append(rows, format.Float32s(value)...)
			return len(ids) < block, nil
		})
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			if err := fn(ids, rows); err != nil {
				return err
			}
		}
		if len(ids) < block {
			return nil
		}
		from = uint64(ids[block-1]) + 1
	}
	return nil
}

// scan calls fn for the entries of a bucket whose keys are ids, from an id on, in one transaction. Values are valid until
// fn returns.
func (s *Store) scan(uid uint32, b bucket, from uint32, fn func(id uint32, value []byte) (more bool, err error)) error {
	return s.View(func(v *View) error {
		if v.catalog.byUID[uid] == nil {
			return fmt.Errorf("read %s: %w", b, collectionNotFound(uid))
		}
		v.scan(uid, b, from, fn)
		return nil
	})
}

func (r *reader) scan(uid uint32, b bucket, from uint32, fn func(id uint32, value []byte) (more bool, err error)) {
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
		id := binary.BigEndian.Uint32(k)
		value, err := t.open(k, stored)
		more := false
		if err == nil {
			more, err = fn(id, value)
		}
		if err != nil {
			r.damaged(uid, b, id, err)
			return
		}
		if !more {
			return
		}
	}
}
