package storage

import "bytes"

// dropDirty removes the LSNs up to upTo from the bucket dirty of a collection. These are mostly all
// of them, so it is cheaper to write the rest again than to delete entries one by one.
func (collection table) dropDirty(file string, uid uint32, upTo uint64) error {
	name, l := bucketNames[dirtyBucket], collection.layout
	old := l.table(collection.Bucket.Bucket(name), uid, dirtyBucket)
	if old.Bucket == nil {
		return nil
	}
	type kept struct{ key, value []byte }
	var keep []kept
	err := old.ForEach(func(key, stored []byte) error {
		value, err := old.open(key, stored)
		if err == nil {
			value, err = l.newerDirty(value, upTo)
		}
		if err != nil {
			return located(err, file, "dirty: %s", l.shownKey(dirtyBucket, key))
		}
		if value != nil {
			keep = append(keep, kept{bytes.Clone(key), value})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := collection.DeleteBucket(name); err != nil {
		return err
	}
	bkt, err := collection.CreateBucket(name)
	if err != nil {
		return err
	}
	bkt.FillPercent = fillPercent[dirtyBucket]
	t := l.table(bkt, uid, dirtyBucket)
	var mem slab
	for _, e := range keep {
		if err := t.put(e.key, e.value, &mem); err != nil {
			return err
		}
	}
	return nil
}

// newerDirty returns a copy of a value of bucket dirty with only the LSNs above upTo, or nil if
// there are none.
func (l layout) newerDirty(value []byte, upTo uint64) ([]byte, error) {
	if !l.blocked() {
		lsn, err := decodeUint64(value)
		if err != nil || lsn <= upTo {
			return nil, err
		}
		return bytes.Clone(value), nil
	}
	d, err := decodeDirty(value)
	for i := range bitsOf(d.mask) {
		if d.lsns[i] <= upTo {
			d.remove(i)
		}
	}
	return d.encode(nil), err
}

// Dirty calls fn for every live node whose row is newer than the served generation, in id order,
// with the LSN of the row. It sees what has been flushed. It reads in many short transactions, so
// nodes that change meanwhile may be seen before or after their change. It returns the first error
// of fn.
//
// In a store opened read-only it also sees what was replayed into it. That comes last.
func (s *Store) Dirty(uid uint32, fn func(id uint32, lsn uint64) error) error {
	if s.opts.ReadOnly {
		return s.tailDirty(uid, fn)
	}
	return s.fileDirty("", uid, fn)
}

// DirtyOf is Dirty of a release: see ViewOf.
func (s *Store) DirtyOf(release string, uid uint32, fn func(id uint32, lsn uint64) error) error {
	if release == "" {
		return s.Dirty(uid, fn)
	}
	return s.fileDirty(release, uid, fn)
}

func (s *Store) fileDirty(release string, uid uint32, fn func(id uint32, lsn uint64) error) error {
	const most = 4096 // ids a transaction, and those of one block more
	var ids []uint32
	var lsns []uint64
	for from, more := uint32(0), true; more; {
		ids, lsns = ids[:0], lsns[:0]
		more = false
		err := scan(s.viewer(release), uid, dirtyBucket, from, func(e entry) (bool, error) {
			if more = len(ids) >= most; more {
				from = e.number
				return false, nil
			}
			var err error
			ids, lsns, err = s.appendDirty(ids, lsns, e)
			return true, err
		})
		if err != nil {
			return err
		}
		for i, id := range ids {
			if err := fn(id, lsns[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendDirty appends what a value of bucket dirty says.
func (s *Store) appendDirty(ids []uint32, lsns []uint64, e entry) ([]uint32, []uint64, error) {
	value, err := e.value()
	if err != nil {
		return ids, lsns, err
	}
	if !s.layout.blocked() {
		lsn, err := decodeUint64(value)
		return append(ids, e.number), append(lsns, lsn), err
	}
	d, err := decodeDirty(value)
	for i := range bitsOf(d.mask) {
		id, beyond := idInBlock(e.number, dirtyBlock, i)
		if beyond != nil {
			return ids, lsns, beyond
		}
		ids, lsns = append(ids, id), append(lsns, d.lsns[i])
	}
	return ids, lsns, err
}
