package main

import (
	"context"

	"github.com/flashdb/flashdb"
)

// findRowless finds the nodes that have no embedding in the live release, where there are any: they
// are not ranked.
func (k *ranking) findRowless(ctx context.Context) error {
	all, err := k.db.Releases(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.State != flashdb.ReleaseLive {
			continue
		}
		for _, of := range r.Collections {
			if of.WithoutRow == 0 {
				continue
			}
			if of.Name == k.target.Name() {
				err = k.nodes.findRowless(ctx, k.db, k.target)
			} else if k.sources != nil && of.Name == k.sources.Name() {
				err = k.of.findRowless(ctx, k.db, k.sources)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *nodeIndex) findRowless(ctx context.Context, db database, c collection) error {
	x.rowless = map[uint32]bool{}
	return eachNode(ctx, db, c, x.keys, func(id int, n flashdb.Node) error {
		if len(n.Embedding) == 0 {
			x.rowless[uint32(id)] = true
		}
		return nil
	})
}

// eachNode calls fn for every node of a collection whose key is among keys, by id. Nodes deleted
// meanwhile may be left out.
func eachNode(ctx context.Context, db database, c collection, keys []string, fn func(id int, n flashdb.Node) error) error {
	if db := db.DB(); db != nil {
		c, err := db.Collection(c.Name())
		if err != nil {
			return err
		}
		id := 0
		for n, err := range c.Nodes(ctx) { // in the order of the ids
			if err != nil {
				return err
			}
			for id < len(keys) && keys[id] != n.Key {
				id++
			}
			if id == len(keys) {
				break // the others are newer than the keys
			}
			if err := fn(id, n); err != nil {
				return err
			}
			id++
		}
		return nil
	}
	for id, key := range keys {
		if key == "" {
			continue
		}
		n, err := c.Get(ctx, key)
		if err == nil {
			err = fn(id, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
