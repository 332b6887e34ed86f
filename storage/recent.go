package storage

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/internal/format"
)

// MaxRecent is how many of the newest links to nodes of a collection are kept with the time they
// were recorded. An older one leaves the list when a flush has written a newer one.
const MaxRecent = 20_000

// A RecentLink is a link to a node of a collection that was recorded with its time.
type RecentLink struct {
	UID, Source, Target uint32 // UID is the collection of Source
	Relation            string
	At                  int64 // seconds since 1970
}

// A recentKey names the links to nodes of a collection that one change recorded.
type recentKey struct {
	uid uint32
	lsn uint64
}

// recent are the links to nodes of one collection that one change recorded. A link that was there
// before is not among them.
type recent struct {
	at     int64
	n      int // links
	groups []recentGroup
}

// A recentGroup is some of them that have the same source and relation.
type recentGroup struct {
	uid, source uint32
	relation    string
	targets     []uint32
}

// encode returns the value of bucket recent. It has the last MaxRecent links.
func (r *recent) encode() []byte {
	var w format.Writer
	w.Uvarint(uint64(min(r.n, MaxRecent)))
	w.Uvarint(uint64(r.at))
	skip := max(0, r.n-MaxRecent)
	for _, g := range r.groups {
		if skip >= len(g.targets) {
			skip -= len(g.targets)
			continue
		}
		w.Uvarint(uint64(g.uid))
		w.String(g.relation)
		encodeEdges(&w, g.source, g.targets[skip:])
		skip = 0
	}
	return w.Data()
}

// decodeRecent reads a value of bucket recent.
func decodeRecent(b []byte) (*recent, error) {
	r := format.NewReader("", "value", 0, b)
	n, at := r.Uvarint(), r.Uvarint()
	if n == 0 || n > MaxRecent || at == 0 || at > maxSeconds {
		r.Fail("%d links of time %d, want 1 to %d of a time from 1 to %d", n, at, MaxRecent, int64(maxSeconds))
	}
	all := &recent{at: int64(at)}
	for r.Err() == nil && r.Len() > 0 {
		g := recentGroup{uid: uvarint32(r), relation: r.String()}
		g.source, g.targets = decodeEdges(r)
		if r.Err() == nil && len(g.targets) == 0 {
			r.Fail("no links of the node with id %d", g.source)
		}
		all.n += len(g.targets)
		all.groups = append(all.groups, g)
	}
	if r.Err() == nil && uint64(all.n) != n {
		r.Fail("%d links, want %d", all.n, n)
	}
	return all, r.End()
}

// recordedIn returns how many links a value of bucket recent has, 0 if it is damaged.
func recordedIn(t table, key, stored []byte) int {
	value, err := t.open(key, stored)
	if err != nil {
		return 0
	}
	n, _ := binary.Uvarint(value)
	return int(min(n, MaxRecent))
}

// keepRecent notes links from the node of k to targets, none of which was there before.
func (c *Changes) keepRecent(k linkKey, relation string, at int64, targets []uint32) error {
	if len(targets) == 0 {
		return c.err
	}
	to, err := c.edit(k.to)
	if err != nil {
		return err
	}
	to.recorded = true
	key := recentKey{k.to, c.lsn}
	r := c.own.recent[key]
	if r == nil {
		r = &recent{}
		c.own.recent[key] = r
	}
	r.at = at
	r.n += len(targets)
	r.groups = append(r.groups, recentGroup{k.uid, k.id, relation, targets})
	return c.err
}

// addNew adds targets to known ones, and returns those that were not there, each once.
func addNew(known *roaring.Bitmap, targets []uint32) (fresh []uint32) {
	for _, id := range targets {
		if known.CheckedAdd(id) {
			fresh = append(fresh, id)
		}
	}
	return fresh
}

// Released reports whether the database has releases, so that links are to be recorded.
func (r *reader) Released() bool { return len(r.catalog.releases) > 0 }

// RecentLinks returns the links to nodes of a collection that were recorded after a time, in
// seconds since 1970, and are still there, oldest first. It looks at the newest MaxRecent. A link
// that was removed and recorded again has the time at which it was recorded first.
func (r *reader) RecentLinks(to uint32, after int64) (links []RecentLink) {
	target := r.catalog.byUID[to]
	if target == nil {
		return nil
	}
	first := map[RecentLink]bool{} // without their times
	for _, l := range r.allRecent(to) {
		name := l
		name.At = 0
		if first[name] {
			continue
		}
		first[name] = true
		source := r.catalog.byUID[l.UID]
		if l.At > after && source != nil && source.live(l.Source) && target.live(l.Target) && r.linked(l, to) {
			links = append(links, l)
		}
	}
	return links
}

