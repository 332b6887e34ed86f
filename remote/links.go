package remote

import (
	"context"
	"errors"

	"github.com/flashdb/flashdb"
)

// Link stores known links to nodes of the collection in the local directory, as one atomic write.
// Predict leaves the linked nodes out. Whether the engine has rows under the keys is not checked.
func (c *Collection) Link(ctx context.Context, edges ...flashdb.Edge) error {
	var b flashdb.Batch
	known := map[[2]string]bool{}
	node := func(local *flashdb.Collection, key string) error {
		at := [2]string{local.Name(), key}
		if known[at] {
			return nil
		}
		known[at] = true
		_, err := local.Get(ctx, key)
		if errors.Is(err, flashdb.ErrNotFound) {
			b.Upsert(local.Name(), flashdb.Node{Key: key, Embedding: []float32{0}})
			err = nil
		}
		return err
	}
	for _, e := range edges {
		from := c.local
		if e.SourceCollection != "" {
			var err error
			if from, err = c.db.linksOf(e.SourceCollection); err != nil {
				return err
			}
		}
		if err := node(from, e.Source); err != nil {
			return err
		}
		if err := node(c.local, e.Target); err != nil {
			return err
		}
	}
	b.Link(c.name, edges...)
	return c.db.local.Apply(ctx, &b)
}

// Unlink removes known links in one atomic write, and returns how many there were.
func (c *Collection) Unlink(ctx context.Context, edges ...flashdb.Edge) (int, error) {
	return c.local.Unlink(ctx, edges...)
}

// Linked returns the keys that a node is linked to: see flashdb.Collection.Linked. A node without
// any link has none, whether or not the engine holds it.
func (c *Collection) Linked(ctx context.Context, of flashdb.Edge) ([]string, error) {
	if of.SourceCollection != "" {
		if _, err := c.db.linksOf(of.SourceCollection); err != nil {
			return nil, err
		}
	}
	keys, err := c.local.Linked(ctx, of)
	if errors.Is(err, flashdb.ErrNotFound) {
		return nil, nil
	}
	return keys, err
}
