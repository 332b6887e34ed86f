package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/internal/codec"
)

// A putRequest is what `flashdb put` is asked for.
type putRequest struct {
	key       string
	embedding string
	tags      []string
	noTags    bool
	attrs     []string // name=value
	noAttrs   []string
	payload   string
	file      string // of the payload

	// Which flags were given.
	withEmbedding, withTags, withPayload, withLinks, withAttributes bool

	newcomer newcomer // with links
}

func (a *app) putCommand() *cobra.Command {
	var r putRequest
	cmd := &cobra.Command{
		Use:        "put DIR COLLECTION KEY [--embedding X,...|@FILE|- | --links KEYS] [--tag T] [--attr A=V] [--payload S]",
		SuggestFor: []string{"add", "insert", "upsert", "set", "tag", "update"},
		Short:      "Store one node, or change tags, attributes and payload of one",
		Long: `Put stores one node, or changes one that is stored.

With --embedding it stores the node, and replaces one that has the same key; known links are
kept. The embedding is a list of numbers, @FILE with one row (.npy, .npz, .safetensors), or -
for numbers on standard input.

With --links it computes the embedding as embed does, from the nodes that the new one is linked
with. It needs the encoder that train stores. Node and links are stored in one write.

Without either it changes a stored node: --tag sets the tags, --no-tags removes them, --attr
sets one attribute, --no-attr removes one, --payload or --payload-file sets the payload. What is
not named is kept. No rebuild is needed.

An attribute is a number, string, bool or time, which filters compare. --attr price=12.5 takes
the type that the attribute has in the collection, or the one that the value looks like;
--attr code:string=12 says it.`,
		Example: `  flashdb put papers.flash papers 2209.10100 --embedding @new.npy --tag cs.LG --payload "Flashlight"
  flashdb put papers.flash papers 2209.10100 --tag cs.LG --tag read
  flashdb put shop.flash items dune --attr price=12.5 --attr released=1965-08-01 --no-attr sold
  flashdb put my.flash packages new-package --links libc6,zlib1g --tag net
  echo 0.1 -0.2 0.3 | flashdb put papers.flash tiny a --embedding -`,
		Args: usage.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			r.key = args[2]
			r.withEmbedding, r.withTags, r.withPayload = given("embedding"), given("tag") || r.noTags, given("payload") || given("payload-file")
			if given("payload") && given("payload-file") {
				return errors.New("--payload and --payload-file contradict each other: give one of them")
			}
			r.withAttributes = given("attr") || given("no-attr")
			r.withLinks = given("links") || given("linked-by") || given("features")
			return a.put(cmd.Context(), args[0], args[1], r)
		},
	}
	cmd.Flags().StringVar(&r.embedding, "embedding", "", "`numbers`, @FILE with one row, or - for numbers on stdin")
	cmd.Flags().StringArrayVar(&r.tags, "tag", nil, "`tag` of the node; may be repeated")
	cmd.Flags().BoolVar(&r.noTags, "no-tags", false, "remove the tags of the node")
	cmd.Flags().StringArrayVar(&r.attrs, "attr", nil, "`name=value` of an attribute, or name:type=value; may be repeated")
	cmd.Flags().StringArrayVar(&r.noAttrs, "no-attr", nil, "`attribute` to remove; may be repeated")
	cmd.Flags().StringVar(&r.payload, "payload", "", "`text` stored with the node")
	cmd.Flags().StringVar(&r.file, "payload-file", "", "`file` whose bytes are stored with the node; - is standard input")
	r.newcomer.register(cmd)
	return cmd
}

