package tests

import (
	"context"
	"maps"
	"slices"

	"github.com/flashdb/flashdb"
)

// linked reads the links of a node with those of any collection: by one relation or by any, to the
// node or from it.
func (r *reader) linked(ctx context.Context, name, key string) ([]verdict, error) {
	c, err := r.db.Collection(name)
	if err != nil {
		return []verdict{found("", "", nil, err)}, unexpected(err)
	}
	of := flashdb.Edge{SourceCollection: historyNames[r.rng.IntN(len(historyNames))], Source: key}
	if kind := r.rng.IntN(3); kind > 0 {
		of.Relation = relations[r.rng.IntN(len(relations))]
		if kind > 1 {
			of.Source, of.Target = "", key
		}
	}
	from := of.SourceCollection
	if from == name {
		from = ""
	}
	got, err := c.Linked(ctx, of)
	return []verdict{func(m *model, worlds []world, at int) error {
		if m == nil && err == nil {
			m = newModel() // see found
		}
		sources := m
		if from != "" {
			sources = worlds[at][from]
		}
		if m == nil || sources == nil {
			if err == nil {
				return unequal("links", got, "no such collection")
			}
			return nil
		}
		asked, others, want := sources, m, m.linked(source{from, key, of.Relation})
		if of.Target != "" {
			asked, others, want = m, sources, m.linkedTo(from, of.Relation, key)
		}
		if _, has := asked.nodes[key]; has != (err == nil) {
			return unequal("links", got, err)
		}
		if ordered := others.inserted(want); err == nil && !slices.Equal(ordered, got) {
			return unequal("links", got, ordered)
		}
		return nil
	}}, unexpected(err)
}

// linksPage is how many ids Links reads as of the same commit.
const linksPage = 256

// links reads the links from another collection, or its own. They are as of the same commit while
// the ids of the sources are a page.
func (r *reader) links(ctx context.Context, c *flashdb.Collection) (verdict, error) {
	from := historyNames[r.rng.IntN(len(historyNames))]
	if from == c.Name() {
		from = ""
	}
	got := map[source][]string{}
	for e, err := range c.Links(ctx) {
		if err != nil {
			return nil, err
		}
		if e.SourceCollection == from {
			got[sourceOf(e)] = append(got[sourceOf(e)], e.Target)
		}
	}
	return func(m *model, worlds []world, at int) error {
		want, sources := map[source][]string{}, m
		if from != "" {
			sources = worlds[at][from]
		}
		if sources != nil && sources.next > linksPage {
			return nil
		}
		for of, targets := range m.links {
			if of.collection == from && len(targets) > 0 {
				want[of] = m.inserted(targets)
			}
		}
		if !maps.EqualFunc(want, got, slices.Equal) {
			return unequal("links", got, want)
		}
		return nil
	}, nil
}
