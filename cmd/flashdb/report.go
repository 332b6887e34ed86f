package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/report"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/internal/output"
)

const (
	reportNorms = 2000 // embeddings whose lengths are drawn
	reportHits  = 5    // of an example
	reportK     = 100
)

func (a *app) reportCommand() *cobra.Command {
	r := reporter{planTime: growthCalibrate}
	var out, decoderName, sources string
	cmd := &cobra.Command{
		Use:   "report DIR COLLECTION -o report.html",
		Short: "Write one HTML page about a collection: charts, recall, examples",
		Long: `Report writes one HTML page that needs no network. It shows what the collection and its index
hold, predictions for nodes with many links, the query times of sampled sources beside the exact
scan and how they grow with the rows, the recall and cost of the planner's plans, how active the
decoder's neurons are, and what has changed since the index was built. It explains its words. With
one decoder it prints on two sheets. If the decoder has relations, they are asked for in turn, and
each example names its own; --relation asks for one of them.

To see how times grow, report builds databases of an eighth, a quarter and a half of the rows
in a temporary directory, as far as --growth-time allows.`,
		Example: `  flashdb report papers.flash papers -o report.html
  flashdb report papers.flash papers -o report.html --growth-time 5m --sources 100
  flashdb report kg.flash entities -o report.html --relation treats`,
		Args: usage.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return errors.New("-o is missing: name the file to write, such as report.html")
			}
			if r.sources < 1 {
				return fmt.Errorf("--sources is %d: want a positive number", r.sources)
			}
			if r.reverse && r.relation == "" {
				return errors.New("--reverse is the other direction of a relation: name it with --relation")
			}
			if r.growthTime < 0 {
				return fmt.Errorf("--growth-time is %v: want a time, or 0 to leave it out", r.growthTime)
			}
			target, err := output.Resolve(out, args[0])
			if err != nil {
				return err
			}
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: true}, func(db database, c collection) error {
				r.db, r.c, r.from = db, c, c
				r.progress = terminal.NewProgress(a.err)
				defer r.progress.Clear()
				page, err := r.page(cmd.Context(), filepath.Base(filepath.Clean(args[0])), decoderName, sources)
				if err != nil {
					return err
				}
				if err := target.Write(func(w io.Writer) error { return writeReport(w, page) }); err != nil {
					return err
				}
				r.progress.Clear()
				if target.Stream {
					return nil // it may be the standard output
				}
				if a.json {
					return a.emit(struct {
						File string `json:"file"`
					}{show.JSON(out)})
				}
				_, err = fmt.Fprintf(a.out, "wrote %s\n", show.Text(out))
				return err
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&out, "out", "o", "", "`file` to write (needed)")
	fs.StringVar(&decoderName, "decoder", "", "`name` of the decoder; not needed when there is one")
	fs.StringVar(&r.relation, "relation", "", "ask for this `relation` only (default: all that the decoder has, in turn)")
	fs.BoolVar(&r.reverse, "reverse", false, "with --relation: predict nodes that have it to the source")
	fs.IntVar(&r.sources, "sources", 30, "`number` of sources to run queries for")
	fs.DurationVar(&r.growthTime, "growth-time", 30*time.Second, "`time` to measure how query times grow with the rows; 0: not at all")
	fs.StringVar(&sources, "source-collection", "", "sample sources from this `collection` (default: as the calibration did)")
	return cmd
}

func writeReport(w io.Writer, page report.Page) error {
	buffered := bufio.NewWriter(w)
	if err := report.Write(buffered, page); err != nil {
		return err
	}
	return buffered.Flush()
}

// A reporter collects what a page shows.
type reporter struct {
	db       database
	c, from  collection // asked, and where sources are sampled
	sources  int
	progress *terminal.Progress

	relation  string   // to ask for; "": all of them
	reverse   bool     // in the other direction
	relations []string // that are asked for; none if the decoder has none

	growthTime time.Duration // at most; 0: growth is not measured
	planTime   time.Duration // to calibrate a subset
}

