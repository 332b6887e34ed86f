package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) calibrateCommand() *cobra.Command {
	var opts flashdb.CalibrateOptions
	cmd := &cobra.Command{
		Use:   "calibrate DIR COLLECTION [--decoder NAME] [--source-collection C] [--time D]",
		Short: "Measure which recall the plans reach at which cost",
		Long: `Calibrate runs many plans for sampled sources. It estimates the true answers from what all plans
found and a sample of the rows, so that its time does not grow with the rows. For a decoder that
is not linear it also learns, from some other sources, what to search for first. It prints the
plans worth choosing: each costs more than the one before and has a higher bound, or a higher
recall for its poorest sources. It stores them; predict --recall then takes the cheapest plan
whose bound reaches the target.

The bound is a lower limit of the mean recall, with 95% confidence. It is lower still if one
kind of source has a far lower recall. If the cheapest plan fails some sources, the cheapest
plan that does not is taken in its place, if it takes at most half as long again.

With a decoder that has relations the bound holds for the mean over all of them, not for each.
So the relation by which a plan finds least is shown with its mean recall, of those with at
least 4 sources. A plan that misses too much there gives way in the same manner.

rebuild and decoder add calibrate by themselves.`,
		Example: `  flashdb calibrate papers.flash papers
  flashdb calibrate shop.flash items --source-collection users --time 30s`,
		Args: usage.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("sources") && opts.Sources < 1 {
				return fmt.Errorf("--sources is %d: want a positive number", opts.Sources)
			}
			if err := checkDuration("time", cmd.Flags().Changed("time"), opts.Time); err != nil {
				return err
			}
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{}, func(_ database, c collection) error {
				return a.calibrate(cmd.Context(), c, opts)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&opts.Decoder, "decoder", "", "`name` of the decoder (default all)")
	fs.StringVar(&opts.SourceCollection, "source-collection", "", "sample sources from this `collection`, now and at later rebuilds")
	fs.IntVar(&opts.Sources, "sources", 0, "`number` of sources at most (default 200)")
	fs.DurationVar(&opts.Time, "time", 0, "`time` that one decoder may take (default 10s)")
	fs.Uint64Var(&opts.RandomSeed, "sample-seed", 0, "seed of the sample of sources")
	return cmd
}

func (a *app) calibrate(ctx context.Context, c collection, opts flashdb.CalibrateOptions) error {
	p := terminal.NewProgress(a.err)
	defer p.Clear()
	opts.Progress = p.Update
	all, err := c.Calibrate(ctx, &opts)
	p.Clear()
	if err != nil {
		return err
	}
	for i, of := range all {
		if i > 0 && !a.json {
			fmt.Fprintln(a.out)
		}
		if err := a.printCalibration(of); err != nil {
			return err
		}
	}
	if len(all) == 0 && !a.json {
		fmt.Fprintf(a.out, "%s: nothing to do: no decoder is stored\n", c.Name())
	}
	return nil
}

func (a *app) printCalibration(of flashdb.Calibration) error {
	if a.json {
		return a.emit(newJSONCalibration(of))
	}
	seeds := ""
	if of.Seeds > 0 {
		seeds = fmt.Sprintf(", seeds learned from %s", show.Count(of.Seeds, "other source"))
	}
	fmt.Fprintf(a.out, "decoder %s on generation %d, %s: %s of %s%s, exact scan %s\n", show.Text(of.Decoder), of.Generation,
		show.Count(of.Rows, "row"), show.Count(of.Sources, "source"), show.Text(of.SourceCollection), seeds, show.Duration(of.Exact))
	if plansOf(of) > 0 {
		err := a.titled(func(w io.Writer) {
			lowest := ""
			if namesRelations(of) {
				lowest = "\tlowest relation"
			}
			fmt.Fprintf(w, "  k\tmean\tp5\tworst\tbound%s\tscored\tcodes\ttime\tx faster\tplan\n", lowest)
			for _, f := range of.Frontiers {
				for _, p := range f.Plans {
					if lowest != "" {
						lowest = fmt.Sprintf("\t%.2f %s", p.RelationMean, show.Text(p.Relation))
					}
					fmt.Fprintf(w, "  %d\t%.4f\t%.2f\t%.2f\t%.4f%s\t%s\t%s\t%s\t%.3g\t%v\n", f.K, p.Mean, p.P5, p.Worst, p.Bound, lowest,
						show.Number(int64(p.RowsScored+.5)), show.Number(int64(p.CodesScanned+.5)), show.Duration(p.Time), of.Exact.Seconds()/p.Time.Seconds(), p.Plan)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	for _, f := range of.Frontiers {
		if len(f.Plans) == 0 {
			fmt.Fprintf(a.out, "  for k = %d no plan is faster than the exact scan\n", f.K)
		}
	}
	return nil
}

// describeScans says that queries scan because no plan reaches the recall, and what to do, or
// nothing.
func describeScans(of flashdb.Calibration) string {
	scans := of.Scans()
	if len(scans) == 0 {
		return ""
	}
	best := 0.0
	var ks []string
	for _, k := range scans {
		ks = append(ks, fmt.Sprint(k))
		for _, f := range of.Frontiers {
			for _, p := range f.Plans {
				if f.K == k {
					best = max(best, p.Mean)
				}
			}
		}
	}
	at := show.Text(of.Decoder) + ": for k = " + strings.Join(ks, " and ")
	if best == 0 {
		return at + " no plan is faster than the exact scan, so that queries scan every node"
	}
	return fmt.Sprintf("%s no plan reaches recall 0.98, so that queries scan every node; the best finds %.3f: ask for less, such as --recall %.0f%%, or measure for longer, with `flashdb calibrate --time 1m`",
		at, best, max(1, 100*best-5))
}

// plansOf counts the plans of all frontiers.
func plansOf(of flashdb.Calibration) (n int) {
	for _, f := range of.Frontiers {
		n += len(f.Plans)
	}
	return n
}

// namesRelations tells whether plans name the relation with the lowest recall: all do or none, as
// all were asked about the same sources.
func namesRelations(of flashdb.Calibration) bool {
	return slices.ContainsFunc(of.Frontiers, func(f flashdb.Frontier) bool {
		return slices.ContainsFunc(f.Plans, func(p flashdb.PlanPoint) bool { return p.Relation != "" })
	})
}

type jsonCalibration struct {
	Decoder     string         `json:"decoder"`
	SourcesFrom string         `json:"sources_from"`
	Generation  uint64         `json:"generation"`
	Rows        int            `json:"rows"`
	Sources     int            `json:"sources"`
	ExactMS     float64        `json:"exact_ms"`
	Seeds       int            `json:"seeds"`
	Frontiers   []jsonFrontier `json:"frontiers"`
}

type jsonFrontier struct {
	K     int        `json:"k"`
	Plans []jsonPlan `json:"plans"`
}

type jsonPlan struct {
	Plan         string        `json:"plan"`
	Mean         float64       `json:"recall_mean"`
	P5           float64       `json:"recall_p5"`
	Worst        float64       `json:"recall_worst"`
	Bound        float64       `json:"recall_bound"`
	Lowest       *jsonRelation `json:"lowest_relation,omitempty"`
	RowsScored   float64       `json:"rows_scored"`
	CodesScanned float64       `json:"codes_scanned"`
	MS           float64       `json:"ms"`
}

// jsonRelation is a relation and the mean recall of its sources.
type jsonRelation struct {
	Relation string  `json:"relation"`
	Mean     float64 `json:"recall_mean"`
}

func newJSONCalibration(of flashdb.Calibration) jsonCalibration {
	j := jsonCalibration{
		Decoder: show.JSON(of.Decoder), SourcesFrom: show.JSON(of.SourceCollection), Generation: of.Generation,
		Rows: of.Rows, Sources: of.Sources, ExactMS: show.Millis(of.Exact), Seeds: of.Seeds, Frontiers: []jsonFrontier{},
	}
	for _, f := range of.Frontiers {
		plans := []jsonPlan{}
		for _, p := range f.Plans {
			plan := jsonPlan{
				Plan: p.Plan.String(), Mean: p.Mean, P5: p.P5, Worst: p.Worst, Bound: p.Bound,
				RowsScored: p.RowsScored, CodesScanned: p.CodesScanned, MS: show.Millis(p.Time),
			}
			if p.Relation != "" {
				plan.Lowest = &jsonRelation{show.JSON(p.Relation), p.RelationMean}
			}
			plans = append(plans, plan)
		}
		j.Frontiers = append(j.Frontiers, jsonFrontier{f.K, plans})
	}
	return j
}

// checkDuration refuses a duration that was given and is not positive.
func checkDuration(flag string, given bool, d time.Duration) error {
	if given && d <= 0 {
		return fmt.Errorf("--%s is %v: want a positive duration, such as 30s", flag, d)
	}
	return nil
}
