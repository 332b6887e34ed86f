package flashdb_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/attempts"
)

// extremeRows are kinds of embeddings that are hard for float32 arithmetic. change makes random row
// i extreme.
var extremeRows = []struct {
	name   string
	change func(i int, row []float32, rng *rand.Rand)
}{
	{"two rows of 1e38", func(i int, row []float32, _ *rand.Rand) {
		if i < 2 {
			times(row, 1e38)
		}
	}},
	{"one row of 1e30", func(i int, row []float32, _ *rand.Rand) {
		if i == 1 {
			times(row, 1e30)
		}
	}},
	{"one row in a hundred of 1e30", func(i int, row []float32, _ *rand.Rand) {
		if i%100 == 1 {
			times(row, 1e30)
		}
	}},
	{"all rows of 1e30", func(_ int, row []float32, _ *rand.Rand) { times(row, 1e30) }},
	{"all rows of 1e-30", func(_ int, row []float32, _ *rand.Rand) { times(row, 1e-30) }},
	{"subnormal", func(_ int, row []float32, _ *rand.Rand) { times(row, 1e-42) }},
	{"norms of all magnitudes", func(_ int, row []float32, rng *rand.Rand) { times(row, math.Pow(10, 80*rng.Float64()-42)) }},
	{"all rows equal", func(_ int, row []float32, _ *rand.Rand) {
		for j := range row {
			row[j] = float32(j)
		}
	}},
	{"half of the rows zeros", func(i int, row []float32, _ *rand.Rand) {
		if i%2 == 0 {
			clear(row)
		}
	}},
	{"all zeros", func(_ int, row []float32, _ *rand.Rand) { clear(row) }},
	{"a constant dimension of 1e10", func(_ int, row []float32, _ *rand.Rand) { row[1] = 1e10 }},
	{"a dimension of 1e30", func(_ int, row []float32, _ *rand.Rand) { row[1] *= 1e30 }},
	{"signs of the largest number", func(_ int, row []float32, rng *rand.Rand) {
		for j := range row {
			row[j] = math.MaxFloat32 * float32(1-2*rng.IntN(2))
		}
	}},
}

// times multiplies the values of a row, which stay finite.
func times(row []float32, by float64) {
	for j, x := range row {
		row[j] = float32(max(-math.MaxFloat32, min(math.MaxFloat32, float64(x)*by)))
	}
}

// TestExtremeRows queries collections of extreme rows with and without an index. Every decoder and
// similarity returns as many hits as there are, in the order and with the scores of the exact scan.
func TestExtremeRows(t *testing.T) {
	computes(t)
	const n, dim = 300, 6
	for i, tt := range extremeRows {
		t.Run(tt.name, func(t *testing.T) {
			attempts.Count(t, 1, "collections")
			rng := rand.New(rand.NewPCG(uint64(i), 90))
			db := openDB(t)
			c := db.collection("nodes", dim)
			nodes := make([]flashdb.Node, n)
			for i := range nodes {
				nodes[i] = flashdb.Node{Key: fmt.Sprint(i), Embedding: randomVector(rng, dim)}
				tt.change(i, nodes[i].Embedding, rng)
			}
			require.NoError(t, c.Upsert(t.Context(), nodes...))
			bilinear, err := decoder.NewBilinear(dim, randomVector(rng, dim*dim))
			require.NoError(t, err)
			for name, d := range map[string]decoder.Decoder{"dot": dotDecoder(t, dim), "bilinear": bilinear, "mlp": randomMLP(t, rng, dim, 16)} {
				require.NoError(t, c.PutDecoder(t.Context(), name, d))
			}
			vectors := [][]float32{nodes[0].Embedding, nodes[1].Embedding, randomVector(rng, dim), make([]float32, dim)}
			exact := askAll(t, c, vectors, n, n, true)
			requireSame(t, exact, askAll(t, c, vectors, n, n, false), "without an index")
			for _, o := range []flashdb.RebuildOptions{{}, {Bits: 8, OmitRows: true}, {CalibrateTime: 50 * time.Millisecond}} {
				o.Force = true
				if o.CalibrateTime == 0 {
					o.CalibrateTime = -1
				}
				_, err = c.Rebuild(t.Context(), &o)
				require.NoError(t, err)
				requireSame(t, exact, askAll(t, c, vectors, n, n, true), "exact, with an index")
				requireSame(t, exact, askAll(t, c, vectors, n, n, false), fmt.Sprintf("with an index of %+v", o))
				requireFew(t, exact, askAll(t, c, vectors, n, 10, false))
			}
			// Half of the nodes in the index, half newer.
			require.NoError(t, c.Upsert(t.Context(), nodes[:n/2]...))
			requireSame(t, exact, askAll(t, c, vectors, n, n, false), "half of the nodes newer than the index")
		})
	}
}

