package ivf

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/format"
)

const manyRows = 14_000

// computes skips a test with -short: the race detector makes it many times slower, and it runs in
// one goroutine, or in those of a build that shorter tests run too.
func computes(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it computes: nothing for the race detector")
	}
}

// manyLists is the rows and options of an index of more than groupedLists lists.
func manyLists() (*table, BuildOptions) {
	return clustered(60, manyRows, 6), BuildOptions{Dim: 6, Lists: groupedLists + 500, Seed: 3}
}

func TestGroups(t *testing.T) {
	computes(t)
	rows, opt := manyLists()
	ix := build(t, rows, opt)
	s := ix.section(kindGroups)
	require.NotNil(t, s)
	assert.Zero(t, s.flags, "older programs skip it")
	g := &ix.groups
	assert.InDelta(t, ix.header.lists/listsPerGroup, g.len(), 8)
	var within, around float64 // squared distances of centroids from that of their group, and from that of the next one
	for i := range g.len() {
		next := (i + 1) % g.len()
		for l := int(g.begin[i]); l < int(g.begin[i+1]); l++ {
			for j := range 6 {
				c := float64(ix.centroids[l*6+j])
				within += (c - float64(g.centroids[i*6+j])) * (c - float64(g.centroids[i*6+j]))
				around += (c - float64(g.centroids[next*6+j])) * (c - float64(g.centroids[next*6+j]))
			}
			assert.LessOrEqual(t, ix.breadth[l], g.breadth[i])
		}
	}
	assert.Less(t, within, around/3)

	want := buildBytes(t, rows, opt)
	opt.Workers = 3
	assert.Equal(t, want, buildBytes(t, rows, opt), "3 workers")
}

// TestGroupsAreLeftOut checks that there are no groups of few lists, nor of lists whose rows are
// shifted, scaled or in several strata.
func TestGroupsAreLeftOut(t *testing.T) {
	computes(t)
	rows, opt := manyLists()
	few := opt
	few.Lists = groupedLists - 1
	assert.Nil(t, build(t, rows, few).section(kindGroups))
	for name, change := range map[string]func(i int, row []float32, rng *rand.Rand){
		"strata": func(i int, row []float32, _ *rand.Rand) {
			if i%20 == 0 {
				scale(row, 1e20)
			}
		},
		"offset": func(_ int, row []float32, _ *rand.Rand) { row[1] = 1e10 },
		"scaled": func(_ int, row []float32, _ *rand.Rand) { scale(row, 1e-12) },
	} {
		ix := build(t, ordinary(61, manyRows, 6, change), opt)
		require.GreaterOrEqual(t, ix.header.lists, groupedLists, name)
		assert.Nil(t, ix.section(kindGroups), name)
	}
	// A row that appears between the passes is in no stratum.
	first := ordinary(62, manyRows, 6, nil)
	second := ordinary(62, manyRows, 6, func(i int, row []float32, _ *rand.Rand) {
		if i == 7 {
			scale(row, 1e30)
		}
	})
	assert.Nil(t, build(t, &changing{passes: []*table{first, second}}, opt).section(kindGroups), "stray row")
}

// TestKeysLieBehindGroups checks that keys are the last section, because their length is not known
// before they are written.
func TestKeysLieBehindGroups(t *testing.T) {
	computes(t)
	rows, opt := manyLists()
	opt.Keys = named(rows)
	ix := build(t, rows, opt)
	require.NotNil(t, ix.section(kindGroups))
	require.Equal(t, kindKeys, ix.sections[len(ix.sections)-1].kind)
	for _, id := range rows.ids {
		_, ok := ix.Key(id)
		require.True(t, ok)
	}
}

func TestFewListsAreChosenByGroup(t *testing.T) {
	computes(t)
	rows, opt := manyLists()
	ix := build(t, rows, opt)
	s := ix.NewSearch()
	few := ix.header.lists / fewLists
	for probes, want := range map[index.Probes]bool{
		{Lists: 1}: true, {Lists: few - 1}: true, {Lists: few + 1}: false, {Share: .5 / fewLists}: true, {Share: 2. / fewLists}: false, everything: false,
	} {
		assert.Equal(t, want, s.wantsFew(probes), "%v", probes)
	}
	for l := range few {
		s.visit(l)
	}
	assert.False(t, s.wantsFew(index.Probes{Lists: few + 1}), "lists that were visited before count")
}

