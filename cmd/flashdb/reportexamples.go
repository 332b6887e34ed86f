package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/report"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

const (
	reportExamples = 6
	reportSeen     = 400 // nodes whose links are counted to find the examples
	reportKnown    = 3   // links of an example that are named
)

// A linkedSource is a source with its known links.
type linkedSource struct {
	key      string
	relation string // that it is asked for; "" if the decoder has none
	linked   []string
}

// examples predicts for some sources that a reader may know: of a sample, those with the most
// links.
func (r *reporter) examples(ctx context.Context, p *report.Page, decoderName string) error {
	sources, sampled, err := r.mostLinked(ctx)
	if err != nil {
		return err
	}
	d, err := r.c.Decoder(ctx, decoderName)
	if err != nil {
		return err
	}
	p.Scores = !hasProbability(d)
	p.ExamplesNote = fmt.Sprintf("New links of the nodes with the most known ones, of %d sampled.", sampled)
	if len(r.relations) > 1 {
		p.ExamplesNote = fmt.Sprintf("New links of the nodes with the most known ones of each relation, of %d sampled.", sampled)
	}
	if len(sources) > 0 && len(sources[0].linked) == 0 {
		p.ExamplesNote = "Sampled nodes: no links are stored, so that known ones cannot be left out."
		if r.relation != "" {
			p.ExamplesNote = "Sampled nodes: none has a known link of this relation, so that known ones cannot be left out."
		}
	}
	for _, s := range sources[:min(reportExamples, len(sources))] {
		opts := flashdb.PredictOptions{Decoder: decoderName, SourceCollection: r.from.Name(), Relation: s.relation, Reverse: r.reverse}
		res, err := r.c.Predict(ctx, s.key, reportHits, &opts)
		if err != nil {
			return err
		}
		p.Examples = append(p.Examples, r.example(s, res))
	}
	return nil
}

// mostLinked returns a sample of the sources, those with the most links first. Where there are no
// links it is spread evenly. It also returns how many sources it has looked at.
func (r *reporter) mostLinked(ctx context.Context) (sources []linkedSource, sampled int, err error) {
	keys, err := sample(ctx, r.from, reportSeen)
	if err != nil {
		return nil, 0, err
	}
	if len(r.relations) > 1 {
		sources, err = r.linkedByRelation(ctx, keys)
	} else {
		sources, err = r.linkedSources(ctx, keys, strings.Join(r.relations, ""))
	}
	if err != nil || len(sources) > 0 {
		return sources, len(keys), err
	}
	for i := range min(reportExamples, len(keys)) {
		key := keys[i*len(keys)/min(reportExamples, len(keys))]
		relation, err := r.relationFor(ctx, key, i)
		if err != nil {
			return nil, 0, err
		}
		sources = append(sources, linkedSource{key: key, relation: relation})
	}
	return sources, len(keys), nil
}

// linkedSources returns the keys that have links, those with the most first: links of a relation,
// or all of them if it is empty.
func (r *reporter) linkedSources(ctx context.Context, keys []string, relation string) (sources []linkedSource, err error) {
	for _, key := range keys {
		linked, err := r.linked(ctx, key, relation)
		if err != nil {
			return nil, err
		}
		if len(linked) > 0 {
			sources = append(sources, linkedSource{key, relation, linked})
		}
	}
	slices.SortStableFunc(sources, byLinks)
	return sources, nil
}

func (r *reporter) example(s linkedSource, res flashdb.Result) report.Example {
	e := report.Example{
		Source: show.Text(s.key), Relation: show.Text(s.relation), Reverse: r.reverse,
		Note: fmt.Sprintf("%s, %s scored", show.Duration(res.Stats.Elapsed), show.Count(res.Stats.RowsScored, "row")),
	}
	if n := len(s.linked); n > 0 {
		var named []string
		for i := range min(reportKnown, n) {
			named = append(named, show.Text(s.linked[i*n/min(reportKnown, n)]))
		}
		such := ", such as "
		if n == len(named) {
			such = ": "
		}
		e.Known = show.Count(n, "known link") + such + strings.Join(named, ", ")
	}
	for _, h := range res.Hits {
		e.Hits = append(e.Hits, report.Hit{Key: show.Text(h.Key), Score: float64(h.Score), Probability: float64(h.Probability)})
	}
	return e
}
