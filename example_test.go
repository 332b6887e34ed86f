package flashdb_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
)

// temporaryDir stands in for a path of your own.
func temporaryDir() (dir string, remove func()) {
	parent, err := os.MkdirTemp("", "flashdb-example")
	if err != nil {
		log.Fatal(err)
	}
	return filepath.Join(parent, "papers.flash"), func() { os.RemoveAll(parent) }
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func Example() {
	dir, remove := temporaryDir()
	defer remove()
	ctx := context.Background()

	db, err := flashdb.Open(dir, nil)
	check(err)
	defer db.Close()

	papers, err := db.CreateCollection("papers", flashdb.Schema{Dim: 3})
	check(err)
	check(papers.Upsert(ctx,
		flashdb.Node{Key: "attention", Embedding: []float32{0.9, 0.1, 0.3}},
		flashdb.Node{Key: "seq2seq", Embedding: []float32{0.8, 0.3, 0.1}},
		flashdb.Node{Key: "resnet", Embedding: []float32{0.1, 0.9, 0.4}},
		flashdb.Node{Key: "bert", Embedding: []float32{0.7, 0.2, 0.6}},
	))
	dec, err := decoder.NewDot(3) // or weights.Read("decoder.safetensors", nil)
	check(err)
	check(papers.PutDecoder(ctx, "cites", dec))
	check(papers.Link(ctx, flashdb.Edge{Source: "bert", Target: "attention"})) // a known link, which Predict leaves out

	res, err := papers.Predict(ctx, "bert", 2, nil)
	check(err)
	for _, hit := range res.Hits {
		fmt.Printf("%-8s score %.2f, probability %.2f\n", hit.Key, hit.Score, hit.Probability)
	}
	// Output:
	// seq2seq  score 0.68, probability 0.66
	// resnet   score 0.49, probability 0.62
}

// Users and items are two collections. Items are predicted for a user, without those that the user
// is linked to.
func ExamplePredictOptions_sourceCollection() {
	dir, remove := temporaryDir()
	defer remove()
	ctx := context.Background()
	db, err := flashdb.Open(dir, nil)
	check(err)
	defer db.Close()
	users, err := db.CreateCollection("users", flashdb.Schema{Dim: 2})
	check(err)
	check(users.Upsert(ctx, flashdb.Node{Key: "ann", Embedding: []float32{0.2, 0.8}}))
	items, err := db.CreateCollection("items", flashdb.Schema{Dim: 2})
	check(err)
	check(items.Upsert(ctx,
		flashdb.Node{Key: "tea", Embedding: []float32{1, 0}},
		flashdb.Node{Key: "cake", Embedding: []float32{0.5, 0.5}},
		flashdb.Node{Key: "soup", Embedding: []float32{0, 1}},
	))
	dec, err := decoder.NewDot(2)
	check(err)
	check(items.PutDecoder(ctx, "likes", dec))

	check(items.Link(ctx, flashdb.Edge{SourceCollection: "users", Source: "ann", Target: "soup"}))
	res, err := items.Predict(ctx, "ann", 2, &flashdb.PredictOptions{SourceCollection: "users"})
	check(err)
	for _, hit := range res.Hits {
		fmt.Println(hit.Key, hit.Score)
	}
	// Output:
	// cake 0.5
	// tea 0.2
}

// A batch makes one write of writes to several collections. Readers see all of them or none, also
// after a crash.
func ExampleBatch() {
	dir, remove := temporaryDir()
	defer remove()
	ctx := context.Background()

	db, err := flashdb.Open(dir, nil)
	check(err)
	defer db.Close()
	_, err = db.CreateCollection("users", flashdb.Schema{Dim: 2})
	check(err)
	books, err := db.CreateCollection("books", flashdb.Schema{Dim: 2})
	check(err)

	// A new model: its embeddings of both kinds of node, its decoder, and a note.
	dec, err := decoder.NewDot(2)
	check(err)
	var b flashdb.Batch
	b.Upsert("users", flashdb.Node{Key: "ann", Embedding: []float32{1, 0}})
	b.Upsert("books",
		flashdb.Node{Key: "dune", Embedding: []float32{0.9, 0.2}},
		flashdb.Node{Key: "emma", Embedding: []float32{0.1, 0.8}},
	)
	b.PutDecoder("books", "reads", dec)
	b.SetMeta("books", "model", "2024-06-01")
	check(db.Apply(ctx, &b))

	// Tags and payload change without the embedding.
	check(books.SetTags(ctx, "dune", []string{"lent"}))
	res, err := books.PredictVector(ctx, []float32{1, 0}, 1, &flashdb.PredictOptions{Filter: "not lent"})
	check(err)
	fmt.Println(res.Hits[0].Key)
	// Output: emma
}

// A source that is not stored, such as a new user, is given by its embedding.
func ExampleCollection_PredictVector() {
	dir, remove := temporaryDir()
	defer remove()
	ctx := context.Background()
	db, err := flashdb.Open(dir, nil)
	check(err)
	defer db.Close()
	items, err := db.CreateCollection("items", flashdb.Schema{Dim: 2})
	check(err)
	check(items.Upsert(ctx,
		flashdb.Node{Key: "tea", Embedding: []float32{1, 0}, Tags: []string{"drink"}},
		flashdb.Node{Key: "cake", Embedding: []float32{0.5, 0.5}, Tags: []string{"food"}},
		flashdb.Node{Key: "soup", Embedding: []float32{0, 1}, Tags: []string{"food", "hot"}},
	))
	dec, err := decoder.NewDot(2)
	check(err)
	check(items.PutDecoder(ctx, "likes", dec))

	user := []float32{0.2, 0.8}
	res, err := items.PredictVector(ctx, user, 3, &flashdb.PredictOptions{Filter: "food and not hot"})
	check(err)
	for _, hit := range res.Hits {
		fmt.Println(hit.Key, hit.Score)
	}
	fmt.Println("fewer than 3:", res.Stats.Short)
	// Output:
	// cake 0.5
	// fewer than 3: only 1 node matches the filter and is not excluded
}

// Rebuild builds the on-disk index. A collection below 20,000 rows needs none, and the result says
// so.
func ExampleCollection_Rebuild() {
	dir, remove := temporaryDir()
	defer remove()
	ctx := context.Background()
	db, err := flashdb.Open(dir, nil)
	check(err)
	defer db.Close()
	c, err := db.CreateCollection("small", flashdb.Schema{Dim: 2})
	check(err)
	check(c.Upsert(ctx, flashdb.Node{Key: "a", Embedding: []float32{1, 2}}))

	res, err := c.Rebuild(ctx, nil)
	check(err)
	fmt.Println(res.Built, "-", res.Reason)
	// Output:
	// false - 1 rows are scanned exactly; an index is built from 20000 rows on, or when forced
}

func ExampleCollection_SetAttributes() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "flashdb")
	check(err)
	defer os.RemoveAll(dir)
	db, err := flashdb.Open(dir, nil)
	check(err)
	defer db.Close()
	items, err := db.CreateCollection("items", flashdb.Schema{Dim: 2})
	check(err)
	check(items.Upsert(ctx,
		flashdb.Node{Key: "dune", Embedding: []float32{1, 0}, Attributes: flashdb.Attributes{"price": 12.5, "brand": "A"}},
		flashdb.Node{Key: "emma", Embedding: []float32{0.5, 0.5}, Attributes: flashdb.Attributes{"price": 7, "brand": "B"}},
		flashdb.Node{Key: "idiot", Embedding: []float32{0, 1}, Attributes: flashdb.Attributes{"price": 30, "brand": "B"}},
	))
	check(items.SetAttributes(ctx, "idiot", flashdb.Attributes{"price": 15, "sold": true}))
	res, err := items.Search(ctx, []float32{1, 1}, 10, &flashdb.SearchOptions{Filter: `price < 20 and (brand = "A" or sold)`, WithNode: true})
	check(err)
	for _, hit := range res.Hits {
		fmt.Println(hit.Key, hit.Attributes["price"])
	}
	// Output:
	// dune 12.5
	// idiot 15
}

