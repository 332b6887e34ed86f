package flashdb_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
)

// learnable are options of a calibration with time to learn seeds.
var learnable = flashdb.CalibrateOptions{Sources: 20, Time: 20 * time.Second}

var learned = flashdb.PredictOptions{Plan: &flashlight.Plan{Seed: flashlight.SeedLearned, Rounds: 1, PerRound: 200}, Explain: true}

// likeSome returns the key and the embedding of a node of a collection that is like a source from
// which a seed of c was learned. How many seeds a calibration has time for depends on the machine,
// and for a node that is like none of their sources there is none.
func likeSome(t *testing.T, c, of *flashdb.Collection) (key string, embedding []float32) {
	t.Helper()
	for n, err := range of.Nodes(t.Context()) {
		require.NoError(t, err)
		res, err := c.PredictVector(t.Context(), n.Embedding, 10, &learned)
		require.NoError(t, err)
		if res.Stats.Trace[0].Aims[0].From == "learned" {
			return n.Key, n.Embedding
		}
	}
	require.Fail(t, "no node has a learned seed")
	return "", nil
}

// TestLearnedSeeds checks that a calibration learns seeds, that they are stored, that queries use
// them and name their sources, and that they are removed with the decoder.
func TestLearnedSeeds(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	c := indexed(t, db, 4000)
	source := "n1"
	ask := func() flashdb.QueryStats {
		res, err := c.Predict(ctx, source, 10, &learned)
		require.NoError(t, err)
		require.Len(t, res.Hits, 10)
		return res.Stats
	}
	before := ask()
	assert.Contains(t, before.Plan, "as there is no learned seed for this source")
	assert.Equal(t, "ones", before.Trace[0].Aims[0].From)
	assert.Empty(t, before.Trace[0].Aims[0].Sources)

	all, err := c.Calibrate(ctx, &learnable)
	require.NoError(t, err)
	require.Positive(t, all[0].Seeds)
	var embedding []float32
	source, embedding = likeSome(t, c, c)
	stats := ask()
	assert.NotContains(t, stats.Plan, "no learned seed")
	assert.Equal(t, "learned", stats.Trace[0].Aims[0].From)
	require.NotEmpty(t, stats.Trace[0].Aims[0].Sources)
	for _, key := range stats.Trace[0].Aims[0].Sources {
		_, err := c.Get(ctx, key)
		require.NoError(t, err, "they are nodes")
	}

	db.reopen()
	c, err = db.Collection("papers")
	require.NoError(t, err)
	assert.Equal(t, stats.Trace[0].Aims[0].Sources, ask().Trace[0].Aims[0].Sources, "they are durable")
	deleted := stats.Trace[0].Aims[0].Sources[0]
	_, err = c.Delete(ctx, deleted)
	require.NoError(t, err)
	ask = func() flashdb.QueryStats { // by the embedding: it may have been the node asked about
		res, err := c.PredictVector(ctx, embedding, 10, &learned)
		require.NoError(t, err)
		return res.Stats
	}
	left := ask().Trace[0].Aims[0]
	assert.Equal(t, "learned", left.From)
	assert.Len(t, left.Sources, len(stats.Trace[0].Aims[0].Sources)-1)
	assert.NotContains(t, left.Sources, deleted, "who is deleted is not named any more")

	require.NoError(t, c.PutDecoder(ctx, "cites", randomMLP(t, rand.New(rand.NewPCG(8, 8)), 16, 8)))
	assert.Equal(t, "ones", ask().Trace[0].Aims[0].From, "they go with the decoder")
}

// TestSeedOfZeros checks that a source unlike any stored one gets the default plan.
func TestSeedOfZeros(t *testing.T) {
	computes(t)
	ctx := context.Background()
	db := openDB(t)
	c := indexed(t, db, 4000)
	_, err := c.Calibrate(ctx, &learnable)
	require.NoError(t, err)
	_, like := likeSome(t, c, c)
	for _, seed := range []flashlight.Seed{flashlight.SeedLearned, flashlight.SeedLearnedOnes} {
		plan := flashlight.DefaultPlan(100, 4000)
		plan.Rounds, plan.Seed = 1, seed
		require.NoError(t, flashdb.OnlyPlan(ctx, c, "cites", plan))
		for name, source := range map[string][]float32{"ones": make([]float32, 16), "learned": like} {
			res, err := c.PredictVector(ctx, source, 10, &flashdb.PredictOptions{Explain: true})
			require.NoError(t, err)
			require.Len(t, res.Hits, 10)
			assert.Equal(t, name, res.Stats.Trace[0].Aims[0].From)
			assert.Equal(t, name == "ones", strings.Contains(res.Stats.Plan, "; ran "+flashlight.DefaultPlan(10, 4000).String()), res.Stats.Plan)
		}
	}
}

