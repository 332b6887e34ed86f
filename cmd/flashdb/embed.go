package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/train"
)

// A newcomer is a node to embed, as embed's flags describe it.
type newcomer struct {
	key       string
	links     []string // keys it links to, or without directions is linked with
	linkedBy  []string // keys that link to it
	features  string
	dryRun    bool
	neighbour collection
}

func (a *app) embedCommand() *cobra.Command {
	var n newcomer
	cmd := &cobra.Command{
		Use:   "embed DIR COLLECTION KEY [--links KEY,KEY,...]",
		Short: "Give a node that came after training its embedding, from its links",
		Long: `Embed computes the embedding of a node that training has not seen, from the nodes it is
linked with, and stores the node with its embedding and links. It needs the encoder that
train leaves beside the decoder. A node that is stored already keeps its tags and payload;
without --links its known links are taken.

Where train has made two collections, the links of a node are keys of the other collection.`,
		Example: `  flashdb embed my.flash packages new-package --links libc6,zlib1g
  flashdb embed shop.flash users zoe --links book1,book7
  flashdb predict shop.flash items zoe --source-collection users`,
		Args: usage.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			n.key = args[2]
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: n.dryRun}, func(db database, c collection) error {
				return a.embed(cmd.Context(), db, c, &n)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&n.links, "links", nil, "`keys` it is linked with, separated by commas; may be repeated")
	fs.StringSliceVar(&n.linkedBy, "linked-by", nil, "`keys` that link to it, where edges have a direction")
	fs.StringVar(&n.features, "features", "", "its features: numbers, @`FILE` with one row, or - for numbers on stdin")
	fs.BoolVar(&n.dryRun, "dry-run", false, "print the embedding, and store nothing")
	return cmd
}

func (a *app) embed(ctx context.Context, db database, c collection, n *newcomer) error {
	e, uses, err := a.readEncoder(ctx, db, c)
	if err != nil {
		return err
	}
	if n.neighbour, err = collectionOf(ctx, db, uses.Neighbours); err != nil {
		return err
	}
	if len(n.linkedBy) > 0 && !uses.Directed {
		return errors.New("--linked-by is for edges that have a direction, and those of this model have none: give --links")
	}
	node, err := c.Get(ctx, n.key)
	known := err == nil
	if err != nil && !errors.Is(err, flashdb.ErrNotFound) {
		return err
	}
	if known && len(n.links)+len(n.linkedBy) == 0 {
		if err := n.takeLinks(ctx, c, uses); err != nil {
			return err
		}
	}
	in, err := a.describeNewcomer(ctx, uses, n)
	if err != nil {
		return err
	}
	node.Key, node.Embedding = n.key, make([]float32, e.Dim())
	if err := e.Embed(node.Embedding, in); err != nil {
		return fmt.Errorf("embed %s: %w: --links names nodes it is linked with", show.Text(n.key), err)
	}
	if !n.dryRun {
		if err := n.store(ctx, c, uses, node); err != nil {
			return err
		}
	}
	return a.printEmbedded(n, node)
}

// takeLinks takes the known links of a node: those that end at it are known of their sources alone.
func (n *newcomer) takeLinks(ctx context.Context, c collection, uses encoderUses) (err error) {
	switch uses.Role {
	case roleSources:
		n.links, err = n.neighbour.Linked(ctx, n.key, &flashdb.LinkedOptions{SourceCollection: c.Name()})
	case roleBoth:
		n.links, err = c.Linked(ctx, n.key, nil)
	}
	return err
}

// describeNewcomer reads the embeddings of the neighbours.
func (a *app) describeNewcomer(ctx context.Context, uses encoderUses, n *newcomer) (in train.Newcomer, err error) {
	read := func(keys []string) (rows []float32, err error) {
		for _, key := range keys {
			other, err := n.neighbour.Get(ctx, key)
			if err != nil {
				return nil, a.nearKeys(ctx, n.neighbour, err, key)
			}
			rows = append(rows, other.Embedding...)
		}
		return rows, nil
	}
	if in.To, err = read(n.links); err != nil {
		return in, err
	}
	if in.From, err = read(n.linkedBy); err != nil {
		return in, err
	}
	if uses.Role == roleTargets { // its links come from the neighbours
		in.To, in.From = nil, in.To
	}
	if n.features != "" {
		in.Features, err = a.readEmbedding(n.features)
	}
	return in, err
}

// store stores the node and its links.
func (n *newcomer) store(ctx context.Context, c collection, uses encoderUses, node flashdb.Node) error {
	if err := c.Upsert(ctx, node); err != nil {
		return err
	}
	var edges []flashdb.Edge
	switch uses.Role {
	case roleSources:
		for _, key := range n.links {
			edges = append(edges, flashdb.Edge{SourceCollection: c.Name(), Source: n.key, Target: key})
		}
		return n.neighbour.Link(ctx, edges...)
	case roleTargets:
		for _, key := range n.links {
			edges = append(edges, flashdb.Edge{SourceCollection: uses.Neighbours, Source: key, Target: n.key})
		}
		return c.Link(ctx, edges...)
	}
	for _, key := range n.links {
		edges = append(edges, flashdb.Edge{Source: n.key, Target: key})
		if !uses.OneWay {
			edges = append(edges, flashdb.Edge{Source: key, Target: n.key})
		}
	}
	for _, key := range n.linkedBy {
		edges = append(edges, flashdb.Edge{Source: key, Target: n.key})
		if !uses.OneWay {
			edges = append(edges, flashdb.Edge{Source: n.key, Target: key})
		}
	}
	return c.Link(ctx, edges...)
}

func (a *app) printEmbedded(n *newcomer, node flashdb.Node) error {
	count := len(n.links) + len(n.linkedBy)
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
