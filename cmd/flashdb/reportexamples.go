package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/report"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/decoder"
)

const (
	reportExamples = 6
	reportSeen     = 400 // nodes whose links are counted to find the examples
	reportKnown    = 3   // links of an example that are named
)

// A linkedSource is a source with its known links.
type linkedSource struct {
	key    string
	linked []string
}

// examples predicts for some sources that a reader may know: of a sample, those with the most
// links.
func (r *reporter) examples(ctx context.Context, p *report.Page, decoderName string) error {
	sources, err := r.mostLinked(ctx)
	if err != nil {
		return err
	}
	d, err := r.c.Decoder(ctx, decoderName)
	if err != nil {
		return err
	}
	p.Scores = d.Kind() == decoder.Dot && d.Spec().Output != "sigmoid"
	p.ExamplesNote = fmt.Sprintf("New links of the nodes with the most known ones, of %d sampled.", len(sources))
	if len(sources) > 0 && len(sources[0].linked) == 0 {
		p.ExamplesNote = "Sampled nodes: no links are stored, so that known ones cannot be left out."
	}
	for _, s := range sources[:min(reportExamples, len(sources))] {
		res, err := r.c.Predict(ctx, s.key, reportHits, &flashdb.PredictOptions{Decoder: decoderName, SourceCollection: r.from.Name()})
		if err != nil {
			return err
		}
		p.Examples = append(p.Examples, reportExample(s, res))
	}
	return nil
}

// mostLinked returns a sample of the sources, those with the most links first. Where there are no
// links it is spread evenly.
func (r *reporter) mostLinked(ctx context.Context) ([]linkedSource, error) {
	keys, err := sample(ctx, r.from, reportSeen)
	if err != nil {
		return nil, err
	}
	sources := make([]linkedSource, len(keys))
	any := false
	for i, key := range keys {
		linked, err := r.c.Linked(ctx, flashdb.Edge{SourceCollection: r.from.Name(), Source: key})
		if err != nil {
			return nil, err
		}
		sources[i] = linkedSource{key, linked}
		any = any || len(linked) > 0
	}
	if !any {
		spread := make([]linkedSource, min(reportExamples, len(sources)))
		for i := range spread {
			spread[i] = sources[i*len(sources)/len(spread)]
		}
		return spread, nil
	}
	slices.SortStableFunc(sources, func(a, b linkedSource) int { return cmp.Compare(len(b.linked), len(a.linked)) })
	return sources, nil
}

func reportExample(s linkedSource, res flashdb.Result) report.Example {
	e := report.Example{
		Source: show.Text(s.key),
		Note:   fmt.Sprintf("%s, %s scored", show.Duration(res.Stats.Elapsed), show.Count(res.Stats.RowsScored, "row")),
	}
	if n := len(s.linked); n > 0 {
		var named []string
		for i := range min(reportKnown, n) {
			named = append(named, show.Text(s.linked[i*n/min(reportKnown, n)]))
		}
		e.Known = fmt.Sprintf("%s, such as %s", show.Count(n, "known link"), strings.Join(named, ", "))
	}
	for _, h := range res.Hits {
		e.Hits = append(e.Hits, report.Hit{Key: show.Text(h.Key), Score: float64(h.Score), Probability: float64(h.Probability)})
	}
	return e
}
