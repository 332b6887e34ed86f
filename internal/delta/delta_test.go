package delta_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/delta"
	"github.com/flashdb/flashdb/internal/simd"
)

// wide makes the smallest chunks (16 rows), so that tests cross many of them.
const wide = 5000

// rowOf returns a row of dim floats whose values depend on id and lsn.
func rowOf(dim int, id uint32, lsn uint64) []float32 {
	rng := rand.New(rand.NewPCG(uint64(id), lsn))
	row := make([]float32, dim)
	for i := range row {
		row[i] = float32(rng.IntN(17)) - 8
	}
	return row
}

// model is what a table should hold: the newest change of every id.
type model map[uint32]modelChange

type modelChange struct {
	lsn uint64
	row []float32 // nil: deleted
}

func (m model) clone() model {
	c := make(model, len(m))
	for id, change := range m {
		c[id] = change
	}
	return c
}

// search is Search by sorting all inner products.
func (m model) search(query []float32, n int, filter index.Filter) []index.Hit {
	top := index.NewTopK(n)
	for id, c := range m {
		if c.row != nil && filter.Keep(id) {
			top.Offer(id, simd.Dot(query, c.row))
		}
	}
	return top.Sorted(nil)
}

// requireEqual compares every reading method of a snapshot with the model.
func requireEqual(t require.TestingT, want model, s *delta.Snapshot, dim int) {
	masked := roaring.New()
	live := 0
	for id, c := range want {
		masked.Add(id)
		row, ok := s.Row(id)
		require.Equal(t, c.row != nil, ok, "row of id %d", id)
		if ok {
			live++
			require.Equal(t, c.row, row)
		}
	}
	require.Equal(t, masked.ToArray(), s.Masked().ToArray())
	require.Equal(t, live, s.Len())
	_, ok := s.Row(1 << 30)
	require.False(t, ok)

	seen := 0
	require.NoError(t, s.Rows(context.Background(), func(ids []uint32, rows []float32) error {
		require.Len(t, rows, len(ids)*dim)
		for i, id := range ids {
			require.Equal(t, want[id].row, rows[i*dim:(i+1)*dim])
		}
		seen += len(ids)
		return nil
	}))
	require.Equal(t, live, seen, "every live row once")

	queries := [][]float32{rowOf(dim, 900, 1), rowOf(dim, 901, 1)}
	filter := index.Filter{Excluded: roaring.BitmapOf(2, 3, 17)}
	dst := make([][]index.Candidate, 2)
	s.Search(queries, 7, filter, dst)
	for q, query := range queries {
		hits := want.search(query, 7, filter)
		require.Len(t, dst[q], len(hits))
		gathered := make([]float32, len(hits)*dim)
		s.Gather(gathered, dst[q])
		for i, h := range hits {
			require.Equal(t, h, index.Hit{ID: dst[q][i].ID, Score: dst[q][i].Score})
			require.Equal(t, want[h.ID].row, gathered[i*dim:(i+1)*dim])
		}
	}
}

// TestModel runs random histories against a map, and checks at the end of each that all snapshots
// still show the moment at which they were taken.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.SampledFrom([]int{1, 3, wide}).Draw(t, "dim")
		table := delta.New(dim)
		now := model{}
		type taken struct {
			snapshot *delta.Snapshot
			want     model
		}
		var snapshots []taken
		var lsn uint64
		id := rapid.Uint32Range(0, 30)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				lsn++
				id := id.Draw(t, "id")
				row := rowOf(dim, id, lsn)
				table.Put(id, row, lsn)
				now[id] = modelChange{lsn, slices.Clone(row)}
				clear(row) // the table has its own copy
			},
			"delete": func(t *rapid.T) {
				lsn++
				id := id.Draw(t, "id")
				table.Delete(id, lsn)
				now[id] = modelChange{lsn: lsn}
			},
			"retire": func(t *rapid.T) {
				upTo := rapid.Uint64Range(lsn-min(lsn, 10), lsn).Draw(t, "up to")
				table.Retire(upTo)
				for id, c := range now {
					if c.lsn <= upTo {
						delete(now, id)
					}
				}
			},
			"snapshot": func(*rapid.T) {
				if len(snapshots) < 8 {
					snapshots = append(snapshots, taken{table.Snapshot(), now.clone()})
				}
			},
		})
		for _, s := range snapshots {
			requireEqual(t, s.want, s.snapshot, dim)
		}
		requireEqual(t, now, table.Snapshot(), dim)
	})
}

func TestSnapshotIsSharedUntilAChange(t *testing.T) {
	table := delta.New(2)
	table.Put(1, []float32{1, 2}, 1)
	first := table.Snapshot()
	assert.Same(t, first, table.Snapshot())
	table.Delete(9, 2)
	assert.NotSame(t, first, table.Snapshot())
	assert.Equal(t, []uint32{1}, first.Masked().ToArray())
	assert.Equal(t, []uint32{1, 9}, table.Snapshot().Masked().ToArray())
}

func TestRewritingANodeDoesNotGrowTheTable(t *testing.T) {
	table := delta.New(wide)
	row := make([]float32, wide)
	for lsn := range uint64(1000) {
		row[0] = float32(lsn)
		table.Put(uint32(lsn%3), row, lsn)
	}
	s := table.Snapshot()
	assert.Equal(t, 3, s.Len())
	assert.LessOrEqual(t, delta.Slots(table), 33, "two chunks of 16 rows and the one that fills them")
	for id := range uint32(3) {
		got, ok := s.Row(id)
		require.True(t, ok)
		assert.Equal(t, float32(999-(999-id)%3), got[0])
	}
}

