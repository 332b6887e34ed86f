package ivf

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/format"
)

const manyRows = 14_000

// manyLists is the rows and options of an index of more than groupedLists lists.
func manyLists() (*table, BuildOptions) {
	return clustered(60, manyRows, 6), BuildOptions{Dim: 6, Lists: groupedLists + 500, Seed: 3}
}

func TestGroups(t *testing.T) {
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

// TestGroupsAreLeftOut: of few lists, and of lists that cannot be clustered as they are.
func TestGroupsAreLeftOut(t *testing.T) {
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

// TestKeysLieBehindGroups: the length of the keys is not known before they are written, so they come last.
func TestKeysLieBehindGroups(t *testing.T) {
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
