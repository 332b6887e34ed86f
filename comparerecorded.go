package flashdb

import (
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/storage"
)

// Recorded links are ranked if they are minRecorded at least, and of more the newest maxRecorded.
// By fewer, only a large difference would be more than chance.
const (
	minRecorded = 100
	maxRecorded = 2000
)

// recorded returns the newest of the links that were recorded after a time and can be ranked in
// both releases, and how many these are in all. The decoder ranks them: they start in the
// collection of its sources, and have a relation that it knows, or none where it knows none. Their
// nodes have an embedding in both releases. Build has not computed that from these links.
func (p pair) recorded(from pair, decoder string, since time.Time) (edges []Edge, all int, err error) {
	var knows [2]*trained
	for i, of := range p.each() {
		if knows[i], err = of.trained(decoder); err != nil {
			return nil, 0, err
		}
	}
	sources, err := from.both()
	if err != nil {
		return nil, 0, err
	}
	targets, err := p.both()
	if err != nil {
		return nil, 0, err
	}
	if err := p.staged.withoutEmbedded(targets); err != nil {
		return nil, 0, err
	}
	if err := from.staged.withoutEmbedded(sources); err != nil {
		return nil, 0, err
	}
	known := map[string]bool{} // relations
	knowsBoth := func(relation string) bool {
		is, ok := known[relation]
		if !ok {
			_, live := knows[0].of(relation, false)
			_, staged := knows[1].of(relation, false)
			is = live == nil && staged == nil
			known[relation] = is
		}
		return is
	}
	rankable := func(l storage.RecentLink) bool {
		return l.UID == from.live.uid && sources.Contains(l.Source) && targets.Contains(l.Target) && knowsBoth(l.Relation)
	}
	err = p.live.view(func(v *storage.View) error {
		links := v.RecentLinks(p.live.uid, since.Unix())
		links = slices.DeleteFunc(links, func(l storage.RecentLink) bool { return !rankable(l) })
		all = len(links)
		for _, l := range links[max(0, all-maxRecorded):] {
			source, _ := v.Key(l.UID, l.Source)
			target, _ := v.Key(p.live.uid, l.Target)
			edges = append(edges, Edge{SourceCollection: from.live.name, Source: source, Target: target, Relation: l.Relation})
		}
		return nil
	})
	return edges, all, err
}

// withoutEmbedded takes the nodes out of ids whose embedding Build has computed from their links.
func (c *Collection) withoutEmbedded(ids *roaring.Bitmap) error {
	return c.view(func(v *storage.View) error {
		ids.AndNot(v.EmbeddedIDs(c.uid))
		return nil
	})
}