// TestChooseByGroupEqualsChoosing checks that the best lists of the examined groups are chosen, and
// that no other group reaches the last of them.
func TestChooseByGroupEqualsChoosing(t *testing.T) {
	computes(t)
	rows, opt := manyLists()
	ix := build(t, rows, opt)
	rng := rand.New(rand.NewPCG(63, 63))
	got, all := queryVector{wanted: index.NewBest(1), leading: index.NewBest(1)}, []queryVector{{wanted: index.NewBest(1), leading: index.NewBest(1)}}
	passed := 0
	for i, vector := range rows.queries(64, 200) {
		if i%50 == 49 {
			clear(vector)
		}
		got.take(ix, vector)
		all[0].take(ix, vector)
		visited := newBitset(ix.header.lists)
		for l := range ix.header.lists {
			if rng.IntN(10) < i%12 { // in the end no list is left
				visited.add(l)
			}
		}
		n := 1 + rng.IntN(40)
		got.rateGroups(ix)
		got.chooseByGroup(ix, n, visited)
		rateAll(ix, all)
		hidden := slices.Clone(visited)
		for g := range ix.groups.len() {
			if got.examined.has(g) {
				continue
			}
			passed++
			for l := ix.groups.begin[g]; l < ix.groups.begin[g+1]; l++ {
				hidden.add(int(l))
			}
			require.Len(t, got.turns, n, "groups are passed over only when there are enough lists")
			require.Less(t, got.tops[g], got.turns[n-1].Score)
		}
		all[0].choose(n, hidden)
		require.Len(t, got.turns, len(all[0].turns))
		for k, c := range all[0].turns {
			require.InDelta(t, c.Score, got.turns[k].Score, 1e-4)
		}
		// A second choice, of the same query, computes no product again and finds what is left.
		for _, c := range got.turns {
			visited.add(int(c.ID))
		}
		before := slices.Clone(got.turns)
		got.chooseByGroup(ix, n, visited)
		for _, c := range got.turns {
			require.NotContains(t, before, c)
		}
	}
	require.Positive(t, passed)
}

// TestProductsOfVisitedLists checks that every query vector has its products with all visited
// lists, whichever query vector chose them.
func TestProductsOfVisitedLists(t *testing.T) {
	computes(t)
	rows, opt := manyLists()
	ix := build(t, rows, opt)
	s := ix.NewSearch()
	dst := make([][]index.Candidate, 2)
	for i := range 20 {
		queries := rows.queries(uint64(70+i), 2)
		if i%5 == 0 {
			s.Reset()
		}
		lists := 4 * (1 + i%5)
		require.NoError(t, s.Search(t.Context(), queries, 10, index.Probes{Lists: lists}, index.Filter{}, dst))
		require.Equal(t, lists, s.Cost().Lists, "the budget is met, not exceeded")
		for k := range queries {
			for _, l := range s.lists {
				var want float64
				for j, x := range queries[k] {
					want += float64(x) * float64(ix.centroids[int(l)*6+j])
				}
				require.InDelta(t, want, s.queries[k].products[l], 1e-3)
			}
		}
	}
}

// TestGroupedSearch checks that the recall with few lists hardly depends on groups, that all lists
// find everything, and that a search does not depend on earlier or concurrent ones.
func TestGroupedSearch(t *testing.T) {
	computes(t)
	rows, opt := manyLists()
	ix := build(t, rows, opt)
	plain := build(t, rows, opt)
	plain.groups = groups{}
	queries := rows.queries(80, 40)
	var by, without float64
	found := make([][]index.Candidate, len(queries))
	for i, q := range queries {
		exact := rows.exact(q, 20, index.Filter{})
		found[i] = search(t, ix, q, 20, index.Probes{Share: .003}, index.Filter{})
		by += recall(exact, found[i]) / float64(len(queries))
		without += recall(exact, search(t, plain, q, 20, index.Probes{Share: .003}, index.Filter{})) / float64(len(queries))
		all := search(t, ix, q, 20, everything, index.Filter{})
		require.Equal(t, search(t, plain, q, 20, everything, index.Filter{}), all)
	}
	t.Logf("recall@20 in .003 of the rows: %.4f by groups, %.4f without", by, without)
	assert.Greater(t, without, .5)
	assert.InDelta(t, without, by, .01)

	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			s := ix.NewSearch()
			dst := make([][]index.Candidate, 1)
			for i, q := range queries {
				s.Reset()
				assert.NoError(t, s.Search(t.Context(), [][]float32{q}, 20, index.Probes{Share: .003}, index.Filter{}, dst))
				assert.Equal(t, found[i], dst[0])
			}
		})
	}
	wg.Wait()

	s := ix.NewSearch()
	dst := make([][]index.Candidate, 2)
	run := func() {
		s.Reset()
		for _, share := range []float64{.001, .002, .003} {
			if err := s.Search(t.Context(), queries[:2], 20, index.Probes{Share: share}, index.Filter{}, dst); err != nil {
				t.Error(err)
			}
		}
	}
	run()
	assert.Zero(t, testing.AllocsPerRun(10, run))
}

