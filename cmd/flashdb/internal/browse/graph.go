package browse

import (
	"errors"
	"net/http"

	"github.com/flashdb/flashdb"
)

// maxDrawn is how many nodes a drawing has, the source among them: all of them have room for their
// labels.
const maxDrawn = 60

// A drawing is a node, what it is linked to, what is predicted for it, and the known links between
// these.
type drawing struct {
	Nodes []drawn `json:"nodes"` // the source first, then known, then predicted ones
	Edges []line  `json:"edges"`
	Known int     `json:"known"` // links from the source, drawn or not
}

// A drawn is a node of a drawing. Kind is source, known or predicted.
type drawn struct {
	ref
	Kind        string  `json:"kind"`
	Probability *number `json:"probability,omitempty"`
}

// A line goes between nodes of a drawing, by their places.
type line struct {
	From  int  `json:"from"`
	To    int  `json:"to"`
	Known bool `json:"known"`
}

// graph answers with a drawing: c, key, to, n, and with a decoder k and those of predictOptions.
// Predictions take half of the room where known links fill the rest.
func (s *Server) graph(r *http.Request) (any, error) {
	q, err := s.questionOf(r)
	if err != nil {
		return nil, err
	}
	p := q.params
	room := p.count("n", 30, 2, maxDrawn) - 1
	opts := q.predictOptions()
	k := p.count("k", defaultK, 1, maxK)
	if p.err != nil {
		return nil, p.err
	}
	keys, err := q.linked(r.Context(), opts.Relation, opts.Reverse)
	if err != nil {
		return nil, err
	}
	d := drawing{Nodes: []drawn{{ref: refTo(q.key), Kind: "source"}}, Edges: []line{}, Known: len(keys)}
	at := map[string]int{} // of nodes of q.to
	if q.sourceCollection() == "" {
		at[q.key] = 0
	}
	var hits []flashdb.Hit
	if opts.Decoder != "" {
		res, err := q.to.Predict(r.Context(), q.key, min(k, max(room/2, room-len(keys))), &opts)
		if err != nil {
			return nil, err
		}
		hits = res.Hits
	}
	for _, key := range keys[:min(len(keys), room-len(hits))] {
		if _, ok := at[key]; !ok {
			d.add(at, key, drawn{ref: refTo(key), Kind: "known"})
		}
	}
	for _, h := range hits {
		if _, ok := at[h.Key]; !ok {
			p := number(h.Probability)
			d.add(at, h.Key, drawn{refTo(h.Key), "predicted", &p})
		}
	}
	return d, d.linkAll(r, q, at)
}

// add draws a node and its line from the source.
func (d *drawing) add(at map[string]int, key string, n drawn) {
	at[key] = len(d.Nodes)
	d.Edges = append(d.Edges, line{0, at[key], n.Kind == "known"})
	d.Nodes = append(d.Nodes, n)
}

// linkAll adds the known links between the drawn nodes.
func (d *drawing) linkAll(r *http.Request, q question, at map[string]int) error {
	there := map[line]bool{}
	for _, e := range d.Edges {
		there[e] = true
	}
	for key, from := range at {
		if from == 0 {
			continue
		}
		keys, err := q.to.Linked(r.Context(), flashdb.Edge{Source: key})
		if errors.Is(err, flashdb.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		for _, other := range keys {
			to, ok := at[other]
			e, back := line{from, to, true}, line{to, from, true}
			if ok && from != to && !there[e] && !there[back] {
				there[e] = true
				d.Edges = append(d.Edges, e)
			}
		}
	}
	return nil
}
