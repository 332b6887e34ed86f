package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
)

// A predictRequest is what predict's flags say.
type predictRequest struct {
	dir, collection  string
	keys             []string
	k                int
	sourceCollection string
	opts             flashdb.PredictOptions
}

func (a *app) predictCommand() *cobra.Command {
	r := predictRequest{k: 10}
	var plan planFlags
	var minScore float32
	cmd := &cobra.Command{
		Use:   "predict DIR COLLECTION KEY... [-k N]",
		Short: "Print the nodes that score highest against a source under the decoder",
		Long: `Predict prints the k nodes that score highest against each source. The source itself
and the nodes it is linked to are left out. A score is the decoder's logit, exact for
every node that is printed; its sigmoid is the probability of a link.`,
		Example: `  flashdb predict papers.flash papers 1706.03762 1409.0473 -k 5
  flashdb predict papers.flash papers 1706.03762 --mode exact
  flashdb predict papers.flash papers 1706.03762 --filter "cs.CL and not survey" --explain
  flashdb predict shop.flash items user-17 --source-collection users --probes 10%`,
		Args: args(3, -1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.dir, r.collection, r.keys = args[0], args[1], args[2:]
			o, err := plan.options(cmd.Flags())
			if err != nil {
				return err
			}
			o.Exclude, o.IncludeLinked, o.Filter, o.Explain = r.opts.Exclude, r.opts.IncludeLinked, r.opts.Filter, r.opts.Explain
			if cmd.Flags().Changed("min-score") {
				o.MinScore = &minScore
			}
			r.opts = o
			return a.predict(cmd.Context(), r)
		},
	}
	fs := cmd.Flags()
	fs.IntVarP(&r.k, "k", "k", r.k, "number of nodes")
	plan.register(fs)
	fs.StringVar(&r.sourceCollection, "source-collection", "", "take the source's embedding from this `collection`")
	fs.BoolVar(&r.opts.IncludeLinked, "include-linked", false, "also print nodes the source is linked to")
	fs.StringArrayVar(&r.opts.Exclude, "exclude", nil, "`key` to leave out; may be repeated")
	fs.StringVar(&r.opts.Filter, "filter", "", "tag `expression`: tags, and, or, not, parentheses")
	fs.Float32Var(&minScore, "min-score", 0, "leave out nodes that score less")
	fs.BoolVar(&r.opts.Explain, "explain", false, "print what each round did")
	return cmd
}

func (a *app) predict(ctx context.Context, r predictRequest) error {
	return a.withCollection(ctx, r.dir, r.collection, flashdb.Options{}, func(db database, c collection) error {
		results := c.PredictBatch(ctx, r.keys, r.k, &r.opts)
		if r.sourceCollection != "" {
			sources, err := db.Collection(ctx, r.sourceCollection)
			if err != nil {
				return err
			}
			results = predictAcross(ctx, sources, c, r)
		}
		first := true
		for res, err := range results {
			if err != nil {
				return err
			}
			if !first && !a.json {
				fmt.Fprintln(a.out)
			}
			first = false
			var names map[uint32]string
			if r.opts.Explain {
				if names, err = anchorKeys(ctx, c, res.Stats.Trace); err != nil {
					return err
				}
			}
			if err := a.printResult(res, resultColumns{score: "score", probability: true}, names); err != nil {
				return err
			}
		}
		return nil
	})
}

// predictAcross predicts in c for sources that are nodes of another collection.
func predictAcross(ctx context.Context, sources, c collection, r predictRequest) iter.Seq2[flashdb.Result, error] {
	return func(yield func(flashdb.Result, error) bool) {
		for _, key := range r.keys {
			n, err := sources.Get(ctx, key)
			var res flashdb.Result
			if err == nil {
				res, err = c.PredictVector(ctx, n.Embedding, r.k, &r.opts)
			}
			res.Source = key
			if !yield(res, err) {
				return
			}
		}
	}
}
