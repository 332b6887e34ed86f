package opensearch_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/internal/dbtest"
	"github.com/flashdb/flashdb/remote"
)

// A witness compares answers with the exact ones, while queries and writes run.
type witness struct {
	c      *remote.Collection
	engine *counting
	scores map[string]map[string]float32 // of every node, by source
	best   map[string][]string           // the exact answers

	mu       sync.Mutex
	began    time.Time // of the phase
	answers  int
	errors   []string
	lastErr  time.Duration // after the phase began
	wrong    int           // hits with another score than the decoder's
	short    int           // answers of fewer hits than asked for
	found    int           // of the exact answers
	slowest  time.Duration
	written  []flashdb.Node // acknowledged
	unsure   int            // writes that failed
	deadline time.Time
}

const witnessK = 50

// counting counts the searches that failed, before they are repeated.
type counting struct {
	remote.Engine
	failed atomic.Int64
}

func (c *counting) Search(ctx context.Context, in remote.Name, q *remote.Query) (remote.Answer, error) {
	a, err := c.Engine.Search(ctx, in, q)
	if err != nil || a.Missing != "" {
		c.failed.Add(1)
	}
	return a, err
}

// query asks for one source.
func (w *witness) query(source string) {
	began := time.Now()
	res, err := w.c.Predict(context.Background(), source, witnessK, &flashdb.PredictOptions{Plan: &flashlight.Plan{Rounds: 2, PerRound: 300}})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slowest = max(w.slowest, time.Since(began))
	if err != nil {
		w.errors, w.lastErr = append(w.errors, err.Error()), time.Since(w.began)
		return
	}
	w.answers++
	if len(res.Hits) != witnessK {
		w.short++
	}
	for _, h := range res.Hits {
		want, ok := w.scores[source][h.Key]
		if diff := want - h.Score; !ok || diff > 1e-4 || diff < -1e-4 {
			w.wrong++
		}
		if slices.Contains(w.best[source], h.Key) {
			w.found++
		}
	}
}

// write stores a node, and keeps in mind whether the cluster has acknowledged it.
func (w *witness) write(n flashdb.Node) {
	err := w.c.Upsert(context.Background(), n)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.unsure++
		return
	}
	w.written = append(w.written, n)
}

// run asks until there are so many answers more, and says what came.
func (w *witness) run(t *testing.T, phase string, sources []string, answers int, meanwhile func()) {
	t.Helper()
	w.mu.Lock()
	w.began, w.answers, w.found, w.slowest, w.errors, w.lastErr = time.Now(), 0, 0, 0, nil, 0
	w.deadline = time.Now().Add(5 * time.Minute)
	w.engine.failed.Store(0)
	w.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		meanwhile()
	}()
	var workers sync.WaitGroup
	for i := range 3 {
		workers.Go(func() {
			for turn := i; ; turn++ {
				select {
				case <-done:
					w.mu.Lock()
					enough := w.answers >= answers || time.Now().After(w.deadline)
					w.mu.Unlock()
					if enough {
						return
					}
				default:
				}
				w.query(sources[turn%len(sources)])
			}
		})
	}
	workers.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Logf("%s: %d answers in %v, recall %.4f, slowest %v, %d wrong scores, %d short answers, %d errors, the last after %v, %d searches repeated; %d writes acknowledged, %d failed",
		phase, w.answers, time.Since(w.began).Round(time.Millisecond), float64(w.found)/float64(max(1, w.answers)*witnessK), w.slowest.Round(time.Millisecond),
		w.wrong, w.short, len(w.errors), w.lastErr.Round(time.Millisecond), w.engine.failed.Load(), len(w.written), w.unsure)
	for _, said := range w.errors[:min(3, len(w.errors))] {
		t.Log(said)
	}
	assert.GreaterOrEqual(t, w.answers, answers, phase)
	assert.Zero(t, w.wrong, phase)
	assert.Zero(t, w.short, phase)
	assert.Greater(t, float64(w.found)/float64(w.answers*witnessK), .9, phase)
}

// TestNodeKilled kills a node of a cluster by kill -9 while queries and writes run, and starts it
// again. OPENSEARCH_CLUSTER names the script that does both, and OPENSEARCH_VICTIM the node.
func TestNodeKilled(t *testing.T) {
	e := &counting{Engine: open(t)}
	script, victim := os.Getenv("OPENSEARCH_CLUSTER"), cmp.Or(os.Getenv("OPENSEARCH_VICTIM"), "2")
	if script == "" {
		t.Skip("OPENSEARCH_CLUSTER does not name cluster/cluster.sh: there is nobody to kill a node")
	}
	const rows, dim = 10_000, 32
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(1, 4))
	name := fmt.Sprintf("conformance-%08x", rand.Uint32())
	local, err := flashdb.Open(t.TempDir(), nil)
	require.NoError(t, err)
	defer func() { assert.NoError(t, local.Close()) }()
	c, err := local.CreateCollection(name, flashdb.Schema{Dim: dim})
	require.NoError(t, err)
	var nodes []flashdb.Node
	for i := range rows {
		nodes = append(nodes, flashdb.Node{Key: fmt.Sprint("n", i), Embedding: dbtest.RandomVector(rng, dim)})
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	d, err := dbtest.RandomMLP(rng, dim, 24)
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(ctx, "mlp", d))

	db, err := remote.Open(ctx, t.TempDir(), e, nil)
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, db.Drop(ctx, name))
		assert.NoError(t, db.Close())
	}()
	_, err = db.Push(ctx, local, []string{name}, nil)
	require.NoError(t, err)
	w := &witness{engine: e, scores: map[string]map[string]float32{}, best: map[string][]string{}}
	w.c, err = db.Collection(ctx, name)
	require.NoError(t, err)
	var sources []string
	for i := range 20 {
		source := fmt.Sprint("n", 17*i)
		sources = append(sources, source)
		res, err := c.Predict(ctx, source, rows, &flashdb.PredictOptions{Exact: true})
		require.NoError(t, err)
		w.scores[source] = map[string]float32{}
		for i, h := range res.Hits {
			w.scores[source][h.Key] = h.Score
			if i < witnessK {
				w.best[source] = append(w.best[source], h.Key)
			}
		}
	}

	cluster := func(args ...string) time.Duration {
		began := time.Now()
		out, err := exec.Command(script, args...).CombinedOutput()
		assert.NoError(t, err, "%s", out)
		return time.Since(began)
	}
	w.run(t, "three nodes", sources, 300, func() {})
	assert.Empty(t, w.errors)
	w.run(t, "one killed", sources, 600, func() {
		cluster("kill", victim)
		for i := range 200 { // the embedding stays, so that scores do
			n := nodes[i]
			n.Payload = fmt.Append(nil, "written ", i)
			w.write(n)
		}
	})
	w.run(t, "started again", sources, 300, func() {
		t.Logf("green %v after the start", cluster("restart", victim).Round(time.Millisecond))
	})
	w.run(t, "three nodes again", sources, 300, func() {})
	assert.Empty(t, w.errors)
	for _, n := range w.written {
		got, err := w.c.Get(ctx, n.Key)
		require.NoError(t, err)
		assert.Equal(t, n.Embedding, got.Embedding)
		assert.Equal(t, string(n.Payload), string(got.Payload), "%q: an acknowledged write is lost", n.Key)
	}
}
