package tests

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flashdb/flashdb"
)

// relations are those that links of a model have, and that its decoders with relations know.
var relations = []string{"causes", "treats"}

// A source is a node that links of one relation, or of none, start at: a node of another
// collection, or of the model's own where it names none.
type source struct{ collection, key, relation string }

func sourceOf(e flashdb.Edge) source { return source{e.SourceCollection, e.Source, e.Relation} }

// linked returns the nodes that a node is linked to: by the relation of from, or, where that is
// empty, by any and by none.
func (m *model) linked(from source) map[string]bool {
	all := map[string]bool{}
	for of, targets := range m.links {
		if of.collection == from.collection && of.key == from.key && (from.relation == "" || of.relation == from.relation) {
			maps.Copy(all, targets)
		}
	}
	return all
}

// linkedTo returns the nodes of a collection that are linked to one of the model's by a relation.
func (m *model) linkedTo(collection, relation, target string) map[string]bool {
	all := map[string]bool{}
	for of, targets := range m.links {
		if of.collection == collection && of.relation == relation && targets[target] {
			all[of.key] = true
		}
	}
	return all
}

// inserted returns keys in the order in which their nodes were inserted.
func (m *model) inserted(keys map[string]bool) []string {
	return slices.SortedFunc(maps.Keys(keys), func(a, b string) int { return cmp.Compare(m.ids[a], m.ids[b]) })
}

func (m *model) linkCount() (n uint64) {
	for _, targets := range m.links {
		n += uint64(len(targets))
	}
	return n
}

// edges returns all links, in the same order for the same ones.
func (m *model) edges() (edges []flashdb.Edge) {
	for of, targets := range m.links {
		for target := range targets {
			edges = append(edges, flashdb.Edge{SourceCollection: of.collection, Source: of.key, Target: target, Relation: of.relation})
		}
	}
	slices.SortFunc(edges, func(a, b flashdb.Edge) int {
		return cmp.Or(cmp.Compare(a.SourceCollection, b.SourceCollection), cmp.Compare(a.Source, b.Source),
			cmp.Compare(a.Target, b.Target), cmp.Compare(a.Relation, b.Relation))
	})
	return edges
}

// related returns edges with a relation.
func related(relation string, edges []flashdb.Edge) []flashdb.Edge {
	for i := range edges {
		edges[i].Relation = relation
	}
	return edges
}

// diffLinks compares the links, as Links and as Linked tell them.
func (m *model) diffLinks(ctx context.Context, c *flashdb.Collection, prefix string) error {
	got := map[source][]string{}
	for e, err := range c.Links(ctx) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(e.Source, prefix) {
			got[sourceOf(e)] = append(got[sourceOf(e)], e.Target)
		}
	}
	collections := map[string]bool{"": true}
	for from, targets := range m.links {
		if len(targets) == 0 {
			continue
		}
		collections[from.collection] = true
		if err := m.diffLinked(ctx, c, from, got[from]); err != nil {
			return err
		}
		delete(got, from)
	}
	if len(got) > 0 {
		return fmt.Errorf("links that should not be: %v", got)
	}
	for collection := range collections {
		for key := range m.nodes {
			if err := m.diffReverse(ctx, c, collection, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// diffLinked compares the links from one node by its relation with those that Links yielded, and
// with what Linked tells of them and of all links of the node.
func (m *model) diffLinked(ctx context.Context, c *flashdb.Collection, from source, yielded []string) error {
	if want := slices.Sorted(maps.Keys(m.links[from])); !slices.Equal(slices.Sorted(slices.Values(yielded)), want) {
		return fmt.Errorf("links yields %q for %v, want %q", yielded, from, want)
	}
	of := flashdb.Edge{SourceCollection: from.collection, Source: from.key}
	linked, err := c.Linked(ctx, of)
	if err != nil {
		return err
	}
	slices.Sort(linked)
	if want := slices.Sorted(maps.Keys(m.linked(source{from.collection, from.key, ""}))); !slices.Equal(linked, want) {
		return fmt.Errorf("%v is linked to %q by any relation, want %q", from, linked, want)
	}
	if of.Relation = from.relation; of.Relation == "" {
		return nil
	}
	linked, err = c.Linked(ctx, of)
	if err == nil && !slices.Equal(linked, yielded) {
		err = fmt.Errorf("%v is linked to %q, and Links yields %q", from, linked, yielded)
	}
	return err
}

// diffReverse compares the nodes of a collection that are linked to one, by each relation.
func (m *model) diffReverse(ctx context.Context, c *flashdb.Collection, collection, key string) error {
	for _, relation := range relations {
		linked, err := c.Linked(ctx, flashdb.Edge{SourceCollection: collection, Target: key, Relation: relation})
		if err != nil {
			return err
		}
		slices.Sort(linked)
		if want := slices.Sorted(maps.Keys(m.linkedTo(collection, relation, key))); !slices.Equal(linked, want) {
			return fmt.Errorf("linked to %q by %q are %q of %q, want %q", key, relation, linked, collection, want)
		}
	}
	return nil
}
