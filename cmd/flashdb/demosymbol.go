package main

import (
	"context"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
)

// A demoSymbol is the answer for one symbol.
type demoSymbol struct {
	Source     string    `json:"source"`
	Kind       string    `json:"kind"`
	Known      int       `json:"known"` // neighbours by a known edge
	Hits       []demoHit `json:"hits"`
	Dot        []demoHit `json:"dot"`               // by plain dot product
	Trained    []demoHit `json:"trained,omitempty"` // by the model of --train
	RowsScored int       `json:"rows_scored"`
	FastMS     float64   `json:"fast_ms"`
	ExactMS    float64   `json:"exact_ms"`
	Agree      int       `json:"agree"` // hits that the exact scan has, too
}

type demoHit struct {
	jsonHit
	HeldOut bool `json:"held_out"` // a real reference, kept from training
}

// predict asks for the new neighbours of each symbol.
func (d *demo) predict(ctx context.Context, db database, c collection) error {
	heldOut, err := heldOutEdges(ctx, c)
	if err != nil {
		return err
	}
	var trained collection
	if d.report.Trained != nil {
		if trained, err = db.Collection(ctx, demoTrained); err != nil {
			return err
		}
	}
	if _, err := c.Predict(ctx, demoSymbols[0], demoHits, nil); err != nil { // faults the index in
		return err
	}
	d.printLegend()
	for _, key := range demoSymbols {
		s, err := predictSymbol(ctx, c, key, heldOut)
		if err != nil {
			return err
		}
		if trained != nil {
			if err := d.predictTrained(ctx, trained, &s, heldOut); err != nil {
				return err
			}
		}
		d.report.Symbols = append(d.report.Symbols, s)
		d.printSymbol(s)
	}
	return nil
}

// An undirectedPair is an edge by ids, the smaller first.
type undirectedPair [2]uint32

func pairOf(a, b uint32) undirectedPair { return undirectedPair{min(a, b), max(a, b)} }

// heldOutEdges tells which pairs of keys are references kept from training.
func heldOutEdges(ctx context.Context, c collection) (func(a, b string) bool, error) {
	nodes, err := newNodeIndex(ctx, c)
	if err != nil {
		return nil, err
	}
	links := &fileLinks{sources: nodes, targets: nodes}
	pairs, err := links.read(ctx, demoTable("test.tsv.zst"), edgeFlags{byRow: true}, terminal.NewProgress(nil))
	if err != nil {
		return nil, err
	}
	set := make(map[undirectedPair]bool, len(pairs))
	for _, e := range pairs {
		set[pairOf(e.source, e.target)] = true
	}
	return func(a, b string) bool {
		ida, errA := nodes.byKey(a)
		idb, errB := nodes.byKey(b)
		return errA == nil && errB == nil && set[pairOf(ida, idb)]
	}, nil
}

func predictSymbol(ctx context.Context, c collection, key string, heldOut func(a, b string) bool) (demoSymbol, error) {
	fast, err := c.Predict(ctx, key, demoHits, nil)
	if err != nil {
		return demoSymbol{}, err
	}
	exact, err := c.Predict(ctx, key, demoHits, &flashdb.PredictOptions{Exact: true})
	if err != nil {
		return demoSymbol{}, err
	}
	node, err := c.Get(ctx, key)
	if err != nil {
		return demoSymbol{}, err
	}
	linked, err := c.Linked(ctx, flashdb.Edge{Source: key})
	if err != nil {
		return demoSymbol{}, err
	}
	dot, err := c.Search(ctx, node.Embedding, demoHits, &flashdb.SearchOptions{Exact: true, Exclude: append(linked, key)})
	if err != nil {
		return demoSymbol{}, err
	}
	s := demoSymbol{
		Source: key, Kind: string(node.Payload), Known: len(linked),
		RowsScored: fast.Stats.RowsScored, FastMS: show.Millis(fast.Stats.Elapsed), ExactMS: show.Millis(exact.Stats.Elapsed),
	}
	isExact := map[string]bool{}
	for _, h := range exact.Hits {
		isExact[h.Key] = true
	}
	for i, j := range newJSONHits(fast.Hits) {
		key := fast.Hits[i].Key
		if isExact[key] {
			s.Agree++
		}
		s.Hits = append(s.Hits, demoHit{j, heldOut(node.Key, key)})
	}
	for _, h := range dot.Hits {
		j := jsonHit{Key: show.JSON(h.Key), Score: jsonScore(h.Score)}
		s.Dot = append(s.Dot, demoHit{j, heldOut(node.Key, h.Key)})
	}
	return s, nil
}