func (r *reporter) page(ctx context.Context, dir, decoderName, sources string) (p report.Page, err error) {
	p = report.Page{Title: r.c.Name() + " in " + dir, Made: time.Now(), Version: version()}
	all, err := r.db.Stats(ctx)
	if err != nil {
		return p, err
	}
	stats := r.stats(all)
	p.Facts, p.Warnings, p.Delta = reportFacts(stats), reportWarnings(stats), reportDelta(all, stats, p.Made)
	calibrations, err := r.c.Calibrations(ctx)
	if err != nil {
		return p, err
	}
	for _, of := range calibrations {
		if text := describeScans(of); text != "" {
			p.Warnings = append(p.Warnings, "Decoder "+text+".")
		}
		if sources == "" && (decoderName == "" || decoderName == of.Decoder) {
			sources = of.SourceCollection
		}
	}
	if sources != "" && sources != r.c.Name() {
		if r.from, err = collectionOf(ctx, r.db, sources); err != nil {
			return p, err
		}
	}
	if p.Norms, err = r.norms(ctx); err != nil {
		return p, err
	}
	if decoderName == "" && len(stats.Decoders) == 1 {
		decoderName = stats.Decoders[0]
	}
	if score, err := scoreOf(ctx, r.c); err != nil {
		return p, err
	} else if score != nil {
		p.Facts = append(p.Facts, report.Fact{Name: "held-out score", Value: score.first(), Note: show.Text(score.Decoder + ": " + score.Text)})
	}
	for _, name := range stats.Decoders {
		d, err := r.decoder(ctx, name, calibrations)
		if err != nil {
			return p, err
		}
		p.Decoders = append(p.Decoders, d)
	}
	switch {
	case decoderName == "" && r.relation != "":
		return p, fmt.Errorf("--relation goes with one decoder, and there are %d: say --decoder", len(stats.Decoders))
	case decoderName == "" && len(stats.Decoders) > 1:
		p.Warnings = append(p.Warnings, "There are several decoders: say --decoder to see predictions and measured times.")
		return p, nil
	case decoderName == "":
		return p, nil
	}
	if err := r.chooseRelations(ctx, decoderName); err != nil {
		return p, err
	}
	if err := r.ask(ctx, &p, decoderName); err != nil {
		return p, err
	}
	if err := r.examples(ctx, &p, decoderName); err != nil {
		return p, err
	}
	p.Growth, err = r.growth(ctx, stats, decoderName)
	return p, err
}

// stats picks those of the collection.
func (r *reporter) stats(all flashdb.Stats) flashdb.CollectionStats {
	for _, s := range all.Collections {
		if s.Name == r.c.Name() {
			return s
		}
	}
	return flashdb.CollectionStats{} // dropped since
}

func reportFacts(s flashdb.CollectionStats) []report.Fact {
	facts := []report.Fact{
		{Name: "nodes", Value: show.Number(s.Nodes), Note: fmt.Sprintf("of dimension %d", s.Schema.Dim)},
		{Name: "decoders", Value: show.Number(len(s.Decoders))},
	}
	if s.Tombstones > 0 {
		facts = append(facts, report.Fact{Name: "deleted", Value: show.Number(s.Tombstones)})
	}
	if len(s.Tags) > 0 {
		facts = append(facts, report.Fact{Name: "tags", Value: show.Number(len(s.Tags)), Note: topTags(s.Tags, 3)})
	}
	if s.IndexDamaged {
		return append(facts, report.Fact{Name: "index", Value: "damaged", Note: "queries scan exactly"})
	}
	if s.Generation == 0 {
		return append(facts, report.Fact{Name: "index", Value: "none", Note: "queries scan exactly"})
	}
	return append(facts,
		report.Fact{Name: "index", Value: show.Bytes(s.IndexBytes), Note: fmt.Sprintf("generation %d", s.Generation)},
		report.Fact{Name: "lists", Value: show.Number(s.Lists), Note: fmt.Sprintf("of %.3g rows on average, %s in the largest", float64(s.IndexedRows)/float64(max(1, s.Lists)), show.Number(s.LargestList))},
	)
}

