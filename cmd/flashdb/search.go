package main

import (
	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
)

func (a *app) searchCommand() *cobra.Command {
	var opts flashdb.SearchOptions
	var metric string
	var probes probesFlag
	k := 10
	cmd := &cobra.Command{
		Use:   "search DIR COLLECTION KEY [-k N]",
		Short: "Print the nodes nearest to a node's embedding, without a decoder",
		Example: `  flashdb search papers.flash papers 1706.03762 -k 5
  flashdb search papers.flash papers 1706.03762 --metric cosine --filter "cs.CL and not survey"`,
		Args: args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Metric = flashdb.Metric(metric)
			opts.Probes = probes.probes
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: true}, func(_ database, c collection) error {
				n, err := c.Get(cmd.Context(), args[2])
				if err != nil {
					return err
				}
				o := opts
				o.Exclude = append([]string{n.Key}, opts.Exclude...)
				res, err := c.Search(cmd.Context(), n.Embedding, k, &o)
				if err != nil {
					return err
				}
				res.Source = n.Key
				return a.printResult(res, resultColumns{score: scoreTitle(opts.Metric)}, nil)
			})
		},
	}
	fs := cmd.Flags()
	fs.IntVarP(&k, "k", "k", k, "number of nodes")
	fs.StringVar(&metric, "metric", "ip", "ip (inner product), cosine or l2 (minus the squared distance)")
	fs.BoolVar(&opts.Exact, "exact", false, "scan every node")
	fs.Var(&probes, "probes", "how much of the index to visit: a number of lists, a share such as 5%, or all")
	fs.StringArrayVar(&opts.Exclude, "exclude", nil, "`key` to leave out; may be repeated")
	fs.StringVar(&opts.Filter, "filter", "", "tag `expression`: tags, and, or, not, parentheses")
	completeWords(cmd, "metric", "ip", "cosine", "l2")
	return cmd
}

// scoreTitle names the score column of a metric.
func scoreTitle(m flashdb.Metric) string {
	switch m {
	case flashdb.MetricCosine:
		return "cosine"
	case flashdb.MetricL2:
		return "-distance²"
	}
	return "inner product"
}
