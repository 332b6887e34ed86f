//go:build !race

// Under the race detector sync.Pool forgets at random, and counts mean nothing.

package flashdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// TestPredictAllocatesItsResult bounds what a query allocates in steady state: the hits with their
// keys, and what bbolt needs for its read transactions. It must not grow with the collection, the
// rounds or the rows scored.
func TestPredictAllocatesItsResult(t *testing.T) {
	const dim, k = 16, 20
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", dim)
	rng := rand.New(rand.NewPCG(4, 2))
	var nodes []flashdb.Node
	for i := range 3000 {
		nodes = append(nodes, flashdb.Node{Key: fmt.Sprintf("node%d", i), Embedding: randomVector(rng, dim)})
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	require.NoError(t, c.PutDecoder(ctx, "mlp", randomMLP(t, rng, dim, 32)))
	_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)

	source := randomVector(rng, dim)
	predict := func(rounds int) func() {
		return func() {
			res, err := c.PredictVector(ctx, source, k, &flashdb.PredictOptions{Plan: &flashlight.Plan{Rounds: rounds, PerRound: 100, Probes: index.Probes{Share: 0.5}}})
			if err != nil || len(res.Hits) != k {
				t.Fatal(len(res.Hits), err)
			}
		}
	}
	one, many := testing.AllocsPerRun(50, predict(1)), testing.AllocsPerRun(50, predict(6))
	t.Logf("%.0f allocations for %d hits in one round, %.0f in six", one, k, many)
	require.LessOrEqual(t, many, float64(k+100))
	require.LessOrEqual(t, many, one+20, "rounds must not allocate")
}
