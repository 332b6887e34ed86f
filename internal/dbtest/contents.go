package dbtest

import (
	"context"

	"github.com/flashdb/flashdb"
)

// Contents is everything that can be asked of a database, for comparison.
type Contents struct {
	Nodes    map[string][]flashdb.Node // by collection, in id order
	Links    map[string][]string
	Across   map[string][]flashdb.Edge `json:",omitempty"` // links from other collections, by that of their targets
	Related  map[string][]flashdb.Edge `json:",omitempty"` // links with relations within a collection
	Decoders []string
	Origin   string
	Exact    []flashdb.Hit
	Tags     map[string]uint64
}

// ContentsOf reads a database that has a collection "papers", with a node "p1" and one decoder.
func ContentsOf(ctx context.Context, db *flashdb.DB) (*Contents, error) {
	all := &Contents{Nodes: map[string][]flashdb.Node{}, Links: map[string][]string{}, Across: map[string][]flashdb.Edge{}, Related: map[string][]flashdb.Edge{}}
	names, err := db.Collections(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := all.read(ctx, db, name); err != nil {
			return nil, err
		}
	}
	c, err := db.Collection("papers")
	if err != nil {
		return nil, err
	}
	if all.Origin, _, err = c.Meta(ctx, "origin"); err != nil {
		return nil, err
	}
	res, err := c.Predict(ctx, "p1", 20, &flashdb.PredictOptions{Exact: true})
	if err != nil {
		return nil, err
	}
	all.Exact = res.Hits
	s, err := db.Stats(ctx)
	if err != nil {
		return nil, err
	}
	all.Tags = s.Collections[0].Tags
	return all, nil
}

// read adds the nodes, links and decoders of one collection.
func (all *Contents) read(ctx context.Context, db *flashdb.DB, name string) error {
	c, err := db.Collection(name)
	if err != nil {
		return err
	}
	var keys []string
	for key, err := range c.Keys(ctx) {
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	for _, key := range keys {
		n, err := c.Get(ctx, key)
		if err != nil {
			return err
		}
		all.Nodes[name] = append(all.Nodes[name], n)
		if all.Links[key], err = c.Linked(ctx, flashdb.Edge{Source: key}); err != nil {
			return err
		}
	}
	for e, err := range c.Links(ctx) {
		if err != nil {
			return err
		}
		switch {
		case e.SourceCollection != "":
			all.Across[name] = append(all.Across[name], e)
		case e.Relation != "":
			all.Related[name] = append(all.Related[name], e)
		}
	}
	decoders, err := c.Decoders(ctx)
	all.Decoders = append(all.Decoders, decoders...)
	return err
}