func reportWarnings(s flashdb.CollectionStats) (warnings []string) {
	if len(s.Decoders) == 0 {
		warnings = append(warnings, "No decoder is stored: nothing can be predicted. Add one with `flashdb decoder add`.")
	}
	switch {
	case s.IndexDamaged:
		warnings = append(warnings, "The index is damaged or missing, so that queries scan every node: run `flashdb rebuild`.")
	case s.Generation == 0 && s.Nodes >= indexFrom:
		warnings = append(warnings, "There is no index, so that queries scan every node: run `flashdb rebuild`.")
	}
	if s.Generation > 0 && s.Drift.Moved > 0.2 {
		warnings = append(warnings, fmt.Sprintf("%.0f%% of the rows have moved since the index was built: `flashdb rebuild` makes queries faster.", 100*s.Drift.Moved))
	}
	return warnings
}

// liveKeys returns all keys, in the order in which the nodes were inserted.
func liveKeys(ctx context.Context, c collection) (keys []string, err error) {
	for key, err := range c.Keys(ctx) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// sample returns about n keys, spread evenly over the order in which the nodes were inserted.
func sample(ctx context.Context, c collection, n int) ([]string, error) {
	keys, err := liveKeys(ctx, c)
	if err != nil || len(keys) <= n {
		return keys, err
	}
	picked := make([]string, n)
	for i := range picked {
		picked[i] = keys[(2*i+1)*len(keys)/(2*n)]
	}
	return picked, nil
}

func (r *reporter) norms(ctx context.Context) ([]float64, error) {
	keys, err := sample(ctx, r.c, reportNorms)
	if err != nil {
		return nil, err
	}
	var norms []float64
	for _, key := range keys {
		n, err := embedded(ctx, r.c, key)
		if errors.Is(err, flashdb.ErrNotFound) {
			continue // deleted since
		}
		if err != nil {
			return nil, err
		}
		sum := 0.0
		for _, x := range n.Embedding {
			sum += float64(x) * float64(x)
		}
		norms = append(norms, math.Sqrt(sum))
	}
	return norms, nil
}

// ask predicts for sampled sources, and verifies each answer.
func (r *reporter) ask(ctx context.Context, p *report.Page, decoderName string) error {
	keys, err := sample(ctx, r.from, r.sources)
	if err != nil {
		return err
	}
	p.Asked = &report.Asked{K: reportK, Wanted: defaultRecall, Relations: r.asked()}
	opts := flashdb.PredictOptions{Decoder: decoderName, SourceCollection: r.from.Name(), Reverse: r.reverse, Verify: true}
	act := newActivity(r.c, p, decoderName)
	for i, key := range keys {
		r.progress.Update("ask", int64(i), int64(len(keys)))
		n, err := embedded(ctx, r.from, key)
		if errors.Is(err, flashdb.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if opts.Relation, err = r.relationFor(ctx, key, i); err != nil {
			return err
		}
		res, err := r.c.Predict(ctx, key, reportK, &opts)
		if err != nil {
			return err
		}
		p.Asked.Recalls = append(p.Asked.Recalls, res.Stats.Verification.Recall)
		p.Asked.Times = append(p.Asked.Times, res.Stats.Elapsed)
		p.Asked.Exact = append(p.Asked.Exact, res.Stats.Verification.Elapsed)
		if res.Stats.Stop == flashdb.StopExact {
			p.Asked.Scanned++
			p.Asked.Plan = res.Stats.Plan
		}
		if err := act.add(ctx, n.Embedding, res.Hits[:min(reportHits, len(res.Hits))], keys[(i+1)%len(keys)]); err != nil {
			return err
		}
	}
	act.done()
	return nil
}