func (a *app) put(ctx context.Context, dir, name string, r putRequest) error {
	n := flashdb.Node{Key: r.key, Tags: r.tags}
	if r.withPayload {
		var err error
		if n.Payload, err = a.readPayload(r); err != nil {
			return fmt.Errorf("--payload-file: %w", err)
		}
	}
	switch {
	case r.noTags && len(r.tags) > 0:
		return errors.New("--no-tags and --tag contradict each other: give one of them")
	case r.embedding == standardInput && r.file == standardInput:
		return errors.New("--embedding and --payload-file cannot both be standard input")
	case r.withEmbedding && r.withLinks:
		return errors.New("--embedding, and --links or --features to compute it, exclude each other")
	case r.withEmbedding:
		var err error
		if n.Embedding, err = a.readEmbedding(r.embedding); err != nil {
			return fmt.Errorf("--embedding: %w", err)
		}
	case !r.withTags && !r.withPayload && !r.withLinks && !r.withAttributes:
		return errors.New("there is nothing to put: a new node needs --embedding or --links, and --tag, --no-tags, --attr, --no-attr or --payload change a node that is stored")
	}
	return a.withCollection(ctx, dir, name, flashdb.Options{}, func(db database, c collection) error {
		var err error
		if n.Attributes, err = r.attributes(ctx, db, c.Name()); err != nil {
			return err
		}
		if r.withLinks {
			_, err = a.embed(ctx, db, c, r.asNewcomer(n))
		} else if r.withEmbedding {
			err = c.Upsert(ctx, n)
		} else if err = changeNode(ctx, db, c, n, r); errors.Is(err, flashdb.ErrNotFound) {
			err = fmt.Errorf("%w; to store a new node, give --embedding or --links", a.nearKeys(ctx, c, err, r.key))
		}
		if err != nil {
			return err
		}
		return a.done("put", n.Key, 1, "put %s\n", show.Text(n.Key))
	})
}

// asNewcomer is the node to embed, with the tags and payload that r names.
func (r putRequest) asNewcomer(n flashdb.Node) *newcomer {
	r.newcomer.key = r.key
	r.newcomer.change = func(stored *flashdb.Node) {
		if r.withTags {
			stored.Tags = n.Tags
		}
		if r.withPayload {
			stored.Payload = n.Payload
		}
		for name, x := range n.Attributes {
			if stored.Attributes == nil {
				stored.Attributes = flashdb.Attributes{}
			}
			stored.Attributes[name] = x
		}
	}
	return &r.newcomer
}

// readPayload returns the bytes to store with the node.
func (a *app) readPayload(r putRequest) ([]byte, error) {
	if r.file == "" {
		return []byte(r.payload), nil
	}
	in := a.in
	if r.file != standardInput {
		f, _, err := codec.OpenRegular(r.file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, flashdb.MaxBatchBytes+1))
	if err == nil && len(b) > flashdb.MaxBatchBytes {
		err = fmt.Errorf("%s holds more than %s", r.file, show.Bytes(flashdb.MaxBatchBytes))
	}
	return b, err
}

// changeNode changes what r names of a stored node, in one write.
func changeNode(ctx context.Context, db database, c collection, n flashdb.Node, r putRequest) error {
	switch {
	case r.withTags && !r.withPayload && !r.withAttributes:
		return c.SetTags(ctx, n.Key, n.Tags)
	case r.withPayload && !r.withTags && !r.withAttributes:
		return c.SetPayload(ctx, n.Key, n.Payload)
	case r.withAttributes && !r.withTags && !r.withPayload:
		return c.SetAttributes(ctx, n.Key, n.Attributes)
	}
	var b flashdb.Batch
	var what []string
	if r.withTags {
		b.SetTags(c.Name(), n.Key, n.Tags)
		what = append(what, "tags")
	}
	if r.withAttributes {
		b.SetAttributes(c.Name(), n.Key, n.Attributes)
		what = append(what, "attributes")
	}
	if r.withPayload {
		b.SetPayload(c.Name(), n.Key, n.Payload)
		what = append(what, "payload")
	}
	err := db.Apply(ctx, &b)
	if errors.Is(err, flashdb.ErrNotFound) { // which names one of the writes, and it is all
		err = fmt.Errorf("set %s in %q: node %q %w", strings.Join(what, " and "), c.Name(), n.Key, flashdb.ErrNotFound)
	}
	return err
}

// attributes returns the attributes that r names; nil is for one to remove.
func (r putRequest) attributes(ctx context.Context, db database, collection string) (flashdb.Attributes, error) {
	if !r.withAttributes {
		return nil, nil
	}
	kinds, err := kindsOf(ctx, db, collection)
	if err != nil {
		return nil, err
	}
	all, err := parseAttributes(r.attrs, kinds)
	if err != nil {
		return nil, err
	}
	for _, name := range r.noAttrs {
		if _, both := all[name]; both {
			return nil, fmt.Errorf("--attr and --no-attr both name %s: give one of them", name)
		}
		all[name] = nil
	}
	return all, nil
}
