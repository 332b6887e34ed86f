package ivf

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/index"
)

// TestWorkers shares one index that is large enough for scans of two queries to be shared.
func TestWorkers(t *testing.T) {
	rows := clustered(31, largeScan/2+1000, 4)
	ix := build(t, rows, BuildOptions{Dim: 4, Lists: 3000, SampleRows: 6000})
	t.Run("find the same", func(t *testing.T) { testWorkersFindTheSame(t, ix, rows) })
	t.Run("do not allocate", func(t *testing.T) { testWorkersDoNotAllocate(t, ix, rows) })
	t.Run("panic in the caller", func(t *testing.T) { testWorkersPanicInTheCaller(t, ix, rows) })
	t.Run("stop with the context", func(t *testing.T) { testWorkersStopWithTheContext(t, ix, rows) })
}

// testWorkersFindTheSame searches with one goroutine and with several, through all lists and
// through a share with which lists are skipped.
func testWorkersFindTheSame(t *testing.T, ix *Index, rows *table) {
	type answer struct {
		found [2][]index.Candidate
		cost  index.Cost
	}
	ask := func(workers int, share float64) (a answer) {
		s := ix.NewSearch()
		s.Workers = workers
		for round := range 3 {
			require.NoError(t, s.Search(t.Context(), rows.queries(uint64(40+round), 2), 300, index.Probes{Share: share}, index.Filter{}, a.found[:]))
		}
		a.cost = s.Cost()
		return a
	}
	for _, share := range []float64{1, 0.995} {
		want := ask(0, share)
		if share == 1 {
			assert.Equal(t, 6*ix.header.rows, want.cost.Codes, "every list is scanned")
		} else {
			assert.Less(t, want.cost.Codes, 6*ix.header.rows*99/100, "lists are passed over")
		}
		for _, workers := range []int{1, 2, 5} {
			got := ask(workers, share)
			assert.Equal(t, want.cost, got.cost, "%d workers, share %v", workers, share)
			for i := range want.found {
				assert.True(t, slices.Equal(want.found[i], got.found[i]), "%d workers, share %v, query %d", workers, share, i)
			}
		}
	}
}

func testWorkersDoNotAllocate(t *testing.T, ix *Index, rows *table) {
	s, queries, dst := ix.NewSearch(), rows.queries(50, 2), make([][]index.Candidate, 2)
	s.Workers = 2
	run := func() {
		s.Reset()
		require.NoError(t, s.Search(t.Context(), queries, 50, index.Probes{Share: 1}, index.Filter{}, dst))
	}
	run()
	assert.LessOrEqual(t, testing.AllocsPerRun(10, run), 1.0)
	assert.Len(t, s.workers, 2)
}

// testWorkersPanicInTheCaller cuts the codes short under the workers, as a file is that was
// truncated while mapped.
func testWorkersPanicInTheCaller(t *testing.T, ix *Index, rows *table) {
	before := runtime.NumGoroutine()
	codes := ix.codes
	defer func() { ix.codes = codes }()
	ix.codes = codes[: len(codes)/2 : len(codes)/2]
	s := ix.NewSearch()
	s.Workers = 3
	dst := make([][]index.Candidate, 2)
	assert.Panics(t, func() {
		_ = s.Search(context.Background(), rows.queries(51, 2), 50, index.Probes{Share: 1}, index.Filter{}, dst)
	})
	// A goroutine that has said that it is done may be stopped for a while before it ends.
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), before, "no goroutine is left")
}

func testWorkersStopWithTheContext(t *testing.T, ix *Index, rows *table) {
	s := ix.NewSearch()
	s.Workers = 2
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dst := make([][]index.Candidate, 2)
	err := s.Search(ctx, rows.queries(52, 2), 50, index.Probes{Share: 1}, index.Filter{}, dst)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Less(t, s.Cost().Codes, ix.header.rows)
}
