package flashdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// BenchmarkLink stores new links, each batch acknowledged when it is durable, without releases and
// with one that is staged: then the times of links are kept.
func BenchmarkLink(b *testing.B) {
	for _, batch := range []int{1, 100, 10_000} {
		for _, staged := range []bool{false, true} {
			b.Run(fmt.Sprintf("batch=%d/staged=%v", batch, staged), func(b *testing.B) { benchmarkLink(b, batch, staged) })
		}
	}
}

func benchmarkLink(b *testing.B, batch int, staged bool) {
	const nodes = 50_000
	ctx := context.Background()
	db, err := flashdb.Open(filepath.Join(b.TempDir(), "bench.flash"), nil)
	require.NoError(b, err)
	c, err := db.CreateCollection("c", flashdb.Schema{Dim: 1})
	require.NoError(b, err)
	all := make([]flashdb.Node, nodes)
	for i := range all {
		all[i] = flashdb.Node{Key: fmt.Sprint(i), Embedding: []float32{1}}
	}
	require.NoError(b, c.Upsert(ctx, all...))
	require.NoError(b, db.Checkpoint(ctx)) // as staging does
	if staged {
		_, err = db.StageRelease(ctx, "next", "c")
		require.NoError(b, err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	edges := make([]flashdb.Edge, batch)
	for b.Loop() {
		for i := range edges {
			edges[i] = flashdb.Edge{Source: all[rng.IntN(nodes)].Key, Target: all[rng.IntN(nodes)].Key}
		}
		require.NoError(b, c.Link(ctx, edges...))
	}
	require.NoError(b, db.Checkpoint(ctx))
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "links/s")
	require.NoError(b, db.Close())
}
