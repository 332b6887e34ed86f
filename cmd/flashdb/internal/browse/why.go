package browse

import (
	"net/http"

	"github.com/flashdb/flashdb"
)

// evidence is a node that speaks for a hit, or against it.
type evidence struct {
	ref
	Value number `json:"value"`
}

// A way leads from the source to a hit through a node.
type way struct {
	ref
	Collection string `json:"collection"` // of the node
	Shared     bool   `json:"shared"`     // a shared neighbour
}

// A part is what some dimensions of the embedding contribute to the score.
type part struct {
	From  int    `json:"from"`
	To    int    `json:"to"` // the last one
	Value number `json:"value"`
}

// reason says what supports a hit: see flashdb.Reason.
type reason struct {
	Known    int        `json:"known"`
	ByScore  []evidence `json:"by_score"`
	ByCosine []evidence `json:"by_cosine"`
	Ways     []way      `json:"ways"`
	Parts    []part     `json:"parts"`
	Rest     number     `json:"rest"` // of the score: biases and the like
	For      []evidence `json:"for"`
	Against  []evidence `json:"against"`
}

// why answers with what supports one hit: c, key, to, hit, decoder, relation, reverse.
func (s *Server) why(r *http.Request) (any, error) {
	q, err := s.questionOf(r)
	if err != nil {
		return nil, err
	}
	p := q.params
	hit := p.key("hit")
	opts := flashdb.WhyOptions{
		Decoder: p.text("decoder"), Relation: p.text("relation"), Reverse: p.flag("reverse"), SourceCollection: q.sourceCollection(),
	}
	if p.err != nil {
		return nil, p.err
	}
	all, err := q.to.Why(r.Context(), q.key, []string{hit}, &opts)
	if err != nil {
		return nil, err
	}
	of := all[0]
	out := reason{
		Known: of.Known, Rest: number(float64(of.Score) - of.Sum),
		ByScore:  evidenceOf(of.ByScore, func(n flashdb.Neighbor) float32 { return n.Score }),
		ByCosine: evidenceOf(of.ByCosine, func(n flashdb.Neighbor) float32 { return n.Cosine }),
		For:      evidenceOf(of.For, func(n flashdb.Neighbor) float32 { return n.Along }),
		Against:  evidenceOf(of.Against, func(n flashdb.Neighbor) float32 { return n.Along }),
		Ways:     []way{}, Parts: []part{},
	}
	for _, path := range of.Paths {
		collection := path.Collection
		if collection == "" {
			collection = q.to.Name()
		}
		out.Ways = append(out.Ways, way{refTo(path.Via), collection, path.Shared})
	}
	for _, b := range of.Blocks {
		out.Parts = append(out.Parts, part{b.From, b.To - 1, number(b.Contribution)})
	}
	return out, nil
}

func evidenceOf(all []flashdb.Neighbor, value func(flashdb.Neighbor) float32) []evidence {
	out := make([]evidence, len(all))
	for i, n := range all {
		out[i] = evidence{refTo(n.Key), number(value(n))}
	}
	return out
}
