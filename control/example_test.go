package control_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
	"github.com/flashdb/flashdb/decoder"
)

// One process has the database open and serves it, and another uses it. Here they are the same
// process.
func Example() {
	base, err := os.MkdirTemp("", "flashdb")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(base)
	dir := filepath.Join(base, "papers.flash")

	db, err := flashdb.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close() // which ends the serving, too
	if _, err := control.Serve(db, nil); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	client, err := control.Dial(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	papers, err := client.CreateCollection(ctx, "papers", flashdb.Schema{Dim: 2})
	if err != nil {
		log.Fatal(err)
	}
	err = papers.Upsert(
		ctx,
		flashdb.Node{Key: "attention", Embedding: []float32{1, 0}},
		flashdb.Node{Key: "bert", Embedding: []float32{0.9, 0.1}},
		flashdb.Node{Key: "word2vec", Embedding: []float32{0.2, 0.8}},
	)
	if err != nil {
		log.Fatal(err)
	}
	dot, err := decoder.NewDot(2)
	if err != nil {
		log.Fatal(err)
	}
	if err := papers.PutDecoder(ctx, "cites", dot); err != nil {
		log.Fatal(err)
	}
	res, err := papers.Predict(ctx, "attention", 1, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Hits[0].Key, res.Hits[0].Score)
	// Output: bert 0.9
}
