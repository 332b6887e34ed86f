package storage

import (
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// PublishGeneration makes an index generation that holds every change up to buildLSN the served one of a collection, and
// forgets which rows it holds were newer than the one before. Both happen in one synced transaction, which is all that
// publishing a generation means on disk. It must not hold more than has been flushed.
func (s *Store) PublishGeneration(uid uint32, number, buildLSN uint64) error {
	s.file.Lock()
	defer s.file.Unlock()
	col := s.flushed.byUID[uid]
	if col == nil {
		return fmt.Errorf("publish generation %d: %w", number, collectionNotFound(uid))
	}
	if number > maxGeneration {
		return fmt.Errorf("publish generation %d of %q: at most %d are counted", number, col.name, uint64(maxGeneration))
	}
	if buildLSN > s.Applied() {
		return fmt.Errorf("publish generation %d of %q: it was built at LSN %d, and only %d has been flushed", number, col.name, buildLSN, s.Applied())
	}
	g := generation{number: number, buildLSN: buildLSN}
	err := s.update(func(tx *bolt.Tx) error {
		var key [4]byte
		b := s.sealed.collection(tx.Bucket(bucketOfCollections).Bucket(bigEndian(&key, uid)), uid)
		return errors.Join(b.put(keyIndex, encodeGeneration(g), &slab{}), s.sealed.dropDirty(s.path, b.Bucket, uid, buildLSN))
	})
	if err != nil {
		return fmt.Errorf("publish generation %d of %q: %w", number, col.name, err)
	}
	col.served.Store(&g)
	return nil
}

// dropDirty removes the entries up to an LSN from the bucket dirty. They are mostly all of them, so that it is cheaper to
// write the others anew than to delete these one by one.
func (s seals) dropDirty(file string, parent *bolt.Bucket, uid uint32, upTo uint64) error {
	name := bucketNames[dirtyBucket]
	old := s.table(parent.Bucket(name), uid, dirtyBucket)
	if old.Bucket == nil {
		return nil
	}
	var keep []byte // id, LSN; 12 bytes each
	err := old.ForEach(func(id, stored []byte) error {
		value, err := old.open(id, stored)
		var lsn uint64
		if err == nil {
			lsn, err = decodeUint64(value)
		}
		if err != nil {
			return located(err, file, "dirty: %s", shownKey(dirtyBucket, id))
		}
		if lsn > upTo {
			keep = append(append(keep, id...), value...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := parent.DeleteBucket(name); err != nil {
		return err
	}
	bkt, err := parent.CreateBucket(name)
	if err != nil {
		return err
	}
	bkt.FillPercent = fillPercent[dirtyBucket]
	t := s.table(bkt, uid, dirtyBucket)
	var mem slab
	for ; len(keep) > 0; keep = keep[12:] {
		if err := t.put(keep[:4], keep[4:12], &mem); err != nil {
			return err
		}
	}
	return nil
}

// Dirty calls fn for every live node whose row is newer than the served generation, in id order, with the LSN of the row.
// It sees what has been flushed, through many short transactions: nodes that change meanwhile may be seen as they were
// or as they are. It returns the first error of fn.
//
// A store opened read-only also has what was replayed into it; that comes last.
func (s *Store) Dirty(uid uint32, fn func(id uint32, lsn uint64) error) error {
	if s.opts.ReadOnly {
		return s.tailDirty(uid, fn)
	}
	return s.fileDirty(uid, fn)
}

func (s *Store) fileDirty(uid uint32, fn func(id uint32, lsn uint64) error) error {
	const block = 4096
	ids := make([]uint32, 0, block)
	lsns := make([]uint64, 0, block)
	for from := uint64(0); from <= maxID; {
		ids, lsns = ids[:0], lsns[:0]
		err := s.scan(uid, dirtyBucket, uint32(from), func(id uint32, value []byte) (more bool, err error) {
			lsn, err := decodeUint64(value)
			ids, lsns = append(ids, id), append(lsns, lsn)
			return len(ids) < block, err
		})
		if err != nil {
			return err
		}
		for i, id := range ids {
			if err := fn(id, lsns[i]); err != nil {
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
