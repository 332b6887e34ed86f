package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) scoreCommand() *cobra.Command {
	var opts flashdb.ScoreOptions
	cmd := &cobra.Command{
		Use:   "score DIR COLLECTION SOURCE CANDIDATE...",
		Short: "Print the decoder's exact score of given candidates",
		Example: `  flashdb score papers.flash papers 1706.03762 1409.0473 1409.3215
  flashdb score shop.flash items user-17 item-3 item-40 --source-collection users`,
		Args: usage.Args(4, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: true}, func(db database, c collection) error {
				from, err := sourceCollectionOf(cmd.Context(), db, c, opts.SourceCollection)
				if err != nil {
					return err
				}
				hits, err := c.Score(cmd.Context(), args[2], args[3:], &opts)
				if err != nil && from.Name() != c.Name() && strings.Contains(err.Error(), fmt.Sprintf("in collection %q", from.Name())) {
					return a.nearKeys(cmd.Context(), from, err, args[2])
				}
				if err != nil {
					return a.nearKeys(cmd.Context(), c, err, args[2:]...)
				}
				if a.json {
					return a.emit(struct {
						Source string    `json:"source"`
						Hits   []jsonHit `json:"hits"`
					}{show.JSON(args[2]), newJSONHits(hits)})
				}
				d, err := c.Decoder(cmd.Context(), opts.Decoder)
				if err != nil {
					return err
				}
				return a.printScores(hits, a.predicted(d))
			})
		},
	}
	cmd.Flags().StringVar(&opts.Decoder, "decoder", "", "`name` of the decoder; not needed when there is one")
	cmd.Flags().StringVar(&opts.Relation, "relation", "", "`name` of the relation asked, of a decoder that has relations")
	cmd.Flags().BoolVar(&opts.Reverse, "reverse", false, "with --relation: the candidates have it to the source")
	cmd.Flags().StringVar(&opts.SourceCollection, "source-collection", "", "the source is a node of this `collection`")
	return cmd
}

func (a *app) printScores(hits []flashdb.Hit, columns resultColumns) error {
	return a.titled(func(w io.Writer) {
		title := "candidate\tscore"
		if columns.probability {
			title += "\tprobability"
		}
		fmt.Fprintln(w, title)
		for i, text := range scoresOf(hits) {
			fmt.Fprintf(w, "%s\t%s", show.Text(hits[i].Key), text)
			if columns.probability {
				fmt.Fprintf(w, "\t%s", probability(hits[i].Probability))
			}
			fmt.Fprintln(w)
		}
	})
}
