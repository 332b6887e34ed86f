package ivf

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/index/pq"
	"github.com/flashdb/flashdb/internal/vfs"
)

func TestFileDoesNotDependOnWorkers(t *testing.T) {
	rows := clustered(1, 6000, 4)
	for _, opt := range []BuildOptions{
		{Seed: 1},
		{Seed: 2, Lists: 520, SampleRows: 1000}, // two-level training
		{Seed: 3, Bits: 8, OmitRows: true},
	} {
		opt.Dim, opt.Workers = 4, 1
		rows.cut = 100
		want := buildBytes(t, rows, opt)
		for _, workers := range []int{2, 5} {
			opt.Workers = workers
			rows.cut = 1 + 1000*workers // nor on how the source cuts the rows
			require.Equal(t, want, buildBytes(t, rows, opt), "%d workers", workers)
		}
		opt.Seed += 10
		assert.NotEqual(t, want, buildBytes(t, rows, opt))
	}
}

func TestInfo(t *testing.T) {
	rows := clustered(2, 700, 7)
	opt := BuildOptions{Dim: 7, Lists: 9, Seed: 5, Collection: 3, BuildLSN: 1 << 40}
	ix := build(t, rows, opt)
	info := ix.Info()
	assert.NotZero(t, info.Settings)
	assert.Equal(t, Info{
		Dim: 7, Rows: 700, Lists: 9, Bits: 4, SubDim: 2, Collection: 3, BuildLSN: 1 << 40, Seed: 5,
		Settings: info.Settings, Bytes: int64(len(ix.data)), HasRows: true,
	}, info)
	assert.Equal(t, 7, ix.Dim())

	opt.Seed, opt.BuildLSN, opt.Workers = 6, 1, 3
	assert.Equal(t, info.Settings, build(t, rows, opt).Info().Settings, "neither seed, LSN nor workers are settings")
	for _, other := range []BuildOptions{{Dim: 7, Lists: 8}, {Dim: 7, Lists: 9, Bits: 8}, {Dim: 7, Lists: 9, OmitRows: true}, {Dim: 7, Lists: 9, SampleRows: 500}} {
		assert.NotEqual(t, info.Settings, build(t, rows, other).Info().Settings, "%+v", other)
	}
}

func TestContents(t *testing.T) {
	const dim = 6
	rows := clustered(3, 1500, dim)
	ix := build(t, rows, BuildOptions{Dim: dim, Lists: 20})
	byID := map[uint32][]float32{}
	for i, id := range rows.ids {
		byID[id] = rows.row(i)
	}
	for l := range ix.header.lists {
		begin, end := int(ix.begin[l]), int(ix.begin[l+1])
		for j := range dim {
			var sum, squares float64
			for p := begin; p < end; p++ {
				x := float64(ix.rows[p*dim+j])
				require.Equal(t, byID[ix.ids[p]][j], ix.rows[p*dim+j])
				sum, squares = sum+x, squares+x*x
			}
			n := float64(end - begin)
			require.InDelta(t, sum/n, ix.centroids[l*dim+j], 1e-4, "the centroid is the mean of the list")
			require.InDelta(t, squares/n-sum/n*sum/n, ix.variances[l*dim+j], 1e-3, "the variance is that of the list")
		}
	}
	require.Len(t, ix.ids, 1500)
}

func TestListCount(t *testing.T) {
	tests := []struct {
		rows  int64
		lists int
	}{{1, 1}, {15, 1}, {32, 2}, {33_445, 2090}, {65_536, 4096}, {754_859, 13_901}, {1 << 20, 16_384}, {100_000_000, 160_000}}
	for _, tt := range tests {
		assert.Equal(t, tt.lists, int((&BuildOptions{}).listCount(tt.rows)), "%d rows", tt.rows)
	}
}

func TestSampleShareNeverRises(t *testing.T) {
	for _, opt := range []BuildOptions{{}, {SampleRows: 100}, {SampleRows: 1 << 20}, {Lists: 50_000}} {
		last := math.Inf(1)
		for n := int64(1); n < 1<<34; n += 1 + n/100 {
			share := opt.sampleShare(n)
			require.LessOrEqual(t, share, last*(1+1e-12))
			require.Greater(t, share, 0.0)
			last = share
		}
	}
}

func TestSample(t *testing.T) {
	const n = 60_000
	rows := clustered(4, n, 2)
	b := &builder{src: rows, opt: BuildOptions{Dim: 2, SampleRows: 5000, Lists: 10}.withDefaults()}
	s, err := b.sample(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, n, s.seen)
	assert.InDelta(t, 5000, len(s.ids), 300)
	at := 0
	half := 0
	for i, id := range rows.ids {
		if at < len(s.ids) && s.ids[at] == id {
			require.Equal(t, rows.row(i), s.rows[at*2:at*2+2])
			at++
			if i < n/2 {
				half++
			}
		}
	}
	assert.Equal(t, len(s.ids), at, "in order, from the source")
	assert.InDelta(t, len(s.ids)/2, half, 200, "early and late rows alike")
	assert.Len(t, s.some(100, 2), (len(s.ids)+len(s.ids)/100-1)/(len(s.ids)/100)*2)
}

