package storage

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/internal/format"
)

// A link may have a relation, by name: a is linked to b because it "treats" it. Such a link is kept
// at both of its ends, so that either may be the source of a question: at a as a link to b, and at
// b as one to a in reverse. All links of a node to the nodes of one collection are one value, of
// any relation: a node that is deleted takes one entry with it, however many relations there are.

// Related are the links of one node that have one relation and one direction.
type Related struct {
	Relation string
	Reverse  bool            // the links lead to the node
	IDs      *roaring.Bitmap // the other ends; not empty
}

// compareRelated orders by relation, links before those in reverse.
func compareRelated(a, b Related) int {
	return cmp.Or(cmp.Compare(a.Relation, b.Relation), compareBool(a.Reverse, b.Reverse))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// encodeRelated returns the value of bucket typed.
func encodeRelated(all []Related) ([]byte, error) {
	var w format.Writer
	w.Uvarint(uint64(len(all)))
	for _, r := range all {
		ids, err := encodeBitmap(r.IDs)
		if err != nil {
			return nil, err
		}
		w.String(r.Relation)
		w.Uint8(flag(r.Reverse))
		w.Blob(ids)
	}
	return w.Data(), nil
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// decodeRelated reads a value of bucket typed. What it returns may share memory with b.
func decodeRelated(b []byte) ([]Related, error) {
	r := format.NewReader("", "value", 0, b)
	var all []Related
	for range r.Count(3) { // an empty name, a direction, the length of a bitmap
		one := Related{Relation: r.String()}
		direction := r.Uint8()
		ids := r.Blob()
		if r.Err() != nil {
			break
		}
		one.Reverse = direction == 1
		var err error
		switch one.IDs, err = decodeBitmap(ids); {
		case err != nil:
			r.Fail("links of relation %q: %w", one.Relation, err)
		case direction > 1:
			r.Fail("links of relation %q have direction %d, want 0 or 1", one.Relation, direction)
		case one.Relation == "" || one.IDs.IsEmpty():
			r.Fail("links of relation %q, %d of them", one.Relation, one.IDs.GetCardinality())
		case len(all) > 0 && compareRelated(all[len(all)-1], one) >= 0:
			r.Fail("links of relation %q come after those of %q", one.Relation, all[len(all)-1].Relation)
		}
		if r.Err() != nil {
			break
		}
		all = append(all, one)
	}
	return all, r.End()
}

// related returns the links of a node that have a relation. They must not be changed.
func (r *reader) related(k linkKey) []Related {
	if from := r.catalog.byUID[k.uid]; from == nil || !from.typed || r.catalog.byUID[k.to] == nil {
		return nil
	}
	for i := len(r.layers) - 1; i >= 0; i-- {
		if all, ok := r.layers[i].typed[k]; ok {
			return all
		}
	}
	value := r.get(k.uid, typedBucket, k.appendTyped(r.linkKey[:0]))
	if value == nil {
		return nil
	}
	all, err := decodeRelated(value)
	if err != nil {
		r.damaged(k.uid, typedBucket, k.id, err)
		return nil
	}
	return all
}

// Related returns the links between node id of collection uid and nodes of collection to that have
// a relation, by relation and direction, deleted nodes included. The two collections may be the
// same. The bitmaps must not be changed.
func (r *reader) Related(uid, id, to uint32) []Related { return r.related(linksOf(uid, id, to)) }

// appendTyped appends the key in bucket typed.
func (k linkKey) appendTyped(b []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, k.to), k.id)
}

// relate adds links between one node and others of one relation and direction, or removes them.
func (c *Changes) relate(k linkKey, relation string, reverse, remove bool, others []uint32) {
	all, ours := c.own.typed[k]
	if !ours {
		all = slices.Clone(c.related(k))
	}
	at, found := slices.BinarySearchFunc(all, Related{Relation: relation, Reverse: reverse}, compareRelated)
	switch {
	case !found && remove:
		return
	case !found:
		all = slices.Insert(all, at, Related{relation, reverse, c.ownBitmap(nil)})
	default:
		all[at].IDs = c.ownBitmap(all[at].IDs)
	}
	ids := all[at].IDs
	if remove {
		for _, id := range others {
			ids.Remove(id)
		}
	} else {
		ids.AddMany(others)
	}
	if ids.IsEmpty() {
		all = slices.Delete(all, at, at+1)
	}
	if len(all) == 0 {
		all = nil
	}
	c.own.typed[k] = all
}

