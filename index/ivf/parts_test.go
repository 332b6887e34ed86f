package ivf

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/simd"
)

// layered is a generation and segments with newer rows, joined, beside a map of the valid rows.
type layered struct {
	dim   int
	opt   BuildOptions
	files []Segment
	rows  map[uint32][]float32
}

// layer returns a generation of the rows of base without segments.
func layer(t testing.TB, base *table, opt BuildOptions) *layered {
	opt.Dim = base.dim
	l := &layered{dim: base.dim, opt: opt, rows: map[uint32][]float32{}}
	l.files = []Segment{{Index: build(t, base, opt)}}
	for i, id := range base.ids {
		l.rows[id] = base.row(i)
	}
	return l
}

// add puts rows into a further segment and deletes ids.
func (l *layered) add(t testing.TB, newer *table, deleted []uint32) {
	opt := l.opt
	opt.Like = l.files[0].Index
	for i := range l.files {
		hidden := roaring.New()
		if l.files[i].Hidden != nil {
			hidden = l.files[i].Hidden.Clone()
		}
		hidden.AddMany(newer.ids)
		hidden.AddMany(deleted)
		l.files[i].Hidden = hidden
	}
	l.files = append(l.files, Segment{Index: build(t, newer, opt)})
	for i, id := range newer.ids {
		l.rows[id] = newer.row(i)
	}
	for _, id := range deleted {
		delete(l.rows, id)
	}
}

// join joins the files.
func (l *layered) join(t testing.TB) *Index {
	ix, err := Join(l.files)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ix.Release()) })
	return ix
}

// table returns the valid rows.
func (l *layered) table() *table {
	all := &table{dim: l.dim, cut: 100}
	for _, id := range slices.Sorted(maps.Keys(l.rows)) {
		all.ids, all.rows = append(all.ids, id), append(all.rows, l.rows[id]...)
	}
	return all
}

// churn returns rows for a share of the ids of t and as many new ids, and ids to delete.
func churn(rng *rand.Rand, of, newer *table) (put *table, deleted []uint32) {
	put = &table{dim: of.dim, cut: 100}
	last := of.ids[len(of.ids)-1]
	for i := range newer.ids {
		id := last + uint32(i) + 1
		if i%2 == 0 && i/2 < len(of.ids)/4 {
			id = of.ids[rng.IntN(len(of.ids))]
		}
		if !slices.Contains(put.ids, id) {
			put.ids = append(put.ids, id)
		}
	}
	slices.Sort(put.ids)
	put.rows = newer.rows[:len(put.ids)*of.dim]
	for _, id := range of.ids {
		if rng.IntN(20) == 0 && !slices.Contains(put.ids, id) {
			deleted = append(deleted, id)
		}
	}
	return put, deleted
}

// TestJoin compares a generation with two segments, which replace, add and delete rows, with a map
// of the rows: every row, by each way to read it, and the answers of a search of all lists.
func TestJoin(t *testing.T) {
	for name, opt := range map[string]BuildOptions{
		"4 bits":       {},
		"8 bits":       {Bits: 8},
		"few lists":    {Lists: 40},
		"without rows": {OmitRows: true},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 5))
			base := clustered(1, 3000, 16)
			l := layer(t, base, opt)
			for i, n := range []int{700, 40} {
				put, deleted := churn(rng, l.table(), clustered(uint64(2+i), n, 16))
				l.add(t, put, deleted)
			}
			ix, all := l.join(t), l.table()
			assert.Len(t, ix.Files(), 3)
			assert.Equal(t, l.files[0].Index.Info().BuildLSN, ix.Info().BuildLSN)
			l.compareRows(t, ix)

			deny := index.Filter{Excluded: roaring.BitmapOf(all.ids[10], all.ids[20]), Masked: roaring.BitmapOf(all.ids[30])}
			for i, q := range all.queries(7, 20) {
				found := search(t, ix, q, 50, index.Probes{Share: 1}, deny)
				seen := map[uint32]bool{}
				for _, c := range found {
					require.False(t, seen[c.ID], "id %d comes twice", c.ID)
					seen[c.ID] = true
					require.True(t, deny.Keep(c.ID))
					row := l.rows[c.ID]
					require.NotNil(t, row, "id %d was deleted", c.ID)
					if !opt.OmitRows {
						require.Equal(t, simd.Dot(q, row), c.Score, "the score is that of the newest row of id %d", c.ID)
					}
				}
				if !opt.OmitRows {
					require.GreaterOrEqual(t, recall(all.exact(q, 50, deny), found), .9, "query %d", i)
				}
			}
		})
	}
}

