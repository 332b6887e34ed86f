package flashlight_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// chopped gives the rows of a Memory in blocks of many sizes, as a delta with gaps does.
type chopped struct{ *flashlight.Memory }

func (c chopped) Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	d := c.Dim()
	return c.Memory.Rows(ctx, func(ids []uint32, rows []float32) error {
		for at, i := 0, 0; at < len(ids); i++ {
			n := min(1+i*i%700, len(ids)-at)
			if err := fn(ids[at:at+n:at+n], rows[at*d:(at+n)*d:(at+n)*d]); err != nil {
				return err
			}
			at += n
		}
		return nil
	})
}

func TestExactEqualsBruteForce(t *testing.T) {
	g := newGraph(t, 1, 3000, 12, 24, 16)
	odd := roaring.New()
	for id := uint32(1); id < 3000; id += 2 {
		odd.Add(id)
	}
	low := roaring.New()
	low.AddRange(0, 2000)
	tests := []struct {
		name              string
		k                 int
		allowed, excluded *roaring.Bitmap
	}{
		{"one", 1, nil, nil},
		{"some", 100, nil, nil},
		{"excluded", 50, nil, odd},
		{"allowed", 50, odd, nil},
		{"both", 50, odd, low},
		{"fewer than k", 1000, odd, low},
		{"nothing", 10, roaring.New(), nil},
		{"more than there are", 5000, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := g.query(7, tt.k, flashlight.Plan{Method: flashlight.MethodExact})
			q.Allowed, q.Excluded = tt.allowed, tt.excluded
			filter := index.Filter{Allowed: tt.allowed, Excluded: tt.excluded}
			scored := 0
			want := bruteForce(g, q.Bound, tt.k, func(id uint32) bool {
				if filter.Keep(id) {
					scored++
				}
				return filter.Keep(id)
			})
			for _, workers := range []int{0, 1, 2, 7} {
				hits, report, err := flashlight.Exact(context.Background(), q, chopped{g.memory()}, workers, nil)
				require.NoError(t, err)
				require.Len(t, hits, len(want))
				require.ElementsMatch(t, want, hits)
				require.Equal(t, ids(want), ids(hits))
				assert.Equal(t, flashlight.Report{Plan: q.Plan, Stop: flashlight.StopExact, RowsScored: scored}, report)
			}
		})
	}
}

func TestExactTiesByLowerID(t *testing.T) {
	m := flashlight.NewMemory(1, []uint32{9, 3, 7, 1, 5}, make([]float32, 5))
	q := &flashlight.Query{Bound: flat{dim: 1, score: 2}, K: 3, Plan: flashlight.Plan{Method: flashlight.MethodExact}}
	hits, _, err := new(flashlight.Executor).Run(context.Background(), q, m.NewSearch(), m, nil)
	require.NoError(t, err)
	assert.Equal(t, []index.Hit{{ID: 1, Score: 2}, {ID: 3, Score: 2}, {ID: 5, Score: 2}}, hits)
}

func TestExactMinScore(t *testing.T) {
	m := flashlight.NewMemory(1, nil, []float32{4, 1, 3, 2})
	least := float32(-1.5)
	q := &flashlight.Query{Bound: bowl{[]float32{3}}, K: 4, MinScore: &least, Plan: flashlight.Plan{Method: flashlight.MethodExact}}
	earlier := index.Hit{ID: 99, Score: -100}
	hits, report, err := flashlight.Exact(context.Background(), q, m, 1, []index.Hit{earlier})
	require.NoError(t, err)
	assert.Equal(t, []index.Hit{earlier, {ID: 2, Score: 0}, {ID: 0, Score: -1}, {ID: 3, Score: -1}}, hits)
	assert.Equal(t, flashlight.StopMinScore, report.Stop)
}

func TestExactErrors(t *testing.T) {
	g := newGraph(t, 2, 100, 4, 4)
	exact := flashlight.Plan{Method: flashlight.MethodExact}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	tests := []struct {
		name string
		ctx  context.Context
		q    *flashlight.Query
		want string
	}{
		{"canceled", canceled, g.query(0, 1, exact), "flashlight: exact scan: context canceled"},
		{"deadline", expireAt(2, context.DeadlineExceeded), g.query(0, 1, exact), "flashlight: exact scan: context deadline exceeded"},
		{"empty query", context.Background(), &flashlight.Query{}, "flashlight: query: no bound decoder\nquery: k is 0: want at least 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := flashlight.Exact(tt.ctx, tt.q, g.memory(), 2, nil)
			require.EqualError(t, err, tt.want)
		})
	}
	broken := errors.New("disk on fire")
	_, _, err := flashlight.Exact(context.Background(), g.query(0, 1, exact), brokenRows{g.memory(), broken}, 2, nil)
	require.ErrorIs(t, err, broken)
}

// brokenRows fails after giving the rows.
type brokenRows struct {
	*flashlight.Memory
	err error
}

func (b brokenRows) Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	return errors.Join(b.Memory.Rows(ctx, fn), b.err)
}

func (b brokenRows) Gather([]float32, []index.Candidate) error { return b.err }

// torn is rows whose reading panics, in the reader or in a worker, like a mapped file that was
// truncated.
type torn struct {
	*flashlight.Memory
	reader bool
}

func (r torn) Rows(_ context.Context, fn func(ids []uint32, rows []float32) error) error {
	if err := fn(make([]uint32, 1000), make([]float32, 1000*r.Dim())); err != nil {
		return err
	}
	if r.reader {
		panic("torn")
	}
	ids := make([]uint32, 5000)
	return fn(ids, make([]float32, len(ids)*r.Dim()))
}

// tornBound panics at its third call.
type tornBound struct {
	decoder.Bound
	calls *atomic.Int64
}

func (b tornBound) Score(s *decoder.Scratch, dst, rows []float32) {
	if b.calls.Add(1) > 2 {
		panic("torn")
	}
	b.Bound.Score(s, dst, rows)
}

// A panic of a worker reaches the caller, and then no worker runs any more.
func TestExactPanicsInTheCaller(t *testing.T) {
	g := newGraph(t, 1, 100, 12, 24, 16)
	for _, reader := range []bool{true, false} {
		q := g.query(0, 5, flashlight.Plan{Method: flashlight.MethodExact})
		if !reader {
			q.Bound = tornBound{q.Bound, new(atomic.Int64)}
		}
		require.PanicsWithValue(t, "torn", func() {
			_, _, _ = flashlight.Exact(context.Background(), q, torn{g.memory(), reader}, 3, nil)
		})
	}
}
