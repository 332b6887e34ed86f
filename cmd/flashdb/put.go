package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

// A putRequest is what `flashdb put` is asked for.
type putRequest struct {
	key       string
	embedding string
	tags      []string
	noTags    bool
	payload   string

	// Which flags were given.
	withEmbedding, withTags, withPayload bool
}

func (a *app) putCommand() *cobra.Command {
	var r putRequest
	cmd := &cobra.Command{
		Use:        "put DIR COLLECTION KEY [--embedding 0.1,0.2,...|@FILE|-] [--tag T]... [--payload S]",
		SuggestFor: []string{"add", "insert", "upsert", "set", "tag", "update"},
		Short:      "Store one node, or change the tags and payload of one",
		Long: `With --embedding, put stores one node, in place of an earlier one of that key; its known links stay.
The embedding is a list of numbers, @FILE with one row (.npy, .npz, .safetensors),
or - for numbers on standard input.

Without --embedding, put changes a node that is stored: its tags to those of --tag, or to none
by --no-tags, and its payload to that of --payload. What is not named stays. The index goes on to
serve the node: no rebuild is needed.`,
		Example: `  flashdb put papers.flash papers 2209.10100 --embedding @new.npy --tag cs.LG --payload "Flashlight"
  flashdb put papers.flash papers 2209.10100 --tag cs.LG --tag read
  echo 0.1 -0.2 0.3 | flashdb put papers.flash tiny a --embedding -`,
		Args: usage.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			r.key = args[2]
			r.withEmbedding, r.withTags, r.withPayload = given("embedding"), given("tag") || r.noTags, given("payload")
			return a.put(cmd.Context(), args[0], args[1], r)
		},
	}
	cmd.Flags().StringVar(&r.embedding, "embedding", "", "numbers, @`FILE` with one row, or - for numbers on stdin")
	cmd.Flags().StringArrayVar(&r.tags, "tag", nil, "`tag` of the node; may be repeated")
	cmd.Flags().BoolVar(&r.noTags, "no-tags", false, "the node has no tags")
	cmd.Flags().StringVar(&r.payload, "payload", "", "`text` stored with the node")
	return cmd
}

func (a *app) put(ctx context.Context, dir, name string, r putRequest) error {
	n := flashdb.Node{Key: r.key, Tags: r.tags}
	if r.withPayload {
		n.Payload = []byte(r.payload)
	}
	switch {
	case r.noTags && len(r.tags) > 0:
		return errors.New("--no-tags and --tag contradict each other: give one of them")
	case r.withEmbedding:
		var err error
		if n.Embedding, err = a.readEmbedding(r.embedding); err != nil {
			return fmt.Errorf("--embedding: %w", err)
		}
	case !r.withTags && !r.withPayload:
		return errors.New("there is nothing to put: a new node needs --embedding, and --tag, --no-tags or --payload change a node that is stored")
	}
	return a.withCollection(ctx, dir, name, flashdb.Options{}, func(db database, c collection) error {
		var err error
		if r.withEmbedding {
			err = c.Upsert(ctx, n)
		} else if err = changeNode(ctx, db, c, n, r); errors.Is(err, flashdb.ErrNotFound) {
			err = fmt.Errorf("%w; to store a new node, give --embedding", a.nearKeys(ctx, c, err, r.key))
		}
		if err != nil {
			return err
		}
		return a.done("put", n.Key, 1, "put %s\n", show.Text(n.Key))
	})
}

// changeNode changes what r names of a stored node, in one write.
func changeNode(ctx context.Context, db database, c collection, n flashdb.Node, r putRequest) error {
	if !r.withPayload {
		return c.SetTags(ctx, n.Key, n.Tags)
	}
	if !r.withTags {
		return c.SetPayload(ctx, n.Key, n.Payload)
	}
	var b flashdb.Batch
	b.SetTags(c.Name(), n.Key, n.Tags)
	b.SetPayload(c.Name(), n.Key, n.Payload)
	return db.Apply(ctx, &b)
}
