package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/dbtest"
	"github.com/flashdb/flashdb/remote"
)

const modelRows = 1000

// A model is an embedded database with a collection of random rows, and the score of every node
// against n0.
type model struct {
	db     *flashdb.DB
	scores map[string]float32
}

func newModel(t *testing.T, seed uint64) *model {
	t.Helper()
	const dim = 16
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(seed, 0))
	db, err := flashdb.Open(t.TempDir(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	c, err := db.CreateCollection("papers", flashdb.Schema{Dim: dim})
	require.NoError(t, err)
	var nodes []flashdb.Node
	for i := range modelRows {
		nodes = append(nodes, flashdb.Node{Key: fmt.Sprint("n", i), Embedding: dbtest.RandomVector(rng, dim)})
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	d, err := dbtest.RandomMLP(rng, dim, 24)
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(ctx, "mlp", d))
	m := &model{db: db, scores: map[string]float32{}}
	res, err := c.Predict(ctx, "n0", modelRows, &flashdb.PredictOptions{Exact: true})
	require.NoError(t, err)
	for _, h := range res.Hits {
		m.scores[h.Key] = h.Score
	}
	return m
}

// made reports whether all hits have the scores of the model.
func (m *model) made(hits []flashdb.Hit) bool {
	for _, h := range hits {
		want, ok := m.scores[h.Key]
		if diff := want - h.Score; !ok || diff > 1e-5 || diff < -1e-5 {
			return false
		}
	}
	return true
}

// A load asks for n0 from several goroutines until it is stopped.
type load struct {
	stop          chan struct{}
	running       sync.WaitGroup
	right, failed atomic.Int64
	longest       atomic.Int64 // nanoseconds
}

// start begins a load of k hits on a collection of one of these models.
func start(t *testing.T, c *remote.Collection, k int, models ...*model) *load {
	l := &load{stop: make(chan struct{})}
	for worker := range 4 {
		l.running.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				began := time.Now()
				res, err := c.Predict(context.Background(), "n0", k, &flashdb.PredictOptions{Exact: worker == 0})
				took := int64(time.Since(began))
				for was := l.longest.Load(); took > was && !l.longest.CompareAndSwap(was, took); was = l.longest.Load() {
				}
				if err != nil {
					assert.ErrorIs(t, err, remote.ErrUnavailable)
					l.failed.Add(1)
					continue
				}
				by := 0
				for _, m := range models {
					if m.made(res.Hits) {
						by++
					}
				}
				assert.Len(t, res.Hits, k)
				assert.Equal(t, 1, by, "the hits are of one model")
				l.right.Add(1)
			}
		})
	}
	return l
}

// more waits until some more queries were answered rightly.
func (l *load) more(t *testing.T) {
	t.Helper()
	from := l.right.Load()
	require.Eventually(t, func() bool { return l.right.Load() > from+20 }, time.Minute, time.Millisecond)
}

// end stops the load and logs what it saw.
func (l *load) end(t *testing.T) {
	close(l.stop)
	l.running.Wait()
	t.Logf("%d answers were right, %d failed, the longest took %v", l.right.Load(), l.failed.Load(), time.Duration(l.longest.Load()).Round(time.Millisecond))
}

// pushed pushes a model into a new engine.
func pushed(t *testing.T, c Config, m *model) (*remote.DB, *remote.Collection) {
	t.Helper()
	ctx := context.Background()
	db, err := remote.Open(ctx, t.TempDir(), open(t, c), nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	_, err = db.Push(ctx, m.db, []string{"papers"}, nil)
	require.NoError(t, err)
	papers, err := db.Collection(ctx, "papers")
	require.NoError(t, err)
	return db, papers
}

// TestSwapUnderLoad replaces the model again and again while another process, which hears nothing
// of it, asks: no query fails, and none mixes two models.
func TestSwapUnderLoad(t *testing.T) {
	ctx := context.Background()
	c := avoiding(t, configured(t))
	models := []*model{newModel(t, 1), newModel(t, 2)}
	db, _ := pushed(t, c, models[0])
	reader, err := remote.Open(ctx, t.TempDir(), open(t, c), nil)
	require.NoError(t, err)
	defer reader.Close()
	papers, err := reader.Collection(ctx, "papers")
	require.NoError(t, err)
	l := start(t, papers, 20, models...)
	for i := range 6 {
		_, err := db.Push(ctx, models[(i+1)%2].db, []string{"papers"}, nil)
		require.NoError(t, err)
		l.more(t)
	}
	l.end(t)
	assert.Zero(t, l.failed.Load())
}

// TestServerFails kills a process of the server, and restarts the server, under queries: an answer
// is right or ErrUnavailable, and queries succeed again afterwards.
func TestServerFails(t *testing.T) {
	control := os.Getenv("POSTGRES_CONTROL")
	if control == "" {
		t.Skip("POSTGRES_CONTROL is not set: see server/README.md")
	}
	ctx := context.Background()
	c := configured(t)
	m := newModel(t, 1)
	_, papers := pushed(t, c, m)
	other := open(t, c)
	defer other.Close()
	for name, trouble := range map[string]func(){
		"a process of the server is killed": func() {
			err := other.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
				return syscall.Kill(int(conn.Conn().PgConn().PID()), syscall.SIGKILL)
			})
			require.NoError(t, err)
		},
		"the server is restarted": func() {
			out, err := exec.Command(control, "restart", "-m", "fast").CombinedOutput()
			require.NoError(t, err, "%s", out)
		},
		"the server crashes and is away for a while": func() {
			out, err := exec.Command(control, "stop", "-m", "immediate").CombinedOutput()
			require.NoError(t, err, "%s", out)
			_, err = papers.Predict(ctx, "n0", 5, nil)
			assert.True(t, errors.Is(err, remote.ErrUnavailable), "%v", err)
			out, err = exec.Command(control, "start").CombinedOutput()
			require.NoError(t, err, "%s", out)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t, papers, 20, m)
			l.more(t)
			trouble()
			began := time.Now()
			l.more(t)
			t.Logf("20 right answers within %v after it", time.Since(began).Round(time.Millisecond))
			l.end(t)
		})
	}
}
