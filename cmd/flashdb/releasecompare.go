package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

// compareFlags say how a staged release is compared with the live one.
type compareFlags struct {
	opts       flashdb.CompareOptions
	tolerance  shareFlag
	edges      edgeFlags
	file       string // of edges
	collection string // of their targets
}

func (f *compareFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.IntVarP(&f.opts.K, "k", "k", 10, "`number` of nodes that each source asks for")
	fs.IntVar(&f.opts.Sources, "sources", 200, "`number` of sources to ask at most, for each decoder")
	fs.DurationVar(&f.opts.Time, "time", 0, "`time` for the sources of a decoder at most, and for its edges (default 10s)")
	fs.Var(&f.tolerance, "tolerance", "recall at equal cost and MRR may fall by this `share`, such as 2% (default 1%)")
	fs.Uint64Var(&f.opts.RandomSeed, "seed", 0, "seed of the samples")
	fs.StringVar(&f.file, "edges", "", "`file` of edges to rank, new to both releases (default: links recorded since)")
	fs.StringVar(&f.collection, "collection", "", "`collection` of the targets of --edges (default the only one of the release)")
	fs.BoolVar(&f.edges.byRow, "ids", false, "--edges has row numbers of the imported file, not keys")
	fs.StringVar(&f.edges.source, "source-column", "", "`column` of sources of --edges, by the header")
	fs.StringVar(&f.edges.target, "target-column", "", "`column` of targets of --edges, by the header")
	fs.StringVar(&f.edges.sourceCollection, "source-collection", "", "the sources of --edges are nodes of this `collection`")
	fs.StringVar(&f.edges.relation, "relation", "", "`name` of the relation of all --edges")
	fs.BoolVar(&f.edges.triples, "triples", false, "--edges has three columns: source, relation and target")
	fs.StringVar(&f.edges.format, "format", "", "`format` of --edges: tsv, csv or parquet (default by its name)")
	completeWords(cmd, "format", formatTSV, formatCSV, formatParquet)
}

// compareEdgeFlags are the flags of compareFlags that need --edges.
var compareEdgeFlags = []string{"collection", "ids", "source-column", "target-column", "source-collection", "relation", "triples", "format"}

func (f *compareFlags) validate(fs *pflag.FlagSet) error {
	if fs.Changed("k") && f.opts.K < 1 {
		return fmt.Errorf("-k is %d: want a positive number", f.opts.K)
	}
	if fs.Changed("sources") && f.opts.Sources < 1 {
		return fmt.Errorf("--sources is %d: want a positive number", f.opts.Sources)
	}
	for _, name := range compareEdgeFlags {
		if f.file == "" && fs.Changed(name) {
			return fmt.Errorf("--%s goes with --edges, the file of edges to rank", name)
		}
	}
	return nil
}

// unasked returns an error for a flag that has no meaning without a comparison.
func (f *compareFlags) unasked(fs *pflag.FlagSet) error {
	for _, name := range append([]string{"k", "sources", "time", "tolerance", "seed", "edges"}, compareEdgeFlags...) {
		if fs.Changed(name) {
			return fmt.Errorf("--force publishes without a comparison: leave out --%s", name)
		}
	}
	return nil
}

// options reads the edges.
func (f *compareFlags) options(ctx context.Context, a *app, db database, release string) (o flashdb.CompareOptions, err error) {
	o = f.opts
	o.Tolerance = float64(f.tolerance)
	if f.file == "" {
		return o, o.Validate()
	}
	name := f.collection
	if name == "" {
		if name, err = onlyCollection(ctx, db, release); err != nil {
			return o, err
		}
	}
	into, err := collectionOf(ctx, db, name)
	if err != nil {
		return o, err
	}
	from, err := sourceCollectionOf(ctx, db, into, f.edges.sourceCollection)
	if err != nil {
		return o, err
	}
	file, table, err := a.openEdges(f.file, f.edges)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, file.remove()) }()
	links, err := a.readLinks(ctx, from, into, table, f.edges)
	if err != nil {
		return o, err
	}
	var edges []flashdb.Edge
	err = a.inBatches(ctx, "read", links, func(_ context.Context, some ...flashdb.Edge) error {
		edges = append(edges, slices.Clone(some)...)
		return nil
	})
	o.Edges = map[string][]flashdb.Edge{name: edges}
	return o, errors.Join(err, o.Validate())
}

// onlyCollection returns the one collection of a release.
func onlyCollection(ctx context.Context, db database, release string) (string, error) {
	r, err := releaseNamed(ctx, db, release)
	if err != nil {
		return "", err
	}
	if len(r.Collections) != 1 {
		return "", errors.New("--edges needs --collection: the release is not over exactly one")
	}
	return r.Collections[0].Name, nil
}

