package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

// sampledSources is how many sources are asked when there is no oracle.
const sampledSources = 100

// An evalRequest is what eval's flags say.
type evalRequest struct {
	dir, collection string
	oracle          string
	keysFrom        string
	sources         int // 0: all of the oracle or of keysFrom, sampledSources without
	sampleSeed      uint64
	evaluation
}

func (a *app) evalCommand() *cobra.Command {
	r := evalRequest{evaluation: evaluation{k: 100, exactSources: 10}}
	var plan planFlags
	var rank rankRequest
	var includeLinked bool
	var filter, sourceCollection string
	cmd := &cobra.Command{
		Use:   "eval DIR COLLECTION [--edges FILE | --oracle FILE | --keys-from FILE] [--sources N] [-k N]",
		Short: "Measure how well edges are predicted, or the recall of queries",
		Long: `Eval measures one of two things: the recall of queries, or with --edges how well the decoder
predicts given edges.

Recall: eval runs a query for each of many sources, one at a time on one thread, and compares
the answer with the exact one. The sources are those of an --oracle file, the keys of a
--keys-from file, or a sample. Without an oracle the exact answer is a scan of all nodes. The
sample is not the one that calibrate draws, so that plans are not judged on the sources they
were chosen on; of a small collection some sources are in both.

A node counts as found if its exact score is at least the k-th best score (within 1e-5
relative), so that a tie is not a miss. A difference of scores is relative to
max(|exact score|, 0.1).

An oracle file has one line for each source, {"source": row, "top": [rows], "logit": [numbers]},
best first. It contains linked nodes, so --oracle implies --include-linked.

Edges: with --edges every target is ranked by its exact score among other nodes. These are all
nodes that its source is not linked to, or --sample N random ones of them, or those of a
--negatives file (see docs/train.md). Each edge may have negatives of its own there. If the file
has edges, they are one list for all, and hits@K is the share of the edges that score above the
K-th best of it. A tie counts half a place. A metric is a mean over the edges; it is printed for
all of them, and by how many known links the source has.

For a decoder with relations the edges are triples: three columns, or --relation for all of
them. Both ends are ranked, the target given the source and the source given the target, and
known triples are left out, as papers on knowledge graphs do.`,
		Example: `  flashdb eval papers.flash papers --sources 200
  flashdb eval papers.flash papers --keys-from asked-today.txt -k 10 --recall 0.95
  flashdb eval papers.flash papers --edges test.tsv
  flashdb eval kg.flash entities --edges test.tsv
  flashdb eval papers.flash papers --edges test.pt --negatives test.pt
  flashdb eval shop.flash items --source-collection users --edges test.tsv --sample 100 --metric mrr,hits@10
  flashdb eval papers.flash papers --oracle oracle.jsonl.zst -k 100 --probes 10% --json`,
		Args: usage.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.dir, r.collection = args[0], args[1]
			if err := rank.validate(cmd); err != nil {
				return err
			}
			if rank.edges.file != "" {
				name, err := cmd.Flags().GetString("decoder")
				if err != nil {
					return err
				}
				rank.relation = plan.opts.Relation
				return a.evalEdges(cmd.Context(), r.dir, r.collection, sourceCollection, name, r.sampleSeed, &rank)
			}
			if r.opts, err = plan.options(cmd.Flags()); err != nil {
				return err
			}
			r.opts.IncludeLinked, r.opts.Filter, r.opts.SourceCollection = includeLinked, filter, sourceCollection
			if err := r.validate(cmd.Flags().Changed("sources")); err != nil {
				return err
			}
			return a.eval(cmd.Context(), r)
		},
	}
	fs := cmd.Flags()
	fs.IntVarP(&r.k, "k", "k", r.k, "number of nodes asked for")
	fs.StringVar(&r.oracle, "oracle", "", "`file` of exact answers (default: scan exactly)")
	fs.StringVar(&r.keysFrom, "keys-from", "", "take as sources the keys in the first column of this `file`")
	fs.IntVar(&r.sources, "sources", 0, "`number` of sources (default all of the file, or 100 sampled)")
	fs.Uint64Var(&r.sampleSeed, "sample-seed", 1, "seed of the sample of sources")
	fs.IntVar(&r.exactSources, "exact-sources", r.exactSources, "`number` of sources to time the exact scan on")
	fs.StringVar(&sourceCollection, "source-collection", "", "the sources are nodes of this `collection`")
	rank.register(cmd)
	plan.register(cmd)
	fs.BoolVar(&includeLinked, "include-linked", false, "also count nodes that the source is linked to")
	fs.StringVar(&filter, "filter", "", "`expression` of tags and attributes: \"cs.CL and not survey and year >= 2020\"")
	return cmd
}