// linked reports whether a link is there.
func (r *reader) linked(l RecentLink, to uint32) bool {
	k := linksOf(l.UID, l.Source, to)
	ids := relatedBy(r, k, l.Relation)
	return ids != nil && ids.Contains(l.Target)
}

// relatedBy returns the targets of links with a relation, or of those without one where it is
// empty. It returns nil where there are none.
func relatedBy(r *reader, k linkKey, relation string) *roaring.Bitmap {
	if relation == "" {
		return r.links(k)
	}
	for _, one := range r.related(k) {
		if one.Relation == relation && !one.Reverse {
			return one.IDs
		}
	}
	return nil
}

// allRecent returns the newest MaxRecent links that were recorded, oldest first.
func (r *reader) allRecent(to uint32) (links []RecentLink) {
	byLSN := map[uint64]*recent{}
	r.each(to, recentBucket, func(key, value []byte) {
		all, err := decodeRecent(value)
		if err == nil && len(key) != 8 {
			err = format.Corrupt("", "key", 0, "%d bytes, want 8", len(key))
		}
		if err != nil {
			r.damaged(to, recentBucket, r.layout.shownKey(recentBucket, key), err)
			return
		}
		byLSN[binary.BigEndian.Uint64(key)] = all
	})
	for _, l := range r.layers {
		for k, all := range l.recent {
			if k.uid == to {
				byLSN[k.lsn] = all
			}
		}
	}
	for _, lsn := range slices.Sorted(maps.Keys(byLSN)) {
		for _, g := range byLSN[lsn].groups {
			for _, id := range g.targets {
				links = append(links, RecentLink{g.uid, g.source, id, g.relation, byLSN[lsn].at})
			}
		}
	}
	return links[max(0, len(links)-MaxRecent):]
}

// shownLSN is a key of bucket recent as errors show it.
func shownLSN(key []byte) string {
	if len(key) != 8 {
		return strconv.Quote(string(key))
	}
	return fmt.Sprintf("LSN %d", binary.BigEndian.Uint64(key))
}

// recent writes what changes recorded, in order, and removes what is older than the newest
// MaxRecent links.
func (w *writer) recent(keys []recentKey, all *layer) {
	if len(keys) == 0 {
		return
	}
	t := w.table(recentBucket)
	for _, k := range keys {
		w.put(t, binary.BigEndian.AppendUint64(nil, k.lsn), all.recent[k].encode())
	}
	if w.err != nil {
		return
	}
	n := 0
	var old [][]byte
	cur := t.Cursor()
	for key, stored := cur.Last(); key != nil; key, stored = cur.Prev() {
		if n >= MaxRecent {
			old = append(old, slices.Clone(key)) // a cursor must not be used beside deletes
			continue
		}
		n += recordedIn(t, key, stored)
	}
	for _, key := range old {
		w.put(t, key, nil)
	}
}

// recent checks the links that were recorded with their times (invariant 15).
func (c *collectionChecker) recent() {
	n, first := 0, 0
	c.each(recentBucket, func(key, stored []byte) {
		value, ok := c.sound(recentBucket, key, stored)
		if !ok {
			return
		}
		at := shownLSN(key)
		all, err := decodeRecent(value)
		switch {
		case err != nil:
			c.found("recent: %s: %v", at, err)
			return
		case len(key) != 8:
			c.found("recent: key %x has %d bytes, want 8", key, len(key))
		case binary.BigEndian.Uint64(key) > c.applied:
			c.found("recent: links were recorded at %s, the last change applied is %d", at, c.applied)
		}
		if n == 0 {
			first = all.n
		}
		n += all.n
		for _, g := range all.groups {
			c.recentGroup(at, g)
		}
	})
	if n-first >= MaxRecent {
		c.found("recent: the newest %d links suffice without the oldest value, want fewer than %d", n-first, MaxRecent)
	}
}

// recentGroup checks that the ends of links are nodes, or once were. The collection of the sources
// may have been dropped.
func (c *collectionChecker) recentGroup(at string, g recentGroup) {
	from := c.cat.byUID[g.uid]
	if g.uid >= c.cat.nextUID || from != nil && g.source >= from.nextID {
		c.found("recent: %s: a link starts at id %d of the collection with UID %d, and there is no such node", at, g.source, g.uid)
		return
	}
	if most := slices.Max(g.targets); most >= c.col.nextID {
		c.found("recent: %s: id %d is linked to id %d, and the next id is %d", at, g.source, most, c.col.nextID)
	}
}
