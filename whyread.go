package flashdb

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/storage"
)

// An evidence is what Why reads from the store about some hits, all of it as of one write.
type evidence struct {
	decoder decoder.Decoder
	bound   decoder.Bound // to the source
	pair    decoder.Bound // to a hit or a known link; its memory is reused
	scratch decoder.Scratch
	pairs   bool // the decoder scores pairs of a known link and a hit

	known int // known links of the source
	hits  []hitEvidence
}

// A hitEvidence is what was read about one hit.
type hitEvidence struct {
	key    string
	id     uint32
	row    []float32
	linked bool
	keys   []string  // of the known links that are compared with it
	rows   []float32 // of keys
	paths  []foundPath
}

// A foundPath has, beside the Path, how many links its node has.
type foundPath struct {
	Path
	degree uint64
}

// A linkEnd is a node at an end of a link.
type linkEnd struct {
	uid        uint32 // of its collection
	collection string
	id         uint32
	key        string
}

func (a linkEnd) is(b linkEnd) bool { return a.uid == b.uid && a.id == b.id }

// evidence reads the source, its known links and the hits.
func (c *Collection) evidence(ctx context.Context, source string, hits []string, o WhyOptions) (*evidence, error) {
	e := &evidence{hits: make([]hitEvidence, len(hits))}
	row := make([]float32, c.schema.Dim)
	err := c.viewedWith(ctx, o.Decoder, func(v *storage.View, t *trained) (err error) {
		if e.decoder, err = t.of(o.Relation, o.Reverse); err != nil {
			return err
		}
		from, err := c.rowsOfSources(v, o.SourceCollection)
		if err != nil {
			return err
		}
		at := linkEnd{uid: from.UID, collection: from.Name, key: source}
		if at.id, err = c.sourceRow(v, from, row, source); err != nil {
			return err
		}
		e.pairs = from.UID == c.uid && o.Relation == ""
		for i, key := range hits {
			h := hitEvidence{key: key, row: make([]float32, c.schema.Dim)}
			if h.id, err = c.sourceRow(v, c.itself(), h.row, key); err != nil {
				return err
			}
			e.hits[i] = h
		}
		known := knownLinks(v, from.UID, at.id, c.uid, o.Relation, o.Reverse)
		switch tombs := v.Tombs(c.uid); {
		case known == nil:
			known = roaring.New()
		case tombs != nil:
			known = roaring.AndNot(known, tombs)
		}
		e.compare(c, v, known)
		e.connect(c, v, at)
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	e.bound = e.decoder.Bind(nil, row)
	return e, nil
}

// compare reads the keys and rows of known links. Hits have most of them in common, so that each is
// read once.
func (e *evidence) compare(c *Collection, v *storage.View, known *roaring.Bitmap) {
	e.known = int(known.GetCardinality())
	type node struct {
		key string
		row []float32
	}
	read := map[uint32]node{}
	some := spread(known, whyRead)
	for i := range e.hits {
		h := &e.hits[i]
		h.linked = known.Contains(h.id)
		ids := someOf(known, some, linksOfAny(v, c.uid, h.id, c.uid))
		h.keys, h.rows = make([]string, 0, len(ids)), make([]float32, 0, len(ids)*c.schema.Dim)
		for _, id := range ids {
			n, ok := read[id]
			if !ok {
				n.row = make([]float32, c.schema.Dim)
				if v.Row(n.row, c.uid, id) {
					n.key, _ = v.Key(c.uid, id)
				}
				read[id] = n
			}
			if n.key != "" && id != h.id {
				h.keys, h.rows = append(h.keys, n.key), append(h.rows, n.row...)
			}
		}
	}
}

// connect finds the paths from the source to the hits: through nodes of the collection, and through
// those of the source's where that is another one.
func (e *evidence) connect(c *Collection, v *storage.View, source linkEnd) {
	e.through(c, v, source, c.itself())
	if source.uid != c.uid {
		e.through(c, v, source, storage.Info{UID: source.uid, Name: source.collection})
	}
}

// through finds the paths by way of nodes of one collection.
func (e *evidence) through(c *Collection, v *storage.View, source linkEnd, of storage.Info) {
	first := linksOfAny(v, source.uid, source.id, of.UID)
	all := roaring.New()
	for _, r := range first {
		all.Or(r.IDs)
	}
	if source.uid == of.UID {
		all.Remove(source.id)
	}
	read := map[uint32][]storage.Related{} // the links of the nodes
	some := spread(all, whyRead)
	for i := range e.hits {
		h := &e.hits[i]
		onto := linksOfAny(v, c.uid, h.id, of.UID)
		for _, id := range someOf(all, some, onto) {
			second, ok := read[id]
			if !ok {
				second = linksOfAny(v, of.UID, id, c.uid)
				read[id] = second
			}
			via := linkEnd{uid: of.UID, collection: of.Name, id: id}
			h.join(c, v, source, *holding(first, id), via, second, onto)
		}
	}
}

// join adds the path from the source by way of a node, if there is one. Second are the links of
// that node, and onto those of the hit.
func (h *hitEvidence) join(c *Collection, v *storage.View, source linkEnd, first storage.Related, via linkEnd, second, onto []storage.Related) {
	hit := linkEnd{uid: c.uid, collection: c.name, id: h.id, key: h.key}
	there, back := holding(second, h.id), holding(onto, via.id)
	if via.is(hit) || source.is(hit) || (there == nil && back == nil) {
		return
	}
	var ok bool
	if via.key, ok = v.Key(via.uid, via.id); !ok {
		return // deleted
	}
	p := foundPath{Path: Path{Via: via.key, Shared: back != nil && !back.Reverse && !first.Reverse}}
	if via.uid != hit.uid {
		p.Collection = via.collection
	}
	p.Links[0] = edgeOf(source, first, via)
	if there != nil {
		p.Links[1] = edgeOf(via, *there, hit)
	} else {
		p.Links[1] = edgeOf(hit, *back, via)
	}
	for _, r := range second {
		p.degree += r.IDs.GetCardinality()
	}
	h.paths = append(h.paths, p)
}

// linksOfAny returns the links from a node to those of a collection by relation and direction. The
// first may be those without a relation.
func linksOfAny(v linkReader, uid, id, to uint32) (all []storage.Related) {
	if plain := v.Links(uid, id, to); plain != nil {
		all = append(all, storage.Related{IDs: plain})
	}
	return append(all, v.Related(uid, id, to)...)
}

// holding returns the first of the links that lead to a node, or nil.
func holding(all []storage.Related, id uint32) *storage.Related {
	for i := range all {
		if all[i].IDs.Contains(id) {
			return &all[i]
		}
	}
	return nil
}

// edgeOf returns the stored link between two nodes, which r of the first one holds.
func edgeOf(a linkEnd, r storage.Related, b linkEnd) Edge {
	if r.Reverse {
		a, b = b, a
	}
	e := Edge{Source: a.key, Target: b.key, Relation: r.Relation}
	if a.uid != b.uid {
		e.SourceCollection = a.collection
	}
	return e
}

// someOf returns at most whyRead of all ids: those that a hit is linked to come first, and then
// some others, which are the same for every hit.
func someOf(all *roaring.Bitmap, some []uint32, ofHit []storage.Related) []uint32 {
	near := roaring.New()
	for _, r := range ofHit {
		near.Or(r.IDs)
	}
	near.And(all)
	ids := spread(near, whyRead)
	for _, id := range some {
		if len(ids) < whyRead && !near.Contains(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// spread returns n of the ids, or all if there are not more, spread evenly over their order.
func spread(ids *roaring.Bitmap, n int) []uint32 {
	all := ids.ToArray()
	if len(all) <= n {
		return all
	}
	some := make([]uint32, n)
	for i := range some {
		some[i] = all[i*len(all)/n]
	}
	return some
}