func (r *evalRequest) validate(sourcesGiven bool) error {
	switch {
	case r.k < 1:
		return fmt.Errorf("-k is %d: want a positive number", r.k)
	case sourcesGiven && r.sources < 1:
		return fmt.Errorf("--sources is %d: want a positive number", r.sources)
	case r.exactSources < 0:
		return fmt.Errorf("--exact-sources is %d: want 0 or more", r.exactSources)
	case r.oracle != "" && r.keysFrom != "":
		return errors.New("--oracle and --keys-from exclude each other: an oracle names its sources")
	case r.oracle != "" && r.opts.Filter != "":
		return errors.New("--filter and --oracle exclude each other: an oracle counts every node")
	}
	if r.oracle != "" {
		r.opts.IncludeLinked = true
	}
	return nil
}

func (a *app) eval(ctx context.Context, r evalRequest) error {
	// One worker: queries use one thread, and so must the exact scan they are compared with.
	return a.withCollection(ctx, r.dir, r.collection, flashdb.Options{ReadOnly: true, Workers: 1}, func(db database, c collection) (err error) {
		r.target = c
		if r.sourcesFrom, err = sourceCollectionOf(ctx, db, c, r.opts.SourceCollection); err != nil {
			return err
		}
		questions, err := r.questions(ctx)
		if err != nil {
			return err
		}
		p := terminal.NewProgress(a.err)
		defer p.Clear()
		report, err := r.run(ctx, questions, p)
		if err != nil {
			keys := make([]string, len(questions))
			for i, q := range questions {
				keys[i] = q.key
			}
			if err = a.nearKeys(ctx, r.sourcesFrom, err, keys...); r.keysFrom != "" {
				err = fmt.Errorf("%s: %w", r.keysFrom, err)
			}
			return err
		}
		p.Clear()
		if err := a.remarkOn(ctx, db, c, report.last); err != nil {
			return err
		}
		if a.json {
			return a.emit(report)
		}
		drawn, against := " drawn afresh", "the exact scan"
		switch {
		case r.oracle != "":
			drawn, against = "", r.oracle
		case r.keysFrom != "":
			drawn = " of " + r.keysFrom
		}
		return a.printEval(report, drawn, against)
	})
}

// questions are the oracle's lines, or sources, named or sampled, whose answer the exact scan is to
// find.
func (r *evalRequest) questions(ctx context.Context) ([]question, error) {
	switch {
	case r.keysFrom != "":
		return r.named(ctx)
	case r.oracle == "":
		n := r.sources
		if n == 0 {
			n = sampledSources
		}
		return r.sample(ctx, n, r.sampleSeed)
	}
	lines, err := readOracle(tableAt(r.oracle), r.k, r.sources)
	if err != nil {
		return nil, err
	}
	return r.ask(ctx, lines)
}

// named asks about the keys of a file, the first r.sources of them where that is not 0.
func (r *evalRequest) named(ctx context.Context) ([]question, error) {
	var questions []question
	err := readKeys(r.keysFrom, func(_ int, key string) {
		if r.sources == 0 || len(questions) < r.sources {
			questions = append(questions, question{key: key})
		}
	})
	switch {
	case err != nil:
		return nil, err
	case len(questions) == 0:
		return nil, fmt.Errorf("%s holds no keys", r.keysFrom)
	}
	return questions, nil
}

func (a *app) printEval(r evalReport, drawn, against string) error {
	fmt.Fprintf(a.out, "recall@%d of %s%s against %s\n", r.K, show.Count(r.Sources, "source"), drawn, against)
	err := a.table(0, func(w io.Writer) {
		fmt.Fprintf(w, "  recall\tmean %.4f\tp5 %.4f\tworst %.4f\n", r.RecallMean, r.RecallP5, r.RecallWorst)
		fmt.Fprintf(w, "  score difference, largest\tabsolute %s\trelative %s\t\n", r.MaxAbsDiff, r.MaxRelDiff)
		fmt.Fprintf(w, "  time per source\tfast %.3g ms\texact %s\t%s\n", r.FastMS, exactTime(r), ratio(r))
		visited := "no list visited"
		if r.RowsVisited > 0 {
			visited = fmt.Sprintf("lists of %.3g%% of the rows visited", 100*r.RowsVisitedShare)
		}
		fmt.Fprintf(w, "  work per source\t%s rows scored\t%s codes scanned\t%s\n",
			show.Number(int64(r.RowsScored+.5)), show.Number(int64(r.CodesScanned+.5)), visited)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n%s\n", a.dim(a.folded("  stopped: "+describeStops(r.Stops), 4)), a.dim(terminal.Fold(a.out, "  plan: "+r.Plan, 8)))
	return err
}

func exactTime(r evalReport) string {
	if r.ExactSources == 0 {
		return "not timed"
	}
	return fmt.Sprintf("%.3g ms (%s)", r.ExactMS, show.Count(r.ExactSources, "source"))
}

func ratio(r evalReport) string {
	if r.ExactSources == 0 || r.FastMS <= 0 {
		return ""
	}
	return fmt.Sprintf("exact / fast = %.3g", r.ExactMS/r.FastMS)
}
