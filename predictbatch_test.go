package flashdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// batchCollection holds n nodes "0", "1", ... and returns their keys.
func batchCollection(t *testing.T, n int) (*flashdb.Collection, []string) {
	t.Helper()
	d := openDB(t)
	c := d.collection("c", 4)
	rng := rand.New(rand.NewPCG(5, 5))
	var nodes []flashdb.Node
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprint(i))
		nodes = append(nodes, flashdb.Node{Key: keys[i], Embedding: randomVector(rng, 4)})
	}
	require.NoError(t, c.Upsert(context.Background(), nodes...))
	require.NoError(t, c.PutDecoder(context.Background(), "mlp", randomMLP(t, rng, 4, 8)))
	return c, keys
}

func TestPredictBatch(t *testing.T) {
	ctx := context.Background()
	c, keys := batchCollection(t, 50)
	keys = append(keys[:20:20], append([]string{"nobody"}, keys[20:]...)...)
	i := 0
	for res, err := range c.PredictBatch(ctx, keys, 5, nil) {
		require.Equal(t, keys[i], res.Source, "results come in the order of the keys")
		if keys[i] == "nobody" {
			require.ErrorIs(t, err, flashdb.ErrNotFound)
		} else {
			require.NoError(t, err)
			single, err := c.Predict(ctx, keys[i], 5, nil)
			require.NoError(t, err)
			require.Equal(t, single.Hits, res.Hits)
		}
		i++
	}
	require.Equal(t, len(keys), i)
}

func TestPredictBatchStopsEarly(t *testing.T) {
	c, keys := batchCollection(t, 50)
	seen := 0
	for _, err := range c.PredictBatch(context.Background(), keys, 5, nil) {
		require.NoError(t, err)
		if seen++; seen == 3 {
			break
		}
	}
	require.Equal(t, 3, seen)
}

func TestPredictBatchCancelled(t *testing.T) {
	c, keys := batchCollection(t, 50)
	ctx, cancel := context.WithCancel(context.Background())
	answers, failures := 0, 0
	for _, err := range c.PredictBatch(ctx, keys, 5, nil) {
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			failures++
			continue
		}
		answers++
		cancel()
	}
	require.Positive(t, answers)
	require.Positive(t, failures, "the sequence ends with the error")
	require.Less(t, answers, len(keys))
	cancel()
}

func TestPredictVectors(t *testing.T) {
	ctx := context.Background()
	c, _ := batchCollection(t, 50)
	rng := rand.New(rand.NewPCG(6, 6))
	vectors := [][]float32{{1, 2}}
	for range 20 {
		vectors = append(vectors, randomVector(rng, 4))
	}
	i := 0
	for res, err := range c.PredictVectors(ctx, vectors, 5, nil) {
		require.Empty(t, res.Source)
		if i == 0 {
			require.ErrorIs(t, err, flashdb.ErrDim)
		} else {
			require.NoError(t, err)
			single, err := c.PredictVector(ctx, vectors[i], 5, nil)
			require.NoError(t, err)
			require.Equal(t, single.Hits, res.Hits, "results come in the order of the vectors")
		}
		i++
	}
	require.Equal(t, len(vectors), i)
}