// ownBitmap returns a bitmap of links with a relation for changing in place: b, if this change made
// it, or a copy.
func (c *Changes) ownBitmap(b *roaring.Bitmap) *roaring.Bitmap {
	if b != nil && c.ownRelated[b] {
		return b
	}
	b = copyBitmap(b)
	c.ownRelated[b] = true
	return b
}

// relateBoth changes links with a relation at both of their ends.
func (c *Changes) relateBoth(k linkKey, relation string, remove bool, targets []uint32) {
	c.relate(k, relation, false, remove, targets)
	for _, target := range targets {
		c.relate(linkKey{k.to, k.uid, target}, relation, true, remove, []uint32{k.id})
	}
}

// mayRelate notes that nodes of a collection have links with relations to those of another, or to
// each other.
func (c *Changes) mayRelate(from, to *edit) {
	from.typed = true
	if from.uid != to.uid && !slices.Contains(from.across, to.uid) {
		from.across = append(slices.Clone(from.across), to.uid)
	}
}

// dropRelated removes the links with relations of a node, at its own end.
func (c *Changes) dropRelated(col *edit, id uint32) {
	if !col.typed {
		return
	}
	c.own.typed[linksOf(col.uid, id, 0)] = nil
	for _, to := range col.across {
		c.own.typed[linksOf(col.uid, id, to)] = nil
	}
}

// typed writes links with relations, in order, to collections that exist.
func (w *writer) typed(keys []linkKey, cat *catalog, all *layer) {
	for _, k := range keys {
		if cat.byUID[k.to] == nil {
			continue // dropped since
		}
		var value []byte
		if links := all.typed[k]; links != nil {
			var err error
			value, err = encodeRelated(links)
			w.fail(err)
		}
		w.put(w.table(typedBucket), k.appendTyped(w.linkKey[:0]), value)
	}
}

// A relatedPair names the links with one relation from one collection to another.
type relatedPair struct {
	from, to uint32
	relation string
}

// typed checks the links with relations (invariants 4, 5 and 10), and sums up both of their ends.
func (c *collectionChecker) typed() {
	c.each(typedBucket, func(key, stored []byte) {
		if len(key) != acrossKeyBytes {
			c.found("typed: key %x has %d bytes, want %d", key, len(key), acrossKeyBytes)
			return
		}
		uid, id := binary.BigEndian.Uint32(key), binary.BigEndian.Uint32(key[4:])
		if uid != c.col.uid && !slices.Contains(c.col.across, uid) {
			c.found("typed: id %d has links to the collection with UID %d, and info does not say so", id, uid)
			return
		}
		to := c.cat.byUID[uid]
		value, ok := c.sound(typedBucket, key, stored)
		if to == nil || !c.isLive(typedBucket, id) || !ok {
			return
		}
		all, err := decodeRelated(value)
		if err != nil {
			c.found("typed: id %d: %v", id, err)
			return
		}
		for _, r := range all {
			if most := r.IDs.Maximum(); most >= to.nextID {
				c.found("typed: id %d is linked to id %d, and the next id is %d", id, most, to.nextID)
				continue
			}
			c.sumEnds(r, id, to)
		}
	})
}

// sumEnds adds the links between live nodes to a sum that is zero when all of them are there at
// both ends.
func (c *collectionChecker) sumEnds(r Related, id uint32, to *collection) {
	pair := relatedPair{c.col.uid, to.uid, r.Relation}
	if r.Reverse {
		pair.from, pair.to = to.uid, c.col.uid
	}
	for it := r.IDs.Iterator(); it.HasNext(); {
		other := it.Next()
		switch {
		case !to.live(other):
		case r.Reverse:
			c.ends[pair] -= pairHash(other, id)
		default:
			c.ends[pair] += pairHash(id, other)
		}
	}
}

// pairHash mixes the ends of a link (the finalizer of splitmix64).
func pairHash(from, to uint32) uint64 {
	h := uint64(from)<<32 | uint64(to) + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// bothEnds reports links that are at one of their ends alone (invariant 11).
func (c *checker) bothEnds() {
	var torn []relatedPair
	for pair, sum := range c.ends {
		if sum != 0 {
			torn = append(torn, pair)
		}
	}
	slices.SortFunc(torn, func(a, b relatedPair) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.relation, b.relation))
	})
	for _, pair := range torn {
		c.report(fmt.Sprintf("typed: links of relation %q from %q to %q are not the same at both ends",
			pair.relation, c.cat.byUID[pair.from].name, c.cat.byUID[pair.to].name))
	}
}