func (a *app) releaseCompareCommand() *cobra.Command {
	var flags compareFlags
	cmd := &cobra.Command{
		Use:   "compare DIR NAME [--edges FILE]",
		Short: "Compare a staged release with the live one",
		Long: `Compare asks the same sources of a staged release and of the live one, for each decoder that
both have. It prints the recall of both at equal cost, how much of the exact answers is the
same, and the sources whose answers have changed most. It ranks links in both releases, and
prints MRR and Hits with the 95% interval of the difference: those of --edges, or the links
recorded since the data of the release was cut and the live one published, if they are 100 at
least.

Exit code: 0 not worse, 1 error, 2 worse: publish would refuse it.`,
		Example: `  flashdb release compare shop.flash night
  flashdb release compare shop.flash night --edges today.tsv --collection items --source-collection users`,
		Args: usage.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.validate(cmd.Flags()); err != nil {
				return err
			}
			ctx := cmd.Context()
			return a.withDB(ctx, args[0], flashdb.Options{}, func(db database) error {
				return a.releaseCompare(ctx, db, args[1], &flags)
			})
		},
	}
	flags.add(cmd)
	return cmd
}

// releaseCompare prints a comparison. If the release is worse, it returns an error with the exit
// code of a refusal.
func (a *app) releaseCompare(ctx context.Context, db database, release string, flags *compareFlags) error {
	o, err := flags.options(ctx, a, db, release)
	if err != nil {
		return err
	}
	p := terminal.NewProgress(a.err)
	defer p.Clear()
	o.Progress = p.Update
	c, err := db.CompareRelease(ctx, release, &o)
	if err != nil {
		return err
	}
	p.Clear()
	if err := a.printComparison(c); err != nil {
		return err
	}
	if len(c.Worse) > 0 {
		return &codedError{code: exitRefused, err: fmt.Errorf("release %s: %w: %s", show.Text(release), flashdb.ErrQuality, strings.Join(c.Worse, "; "))}
	}
	return nil
}

// jsonComparison is one line of release compare, for one decoder.
type jsonComparison struct {
	Release          string            `json:"release"`
	Live             string            `json:"live"`
	Collection       string            `json:"collection"`
	Decoder          string            `json:"decoder"`
	SourceCollection string            `json:"source_collection"`
	Sources          int               `json:"sources"`
	K                int               `json:"k"`
	LiveRecall       *float64          `json:"live_recall,omitempty"`
	StagedRecall     *float64          `json:"staged_recall,omitempty"`
	Agreement        float64           `json:"agreement"`
	Changed          []jsonChanged     `json:"changed"`
	Since            time.Time         `json:"since"`
	Recorded         *int              `json:"recorded,omitempty"`
	Edges            *jsonEdgeCompared `json:"edges,omitempty"`
	Worse            []string          `json:"worse"`
}

type jsonChanged struct {
	Source string `json:"source"`
	Kept   int    `json:"kept"`
}

type jsonEdgeCompared struct {
	Edges      int       `json:"edges"`
	LeftOut    int       `json:"left_out"`
	Candidates int       `json:"candidates"`
	Live       jsonRanks `json:"live"`
	Staged     jsonRanks `json:"staged"`
	Difference float64   `json:"mrr_difference"`
	Margin     float64   `json:"mrr_margin"`
}

type jsonRanks struct {
	MRR    float64 `json:"mrr"`
	Hits1  float64 `json:"hits@1"`
	Hits10 float64 `json:"hits@10"`
	Hits50 float64 `json:"hits@50"`
}