// TestGroupsOfStrangeNumbers checks that no list is lost if products of queries and centroids
// overflow.
func TestGroupsOfStrangeNumbers(t *testing.T) {
	rows, opt := manyLists()
	data := buildBytes(t, rows, opt)
	for _, x := range []float32{math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN())} {
		ix, err := Load(edit(t, data, func(_ *header, sections *[]section, data []byte) {
			for i := range 600 {
				binary.LittleEndian.PutUint32(data[(*sections)[0].offset+int64(4*7*i):], math.Float32bits(x))
			}
		}), "gen.ivf")
		require.NoError(t, err)
		for _, q := range [][]float32{{1, -1, 1, -1, 1, -1}, {3e38, 3e38, 3e38, -3e38, -3e38, 3e38}, {1e-40, 0, 0, 1e-40, 0, 0}} {
			s := ix.NewSearch()
			dst := make([][]index.Candidate, 1)
			for _, lists := range []int{1, 10, 30, ix.header.lists} {
				require.NoError(t, s.Search(t.Context(), [][]float32{q}, 5, index.Probes{Lists: lists}, index.Filter{}, dst))
				require.Equal(t, lists, s.Cost().Lists)
			}
		}
	}
}

func TestDamagedGroups(t *testing.T) {
	rows, opt := manyLists()
	data := buildBytes(t, rows, opt)
	for name, change := range map[string]func(s *section, bounds []byte){
		"begins at 1":    func(_ *section, b []byte) { b[0] = 1 },
		"ends elsewhere": func(s *section, b []byte) { b[len(b)-4]++ },
		"not ascending":  func(_ *section, b []byte) { copy(b[4:8], b[8:12]) },
		"cut":            func(s *section, _ []byte) { s.length-- },
		"one bound":      func(s *section, _ []byte) { s.length = 4 },
		"empty":          func(s *section, _ []byte) { s.length = 0 },
		"beyond the end": func(_ *section, b []byte) { b[11] = 0xff },
	} {
		_, err := Load(edit(t, data, func(_ *header, sections *[]section, data []byte) {
			at := slices.IndexFunc(*sections, func(s section) bool { return s.kind == kindGroups })
			s := &(*sections)[at]
			change(s, data[s.offset:s.end()])
		}), "gen.ivf")
		require.ErrorIs(t, err, format.ErrCorrupt, name)
		require.ErrorContains(t, err, "corrupt gen.ivf: groups at offset", name)
	}
}

// withGroups adds a section of groups to a file without.
func withGroups(t testing.TB, data []byte, bounds ...uint32) []byte {
	t.Helper()
	h, sections, err := parseHeader(data, "f")
	require.NoError(t, err)
	contents := [][]byte{}
	for _, s := range sections {
		contents = append(contents, data[s.offset:s.end()])
	}
	sections = append(sections, section{kind: kindGroups})
	contents = append(contents, format.Uint32Bytes(bounds))
	out := make([]byte, headerBytes+entryBytes*len(sections))
	for i, content := range contents {
		s := &sections[i]
		out = append(out, make([]byte, align(int64(len(out)))-int64(len(out)))...)
		s.offset, s.length, s.crc = int64(len(out)), int64(len(content)), format.CRC(content)
		out = append(out, content...)
	}
	h.sections, h.length = len(sections), int64(len(out))
	copy(out, marshalHeader(h, sections))
	return out
}

func TestGroupsGolden(t *testing.T) {
	rows, opt := tiny()
	golden(t, "groups.hex", annotate(t, withGroups(t, buildBytes(t, rows, opt), 0, 1, 2)))
}

// TestFrozenGroups is TestFrozenFile for a file with groups. Its first search of each query chooses
// by them.
func TestFrozenGroups(t *testing.T) {
	data, err := os.ReadFile("testdata/v1-groups.ivf")
	require.NoError(t, err)
	ix, err := Load(data, "v1-groups.ivf")
	require.NoError(t, err)
	require.NoError(t, ix.Check())
	require.Positive(t, ix.groups.len())
	golden(t, "v1-groups.golden", answers(t, ix, "%.2f"))
}
