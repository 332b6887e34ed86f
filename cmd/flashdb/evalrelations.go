package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
	"github.com/flashdb/flashdb/train/graph"
)

// relate numbers the relations of the edges, and takes their decoders in both directions. With two
// kinds of nodes the targets alone are ranked: the sources are no nodes of the collection.
func (k *ranking) relate(d decoder.Decoder, relations []string) (err error) {
	numbers := map[string]uint16{}
	for i := range k.task.Edges {
		relation := relations[i]
		if relation == "" {
			relation = k.r.relation
		}
		if relation == "" {
			return fmt.Errorf("the decoder has relations, and edges of %s have none: name their column by --relation-column, or say --relation", k.r.edges.file)
		}
		at, ok := numbers[relation]
		if !ok {
			if _, err := decoder.ForRelation(d, relation, false); err != nil {
				return fmt.Errorf("%s: %w", k.r.edges.file, err)
			}
			at = uint16(len(k.named))
			numbers[relation], k.named = at, append(k.named, relation)
		}
		k.task.Edges[i].Relation = at
	}
	k.task.Decoders, k.task.Reversed, err = train.ByRelation(d, k.named)
	if k.sources != nil || k.task.NegativeEdges != nil || k.task.Candidates != nil {
		k.task.Reversed = nil
	}
	return err
}

// openTriples opens a file of edges. For a decoder with relations, the second of three columns is
// the relation: a short file does not show it.
func (k *ranking) openTriples(s edgeSource) (r *graph.Reader, remove func() error, err error) {
	r, remove, err = k.openEdgeSource(s, false)
	if err != nil || !k.related || k.r.relation != "" || s.columns != (graph.Columns{}) || s.file == standardInput {
		return r, remove, err
	}
	if l := r.Layout(); l.Header || l.Columns.Relation != "" {
		return r, remove, nil
	}
	s.columns = graph.Columns{Source: "1", Relation: "2", Target: "3"}
	again, removeAgain, err := k.openEdgeSource(s, false)
	if err != nil {
		return r, remove, nil // it has two columns
	}
	return again, removeAgain, errors.Join(r.Close(), remove())
}

// A tripleEnd is what a triple is asked by: one of its nodes, and its relation.
type tripleEnd struct {
	node     uint32
	relation uint16
	reverse  bool
}

// knownTriples are no candidates: those of the source of an edge and its relation, and, where
// sources are ranked too, those of its target.
func (k *ranking) knownTriples(ctx context.Context, edges []idPair) error {
	known := map[train.Edge]bool{}
	seen := map[tripleEnd]bool{}
	for i, e := range edges {
		t := k.task.Edges[i]
		ends := []tripleEnd{{e.source, t.Relation, false}, {e.target, t.Relation, true}}
		if k.task.Reversed == nil {
			ends = ends[:1]
		}
		for _, end := range ends {
			if seen[end] {
				continue
			}
			seen[end] = true
			if err := k.knownOf(ctx, end, t, known); err != nil {
				return err
			}
		}
		if i%1024 == 0 {
			k.progress.Update("read links", int64(i), int64(len(edges)))
		}
	}
	for e := range known {
		k.task.Known = append(k.task.Known, e)
	}
	for _, e := range k.task.Edges {
		if known[e] {
			k.report.known++
		}
	}
	return nil
}

// knownOf adds the known triples of one end of t.
func (k *ranking) knownOf(ctx context.Context, end tripleEnd, t train.Edge, known map[train.Edge]bool) error {
	of := flashdb.Edge{Source: k.of.keys[end.node], Relation: k.named[end.relation]}
	if end.reverse {
		of.Source, of.Target = "", k.nodes.keys[end.node]
	}
	if k.sources != nil {
		of.SourceCollection = k.sources.Name()
	}
	linked, err := k.target.Linked(ctx, of)
	if err != nil {
		return err
	}
	for _, key := range linked {
		id, err := k.nodes.byKey(key)
		if err != nil {
			continue // newer than the keys
		}
		if k.numbers[id] < 0 {
			continue // no candidate
		}
		if end.reverse {
			known[train.Edge{Source: uint32(k.numbers[id]), Target: t.Target, Relation: t.Relation}] = true
		} else {
			known[train.Edge{Source: t.Source, Target: uint32(k.numbers[id]), Relation: t.Relation}] = true
		}
	}
	return nil
}
