package storage

import (
	"context"
	"fmt"
)

// Keys calls fn for the keys of all live nodes in id order, in blocks. The slices and the keys are
// valid until fn returns. Like [Store.Rows] it sees what has been flushed, through one short
// transaction a block. It returns the first error of fn.
func (s *Store) Keys(ctx context.Context, uid uint32, fn func(ids []uint32, keys [][]byte) error) error {
	var ids []uint32
	var ends []int
	var bytes []byte
	var keys [][]byte
	for from := uint64(0); from <= maxID; {
		if err := ctx.Err(); err != nil {
			return err
		}
		ids, ends, bytes, keys = ids[:0], ends[:0], bytes[:0], keys[:0]
		err := scan(s.View, uid, keysBucket, uint32(from), func(e entry) (more bool, err error) {
			value, err := e.value()
			if err != nil {
				return false, err
			}
			key, err := recordKey(value)
			ids, bytes = append(ids, e.number), append(bytes, key...)
			ends = append(ends, len(bytes))
			return len(ids) < chunkRows && len(bytes) < chunkBytes, err
		})
		if err != nil {
			return fmt.Errorf("read keys: %w", err)
		}
		if len(ids) == 0 {
			return nil
		}
		begin := 0
		for _, end := range ends {
			keys, begin = append(keys, bytes[begin:end:end]), end
		}
		if err := fn(ids, keys); err != nil {
			return err
		}
		from = uint64(ids[len(ids)-1]) + 1
	}
	return nil
}

// Liveness says which ids of a collection belonged to a node at one point in time. It reads no
// file, and may be kept.
type Liveness struct{ col *collection }

// Liveness returns the Liveness of the newest published state.
func (s *Store) Liveness(uid uint32) Liveness {
	return Liveness{s.state.Load().catalog.byUID[uid]}
}

// Has reports whether id belongs to a node.
func (l Liveness) Has(id uint32) bool { return l.col != nil && l.col.live(id) }

// Collection describes a collection as of the newest state published, and returns the LSN of its
// last change, as [View.LSN] does. It reads no file.
func (s *Store) Collection(name string) (info Info, lsn uint64, ok bool) {
	col := s.state.Load().catalog.byName[name]
	if col == nil {
		return Info{}, 0, false
	}
	return col.info(), col.lsn, true
}
