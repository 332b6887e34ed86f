package storage

import (
	"encoding/binary"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	bolt "go.etcd.io/bbolt"
)

// sets checks that each set is referenced once (invariant 13).
func (c *checker) sets(tx *bolt.Tx) {
	names := map[uint32]int{}
	for _, col := range c.cat.byUID {
		names[col.set.uid]++
	}
	purging := map[uint32]bool{} // a set of a dropped release may be there or not
	for _, r := range c.cat.releases {
		for uid, set := range r.sets {
			names[set.uid]++
			purging[set.uid] = r.state == stateDropping
			if c.cat.byUID[uid] == nil {
				c.report(fmt.Sprintf("release %q: it has a set of the collection with UID %d, which does not exist", r.name, uid))
			}
		}
	}
	for set, n := range names {
		if n != 1 {
			c.report(fmt.Sprintf("sets: %d collections and releases have the set with UID %d, want 1", n, set))
		}
	}
	top := tx.Bucket(bucketOfSets)
	if top == nil {
		return
	}
	err := top.ForEachBucket(func(key []byte) error {
		if len(key) != 4 || names[binary.BigEndian.Uint32(key)] == 0 {
			c.report(fmt.Sprintf("sets: no collection or release has the set %x", key))
		}
		return nil
	})
	if err != nil {
		c.report(err.Error())
	}
}

// releases checks what releases that are not live have of a collection (invariant 14).
func (c *checker) releases(tx *bolt.Tx, col *collection) {
	for _, r := range c.cat.releases {
		set := r.sets[col.uid]
		if set == nil || r.state == stateDropping {
			continue
		}
		cc := &collectionChecker{checker: c, of: fmt.Sprintf("release %q: ", r.name), col: col}
		if b := setBucket(tx, col.uid, set.uid); b != nil {
			cc.bucketsOf(b, set.uid, true)
			if _, err := loadEmbedded(c.layout.collection(b, set.uid), c.file); err != nil {
				cc.found("%v", err)
			}
		}
		rows, want := cc.rows(), set.rows(col)
		if missing := roaring.AndNot(want, rows); !missing.IsEmpty() {
			cc.found("rows: the row of id %d is missing (%d rows are)", missing.Minimum(), missing.GetCardinality())
		}
		if more := roaring.AndNot(rows, want); !more.IsEmpty() {
			cc.found("rows: id %d has a row and should have none (%d such rows)", more.Minimum(), more.GetCardinality())
		}
		cc.set(set)
	}
}