// askAll returns, by name, the k best for every vector under every decoder and similarity. Some
// vectors are those of nodes.
func askAll(t *testing.T, c *flashdb.Collection, vectors [][]float32, n, k int, exact bool) map[string][]flashdb.Hit {
	t.Helper()
	answers := map[string][]flashdb.Hit{}
	add := func(name string, res flashdb.Result, err error, n int) {
		t.Helper()
		require.NoError(t, err, name)
		require.Len(t, res.Hits, min(k, n), "%s: %s", name, res.Stats.Short)
		for i := 1; i < len(res.Hits); i++ {
			a, b := res.Hits[i-1].Score, res.Hits[i].Score
			require.True(t, a >= b || b != b, "%s: hit %d scores %v, the one before %v", name, i, b, a)
		}
		answers[name] = res.Hits
	}
	for i, v := range vectors {
		for _, name := range []string{"dot", "bilinear", "mlp"} {
			o := flashdb.PredictOptions{Decoder: name, Exact: exact}
			if i < 2 {
				res, err := c.Predict(t.Context(), fmt.Sprint(i), k, &o)
				add(fmt.Sprintf("%s of node %d", name, i), res, err, n-1)
			}
			res, err := c.PredictVector(t.Context(), v, k, &o)
			add(fmt.Sprintf("%s of vector %d", name, i), res, err, n)
		}
		for _, by := range []flashdb.Similarity{flashdb.SimilarityIP, flashdb.SimilarityCosine, flashdb.SimilarityL2} {
			res, err := c.Search(t.Context(), v, k, &flashdb.SearchOptions{Similarity: by, Exact: exact})
			add(fmt.Sprintf("search by %s for vector %d", by, i), res, err, n)
		}
	}
	return answers
}

// requireSame demands the same hits in the same order with the same scores. NaN equals NaN.
func requireSame(t *testing.T, want, got map[string][]flashdb.Hit, when string) {
	t.Helper()
	for name := range want {
		if !slices.EqualFunc(want[name], got[name], sameHit) {
			require.Equal(t, fmt.Sprint(want[name]), fmt.Sprint(got[name]), "%s: %s", when, name)
		}
	}
}

// sameHit compares hits without tags and payload.
func sameHit(a, b flashdb.Hit) bool {
	same := func(x, y float32) bool { return x == y || x != x && y != y }
	return a.Key == b.Key && same(a.Score, b.Score) && same(a.Probability, b.Probability)
}

// requireFew demands that each hit has the score that the exact scan gave it.
func requireFew(t *testing.T, exact, got map[string][]flashdb.Hit) {
	t.Helper()
	for name, hits := range got {
		scores := map[string]float32{}
		for _, h := range exact[name] {
			scores[h.Key] = h.Score
		}
		for _, h := range hits {
			assert.Equal(t, fmt.Sprint(scores[h.Key]), fmt.Sprint(h.Score), "%s: node %s", name, h.Key)
		}
	}
}
