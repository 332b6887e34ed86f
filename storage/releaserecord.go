package storage

import (
	"cmp"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
)

// encodeRelease returns the value of bucket releases.
func encodeRelease(r *release) []byte {
	var w format.Writer
	w.Uvarint(r.number)
	w.Uint8(uint8(r.state))
	w.Uvarint(uint64(r.created))
	w.Uvarint(uint64(r.published))
	w.Uvarint(uint64(len(r.sets)))
	for _, uid := range slices.Sorted(maps.Keys(r.sets)) {
		w.Uvarint(uint64(uid))
		w.Uvarint(uint64(r.sets[uid].uid))
	}
	if r.cut != r.created { // from version 9 on
		w.Uvarint(uint64(r.cut))
	}
	return w.Data()
}

// maxSeconds bounds times, so that they can be converted.
const maxSeconds = 1 << 40

// decodeRelease reads a value of bucket releases. Its sets are empty as yet.
func decodeRelease(name string, b []byte) (*release, error) {
	r := format.NewReader("", "value", 0, b)
	rel := &release{name: name, number: r.Uvarint(), state: ReleaseState(r.Uint8()), sets: map[uint32]*rowSet{}}
	created, published := r.Uvarint(), r.Uvarint()
	if rel.state < Staged || rel.state > stateDropping {
		r.Fail("state %d, want 1 to %d", uint8(rel.state), uint8(stateDropping))
	}
	if created > maxSeconds || published > maxSeconds {
		r.Fail("times %d and %d, want at most %d", created, published, int64(maxSeconds))
	}
	rel.created, rel.published = int64(created), int64(published)
	for range r.Count(2) {
		uid, set := uvarint32(r), uvarint32(r)
		if r.Err() != nil {
			break
		}
		if rel.sets[uid] != nil {
			r.Fail("the collection with UID %d comes twice", uid)
			break
		}
		rel.sets[uid] = newSet(set)
	}
	rel.cut = rel.created
	if r.Err() == nil && r.Len() > 0 {
		cut := r.Uvarint()
		if cut > maxSeconds {
			r.Fail("data cut at %d, want at most %d", cut, int64(maxSeconds))
		}
		rel.cut = int64(cut)
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	if err := CheckCollectionName(name); err != nil {
		return nil, format.Corrupt("", "value", 0, "%w", err)
	}
	return rel, nil
}

// loadReleases reads the releases and what is kept in memory of their sets.
func loadReleases(tx *bolt.Tx, file string, l layout) (all []*release, err error) {
	bkt := tx.Bucket(bucketOfReleases)
	if bkt == nil {
		return nil, nil
	}
	t := l.top(bkt, bucketOfReleases)
	err = bkt.ForEach(func(name, stored []byte) error {
		value, err := t.open(name, stored)
		var r *release
		if err == nil {
			r, err = decodeRelease(string(name), value)
		}
		if err != nil {
			return located(err, file, "releases: %q", name)
		}
		all = append(all, r)
		if r.state == stateDropping {
			return nil // its sets may be gone
		}
		for uid, set := range r.sets {
			var held *roaring.Bitmap
			if r.sets[uid], held, err = loadRowSet(tx, l, file, uid, set.uid); err != nil {
				return err
			}
			if held == nil {
				return format.Corrupt(file, "held", 0, "it is missing in the set with UID %d", set.uid)
			}
			r.sets[uid].held.Store(held)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b *release) int { return cmp.Compare(a.number, b.number) })
	live := 0
	for _, r := range all {
		if r.state == Live {
			live++
		}
	}
	if err == nil && len(all) > 0 && live != 1 {
		err = format.Corrupt(file, "releases", 0, "%d releases are live, want 1", live)
	}
	return all, err
}

// putReleases writes the bucket releases.
func (l layout) putReleases(tx *bolt.Tx, all []*release) error {
	bkt := tx.Bucket(bucketOfReleases)
	t := l.top(bkt, bucketOfReleases)
	var gone [][]byte
	c := bkt.Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		if !slices.ContainsFunc(all, func(r *release) bool { return r.name == string(k) }) {
			gone = append(gone, slices.Clone(k)) // a cursor must not be used beside deletes
		}
	}
	for _, name := range gone {
		if err := bkt.Delete(name); err != nil {
			return err
		}
	}
	for _, r := range all {
		if err := t.put([]byte(r.name), encodeRelease(r), &slab{}); err != nil {
			return err
		}
	}
	return nil
}
