package flashlight_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
)

// Embeddings in memory and a decoder are enough to predict the links of a node, without a database.
func Example() {
	const n, dim = 20_000, 16
	rng := rand.New(rand.NewPCG(1, 2))
	dec, err := decoder.NewHadamardMLP(dim, layers(rng, dim, 32, 1)...) // random: a trained one comes from weights.Read
	if err != nil {
		log.Fatal(err)
	}
	embeddings := normal(rng, n*dim, 1) // row-major, n x dim
	rows := flashlight.NewMemory(dim, nil, embeddings)

	const source = 7
	query := flashlight.Query{
		Bound:    dec.Bind(nil, embeddings[source*dim:(source+1)*dim]),
		K:        10,
		Plan:     flashlight.DefaultPlan(10, n),
		Excluded: roaring.BitmapOf(source),
	}
	var executor flashlight.Executor
	hits, report, err := executor.Run(context.Background(), &query, rows.NewSearch(), rows, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d hits; scored less than 2%% of the rows: %v\n", len(hits), report.RowsScored < n/50)
	// Output: 10 hits; scored less than 2% of the rows: true
}