func (a *app) printComparison(c flashdb.Comparison) error {
	if !a.json {
		return a.describeComparison(c)
	}
	worse := append([]string{}, c.Worse...)
	if len(c.Decoders) == 0 {
		return a.emit(map[string]any{"release": c.Release, "live": c.Live, "worse": worse})
	}
	for _, d := range c.Decoders {
		line := jsonComparison{
			Release: c.Release, Live: c.Live, Collection: d.Collection, Decoder: show.JSON(d.Decoder), SourceCollection: d.SourceCollection,
			Sources: d.Sources, K: d.K, Agreement: d.Agreement, Changed: []jsonChanged{}, Since: c.Since, Worse: worse,
		}
		if d.Indexed {
			line.LiveRecall, line.StagedRecall = &d.LiveRecall, &d.StagedRecall
		}
		for _, s := range d.Changed {
			line.Changed = append(line.Changed, jsonChanged{show.JSON(s.Key), s.Kept})
		}
		if d.Edges == nil || d.Recorded > 0 {
			line.Recorded = &d.Recorded
		}
		if e := d.Edges; e != nil {
			line.Edges = &jsonEdgeCompared{e.Edges, e.LeftOut, e.Candidates, jsonRanks(e.Live), jsonRanks(e.Staged), e.Difference, e.Margin}
		}
		if err := a.emit(line); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) describeComparison(c flashdb.Comparison) error {
	fmt.Fprintf(a.out, "release %s, compared with %s, which is live\n", show.Text(c.Release), show.Text(c.Live))
	for _, d := range c.Decoders {
		fmt.Fprintf(a.out, "%s, decoder %s, %s of %s\n", d.Collection, show.Text(d.Decoder), show.Count(d.Sources, "source"), d.SourceCollection)
		if d.Indexed {
			fmt.Fprintf(a.out, "  recall at equal cost  %.4f, live %.4f\n", d.StagedRecall, d.LiveRecall)
		} else {
			fmt.Fprintln(a.out, "  recall at equal cost  not measured: one of the two scans every node")
		}
		fmt.Fprintf(a.out, "  new in the top %d      %.0f%%\n", d.K, 100*(1-d.Agreement))
		if d.Edges == nil {
			fmt.Fprintf(a.out, "  edges                 not ranked: %s recorded since %s, too few to compare; release compare --edges ranks others\n", show.Count(d.Recorded, "link"), shownTime(c.Since))
		}
		if e := d.Edges; e != nil {
			fmt.Fprintf(a.out, "  MRR                   %.4f, live %.4f, difference %+.4f (95%% within %.4f)\n", e.Staged.MRR, e.Live.MRR, e.Difference, e.Margin)
			fmt.Fprintf(a.out, "  Hits@1, 10, 50        %.3f %.3f %.3f, live %.3f %.3f %.3f\n", e.Staged.Hits1, e.Staged.Hits10, e.Staged.Hits50, e.Live.Hits1, e.Live.Hits10, e.Live.Hits50)
			of := ""
			switch {
			case d.Recorded > e.Edges+e.LeftOut:
				of = fmt.Sprintf(", the newest of %s recorded since %s", show.Number(d.Recorded), shownTime(c.Since))
			case d.Recorded > 0:
				of = ", recorded since " + shownTime(c.Since)
			}
			fmt.Fprintf(a.out, "  edges                 %s ranked among %s, %s left out%s\n", show.Number(e.Edges), show.Count(e.Candidates, "node"), show.Number(e.LeftOut), of)
		}
		if len(d.Changed) == 0 || d.Changed[0].Kept == d.K {
			continue
		}
		fmt.Fprintf(a.out, "  changed most          ")
		for i, s := range d.Changed {
			if i > 0 {
				fmt.Fprint(a.out, ", ")
			}
			fmt.Fprintf(a.out, "%s keeps %d", show.Text(s.Key), s.Kept)
		}
		fmt.Fprintln(a.out)
	}
	return nil
}

func (a *app) releasePublishCommand() *cobra.Command {
	var flags compareFlags
	var force bool
	cmd := &cobra.Command{
		Use:   "publish DIR NAME [--edges FILE] [--force]",
		Short: "Make a staged release the live one",
		Long: `Publish compares a staged release with the live one, as compare does, and makes it the live
one, in all of its collections at once. No query fails or waits, and none mixes the two. The
release that was live is kept until the next publish: rollback goes back to it. The one before
that is dropped.

A release that is worse by more than --tolerance is refused and stays staged. --force
publishes it without a comparison.

Exit code: 0 published, 1 error, 2 refused.`,
		Example: `  flashdb release publish shop.flash night
  flashdb release publish shop.flash night --edges today.tsv --collection items --source-collection users`,
		Args: usage.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			check := flags.validate
			if force {
				check = flags.unasked
			}
			if err := check(cmd.Flags()); err != nil {
				return err
			}
			ctx := cmd.Context()
			return a.withDB(ctx, args[0], flashdb.Options{}, func(db database) error {
				return a.releasePublish(ctx, db, args[1], &flags, force)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "publish without a comparison")
	return cmd
}

// releasePublish compares, which it prints, and publishes.
func (a *app) releasePublish(ctx context.Context, db database, release string, flags *compareFlags, force bool) error {
	if !force {
		if err := a.releaseCompare(ctx, db, release, flags); err != nil {
			return err
		}
	}
	res, err := db.Publish(ctx, release, &flashdb.PublishOptions{Force: true})
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(struct {
			Release string  `json:"release"`
			Former  string  `json:"former"`
			Dropped string  `json:"dropped,omitempty"`
			Seconds float64 `json:"seconds"`
		}{release, res.Former, res.Dropped, res.Switch.Seconds()})
	}
	dropped := ""
	if res.Dropped != "" {
		dropped = fmt.Sprintf("; release %s was dropped", show.Text(res.Dropped))
	}
	_, err = fmt.Fprintf(a.out, "release %s is live; the switch took %s\nrelease %s is kept for rollback%s\n",
		show.Text(release), show.Duration(res.Switch), show.Text(res.Former), dropped)
	return err
}