func TestFilterInSearch(t *testing.T) {
	table := delta.New(1)
	for id := range uint32(100) {
		table.Put(id, []float32{float32(id)}, 1)
	}
	tests := []struct {
		name   string
		filter index.Filter
		want   []uint32
	}{
		{"none", index.Filter{}, []uint32{99, 98, 97}},
		{"allowed", index.Filter{Allowed: roaring.BitmapOf(3, 50)}, []uint32{50, 3}},
		{"excluded", index.Filter{Excluded: roaring.BitmapOf(99, 97)}, []uint32{98, 96, 95}},
		{"masked", index.Filter{Masked: roaring.BitmapOf(98)}, []uint32{99, 97, 96}},
		{"nothing", index.Filter{Allowed: roaring.New()}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dst := [][]index.Candidate{{{ID: 7}}} // earlier contents are overwritten
			table.Snapshot().Search([][]float32{{1}}, 3, tt.filter, dst)
			var ids []uint32
			for _, c := range dst[0] {
				ids = append(ids, c.ID)
			}
			assert.Equal(t, tt.want, ids)
		})
	}
}

func TestRowsStops(t *testing.T) {
	table := delta.New(1)
	table.Put(1, []float32{1}, 1)
	stop := errors.New("stop")
	err := table.Snapshot().Rows(context.Background(), func([]uint32, []float32) error { return stop })
	require.ErrorIs(t, err, stop)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err = table.Snapshot().Rows(ctx, func([]uint32, []float32) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
}

func TestWrongLengthPanics(t *testing.T) {
	assert.Panics(t, func() { delta.New(0) })
	assert.PanicsWithValue(t, "delta: put id 5: row of 1 floats in a table of 2", func() {
		delta.New(2).Put(5, []float32{1}, 1)
	})
}

// TestConcurrentUse has writers and readers at once: the race detector is the judge, and every row
// read must be whole.
func TestConcurrentUse(t *testing.T) {
	const dim, nodes, writes = 64, 50, 400
	table := delta.New(dim)
	fill := func(row []float32, v float32) {
		for i := range row {
			row[i] = v
		}
	}
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			row := make([]float32, dim)
			for i := range uint64(writes) {
				lsn := 2*i + uint64(w)
				switch id := uint32(lsn*7) % nodes; {
				case lsn%11 == 0:
					table.Delete(id, lsn)
				case lsn%101 == 0:
					table.Retire(lsn - 50)
				default:
					fill(row, float32(lsn))
					table.Put(id, row, lsn)
				}
			}
		})
		wg.Go(func() {
			query := make([]float32, dim)
			fill(query, 1)
			dst := make([][]index.Candidate, 1)
			got := make([]float32, 10*dim)
			for range writes {
				s := table.Snapshot()
				s.Search([][]float32{query}, 10, index.Filter{Excluded: s.Masked().Clone()}, dst)
				assert.Empty(t, dst[0], "every row is masked")
				s.Search([][]float32{query}, 10, index.Filter{}, dst)
				assert.Len(t, dst[0], min(10, s.Len()))
				s.Gather(got, dst[0])
				for i, c := range dst[0] {
					assert.Equal(t, c.Score, simd.Dot(query, got[i*dim:(i+1)*dim]))
					row, ok := s.Row(c.ID)
					assert.True(t, ok)
					assert.Equal(t, got[i*dim], row[dim-1])
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkSearch(b *testing.B) {
	const dim, n = 128, 20_000
	table := delta.New(dim)
	for id := range uint32(n) {
		table.Put(id, rowOf(dim, id, 1), 1)
	}
	queries := [][]float32{rowOf(dim, 1, 2), rowOf(dim, 2, 2)}
	dst := make([][]index.Candidate, 2)
	b.ReportAllocs()
	for b.Loop() {
		table.Snapshot().Search(queries, 150, index.Filter{}, dst)
	}
}

// TestSearchOfExtremeRows: inner products whose float32 sums overflow on the way are those of
// float64.
func TestSearchOfExtremeRows(t *testing.T) {
	const huge = math.MaxFloat32
	inf := float32(math.Inf(1))
	table := delta.New(3)
	for id, row := range [][]float32{{huge, huge, -huge}, {-huge, -huge, huge}, {1, 1, 1}, {huge, -huge, 5}, {-huge, 0, 0}, {0, 0, 0}} {
		table.Put(uint32(id), row, uint64(id)+1)
	}
	for _, tt := range []struct {
		query []float32
		want  []index.Hit
	}{
		{[]float32{1, 1, 1}, []index.Hit{{ID: 0, Score: huge}, {ID: 3, Score: 5}, {ID: 2, Score: 3}, {ID: 5, Score: 0}, {ID: 1, Score: -huge}, {ID: 4, Score: -huge}}},
		{[]float32{huge, huge, huge}, []index.Hit{{ID: 0, Score: inf}, {ID: 2, Score: inf}, {ID: 3, Score: inf}, {ID: 5, Score: 0}, {ID: 1, Score: -inf}, {ID: 4, Score: -inf}}},
	} {
		for n := 1; n <= len(tt.want)+1; n++ {
			dst := make([][]index.Candidate, 1)
			table.Snapshot().Search([][]float32{tt.query}, n, index.Filter{}, dst)
			var got []index.Hit
			for _, c := range dst[0] {
				got = append(got, index.Hit{ID: c.ID, Score: c.Score})
			}
			require.Equal(t, tt.want[:min(n, len(tt.want))], got)
		}
	}
}
