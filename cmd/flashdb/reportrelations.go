package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/decoder"
)

// A knowledge graph may have thousands of relations, and each look for links is a read.
const (
	relationsTried = 32 // to find one that a source has links of
	relationsSeen  = 64 // whose links are counted to find the examples
	relationsNamed = 12 // of a decoder
)

// chooseRelations sets the relations that are asked for: the one that is named, or all that the
// decoder has.
func (r *reporter) chooseRelations(ctx context.Context, decoderName string) error {
	d, err := r.c.Decoder(ctx, decoderName)
	if err != nil {
		return err
	}
	r.relations = d.Spec().Relations
	if r.relation == "" {
		return nil
	}
	if _, err := decoder.ForRelation(d, r.relation, r.reverse); err != nil {
		return fmt.Errorf("decoder %s: %w", show.Text(decoderName), err)
	}
	r.relations = []string{r.relation}
	return nil
}

// asked says by which relations sources are asked, or nothing if the decoder has none.
func (r *reporter) asked() string {
	switch {
	case len(r.relations) == 0:
		return ""
	case len(r.relations) > 1:
		return fmt.Sprintf("each for one of the %d relations", len(r.relations))
	case r.reverse:
		return "in reverse of the relation " + show.Text(r.relations[0])
	}
	return "for the relation " + show.Text(r.relations[0])
}

// relationFor returns the relation that the i-th source is asked for. The relations take turns, but
// one that the source has links of is preferred: queries are likely to be of that kind.
func (r *reporter) relationFor(ctx context.Context, key string, i int) (string, error) {
	n := len(r.relations)
	if n <= 1 {
		return strings.Join(r.relations, ""), nil
	}
	for tried := range min(n, relationsTried) {
		relation := r.relations[(i+tried)%n]
		linked, err := r.linked(ctx, key, relation)
		if err != nil {
			return "", err
		}
		if len(linked) > 0 {
			return relation, nil
		}
	}
	return r.relations[i%n], nil
}

// linked returns the known links of a source: those of a relation, or all of them if it is empty.
func (r *reporter) linked(ctx context.Context, key, relation string) ([]string, error) {
	if r.reverse {
		return r.from.Linked(ctx, flashdb.Edge{SourceCollection: r.c.Name(), Target: key, Relation: relation})
	}
	return r.c.Linked(ctx, flashdb.Edge{SourceCollection: r.from.Name(), Source: key, Relation: relation})
}

// linkedByRelation returns the sources with the most links of each relation: first those of the
// relation with the most links, and the second source of a relation after the first of all others.
func (r *reporter) linkedByRelation(ctx context.Context, keys []string) ([]linkedSource, error) {
	byRelation := make([][]linkedSource, 0, len(r.relations))
	for _, relation := range r.relations[:min(len(r.relations), relationsSeen)] {
		sources, err := r.linkedSources(ctx, keys, relation)
		if err != nil {
			return nil, err
		}
		if len(sources) > 0 {
			byRelation = append(byRelation, sources)
		}
	}
	slices.SortStableFunc(byRelation, func(a, b []linkedSource) int { return byLinks(a[0], b[0]) })
	var all []linkedSource
	for place := 0; len(all) < reportExamples; place++ {
		before := len(all)
		for _, sources := range byRelation {
			if place < len(sources) {
				all = append(all, sources[place])
			}
		}
		if len(all) == before {
			break
		}
	}
	return all, nil
}

func byLinks(a, b linkedSource) int { return cmp.Compare(len(b.linked), len(a.linked)) }