func TestTinyIndexes(t *testing.T) {
	for _, n := range []int{1, 2, 3, 33} {
		for _, dim := range []int{1, 2, 3} {
			rows := clustered(5, n, dim)
			for _, opt := range []BuildOptions{{Dim: dim}, {Dim: dim, Lists: 100}, {Dim: dim, Bits: 8}} {
				ix := build(t, rows, opt)
				q := rows.queries(6, 1)[0]
				got := search(t, ix, q, 5, everything, index.Filter{})
				for i, h := range rows.exact(q, min(5, n), index.Filter{}) {
					require.Equal(t, h, index.Hit{ID: got[i].ID, Score: got[i].Score})
				}
			}
		}
	}
}

func TestEqualRows(t *testing.T) {
	rows := &table{dim: 2}
	for i := range uint32(200) {
		rows.ids, rows.rows = append(rows.ids, i), append(rows.rows, 3, 4)
	}
	ix := build(t, rows, BuildOptions{Dim: 2, Lists: 10})
	assert.Equal(t, 1, ix.Info().Lists, "lists without rows are dropped")
	assert.Len(t, search(t, ix, []float32{1, 1}, 200, everything, index.Filter{}), 200)
}

func TestBuildOptionFaults(t *testing.T) {
	err := Build(t.Context(), vfs.NewMem(), testPath, nil, BuildOptions{Bits: 3, Dim: 4, Lists: -1, Workers: -2})
	require.EqualError(t, err, "build index: 3 bits a sub-vector: want 4 or 8\n"+
		"Lists -1: want 0 to 2147483647\nWorkers -2: want 0 to 2147483647")
	require.ErrorContains(t, Build(t.Context(), vfs.NewMem(), testPath, nil, BuildOptions{}), "dimension 0: want 1 to 65536")
	require.NoError(t, (&BuildOptions{Dim: pq.MaxDim}).Validate())
}

// source makes a RowSource of a function.
type source func(fn func([]uint32, []float32) error) error

func (s source) Rows(_ context.Context, fn func([]uint32, []float32) error) error { return s(fn) }

func TestBadSources(t *testing.T) {
	broken := errors.New("disk on fire")
	nan := float32(math.NaN())
	tests := []struct {
		name string
		src  source
		err  string
	}{
		{"empty", func(func([]uint32, []float32) error) error { return nil }, "no rows to index"},
		{"fails", func(func([]uint32, []float32) error) error { return broken }, "disk on fire"},
		{"descending", func(fn func([]uint32, []float32) error) error {
			return fn([]uint32{3, 2}, make([]float32, 4))
		}, "id 2 after id 3: want ascending ids"},
		{"twice", func(fn func([]uint32, []float32) error) error {
			return fn([]uint32{3, 3}, make([]float32, 4))
		}, "id 3 after id 3: want ascending ids"},
		{"dimension", func(fn func([]uint32, []float32) error) error {
			return fn([]uint32{3}, make([]float32, 3))
		}, "3 values for 1 rows of dimension 2"},
		{"not finite", func(fn func([]uint32, []float32) error) error {
			return fn([]uint32{1, 2}, []float32{0, 0, nan, 0})
		}, "the row of id 2 has a value that is not finite"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fs := vfs.NewMem()
			err := Build(t.Context(), fs, "index/"+testPath, tt.src, BuildOptions{Dim: 2})
			require.EqualError(t, err, "build index "+testPath+": "+tt.err)
		})
	}
}

// changing is a source whose rows differ from pass to pass.
type changing struct {
	passes []*table
	next   int
}

func (c *changing) Rows(ctx context.Context, fn func([]uint32, []float32) error) error {
	c.next++
	return c.passes[min(c.next, len(c.passes))-1].Rows(ctx, fn)
}

func TestRowsThatChangeBetweenPasses(t *testing.T) {
	const dim = 4
	full := clustered(7, 600, dim)
	part := func(keep func(i int) bool) *table {
		out := &table{dim: dim, cut: 50}
		for i, id := range full.ids {
			if keep(i) {
				out.ids, out.rows = append(out.ids, id), append(out.rows, full.row(i)...)
			}
		}
		return out
	}
	second := part(func(i int) bool { return i%5 != 0 })
	third := part(func(i int) bool { return i%5 == 0 || i%7 != 0 }) // some gone since, others back
	changed := slices.Clone(third.row(10))
	changed[0] += 100
	copy(third.row(10), changed)

	ix := build(t, &changing{passes: []*table{full, second, third}}, BuildOptions{Dim: dim, Lists: 8})
	require.Equal(t, len(second.ids), ix.Info().Rows, "the second pass decides")
	rows := map[uint32][]float32{}
	for i, id := range third.ids {
		rows[id] = third.row(i)
	}
	for p, id := range ix.ids {
		want, ok := rows[id]
		if !ok {
			want = make([]float32, dim)
		}
		require.Equal(t, want, ix.rows[p*dim:(p+1)*dim], "id %d", id)
	}

	empty := &table{dim: dim}
	err := Build(t.Context(), vfs.NewMem(), testPath, &changing{passes: []*table{full, empty}}, BuildOptions{Dim: dim})
	require.EqualError(t, err, "build index "+testPath+": no rows to index: they have vanished since the first pass")
	require.ErrorIs(t, err, ErrRowsGone)
}

