package storage

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"
)

// LinkCount returns how many links lead from live nodes of any collection to live nodes of one,
// with a relation or without. It reads the links of every source.
func (r *reader) LinkCount(to uint32) (n uint64) {
	if r.catalog.byUID[to] == nil {
		return 0
	}
	tombs := r.Tombs(to) // a deleted target stays in the bitmaps of its sources
	count := func(targets *roaring.Bitmap) {
		n += targets.GetCardinality()
		if tombs != nil {
			n -= targets.AndCardinality(tombs)
		}
	}
	countRelated := func(all []Related) {
		for _, one := range all {
			if !one.Reverse { // at the other end it is the same link once more
				count(one.IDs)
			}
		}
	}
	links := newest(r, to, func(l *layer) map[linkKey]*roaring.Bitmap { return l.links })
	for _, targets := range links {
		if targets != nil {
			count(targets)
		}
	}
	typed := newest(r, to, func(l *layer) map[linkKey][]Related { return l.typed })
	for _, all := range typed {
		countRelated(all)
	}
	from := []uint32{to}
	for _, info := range r.LinkingTo(to) {
		from = append(from, info.UID)
	}
	for _, uid := range from {
		eachOf(r, linksOf(uid, 0, to).bucket(), uid, to, links, decodeBitmap, count)
		eachOf(r, typedBucket, uid, to, typed, decodeRelated, countRelated)
	}
	return n
}

// newest returns what the layers say of links to a collection, the last of them, for sources in
// collections that exist.
func newest[L any](r *reader, to uint32, in func(*layer) map[linkKey]L) map[linkKey]L {
	all := map[linkKey]L{}
	for _, l := range r.layers {
		for k, links := range in(l) {
			if k.to == to && r.catalog.byUID[k.uid] != nil {
				all[k] = links
			}
		}
	}
	return all
}

// eachOf calls fn with the links to a collection that a bucket of another, or of the same, holds,
// but for those of which newer says something.
func eachOf[L any](r *reader, b bucket, uid, to uint32, newer map[linkKey]L, decode func([]byte) (L, error), fn func(L)) {
	r.each(uid, b, func(key, value []byte) {
		id, ok := sourceOfLinks(b, key, to)
		if _, known := newer[linksOf(uid, id, to)]; !ok || known {
			return
		}
		links, err := decode(value)
		if err != nil {
			r.damaged(uid, b, r.layout.shownKey(b, key), err)
			return
		}
		fn(links)
	})
}

// sourceOfLinks returns the id of the source whose links to a collection a bucket holds under key,
// and whether they are links to that one.
func sourceOfLinks(b bucket, key []byte, to uint32) (id uint32, ok bool) {
	if b != linksBucket {
		if len(key) != acrossKeyBytes || binary.BigEndian.Uint32(key) != to {
			return 0, false
		}
		key = key[acrossKeyBytes-4:]
	}
	if len(key) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(key), true
}
