package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) searchCommand() *cobra.Command {
	var opts flashdb.SearchOptions
	var similarity, sourceCollection string
	var probes probesFlag
	var minScore float32
	k := 10
	cmd := &cobra.Command{
		Use:   "search DIR COLLECTION KEY [-k N]",
		Short: "Print the nodes nearest to a node's embedding, without a decoder",
		Example: `  flashdb search papers.flash papers 1706.03762 -k 5
  flashdb search papers.flash papers 1706.03762 --similarity cosine --filter "cs.CL and not survey"
  flashdb search shop.flash items user-17 --source-collection users`,
		Args: usage.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Similarity = flashdb.Similarity(similarity)
			opts.Probes = probes.probes
			if cmd.Flags().Changed("min-score") {
				opts.MinScore = &minScore
			}
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: true}, func(db database, c collection) error {
				o := opts
				from, err := sourceCollectionOf(cmd.Context(), db, c, sourceCollection)
				if err != nil {
					return err
				}
				n, err := embedded(cmd.Context(), from, args[2])
				if err != nil {
					return a.nearSource(cmd.Context(), db, c, from, err, args[2])
				}
				if from.Name() == c.Name() {
					o.Exclude = append([]string{n.Key}, opts.Exclude...)
				}
				res, err := c.Search(cmd.Context(), n.Embedding, k, &o)
				if err != nil {
					return err
				}
				res.Source = n.Key
				if err := a.remarkOn(cmd.Context(), db, c, res.Stats); err != nil {
					return err
				}
				return a.printResult(res, resultColumns{score: scoreTitle(opts.Similarity), noLogit: true})
			})
		},
	}
	fs := cmd.Flags()
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "metric" { // as earlier versions called it
			name = "similarity"
		}
		return pflag.NormalizedName(name)
	})
	fs.IntVarP(&k, "k", "k", k, "number of nodes")
	fs.StringVar(&similarity, "similarity", "ip", "ip (inner product), cosine or l2 (minus the squared distance)")
	fs.BoolVar(&opts.Exact, "exact", false, "scan every node")
	fs.Var(&probes, "probes", "how much of the index to visit: a number of lists, a share such as 5%, or all")
	fs.StringArrayVar(&opts.Exclude, "exclude", nil, "`key` to leave out; may be repeated")
	fs.StringVar(&opts.Filter, "filter", "", "`expression` of tags and attributes: \"cs.CL and not survey and year >= 2020\"")
	fs.Float32Var(&minScore, "min-score", 0, "leave out nodes whose `score` is lower")
	fs.StringVar(&sourceCollection, "source-collection", "", "take the source's embedding from this `collection`")
	completeWords(cmd, "similarity", "ip", "cosine", "l2")
	return cmd
}

// scoreTitle names the score column of a similarity.
func scoreTitle(by flashdb.Similarity) string {
	switch by {
	case flashdb.SimilarityCosine:
		return "cosine"
	case flashdb.SimilarityL2:
		return "-distance²"
	}
	return "inner product"
}
