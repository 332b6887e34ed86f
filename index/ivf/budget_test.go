package ivf

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/vfs"
)

// TestFit: a smaller budget never gives more of anything, the least one that the error names is
// enough, and what a build is expected to hold fits.
func TestFit(t *testing.T) {
	for _, o := range []BuildOptions{
		{Dim: 64, Rows: 800_000, Workers: 2},
		{Dim: 512, Rows: 800_000, Workers: 16},
		{Dim: 64, Rows: 10_000_000, Workers: 8},
		{Dim: 8, Rows: 1000, Workers: 1},
		{Dim: 64, Rows: 800_000, Workers: 2, SampleRows: 20_000, Lists: 100},
	} {
		o.MemoryBytes = 1
		_, err := o.fit()
		var refused *BudgetError
		require.ErrorAs(t, err, &refused)
		least := refused.Least
		o.MemoryBytes = least - 1
		_, err = o.fit()
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, least, refused.Least)

		before := budget{}
		for o.MemoryBytes = least; o.MemoryBytes < 1<<40; o.MemoryBytes += o.MemoryBytes / 7 {
			b, err := o.fit()
			require.NoError(t, err)
			rows := float64(b.sampleRows)
			if rows == 0 {
				rows = o.sampleShare(o.Rows) * float64(o.Rows)
			}
			held := max(o.trainBytes(rows, b.batch), o.assignBytes(b.batch), o.writeBytes(b.encode))
			require.LessOrEqual(t, held, o.MemoryBytes)
			assert.GreaterOrEqual(t, b.batch, before.batch)
			assert.GreaterOrEqual(t, b.encode, before.encode)
			before = b
		}
		assert.Equal(t, budget{batch: batchBytes, encode: encodeBytes}, before, "with plenty nothing is made smaller")
	}
}

// TestBuildInBudget: an ample budget, and a number of rows that is known or too low, change no byte
// of the file. With less a build holds less, and the file has all rows.
func TestBuildInBudget(t *testing.T) {
	const n, d = 60_000, 32
	rows := clustered(4, n, d)
	held := func(opt BuildOptions) int64 {
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before, most := heap(), int64(0)
		opt.Progress = func(string, int64, int64) { most = max(most, heap()-before) }
		dir, err := vfs.OpenDir(t.TempDir())
		require.NoError(t, err)
		require.NoError(t, Build(t.Context(), dir, testPath, rows, opt))
		require.NoError(t, dir.Close())
		return most
	}
	opt := BuildOptions{Dim: d, Lists: 50, SampleRows: n, Seed: 3, Workers: 2}
	want := buildBytes(t, rows, opt)
	for _, opt.Rows = range []int64{n, n / 2, 1, 2 * n} {
		opt.MemoryBytes = 1 << 40
		got := buildBytes(t, rows, opt)
		if opt.Rows > n {
			require.NotEmpty(t, got) // a sample of fewer rows
			continue
		}
		require.Equal(t, want, got, "%d rows known", opt.Rows)
	}
	opt.Rows, opt.MemoryBytes = n, 1
	err := Build(t.Context(), vfs.NewMem(), testPath, rows, opt)
	var refused *BudgetError
	require.True(t, errors.As(err, &refused), "%v", err)
	opt.MemoryBytes = refused.Least
	most := held(opt)
	assert.Positive(t, most)
	assert.LessOrEqual(t, most, opt.MemoryBytes)
	assert.Greater(t, held(BuildOptions{Dim: d, Lists: 50, SampleRows: n, Seed: 3, Workers: 2}), opt.MemoryBytes)

	ix := build(t, rows, opt)
	assert.Equal(t, n, ix.Info().Rows)
	require.NoError(t, ix.Verify())
}

// TestSegmentInBudget: with a smaller budget a segment is the same file, and its build holds less.
func TestSegmentInBudget(t *testing.T) {
	const n, d = 60_000, 32
	like := build(t, clustered(4, 20_000, d), BuildOptions{Dim: d, Lists: 500})
	opt := BuildOptions{Dim: d, Like: like, Workers: 2, Rows: n}
	assert.InDelta(t, 500, opt.listCount(n), 0)
	assert.InDelta(t, 10, opt.listCount(40), 0)
	b, err := opt.fit()
	require.NoError(t, err)
	assert.Zero(t, b)
	rows := clustered(5, n, d)
	want := buildBytes(t, rows, opt)
	held := func(b budget) int64 {
		return max(opt.trainBytes(0, b.batch), opt.assignBytes(b.batch), opt.writeBytes(b.encode))
	}
	for _, opt.MemoryBytes = range []int64{1, 4 << 20, 1 << 40} {
		b, err := opt.fit()
		require.NoError(t, err)
		if opt.MemoryBytes == 1 {
			assert.Equal(t, budget{batch: leastBuffer, encode: leastBuffer}, b)
		} else {
			assert.LessOrEqual(t, held(b), opt.MemoryBytes)
		}
		require.True(t, bytes.Equal(want, buildBytes(t, rows, opt)))
	}
}
