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
	Encoder string        `json:"encoder"`
	Sources int           `json:"sources"`
	Load    string        `json:"load"` // of the machine when the part began
	Points  []growthPoint `json:"points"`
}

// exactLine is the line of the exact scan.
const exactLine = "exact scan"

// complexity times queries on a sixteenth, an eighth, ... and all candidates of a model, in turns.
func (r *paperRun) complexity(ctx context.Context, at paperServing) (complexityRecord, error) {
	return recorded(r.records, "complexity/"+at.key(), func() (c complexityRecord, err error) {
		c = complexityRecord{Graph: at.graph, Encoder: string(at.encoder), Sources: r.settings.Timed, Load: load()}
		if err := r.release(); err != nil {
			return c, err
		}
		m, err := r.model(ctx, at.graph, at.encoder, 1)
		if err != nil {
			return c, err
		}
		var ways []*way
		var rows []int // of each way
		for part := 16; part >= 1; part /= 2 {
			var s *paperServed
			if s, err = servePaper(ctx, m.part(part)); err != nil {
				return c, err
			}
			defer func() { err = errors.Join(err, s.close()) }()
			if err := r.ask(ctx, s, r.settings.Timed); err != nil {
				return c, err
			}
			ways = append(ways, s.growthWays(ctx)...)
			for len(rows) < len(ways) {
				rows = append(rows, s.n)
			}
		}
		points, err := inTurns(ways)
		for i, p := range points {
			c.Points = append(c.Points, growthPoint{Line: p.Line, Rows: rows[i], MS: 1000 / p.Rate, Recall: p.Recall, Plan: p.Plan})
		}
		return c, err
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

// growthWays are the exact scan, the default plan, and one round with learned seeds.
func (s *paperServed) growthWays(ctx context.Context) []*way {
	plan := flashlight.DefaultPlan(paperK, s.n)
	learned := ours(1, 500, flashlight.SeedLearned)
	learned.Probes = plan.Probes
	return []*way{s.exactWay(ctx), s.planWay(ctx, oursLine, plan), s.planWay(ctx, learnedLine, learned)}
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
