package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
)

// The sample data: users and items with tastes around a few centres.
const (
	sampleUsers = 2_000
	sampleItems = 25_000
	dim         = 32
	centres     = 40
)

// openShop returns the shop in db, and fills an empty db with sample data.
func openShop(ctx context.Context, db *flashdb.DB, users, items int) (*shop, error) {
	if _, err := db.Collection("items"); errors.Is(err, flashdb.ErrNotFound) {
		if err := makeSample(ctx, db, users, items); err != nil {
			return nil, err
		}
	}
	u, err := db.Collection("users")
	if err != nil {
		return nil, err
	}
	i, err := db.Collection("items")
	return &shop{users: u, items: i}, err
}

func makeSample(ctx context.Context, db *flashdb.DB, users, items int) error {
	rng := rand.New(rand.NewPCG(1, 2))
	var middle [centres][]float32
	for i := range middle {
		middle[i] = around(rng, make([]float32, dim), 1)
	}
	friendly, err := decoder.NewDot(dim)
	if err != nil {
		return err
	}
	likes, err := likesDecoder()
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name, prefix, decoder string
		n                     int
		d                     decoder.Decoder
	}{
		{"users", "user", "befriends", users, friendly},
		{"items", "item", "likes", items, likes}, // last: with it the sample is whole
	} {
		collection, err := db.CreateCollection(c.name, flashdb.Schema{Dim: dim})
		if err != nil {
			return err
		}
		nodes := make([]flashdb.Node, c.n)
		for i := range nodes {
			nodes[i] = flashdb.Node{Key: fmt.Sprintf("%s-%d", c.prefix, i), Embedding: around(rng, middle[rng.IntN(centres)], .4)}
		}
		if err := collection.Upsert(ctx, nodes...); err != nil {
			return err
		}
		if err := collection.PutDecoder(ctx, c.decoder, c.d); err != nil {
			return err
		}
	}
	return nil
}

// around returns a random vector near a centre.
func around(rng *rand.Rand, centre []float32, spread float64) []float32 {
	v := make([]float32, len(centre))
	for i, x := range centre {
		v[i] = x + float32(spread*rng.NormFloat64())
	}
	return v
}

// likesDecoder stands in for a trained one (weights.Read reads those of PyTorch): a two-layer
// network of the product z of user and item, which rewards what both have in common and punishes
// contrast more: score = sum_i relu(z_i) - 1.5 relu(-z_i).
func likesDecoder() (decoder.Decoder, error) {
	first := make([]float32, 2*dim*dim) // rows 0..dim-1: z, the others: -z
	second := make([]float32, 2*dim)
	for i := range dim {
		first[i*dim+i], first[(dim+i)*dim+i] = 1, -1
		second[i], second[dim+i] = 1, -1.5
	}
	return decoder.New(decoder.Spec{
		Kind: "hadamard_mlp",
		Dim:  dim,
		Layers: []decoder.LayerSpec{
			{Weight: "first", Activation: "relu"},
			{Weight: "second", Activation: "identity"},
		},
	}, map[string]decoder.Tensor{
		"first":  {Shape: []int{2 * dim, dim}, Data: first},
		"second": {Shape: []int{1, 2 * dim}, Data: second},
	})
}
