package main

import (
	"context"
	"errors"
	"slices"

	"github.com/flashdb/flashdb/flashlight"
)

// growthPoint is the time of a query over a part of a graph's candidates.
type growthPoint struct {
	Line   string  `json:"line"`
	Rows   int     `json:"rows"`
	MS     float64 `json:"ms"` // of processor time, median
	Recall float64 `json:"recall"`
	Plan   string  `json:"plan"`
}

// complexityRecord is how the time of a query grows with the number of candidates.
type complexityRecord struct {
	Graph   string        `json:"graph"`
	Sources int           `json:"sources"`
	Points  []growthPoint `json:"points"`
}

// exactLine is the line of the exact scan.
const exactLine = "exact scan"

// complexity times queries on a sixteenth, an eighth, ... and all candidates of a model.
func (r *paperRun) complexity(ctx context.Context, graph string) (complexityRecord, error) {
	return recorded(r.records, "complexity/"+graph, func() (complexityRecord, error) {
		c := complexityRecord{Graph: graph, Sources: r.settings.Timed}
		m, err := r.model(ctx, graph, r.settings.Encoders[0], 1)
		if err != nil {
			return c, err
		}
		for part := 16; part >= 1; part /= 2 {
			points, err := r.complexityOf(ctx, m.part(part))
			if err != nil {
				return c, err
			}
			c.Points = append(c.Points, points...)
		}
		return c, nil
	})
}

// part returns the model with one candidate of so many, evenly spread, and the sources as rows of
// their own before them: as those of a graph of two kinds.
func (m *paperModel) part(of int) *paperModel {
	n := len(m.Embeddings)/m.Dim - m.Sources
	p := &paperModel{Dim: m.Dim, Sources: m.Sources, Blob: m.Blob, decoder: m.decoder}
	if p.Sources == 0 {
		p.Sources = n
	}
	p.Embeddings = slices.Clone(m.Embeddings[:p.Sources*m.Dim])
	for _, row := range evenly(n/of, n) {
		at := m.Sources + row
		p.Embeddings = append(p.Embeddings, m.Embeddings[at*m.Dim:(at+1)*m.Dim]...)
	}
	return p
}

// complexityOf times one part: the exact scan, and the default plan with the seed ones and with
// learned seeds.
func (r *paperRun) complexityOf(ctx context.Context, m *paperModel) (points []growthPoint, err error) {
	s, err := servePaper(ctx, m)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.draw(ctx, r.settings.Timed); err != nil {
		return nil, err
	}
	if err := s.learn(ctx, r.settings.Learned); err != nil {
		return nil, err
	}
	rate, err := s.exactRate(ctx, 20)
	if err != nil {
		return nil, err
	}
	points = append(points, growthPoint{Line: exactLine, Rows: s.n, MS: 1000 / rate, Recall: 1})
	learned := ours(1, 500, flashlight.SeedLearned)
	learned.Probes = flashlight.DefaultPlan(paperK, s.n).Probes
	for name, plan := range map[string]flashlight.Plan{oursLine: flashlight.DefaultPlan(paperK, s.n), learnedLine: learned} {
		p, err := s.time(ctx, name, plan)
		if err != nil {
			return nil, err
		}
		points = append(points, growthPoint{Line: name, Rows: s.n, MS: 1000 / p.Rate, Recall: p.Recall, Plan: p.Plan})
	}
	return points, nil
}

// line returns the numbers of rows and the times of one line, by rising rows.
func (c complexityRecord) line(name string) (rows, ms, recall []float64) {
	for _, p := range c.Points {
		if p.Line == name {
			rows, ms, recall = append(rows, float64(p.Rows)), append(ms, p.MS), append(recall, p.Recall)
		}
	}
	return rows, ms, recall
}
