package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

func (p *program) push() *cobra.Command {
	var o remote.PushOptions
	noLinks := false
	cmd := &cobra.Command{
		Use:   "push SOURCE DIR COLLECTION...",
		Short: "Copy collections of the database SOURCE into the engine, as one new version",
		Long: `Copies collections of the database SOURCE, with their decoders, into the engine, and their known
links into DIR. Queries go on with the version before until all rows are there and a sample of them
was read back. Then the new version replaces it in one step. A push that was interrupted is continued
by the same command.`,
		Args: exactly(3, -1, "a database, a directory and collections"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			from, err := flashdb.Open(args[0], &flashdb.Options{ReadOnly: true})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, from.Close()) }()
			db, err := p.database(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			o.Links, o.Progress = !noLinks, p.progress()
			res, err := db.Push(cmd.Context(), from, args[2:], &o)
			p.done(o.Progress)
			if err != nil {
				return err
			}
			rate := float64(res.Rows) / res.Elapsed.Seconds()
			if p.json {
				return asJSON(cmd.OutOrStdout(), map[string]any{
					"versions": res.Collections, "rows": res.Rows, "resumed": res.Resumed, "links": res.Links,
					"verified": res.Verified, "seconds": res.Elapsed.Seconds(), "rows_per_second": rate,
				})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d rows in %v (%.0f a second), %d from before, %d links; %d rows read back and equal\n",
				res.Rows, res.Elapsed.Round(time.Millisecond), rate, res.Resumed, res.Links, res.Verified)
			for _, name := range args[2:] {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is version %s\n", name, res.Collections[name])
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&noLinks, "no-links", false, "leave the known links out")
	cmd.Flags().BoolVar(&o.Restart, "restart", false, "begin again where an earlier push did not end")
	cmd.Flags().IntVar(&o.Verify, "verify", 1000, "rows to read back")
	cmd.Flags().IntVar(&o.BatchBytes, "batch-bytes", 4<<20, "size of one call of the engine")
	return cmd
}

// queryFlags are the flags of predict and eval.
func queryFlags(cmd *cobra.Command, o *flashdb.PredictOptions, k *int, defaultK int) {
	f := cmd.Flags()
	f.IntVarP(k, "k", "k", defaultK, "number of nodes asked for")
	f.StringVar(&o.Decoder, "decoder", "", "name of the decoder; not needed if there is only one")
	f.StringVar(&o.Relation, "relation", "", "relation to predict, for a decoder that has relations")
	f.BoolVar(&o.Reverse, "reverse", false, "with --relation: predict nodes that have it to the source")
	f.StringVar(&o.SourceCollection, "source-collection", "", "the sources are nodes of this collection")
	f.Float64Var(&o.Recall, "recall", 0, "mean recall to reach, such as 0.95 (default 0.98)")
	f.BoolVar(&o.Exact, "exact", false, "score every node")
	f.BoolVar(&o.IncludeLinked, "include-linked", false, "also return nodes that the source is linked to")
}

func (p *program) predict() *cobra.Command {
	var o flashdb.PredictOptions
	var k int
	cmd := &cobra.Command{
		Use:   "predict DIR COLLECTION KEY...",
		Short: "Print the nodes that score highest against each source",
		Args:  exactly(3, -1, "a directory, a collection and keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.collection(cmd.Context(), args[0], args[1], func(c *remote.Collection) error {
				for res, err := range c.PredictBatch(cmd.Context(), args[2:], k, &o) {
					if err != nil {
						return err
					}
					if err := p.print(cmd.OutOrStdout(), &res); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	queryFlags(cmd, &o, &k, 10)
	cmd.Flags().StringVar(&o.Filter, "filter", "", "tag expression: tags, and, or, not, parentheses")
	cmd.Flags().StringSliceVar(&o.Exclude, "exclude", nil, "keys not to return")
	return cmd
}

// print prints one result.
func (p *program) print(w io.Writer, res *flashdb.Result) error {
	if p.json {
		hits := make([]map[string]any, len(res.Hits))
		for i, h := range res.Hits {
			hits[i] = map[string]any{"key": h.Key, "score": finite(h.Score), "probability": finite(h.Probability)}
		}
		s := res.Stats
		return asJSON(w, map[string]any{
			"source": res.Source, "hits": hits, "plan": s.Plan, "round_trips": s.ListsProbed,
			"rows_scored": s.RowsScored, "stop": s.Stop, "short": s.Short, "ms": float64(s.Elapsed.Microseconds()) / 1000,
		})
	}
	fmt.Fprintf(w, "%s\n", res.Source)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i, h := range res.Hits {
		fmt.Fprintf(t, "%d\t%.4f\t%.4f\t %s\n", i+1, h.Score, h.Probability, h.Key)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d rows scored, %d round trips, %v; %s\n", res.Stats.RowsScored, res.Stats.ListsProbed, res.Stats.Elapsed.Round(10*time.Microsecond), res.Stats.Plan)
	return err
}

// finite returns a number for JSON, which has no infinities.
func finite(x float32) any {
	if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
		return fmt.Sprint(x)
	}
	return x
}

func (p *program) eval() *cobra.Command {
	var o remote.EvalOptions
	cmd := &cobra.Command{
		Use:   "eval DIR COLLECTION",
		Short: "Compare queries with the exact answers",
		Args:  exactly(2, 2, "a directory and a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.collection(cmd.Context(), args[0], args[1], func(c *remote.Collection) error {
				o.Progress = p.progress()
				e, err := c.Eval(cmd.Context(), &o)
				p.done(o.Progress)
				if err != nil {
					return err
				}
				ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
				if p.json {
					return asJSON(cmd.OutOrStdout(), map[string]any{
						"sources": e.Sources, "k": e.K, "recall_mean": e.Mean, "recall_p5": e.P5, "recall_worst": e.Worst,
						"p50_ms": ms(e.P50), "p99_ms": ms(e.P99), "plain_p50_ms": ms(e.PlainP50), "round_trips": e.Rounds,
						"rows_returned": e.RowsFound, "scan_seconds": e.Scan.Seconds(), "plan": e.Plan,
					})
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%d sources, k = %d: recall %.4f, 5th percentile %.4f, worst %.4f\n", e.Sources, e.K, e.Mean, e.P5, e.Worst)
				fmt.Fprintf(cmd.OutOrStdout(), "p50 %.1f ms, p99 %.1f ms; a plain vector query %.1f ms; %.2f round trips, %.0f rows back\n", ms(e.P50), ms(e.P99), ms(e.PlainP50), e.Rounds, e.RowsFound)
				fmt.Fprintf(cmd.OutOrStdout(), "%s\n", e.Plan)
				return nil
			})
		},
	}
	queryFlags(cmd, &o.Predict, &o.K, 100)
	cmd.Flags().IntVar(&o.Sources, "sources", 100, "number of sources, evenly drawn")
	cmd.Flags().Uint64Var(&o.RandomSeed, "sample-seed", 1, "seed of the sample")
	cmd.Flags().StringSliceVar(&o.Keys, "keys", nil, "ask these sources")
	return cmd
}

func (p *program) calibrate() *cobra.Command {
	var o remote.CalibrateOptions
	cmd := &cobra.Command{
		Use:   "calibrate DIR COLLECTION",
		Short: "Measure which recall plans reach over this engine, so that queries choose by it",
		Args:  exactly(2, 2, "a directory and a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.collection(cmd.Context(), args[0], args[1], func(c *remote.Collection) error {
				o.Progress = p.progress()
				of, err := c.Calibrate(cmd.Context(), &o)
				p.done(o.Progress)
				if err != nil {
					return err
				}
				return p.calibration(cmd.OutOrStdout(), &of)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Decoder, "decoder", "", "name of the decoder; not needed if there is only one")
	f.StringVar(&o.SourceCollection, "source-collection", "", "the sources are nodes of this collection")
	f.IntVar(&o.Sources, "sources", 100, "number of sources to measure with")
	f.IntVar(&o.Training, "training", 128, "number of other sources to learn seeds from")
	f.Uint64Var(&o.RandomSeed, "sample-seed", 1, "seed of the sample")
	return cmd
}

// calibration prints the plans of a calibration.
func (p *program) calibration(w io.Writer, of *flashdb.Calibration) error {
	if p.json {
		return asJSON(w, of)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "k\trecall\tat least\tworst\tms\trows\tplan\n")
	for _, f := range of.Frontiers {
		for _, q := range f.Plans {
			fmt.Fprintf(t, "%d\t%.4f\t%.4f\t%.2f\t%.1f\t%.0f\t%v\n", f.K, q.Mean, q.Bound, q.Worst, q.Time.Seconds()*1000, q.RowsScored, q.Plan)
		}
	}
	return t.Flush()
}

func (p *program) drop() *cobra.Command {
	return &cobra.Command{
		Use:   "drop DIR COLLECTION",
		Short: "Remove a collection from the engine, and its links and calibrations from DIR",
		Args:  exactly(2, 2, "a directory and a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			db, err := p.database(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return errors.Join(db.Drop(cmd.Context(), args[1]), db.Close())
		},
	}
}

func (p *program) stats() *cobra.Command {
	return &cobra.Command{
		Use:   "stats DIR COLLECTION",
		Short: "Describe the live version of a collection",
		Args:  exactly(2, 2, "a directory and a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.collection(cmd.Context(), args[0], args[1], func(c *remote.Collection) error {
				n, err := c.Len(cmd.Context())
				if err != nil {
					return err
				}
				decoders := c.Decoders()
				var calibrated []string
				for _, of := range c.Calibrations() {
					calibrated = append(calibrated, of.Decoder)
				}
				if p.json {
					return asJSON(cmd.OutOrStdout(), map[string]any{
						"collection": c.Name(), "version": c.Version(), "rows": n, "dim": c.Schema().Dim, "decoders": decoders, "calibrated": calibrated,
					})
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s, version %s: %d rows, %v\n", c.Name(), c.Version(), n, c.Schema())
				for _, name := range decoders {
					state := "not calibrated: queries run the default plan"
					if slices.Contains(calibrated, name) {
						state = "calibrated"
					}
					fmt.Fprintf(cmd.OutOrStdout(), "decoder %s: %s\n", name, state)
				}
				return nil
			})
		},
	}
}

// asJSON prints a value as one line.
func asJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
