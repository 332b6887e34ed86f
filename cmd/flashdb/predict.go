package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

// A predictRequest is what predict's flags say.
type predictRequest struct {
	dir, collection string
	keys            []string
	k               int
	why             bool
	opts            flashdb.PredictOptions
}

func (a *app) predictCommand() *cobra.Command {
	r := predictRequest{k: 10}
	var plan planFlags
	var many manyRequest
	var part string
	var minScore float32
	cmd := &cobra.Command{
		Use:        "predict DIR COLLECTION KEY... [-k N]",
		SuggestFor: []string{"query", "ask", "recommend", "topk"},
		Short:      "Print the nodes that score highest against a source",
		Long: `Predict prints the k nodes that score highest against each source. The source itself and the
nodes it is linked to are left out. With --source-collection the sources are nodes of another
collection, such as users for whom items are predicted. A score is the decoder's logit, and it
is exact for every node that is printed; its sigmoid is the probability of a link.

A decoder of a knowledge graph has relations, and --relation names one of them. Only nodes that
the source is linked to by that relation are left out. With --reverse the source is the tail of
the relation: the example below asks what treats a headache.

With --why it also says what supports each hit: known links of the source that resemble it,
paths of two stored links, and the dimensions that carry its score. That is an indication.

With --all, or --keys-from FILE (one key on each line), it answers for very many sources, in
their order. The format jsonl has one line for each source. The formats tsv, csv and parquet
have one row for each hit: source, rank, target, score, probability (only parquet has a header).
The --out FILE appears when it is complete, and is compressed if its name ends in .zst or .gz.
The same command continues a run that was killed. --shard 2/8 takes the second of eight parts of
the sources, for eight jobs that read one snapshot: their files joined are those of a single run.`,
		Example: `  flashdb predict papers.flash papers 1706.03762 1409.0473 -k 5
  flashdb predict papers.flash papers 1706.03762 --mode exact
  flashdb predict papers.flash papers 1706.03762 --filter "cs.CL and not survey" --explain
  flashdb predict shop.flash items dune --filter "price < 20 and not sold" --diversity 0.3 --per brand=2
  flashdb predict papers.flash papers 1706.03762 -k 3 --why
  flashdb predict shop.flash items user-17 --source-collection users --probes 10%
  flashdb predict kg.flash entities headache --relation treats --reverse
  flashdb predict papers.flash papers --all -k 50 --out links.jsonl.zst --shard 2/8
  flashdb predict papers.flash papers --all -k 50 --out links.parquet`,
		Args: usage.Args(2, -1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.dir, r.collection, r.keys = args[0], args[1], args[2:]
			o, err := plan.options(cmd.Flags())
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("min-score") {
				o.MinScore = &minScore
			}
			r.refine(o)
			if many.all || many.keysFrom != "" {
				many.predictRequest = r
				if many.shard, err = parseShard(part); err != nil {
					return err
				}
				return a.predictMany(cmd.Context(), many)
			}
			for _, flag := range []string{"out", "format", "shard", "restart"} {
				if cmd.Flags().Changed(flag) {
					return fmt.Errorf("--%s goes with --all or --keys-from", flag)
				}
			}
			if len(r.keys) == 0 {
				return fmt.Errorf("no KEY given, and neither --all nor --keys-from; usage: %s", usage.Of(cmd))
			}
			return a.predict(cmd.Context(), r)
		},
	}
	plan.register(cmd)
	r.register(cmd)
	fs := cmd.Flags()
	fs.Float32Var(&minScore, "min-score", 0, "leave out nodes whose `score` is lower")
	fs.BoolVar(&many.all, "all", false, "answer for every node of the collection, or of --source-collection")
	fs.StringVar(&many.keysFrom, "keys-from", "", "answer for the keys in the first column of this `file`")
	fs.StringVarP(&many.out, "out", "o", "", "`file` for the answers of --all or --keys-from; default standard output")
	fs.StringVar(&many.format, "format", "", "`format` of --out: jsonl, tsv, csv or parquet (default by its name, else jsonl)")
	fs.StringVar(&part, "shard", "", "with --all or --keys-from: the `I/N`-th part of the sources, in order")
	fs.BoolVar(&many.restart, "restart", false, "do not go on with an unfinished --out file")
	completeWords(cmd, "format", answerFormats...)
	return cmd
}

// register adds the flags about the answers for single sources.
func (r *predictRequest) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.IntVarP(&r.k, "k", "k", r.k, "number of nodes")
	fs.StringVar(&r.opts.SourceCollection, "source-collection", "", "the sources are nodes of this `collection`")
	fs.BoolVar(&r.opts.IncludeLinked, "include-linked", false, "also print nodes the source is linked to")
	r.registerChoice(fs)
	fs.BoolVar(&r.opts.Explain, "explain", false, "print what each round did")
	fs.BoolVar(&r.why, "why", false, "print what supports each hit, in at most five lines")
	fs.BoolVar(&r.opts.Verify, "verify", false, "also scan exactly, and print which hits were missed and why")
}

// refine sets the options that the plan's flags give, beside those of predict alone.
func (r *predictRequest) refine(o flashdb.PredictOptions) {
	o.Exclude, o.IncludeLinked, o.Filter = r.opts.Exclude, r.opts.IncludeLinked, r.opts.Filter
	o.Diversity, o.Per = r.opts.Diversity, r.opts.Per
	o.SourceCollection, o.Explain, o.Verify = r.opts.SourceCollection, r.opts.Explain, r.opts.Verify
	r.opts = o
}

func (a *app) predict(ctx context.Context, r predictRequest) error {
	return a.withCollection(ctx, r.dir, r.collection, flashdb.Options{ReadOnly: true}, func(db database, c collection) error {
		from, err := sourceCollectionOf(ctx, db, c, r.opts.SourceCollection)
		if err != nil {
			return err
		}
		d, err := c.Decoder(ctx, r.opts.Decoder)
		if err != nil {
			return err
		}
		r.opts.WithNode = a.json // which prints attributes
		first := true
		for res, err := range c.PredictBatch(ctx, r.keys, r.k, &r.opts) {
			if err != nil {
				return a.nearSource(ctx, db, c, from, err, r.keys...)
			}
			if first {
				if err := a.remarkOn(ctx, db, c, res.Stats); err != nil {
					return err
				}
			} else if !a.json {
				fmt.Fprintln(a.out)
			}
			first = false
			var reasons []flashdb.Reason
			if r.why {
				if reasons, err = r.reasons(ctx, c, res); err != nil {
					return a.nearSource(ctx, db, c, from, err, r.keys...)
				}
			}
			if err := a.printResult(res, a.predicted(d), reasons...); err != nil {
				return err
			}
		}
		return nil
	})
}
