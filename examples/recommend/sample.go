package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// The sample data: who likes what. Users and items have tastes, and a user likes mostly items of
// their own taste.
const (
	sampleUsers  = 2_000
	sampleItems  = 25_000
	tastes       = 40
	likesPerUser = 30
)

// openShop returns the shop in db. An empty db is filled with a model that is trained on sample
// data.
func openShop(ctx context.Context, db *flashdb.DB, users, items int) (*shop, error) {
	if _, err := db.Collection("items"); errors.Is(err, flashdb.ErrNotFound) {
		if err := trainSample(ctx, db, users, items); err != nil {
			return nil, err
		}
	}
	u, err := db.Collection("users")
	if err != nil {
		return nil, err
	}
	i, err := db.Collection("items")
	return &shop{db: db, users: u, items: i}, err
}

// sampleLikes returns a graph of users, the first nodes, and the items that they like.
func sampleLikes(users, items int) *train.Graph {
	rng := rand.New(rand.NewPCG(1, 2))
	g := &train.Graph{Nodes: users + items, Sources: users}
	for user := range users {
		for range likesPerUser {
			item := rng.IntN(items)
			if rng.IntN(10) > 0 {
				item = min(items-1, item/tastes*tastes+user%tastes)
			}
			g.Edges = append(g.Edges, train.Edge{Source: uint32(user), Target: uint32(users + item)})
		}
	}
	return g
}

// trainSample trains a model on the sample and stores it in one write: embeddings, likes, decoders,
// and the encoders of later users and items.
func trainSample(ctx context.Context, db *flashdb.DB, users, items int) error {
	g := sampleLikes(users, items)
	m, err := train.Run(ctx, g, train.Split{}, train.Options{Dim: 32, Epochs: 5, Seed: 1})
	if err != nil {
		return err
	}
	friendly, err := decoder.NewDot(m.Dim)
	if err != nil {
		return err
	}
	name := func(node int) string {
		if node < users {
			return fmt.Sprintf("user-%d", node)
		}
		return fmt.Sprintf("item-%d", node-users)
	}
	nodes := make([]flashdb.Node, g.Nodes)
	for i := range nodes {
		nodes[i] = flashdb.Node{Key: name(i), Embedding: m.Embeddings[i*m.Dim : (i+1)*m.Dim]}
	}
	likes := make([]flashdb.Edge, len(g.Edges))
	for i, e := range g.Edges {
		likes[i] = flashdb.Edge{SourceCollection: "users", Source: name(int(e.Source)), Target: name(int(e.Target))}
	}
	var b flashdb.Batch
	b.CreateCollection("users", flashdb.Schema{Dim: m.Dim})
	b.CreateCollection("items", flashdb.Schema{Dim: m.Dim})
	b.Upsert("users", nodes[:users]...)
	b.Upsert("items", nodes[users:]...)
	b.Link("items", likes...)
	b.PutDecoder("items", "likes", m.Decoder)
	b.PutDecoder("users", "befriends", friendly)
	b.PutEncoder("items", m.Encoder, flashdb.EncoderUse{Decoder: "likes", Neighbours: "users"})
	b.PutEncoder("users", m.Encoder, flashdb.EncoderUse{Decoder: "likes", Targets: "items", Neighbours: "items"})
	return db.Apply(ctx, &b)
}
