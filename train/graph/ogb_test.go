package graph

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/codec"
	"github.com/flashdb/flashdb/train"
)

// expectedPart is what citation_expected.json has of a file of the split.
type expectedPart struct {
	Sources   []uint32   `json:"source_node"`
	Targets   []uint32   `json:"target_node"`
	Negatives [][]uint32 `json:"target_node_neg"`
}

func (p expectedPart) edges() (edges []train.Edge) {
	for i := range p.Sources {
		edges = append(edges, train.Edge{Source: p.Sources[i], Target: p.Targets[i]})
	}
	return edges
}

// TestOGBCitation reads a folder that PyTorch wrote, in the layout of ogbl-citation2.
func TestOGBCitation(t *testing.T) {
	dir := filepath.Join("testdata", "ogbl_citation2")
	text, err := os.ReadFile(filepath.Join("testdata", "citation_expected.json"))
	require.NoError(t, err)
	var want struct {
		Train       [][2]uint32
		Valid, Test expectedPart
	}
	require.NoError(t, json.Unmarshal(text, &want))
	require.Len(t, want.Test.Negatives, 8)

	require.True(t, IsOGB(dir))
	g, err := Read(dir, nil)
	require.NoError(t, err)
	assert.True(t, g.Directed)
	assert.Equal(t, 40, g.Nodes)
	var edges [][2]uint32
	for _, e := range g.Edges {
		edges = append(edges, [2]uint32{e.Source, e.Target})
	}
	assert.Equal(t, want.Train, edges)
	assert.Equal(t, want.Valid.edges(), g.Valid)
	assert.Equal(t, want.Valid.Negatives, g.ValidCandidates)
	assert.Equal(t, want.Test.edges(), g.Test)
	assert.Equal(t, want.Test.Negatives, g.TestCandidates)
	assert.Nil(t, g.TestNegatives)
	assert.Zero(t, g.HitsAt)

	g, err = Read(dir, &Options{Direction: Undirected, Relations: true})
	require.NoError(t, err)
	assert.False(t, g.Directed)
	assert.Zero(t, g.Relations)

	_, err = Read(dir, &Options{MemoryBytes: 2000})
	require.ErrorContains(t, err, "train.pt: to read it takes up to 0.00721 MB, more than the 0.002 MB of memory allowed")
	_, err = Read(dir, &Options{MemoryBytes: 8000})
	require.ErrorContains(t, err, "take more than the 0.008 MB of memory allowed")
}

// TestOGBHeldOut: an edge that is left out takes its negatives with it.
func TestOGBHeldOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ogbl_citation2")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "ogbl_citation2"))))
	split := filepath.Join(dir, "split", "time")
	held, err := os.ReadFile(filepath.Join(split, "valid.pt"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(split, "train.pt"), held, 0o600))
	g, err := Read(dir, nil)
	require.NoError(t, err)
	assert.Len(t, g.Edges, 6)
	assert.Empty(t, g.Valid)
	assert.Empty(t, g.ValidCandidates)
	assert.Len(t, g.TestCandidates, 8)
	assert.Equal(t, 6, g.Cleaned.Leaked)

	require.NoError(t, os.WriteFile(filepath.Join(split, "test.pt"), []byte(strings.Replace(string(held), "source_node", "source_mode", 1)), 0o600))
	_, err = Read(dir, nil)
	require.ErrorContains(t, err, "test.pt holds no array named edge, nor source_node and target_node")
}

// Left out are an edge of the training, a self loop and a repeat.
func TestHeldOutKeepsItsNegatives(t *testing.T) {
	b, err := NewBuilder(&Options{Nodes: []string{"0", "1", "2", "3", "4", "5"}, ByNumber: true, Direction: Directed})
	require.NoError(t, err)
	b.edges[Train] = []train.Edge{{Source: 0, Target: 1}}
	b.edges[Test] = []train.Edge{{Source: 0, Target: 1}, {Source: 2, Target: 2}, {Source: 2, Target: 3}, {Source: 2, Target: 3}, {Source: 4, Target: 5}}
	b.lists[Test] = [][]uint32{{1}, {2}, {3}, {4}, {5}}
	g, err := b.Graph()
	require.NoError(t, err)
	assert.Equal(t, []train.Edge{{Source: 2, Target: 3}, {Source: 4, Target: 5}}, g.Test)
	assert.Equal(t, [][]uint32{{3}, {5}}, g.TestCandidates)
	assert.Nil(t, g.ValidCandidates)
}

// The numbers of a hostile file.
func TestCandidates(t *testing.T) {
	ints := func(shape ...int) (a codec.Integers) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		for i := range n {
			a.Data = append(a.Data, int64(i))
		}
		a.Name, a.Shape = negativeArray, shape
		return a
	}
	lists, err := candidates(ints(2, 3), 2, 6)
	require.NoError(t, err)
	assert.Equal(t, [][]uint32{{0, 1, 2}, {3, 4, 5}}, lists)
	for want, c := range map[string]struct {
		a            codec.Integers
		edges, nodes int
	}{
		"target_node_neg has shape [2 3]: want a row for each of 3 edges":           {ints(2, 3), 3, 6},
		"target_node_neg has shape [6]: want a row for each of 6 edges":             {ints(6), 6, 6},
		"target_node_neg has shape [2 0]: want a row for each of 2 edges":           {ints(2, 0), 2, 6},
		"target_node_neg: row 1: no node has number 4: there are 4":                 {ints(2, 3), 2, 4},
		"target_node_neg: row 0: no node has number -1: there are 4":                {codec.Integers{Name: negativeArray, Shape: []int{1, 1}, Data: []int64{-1}}, 1, 4},
		"target_node_neg: row 0: no node has number 4294967296: there are 16777216": {codec.Integers{Name: negativeArray, Shape: []int{1, 1}, Data: []int64{1 << 32}}, 1, maxOGBNodes},
	} {
		_, err := candidates(c.a, c.edges, c.nodes)
		require.EqualError(t, err, want)
	}
	_, err = endsOf([]codec.Integers{{Name: sourceArray, Shape: []int{2}, Data: []int64{1, 2}}, {Name: targetArray, Shape: []int{1}, Data: []int64{1}}})
	require.EqualError(t, err, "source_node has shape [2] and target_node [1]: want one number for each edge in both")
}