// TestSeedsOfAnotherCollection checks that seeds learned from users are used for users, and not for
// items as sources, with which nothing was measured.
func TestSeedsOfAnotherCollection(t *testing.T) {
	computes(t)
	ctx := context.Background()
	db := openDB(t)
	c := indexed(t, db, 4000)
	all := calibratedByUsers(t, db, c, 200, learnable)
	require.Positive(t, all[0].Seeds)

	users, err := db.Collection("users")
	require.NoError(t, err)
	user, embedding := likeSome(t, c, users)
	res, err := c.PredictVector(ctx, embedding, 10, &learned)
	require.NoError(t, err)
	assert.Equal(t, "learned", res.Stats.Trace[0].Aims[0].From)
	assert.NotEmpty(t, res.Stats.Trace[0].Aims[0].Sources)
	across := learned
	across.SourceCollection = "users"
	res, err = c.Predict(ctx, user, 10, &across)
	require.NoError(t, err)
	assert.Equal(t, "learned", res.Stats.Trace[0].Aims[0].From)
	assert.NotEmpty(t, res.Stats.Trace[0].Aims[0].Sources)
	res, err = c.Predict(ctx, user, 10, &learned)
	require.NoError(t, err)
	assert.Equal(t, "ones", res.Stats.Trace[0].Aims[0].From)
	res, err = c.Predict(ctx, user, 10, nil)
	require.NoError(t, err)
	assert.Contains(t, res.Stats.Plan, "uncalibrated")

	require.NoError(t, db.DropCollection(ctx, "users"))
	res, err = c.PredictVector(ctx, embedding, 10, &learned)
	require.NoError(t, err)
	assert.Equal(t, "learned", res.Stats.Trace[0].Aims[0].From, "what was learned of them holds on")
	assert.Empty(t, res.Stats.Trace[0].Aims[0].Sources)
}

// TestCalibrateFreshRows: rows newer than the index are sampled and found like the others.
func TestCalibrateFreshRows(t *testing.T) {
	computes(t)
	ctx := context.Background()
	db := openDB(t)
	c := indexed(t, db, 3000)
	rng := rand.New(rand.NewPCG(5, 5))
	var nodes []flashdb.Node
	for i := range 700 {
		nodes = append(nodes, flashdb.Node{Key: "fresh" + string(rune('a'+i%26)) + string(rune('a'+i/26)), Embedding: randomVector(rng, 16)})
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	_, err := c.Delete(ctx, "n7", "n8", nodes[3].Key)
	require.NoError(t, err)
	all, err := c.Calibrate(ctx, &learnable)
	require.NoError(t, err)
	assert.Equal(t, 3000+699, all[0].Rows, "of which the two deleted are still in the index")
	for _, f := range all[0].Frontiers {
		for _, p := range f.Plans {
			assert.LessOrEqual(t, p.Bound, p.Mean)
		}
	}
}

// TestSeedsWhereOnesIsLost: this decoder scores a.z, and -a.z/20 where that is positive. The ones
// seed counts neurons that are active at no row, and leads to the rows of the lower peak, where the
// gradient keeps it. Seeds are learned all the same, from searches that start at a sample.
func TestSeedsWhereOnesIsLost(t *testing.T) {
	computes(t)
	const dim = 16
	hidden := decoder.Layer{Bias: make([]float32, costly)}
	last := decoder.Layer{Weight: make([]float32, costly)}
	for neuron := range costly {
		sign := float32(1)
		switch neuron % 4 {
		case 2:
			hidden.Bias[neuron], last.Weight[neuron] = -1000, -3
		case 3:
			sign, last.Weight[neuron] = -1, 0.1
		default:
			last.Weight[neuron] = 1
		}
		for d := range dim {
			hidden.Weight = append(hidden.Weight, sign*float32(1-d%2*2)) // so that the source is no seed either
		}
	}
	lost, err := decoder.NewHadamardMLP(dim, hidden, last)
	require.NoError(t, err)

	ctx := context.Background()
	db := openDB(t)
	c := indexedWith(t, db, 4000, costly)
	require.NoError(t, c.PutDecoder(ctx, "cites", lost))
	ample := learnable
	ample.Time = 2 * time.Minute // a few seconds do, but for a machine that is far slower
	all, err := c.Calibrate(ctx, &ample)
	require.NoError(t, err)
	require.Positive(t, all[0].Seeds)
	best := 0.0
	for _, f := range all[0].Frontiers {
		for _, p := range f.Plans {
			if p.Plan.Seed == flashlight.SeedLearned {
				best = max(best, p.Mean)
			}
		}
	}
	assert.Greater(t, best, 0.5, "of the rows of the higher peak; seeds learned from searches that start at ones find none")
}
