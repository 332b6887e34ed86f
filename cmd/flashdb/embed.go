package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

// A newcomer is a node to embed, as the flags of embed and put describe it.
type newcomer struct {
	key      string
	links    flashdb.EmbedLinks
	features string
	dryRun   bool

	change func(*flashdb.Node) // what else put stores of the node; nil: it stays
}

func (a *app) embedCommand() *cobra.Command {
	var n newcomer
	cmd := &cobra.Command{
		Use:   "embed DIR COLLECTION KEY [--links KEY,KEY,...]",
		Short: "Embed a node that came after training, from its links or features",
		Long: `Embed computes the embedding of a node that training has not seen: from the nodes it is linked
with, from its features, or from both. It stores the node with its embedding and links, in one
write. It needs the encoder that train stores beside the decoder. A node that is stored already
keeps its tags and payload; without --links its known links are used.

If train made two collections, the links of a node are keys of the other collection.`,
		Example: `  flashdb embed my.flash packages new-package --links libc6,zlib1g
  flashdb embed shop.flash users zoe --links book1,book7
  flashdb predict shop.flash items zoe --source-collection users`,
		Args: usage.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			n.key = args[2]
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: n.dryRun}, func(db database, c collection) error {
				node, err := a.embed(cmd.Context(), db, c, &n)
				if err != nil {
					return err
				}
				return a.printEmbedded(&n, node)
			})
		},
	}
	n.register(cmd)
	cmd.Flags().BoolVar(&n.dryRun, "dry-run", false, "print the embedding, but store nothing")
	return cmd
}

func (n *newcomer) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringSliceVar(&n.links.To, "links", nil, "`keys` of nodes it is linked with, separated by commas; may be repeated")
	fs.StringSliceVar(&n.links.From, "linked-by", nil, "`keys` of nodes that link to it, if edges have a direction")
	fs.StringVar(&n.features, "features", "", "its features: `numbers`, @FILE with one row, or - for numbers on stdin")
}

// embed embeds a node and stores it with its links, unless nothing is to be stored.
func (a *app) embed(ctx context.Context, db database, c collection, n *newcomer) (node flashdb.Node, err error) {
	use, err := c.EncoderUse(ctx)
	if errors.Is(err, flashdb.ErrNotFound) {
		return node, fmt.Errorf("%w; %s makes one, and %s --embedding stores a node whose embedding is known", err, a.verb("train"), a.verb("put"))
	}
	if err != nil {
		return node, err
	}
	neighbours, err := collectionOf(ctx, db, use.Neighbours)
	if err != nil {
		return node, err
	}
	if len(n.links.From) > 0 && (neighbours.Name() != c.Name() || !use.Directed) {
		return node, errors.New("--linked-by is for edges that have a direction within one collection: give --links")
	}
	var features []float32
	if n.features != "" {
		if features, err = a.readEmbedding(n.features); err != nil {
			return node, fmt.Errorf("--features: %w", err)
		}
	}
	node, err = c.Get(ctx, n.key)
	if err != nil && !errors.Is(err, flashdb.ErrNotFound) {
		return node, err
	}
	if known := err == nil; known && len(n.links.To)+len(n.links.From) == 0 {
		if n.links.To, err = knownLinks(ctx, c, neighbours, use, n.key); err != nil {
			return node, err
		}
	}
	if len(n.links.To)+len(n.links.From)+len(features) == 0 {
		return node, fmt.Errorf("%s cannot be embedded without links and features: --links names nodes it is linked with", show.Text(n.key))
	}
	node.Key = n.key
	if node.Embedding, err = c.Embed(ctx, n.links, features); err != nil {
		return node, a.nearKeys(ctx, neighbours, err, append(slices.Clone(n.links.To), n.links.From...)...)
	}
	if n.change != nil {
		n.change(&node)
	}
	if n.dryRun {
		return node, nil
	}
	var b flashdb.Batch
	b.Upsert(c.Name(), node)
	through, edges := use.Edges(c.Name(), n.key, n.links)
	b.Link(through, edges...)
	return node, db.Apply(ctx, &b)
}

// knownLinks returns the neighbours that a stored node is known to be linked to. Links that end at
// it are known of their sources alone.
func knownLinks(ctx context.Context, c, neighbours collection, use flashdb.EncoderUse, key string) ([]string, error) {
	switch {
	case c.Name() == neighbours.Name():
		return c.Linked(ctx, flashdb.Edge{Source: key})
	case use.Targets == neighbours.Name():
		return neighbours.Linked(ctx, flashdb.Edge{SourceCollection: c.Name(), Source: key})
	}
	return nil, nil
}

func (a *app) printEmbedded(n *newcomer, node flashdb.Node) error {
	count := len(n.links.To) + len(n.links.From)
	if a.json {
		return a.emit(struct {
			Key       string    `json:"key"`
			Links     int       `json:"links"`
			Stored    bool      `json:"stored"`
			Embedding []float32 `json:"embedding"`
		}{show.JSON(n.key), count, !n.dryRun, node.Embedding})
	}
	stored := "stored"
	if n.dryRun {
		stored = "nothing was stored"
	}
	_, err := fmt.Fprintf(a.out, "%s embedded from %s: %s; %s\n", show.Text(n.key), show.Count(count, "link"), summarize(node.Embedding), stored)
	return err
}
