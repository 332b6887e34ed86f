package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/train"
)

// jsonMetrics are what an evaluation found, as people and programs see them.
type jsonMetrics struct {
	Edges   int    // 0: not said again
	Against string // what the edges were ranked among
	scores
	Tails   *scores      // with relations: of the targets alone; all before is the mean of both ends
	Heads   *scores      // of the sources alone
	Degrees []jsonDegree // by the known links of the source

	LeftOut, Known int     // edges, of eval
	Seconds        float64 // of eval; 0: not said
}

// A jsonDegree is the part of the edges whose sources have From to To known links.
type jsonDegree struct {
	From, To, Edges int
	scores
}

// scores are the metrics that were asked for.
type scores struct {
	mrr, auc *float64
	hits     map[int]float64
}

func newJSONMetrics(m *train.Metrics, against string) *jsonMetrics {
	j := &jsonMetrics{Edges: m.Edges, Against: against, scores: scores{&m.MRR, &m.AUC, m.Hits}}
	if m.Tails != nil {
		j.Tails = &scores{&m.Tails.MRR, &m.Tails.AUC, m.Tails.Hits}
		j.Heads = &scores{&m.Heads.MRR, &m.Heads.AUC, m.Heads.Hits}
	}
	for i := range m.Degree {
		d := &m.Degree[i]
		j.Degrees = append(j.Degrees, jsonDegree{d.From, d.To, d.Edges, scores{&d.MRR, &d.AUC, d.Hits}})
	}
	return j
}

// only leaves out what was not asked for.
func (j *jsonMetrics) only(want metricSet) {
	cut := func(s *scores) {
		if !want.mrr {
			s.mrr = nil
		}
		if !want.auc {
			s.auc = nil
		}
		if len(want.hits) == 0 {
			s.hits = nil
		}
	}
	cut(&j.scores)
	if j.Tails != nil {
		cut(j.Tails)
		cut(j.Heads)
	}
	for i := range j.Degrees {
		cut(&j.Degrees[i].scores)
	}
}

// MarshalJSON writes one object, with a key hits@K for each K.
func (j *jsonMetrics) MarshalJSON() ([]byte, error) {
	var o orderedJSON
	if j.Edges > 0 {
		o.add("edges", j.Edges)
		o.add("ranked_among", j.Against)
	}
	j.scores.marshal(&o)
	if j.Tails != nil {
		o.add("tails", j.Tails)
		o.add("heads", j.Heads)
	}
	if len(j.Degrees) > 0 {
		o.add("by_degree", j.Degrees)
	}
	if j.Seconds > 0 {
		o.add("left_out", j.LeftOut)
		o.add("known", j.Known)
		o.add("seconds", j.Seconds)
	}
	return o.bytes()
}

// MarshalJSON writes one object.
func (d jsonDegree) MarshalJSON() ([]byte, error) {
	var o orderedJSON
	o.add("from", d.From)
	o.add("to", d.To)
	o.add("edges", d.Edges)
	d.scores.marshal(&o)
	return o.bytes()
}

// MarshalJSON writes one object.
func (s *scores) MarshalJSON() ([]byte, error) {
	var o orderedJSON
	s.marshal(&o)
	return o.bytes()
}

func (s scores) marshal(o *orderedJSON) {
	if s.mrr != nil {
		o.add("mrr", *s.mrr)
	}
	for _, k := range slices.Sorted(maps.Keys(s.hits)) {
		o.add(fmt.Sprintf("hits@%d", k), s.hits[k])
	}
	if s.auc != nil {
		o.add("auc", *s.auc)
	}
}

// text is one line of a table.
func (s scores) text() string {
	var cells []string
	if s.mrr != nil {
		cells = append(cells, fmt.Sprintf("MRR %.4f", *s.mrr))
	}
	for _, k := range slices.Sorted(maps.Keys(s.hits)) {
		cells = append(cells, fmt.Sprintf("Hits@%d %.4f", k, s.hits[k]))
	}
	if s.auc != nil {
		cells = append(cells, fmt.Sprintf("AUC %.4f", *s.auc))
	}
	return strings.Join(cells, "\t")
}

// An orderedJSON is an object whose keys keep their order.
type orderedJSON struct {
	text bytes.Buffer
	err  error
}

func (o *orderedJSON) add(key string, value any) {
	name, err := json.Marshal(key)
	if o.err == nil {
		o.err = err
	}
	v, err := json.Marshal(value)
	if o.err == nil {
		o.err = err
	}
	if o.text.Len() > 0 {
		o.text.WriteByte(',')
	}
	o.text.Write(name)
	o.text.WriteByte(':')
	o.text.Write(v)
}

func (o *orderedJSON) bytes() ([]byte, error) {
	return []byte("{" + o.text.String() + "}"), o.err
}