// compareRows compares what the index says of its rows with the map.
func (l *layered) compareRows(t *testing.T, ix *Index) {
	t.Helper()
	hasRows := ix.Info().HasRows
	if hasRows {
		got := map[uint32][]float32{}
		require.NoError(t, ix.Rows(t.Context(), func(ids []uint32, rows []float32) error {
			for i, id := range ids {
				require.NotContains(t, got, id)
				got[id] = slices.Clone(rows[i*l.dim : (i+1)*l.dim])
			}
			return nil
		}))
		require.Equal(t, l.rows, got, "Rows")
	}
	listed := map[uint32]uint32{}
	for list := range ix.Info().Lists {
		for _, c := range ix.List(list, nil) {
			require.NotContains(t, listed, c.ID)
			listed[c.ID] = c.Ref
			require.Equal(t, list, ix.ListOf(int(c.Ref)))
		}
	}
	row := make([]float32, l.dim)
	positions := 0
	for at, id := range ix.Positions() {
		positions++
		require.Equal(t, at, listed[id], "position of id %d", id)
		if hasRows {
			require.NoError(t, ix.Gather(row, []index.Candidate{{ID: id, Ref: at}}))
			require.Equal(t, l.rows[id], row)
		}
	}
	require.Len(t, listed, len(l.rows))
	require.Equal(t, len(l.rows), positions)
	total := 0
	for _, size := range ix.ListSizes() {
		total += size
	}
	require.Equal(t, ix.Info().Rows, total)
	require.NoError(t, ix.Verify())
	require.NoError(t, ix.Check())
}

// TestJoinedSearchFindsAsMuch: in many lists, with groups and rounded centroids, a joined index
// finds about as much as one that was built of the same rows.
func TestJoinedSearchFindsAsMuch(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	source := clustered(9, 40_000, 8)
	base := &table{dim: 8, cut: 1000, ids: source.ids[:30_000], rows: source.rows[:30_000*8]}
	l := layer(t, base, BuildOptions{Lists: groupedLists + 300})
	require.Positive(t, l.files[0].Index.groups.len())
	for at := 30_000; at < 40_000; at += 5000 {
		newer := &table{dim: 8, ids: source.ids[at : at+5000], rows: source.rows[at*8 : (at+5000)*8]}
		put, deleted := churn(rng, l.table(), newer)
		l.add(t, put, deleted)
	}
	ix, all := l.join(t), l.table()
	require.Positive(t, ix.groups.len())
	require.NotNil(t, ix.rounded.rows)
	whole := build(t, all, BuildOptions{Dim: 8, Lists: groupedLists + 300})
	for _, probes := range []index.Probes{{Share: .003}, {Share: .02}, {Share: .2}, {Lists: 500}} {
		var joined, built float64
		queries := all.queries(8, 60)
		for _, q := range queries {
			exact := all.exact(q, 50, index.Filter{})
			joined += recall(exact, search(t, ix, q, 50, probes, index.Filter{})) / float64(len(queries))
			built += recall(exact, search(t, whole, q, 50, probes, index.Filter{})) / float64(len(queries))
		}
		t.Logf("%v: joined %.3f, built %.3f", probes, joined, built)
		assert.GreaterOrEqual(t, joined, built-.05, "%v", probes)
	}
}

// TestJoinRefuses: files that do not belong together are not joined.
func TestJoinRefuses(t *testing.T) {
	base := clustered(1, 500, 8)
	of := build(t, base, BuildOptions{Dim: 8})
	for want, opt := range map[string]BuildOptions{
		"other codebooks": {Dim: 8, Seed: 1},
		"of collection 7": {Dim: 8, Like: of, Collection: 7},
		"the shape":       {Dim: 8, Bits: 8},
		"has none":        {Dim: 8, OmitRows: true},
	} {
		other := build(t, clustered(2, 500, 8), opt)
		_, err := Join([]Segment{{Index: of}, {Index: other}})
		assert.ErrorContains(t, err, want)
	}
}

// TestJoinKeepsFiles: the joined index holds the files until its last release.
func TestJoinKeepsFiles(t *testing.T) {
	data := buildBytes(t, clustered(1, 500, 8), BuildOptions{Dim: 8})
	base, err := Load(data, "base")
	require.NoError(t, err)
	segment, err := Load(buildBytes(t, clustered(2, 90, 8), BuildOptions{Dim: 8, Like: base}), "segment")
	require.NoError(t, err)
	retired := ""
	base.OnRetire(func() { retired += "base " })
	segment.OnRetire(func() { retired += "segment " })
	ix, err := Join([]Segment{{Index: base}, {Index: segment}})
	require.NoError(t, err)
	again, err := Join([]Segment{{Index: ix.Files()[0]}})
	require.NoError(t, err)
	require.NoError(t, base.Release())
	require.NoError(t, segment.Release())
	assert.Empty(t, retired)
	require.NoError(t, ix.Release())
	assert.Equal(t, "segment ", retired)
	require.NoError(t, again.Release())
	assert.Equal(t, "segment base ", retired)
}

// TestDamagedSegmentIsNamed: damage of a segment is found, and the error names its file.
func TestDamagedSegmentIsNamed(t *testing.T) {
	base, err := Load(buildBytes(t, clustered(1, 500, 8), BuildOptions{Dim: 8}), "base")
	require.NoError(t, err)
	data := slices.Clone(buildBytes(t, clustered(2, 90, 8), BuildOptions{Dim: 8, Like: base}))
	segment, err := Load(data, "segment")
	require.NoError(t, err)
	ix, err := Join([]Segment{{Index: base}, {Index: segment}})
	require.NoError(t, err)
	at := segment.section(kindRows).offset
	data[at] ^= 1
	require.ErrorContains(t, ix.Verify(), "segment")
	require.ErrorContains(t, ix.Guard(func() error { panic("an index out of range") }), "segment")
	data[at] ^= 1
	require.NoError(t, ix.Verify())
	require.PanicsWithValue(t, "ours", func() { _ = ix.Guard(func() error { panic("ours") }) })
}
