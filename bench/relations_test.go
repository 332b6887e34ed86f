package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestSimulatedCalibrations: with recalls that are the same for every source, a relation is found
// to be poor exactly where it misses more than the limit and has enough sources.
func TestSimulatedCalibrations(t *testing.T) {
	b := &relationBench{rng: rand.New(rand.NewPCG(1, 1)), nodes: map[askedEnd][]string{}}
	path := filepath.Join(t.TempDir(), "e.tsv")
	require.NoError(t, os.WriteFile(path, []byte("1\ta\t2\n2\tb\t3\n"), 0o644))
	require.NoError(t, b.readEdges(path))
	assert.Equal(t, []string{"a", "b"}, b.names)
	assert.Len(t, b.ends, 4)
	assert.Equal(t, []string{"1", "2", "3"}, b.all)
	b.plans = make([]flashdb.PlanPoint, 2)
	for _, recall := range []float64{.9, .75} {
		of := map[askedEnd][2][]float64{}
		for _, end := range b.ends {
			of[end] = [2][]float64{{recall}, {recall}}
		}
		b.recalls = append(b.recalls, of)
	}
	assert.InDelta(t, .1, b.misses(0), 1e-9)
	miss, judged := b.lowest(byHalf, 4, "", 1, 4)
	assert.InDelta(t, .1, miss, 1e-9)
	assert.Equal(t, 2, judged)
	miss, _ = b.lowest(byLinks, 4, "b", 1, 4)
	assert.InDelta(t, .25, miss, 1e-9)
	_, judged = b.lowest(byTurn, 201, "", 1, 4)
	assert.Zero(t, judged)
	tab := b.simulate(.9, 5)
	require.Len(t, tab.rows, 12)
	assert.Equal(t, []string{byLinks, "2", "2.0", "0.000 / 0.000 / 0.000", "1.000 / 1.000 / 0.000"}, tab.rows[0])
	assert.Equal(t, "one misses 2.5 times as much", tab.header[4])
}

func TestRelationsRefuses(t *testing.T) {
	var out, log strings.Builder
	require.ErrorContains(t, run(t.Context(), []string{"relations"}, &out, &log), "-dir and -edges are needed")
	b := &relationBench{nodes: map[askedEnd][]string{}}
	path := filepath.Join(t.TempDir(), "e.tsv")
	require.NoError(t, os.WriteFile(path, []byte("1\ta\t2\n2\tb\n"), 0o644))
	require.ErrorContains(t, b.readEdges(path), "line 2 has 2 columns: want source, relation and target")
}