func TestProgress(t *testing.T) {
	rows := clustered(8, 40_000, 2)
	var stages []string
	last := map[string][2]int64{}
	buildBytes(t, rows, BuildOptions{Dim: 2, Lists: 5, Progress: func(stage string, done, total int64) {
		if len(stages) == 0 || stages[len(stages)-1] != stage {
			stages = append(stages, stage)
		}
		assert.GreaterOrEqual(t, done, last[stage][0])
		last[stage] = [2]int64{done, total}
	}})
	assert.Equal(t, []string{StageSample, StageTrain, StageAssign, StageWrite, StageEncode}, stages)
	assert.Equal(t, map[string][2]int64{
		StageSample: {40_000, 0}, StageTrain: {5, 5}, StageAssign: {40_000, 40_000},
		StageWrite: {40_000, 40_000}, StageEncode: {40_000, 40_000},
	}, last)
}

func TestCancelLeavesNothing(t *testing.T) {
	rows := clustered(9, 2000, 4)
	for _, stage := range []string{StageSample, StageTrain, StageAssign, StageWrite, StageEncode} {
		for _, omit := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			fs := vfs.NewMem()
			err := Build(ctx, fs, testPath, rows, BuildOptions{Dim: 4, OmitRows: omit, Progress: func(now string, _, _ int64) {
				if now == stage {
					cancel()
				}
			}})
			require.ErrorIs(t, err, context.Canceled, stage)
			names, err := fs.ReadDir(".")
			require.NoError(t, err)
			require.Empty(t, names, stage)
		}
	}
}

// TestNthFault fails every operation on the file system in turn.
func TestNthFault(t *testing.T) {
	rows := clustered(10, 300, 3)
	injected := errors.New("injected")
	for _, omit := range []bool{false, true} {
		for n := int64(1); ; n++ {
			fs := vfs.NewMem()
			err := Build(t.Context(), vfs.Faulty(fs, vfs.FailNth(n, injected, nil)), testPath, rows, BuildOptions{Dim: 3, OmitRows: omit})
			if err == nil {
				require.Greater(t, n, int64(12))
				break
			}
			require.ErrorIs(t, err, injected)
			names, err := fs.ReadDir(".")
			require.NoError(t, err)
			if len(names) > 0 { // the one thing that cannot be helped: the removal itself failed
				require.True(t, omit)
				require.Equal(t, []string{testPath + ".rows.tmp"}, names)
			}
		}
	}
}

// TestCrash cuts the power before every operation: what has the index's name is a whole index.
func TestCrash(t *testing.T) {
	rows := clustered(11, 300, 3)
	rng := rand.New(rand.NewPCG(1, 2))
	mem := vfs.NewMem()
	whole := 0
	look := func() error {
		for range 5 {
			after := mem.CrashClone(rng)
			if _, err := after.Size(filepath.Join("index", testPath)); err != nil {
				continue
			}
			ix, err := Open(after, filepath.Join("index", testPath))
			if err != nil {
				return fmt.Errorf("after a crash: %w", err)
			}
			if err := errors.Join(ix.Check(), ix.Release()); err != nil {
				return err
			}
			whole++
		}
		return nil
	}
	require.NoError(t, mem.MkdirAll("index"))
	require.NoError(t, mem.SyncDir("."))
	fs := vfs.Faulty(mem, func(vfs.Op) error { return look() })
	require.NoError(t, Build(t.Context(), fs, filepath.Join("index", testPath), rows, BuildOptions{Dim: 3}))
	whole = 0
	require.NoError(t, look())
	assert.Equal(t, 5, whole, "a finished build survives every crash")
}

func TestBuildOnRealFiles(t *testing.T) {
	rows := clustered(12, 500, 5)
	path := filepath.Join(t.TempDir(), testPath)
	require.NoError(t, Build(t.Context(), vfs.OS(), path, rows, BuildOptions{Dim: 5}))
	ix, err := Open(vfs.OS(), path)
	require.NoError(t, err)
	require.NoError(t, ix.Check())
	assert.Equal(t, buildBytes(t, rows, BuildOptions{Dim: 5}), append([]byte(nil), ix.data...))
	removed := false
	ix.OnRetire(func() { removed = vfs.OS().Remove(path) == nil })
	require.NoError(t, ix.Release())
	assert.True(t, removed)
}

func BenchmarkBuild(b *testing.B) {
	const n, dim = 20_000, 64
	rows := clustered(13, n, dim)
	for b.Loop() {
		require.NoError(b, Build(b.Context(), vfs.NewMem(), testPath, rows, BuildOptions{Dim: dim}))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
}
