package ivf

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/vfs"
)

func TestRowsAndGather(t *testing.T) {
	const n, dim = 2*rowsChunk + 5, 3
	rows := clustered(1, n, dim)
	ix := build(t, rows, BuildOptions{Dim: dim})
	seen := map[uint32][]float32{}
	require.NoError(t, ix.Rows(t.Context(), func(ids []uint32, values []float32) error {
		require.Len(t, values, len(ids)*dim)
		for i, id := range ids {
			seen[id] = values[i*dim : (i+1)*dim]
		}
		return nil
	}))
	require.Len(t, seen, n)
	for i, id := range rows.ids {
		require.Equal(t, rows.row(i), seen[id])
	}

	found := search(t, ix, rows.queries(2, 1)[0], 10, everything, index.Filter{})
	dst := make([]float32, 10*dim)
	require.NoError(t, ix.Gather(dst, found))
	for i, c := range found {
		require.Equal(t, seen[c.ID], dst[i*dim:(i+1)*dim])
	}
	err := ix.Gather(dst, []index.Candidate{{ID: 7, Ref: n}})
	require.EqualError(t, err, "gen-000001.ivf: candidate 7 is at position 2053 of 2053")

	stop := errors.New("stop")
	require.ErrorIs(t, ix.Rows(t.Context(), func([]uint32, []float32) error { return stop }), stop)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, ix.Rows(ctx, func([]uint32, []float32) error { return nil }), context.Canceled)
}

// closeCounter is a mapping that counts how often it is closed.
type closeCounter struct {
	vfs.Mapping
	closed int
	err    error
}

func (c *closeCounter) Close() error {
	c.closed++
	return c.err
}

func TestReferences(t *testing.T) {
	ix, err := Load(buildBytes(t, clustered(3, 50, 2), BuildOptions{Dim: 2}), testPath)
	require.NoError(t, err)
	mapping := &closeCounter{err: errors.New("cannot unmap")}
	ix.mapping = mapping
	retired := 0
	ix.OnRetire(func() {
		assert.Equal(t, 1, mapping.closed, "unmapped first")
		retired++
	})
	var wg sync.WaitGroup
	for range 8 {
		ix.Retain()
		wg.Go(func() {
			for range 100 {
				ix.Retain()
				assert.NoError(t, ix.Release())
			}
			assert.NoError(t, ix.Release())
		})
	}
	wg.Wait()
	assert.Zero(t, retired)
	require.EqualError(t, ix.Release(), "close index gen-000001.ivf: cannot unmap")
	assert.Equal(t, 1, retired)
	assert.Panics(t, func() { _ = ix.Release() })
	assert.Panics(t, ix.Retain)
	assert.Equal(t, 1, mapping.closed)
}

func TestConcurrentSearches(t *testing.T) {
	rows := clustered(4, 3000, 8)
	ix := build(t, rows, BuildOptions{Dim: 8})
	queries := rows.queries(5, 8)
	var wg sync.WaitGroup
	for i, q := range queries {
		wg.Go(func() {
			want := rows.exact(q, 5, index.Filter{})
			for range 5 {
				got := search(t, ix, q, 100, everything, index.Filter{})
				assert.Equal(t, want[0], index.Hit{ID: got[0].ID, Score: got[0].Score}, "query %d", i)
			}
		})
	}
	wg.Wait()
}

func TestOpenFaults(t *testing.T) {
	fs := vfs.NewMem()
	_, err := Open(fs, testPath)
	require.ErrorContains(t, err, "open index: ")
	f, err := fs.Create(testPath)
	require.NoError(t, err)
	_, err = f.Write([]byte("not an index"))
	require.NoError(t, err)
	_, err = Open(fs, testPath)
	require.EqualError(t, err, `open index: corrupt gen-000001.ivf: header at offset 0: not an index: it begins with "not an i", want "flashivf"`)
}

// adviceRecorder is a mapping that records the advice it is given.
type adviceRecorder struct {
	vfs.Mapping
	given []string
}

func (r *adviceRecorder) Advise(a vfs.Advice, offset, length int64) error {
	r.given = append(r.given, fmt.Sprintf("%d: %d at %d", a, length, offset))
	return errors.New("ignored")
}

// TestReadAhead reads rows of several pieces in order: each is asked for before it is reached,
// once.
func TestReadAhead(t *testing.T) {
	const dim, n = 300, 3000
	ix := build(t, clustered(41, n, dim), BuildOptions{Dim: dim, Lists: 3, SampleRows: 64})
	r := &adviceRecorder{}
	mapping := ix.mapping
	ix.mapping = r
	defer func() { ix.mapping = mapping }()
	var asked []int // pieces asked for at each block of rows
	require.NoError(t, ix.Rows(t.Context(), func([]uint32, []float32) error {
		asked = append(asked, len(r.given))
		return nil
	}))
	assert.Equal(t, []int{2, 4, 4}, asked, "3.6 MB by 1 MB, blocks of 1.2 MB")
	s := ix.section(kindRows)
	assert.Equal(t, fmt.Sprintf("%d: %d at %d", vfs.WillNeed, 3*dim*4*1000-3<<20, s.offset+3<<20), r.given[3])
}
