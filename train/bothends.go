package train

import (
	"context"

	"github.com/flashdb/flashdb/decoder"
)

// ByRelation returns the decoders of some relations of d, and those in reverse, for Task.Decoders
// and Task.Reversed. The error is that of the first name that d does not know.
func ByRelation(d decoder.Decoder, names []string) (forward, reversed []decoder.Decoder, err error) {
	for _, name := range names {
		there, err := decoder.ForRelation(d, name, false)
		if err != nil {
			return nil, nil, err
		}
		back, err := decoder.ForRelation(d, name, true)
		if err != nil {
			return nil, nil, err
		}
		forward, reversed = append(forward, there), append(reversed, back)
	}
	return forward, reversed, nil
}

// bothEnds ranks the targets of the links and then their sources, and returns the means: what
// papers on knowledge graphs print.
func bothEnds(ctx context.Context, t *Task) (*Metrics, error) {
	tails, err := t.evaluate(ctx)
	if err != nil {
		return nil, err
	}
	turned := *t
	turned.Decoders = t.Reversed
	turned.Edges, turned.Known, turned.NegativeEdges = turnedEdges(t.Edges), turnedEdges(t.Known), turnedEdges(t.NegativeEdges)
	heads, err := turned.evaluate(ctx)
	if err != nil {
		return nil, err
	}
	m := &Metrics{Edges: tails.Edges, Hits: map[int]float64{}, Tails: tails, Heads: heads}
	m.MRR, m.AUC = (tails.MRR+heads.MRR)/2, (tails.AUC+heads.AUC)/2
	for k, share := range tails.Hits {
		m.Hits[k] = (share + heads.Hits[k]) / 2
	}
	return m, nil
}

// turnedEdges returns edges with their ends exchanged, nil for none.
func turnedEdges(edges []Edge) []Edge {
	if edges == nil {
		return nil
	}
	turned := make([]Edge, len(edges))
	for i, e := range edges {
		turned[i] = Edge{e.Target, e.Source, e.Relation}
	}
	return turned
}