// A model that was trained anew replaces embeddings and decoder in one step.
func ExampleDB_Publish() {
	dir, remove := temporaryDir()
	defer remove()
	ctx := context.Background()
	db, err := flashdb.Open(dir, nil)
	check(err)
	defer db.Close()
	papers, err := db.CreateCollection("papers", flashdb.Schema{Dim: 2})
	check(err)
	dec, err := decoder.NewDot(2)
	check(err)
	check(papers.Upsert(ctx, flashdb.Node{Key: "bert", Embedding: []float32{1, 0}}, flashdb.Node{Key: "resnet", Embedding: []float32{0, 1}}))
	check(papers.PutDecoder(ctx, "cites", dec))

	night, err := db.StageRelease(ctx, "night", "papers")
	check(err)
	_, err = night.Put(ctx, "papers", flashdb.Node{Key: "bert", Embedding: []float32{2, 1}}, flashdb.Node{Key: "resnet", Embedding: []float32{1, 2}})
	check(err)
	check(night.PutDecoder(ctx, "papers", "cites", dec))
	_, err = night.Build(ctx, nil)
	check(err)
	_, err = db.Publish(ctx, "night", nil) // or ErrQuality, if it is worse
	check(err)

	res, err := papers.Predict(ctx, "bert", 1, nil)
	check(err)
	fmt.Println(res.Hits[0].Key, res.Hits[0].Score)
	former, err := db.Rollback(ctx)
	check(err)
	fmt.Println("release", former, "is live again")
	// Output:
	// resnet 4
	// release 1 is live again
}

// A second page goes on where the first has ended, whatever is written in between.
func ExampleDB_Snapshot() {
	dir, remove := temporaryDir()
	defer remove()
	ctx := context.Background()

	db, err := flashdb.Open(dir, nil)
	check(err)
	defer db.Close()
	papers, err := db.CreateCollection("papers", flashdb.Schema{Dim: 2})
	check(err)
	for i := range 6 {
		check(papers.Upsert(ctx, flashdb.Node{Key: fmt.Sprint("paper", i), Embedding: []float32{1, float32(i)}}))
	}
	dec, err := decoder.NewDot(2)
	check(err)
	check(papers.PutDecoder(ctx, "cites", dec))

	snap, err := db.Snapshot(ctx, "papers")
	check(err)
	defer snap.Close()
	then, err := snap.Collection("papers")
	check(err)

	var shown []string
	for page := range 2 {
		res, err := then.Predict(ctx, "paper1", 2, &flashdb.PredictOptions{Exclude: shown})
		check(err)
		for _, hit := range res.Hits {
			fmt.Println("page", page+1, hit.Key, hit.Score)
			shown = append(shown, hit.Key)
		}
		_, err = papers.Delete(ctx, "paper3") // the next page has it all the same
		check(err)
	}
	// Output:
	// page 1 paper5 6
	// page 1 paper4 5
	// page 2 paper3 4
	// page 2 paper2 3
}
