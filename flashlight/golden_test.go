package flashlight_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestTraces compares answers, traces and costs of queries with golden files. So a change that
// keeps the answers but doubles the work shows in the diff.
func TestTraces(t *testing.T) {
	g := newGraph(t, 20, 2000, 8, 24, 16)
	every := func(n uint32) *roaring.Bitmap {
		b := roaring.New()
		for id := uint32(0); id < 2000; id += n {
			b.Add(id)
		}
		return b
	}
	plan := flashlight.Plan{
		Method: flashlight.MethodFlashlight, Seed: flashlight.SeedOnes, AnchorsFrom: flashlight.AnchorsBoth, Anchors: 5,
		Rounds: 4, PerRound: 15, Patience: 1, Probes: index.Probes{Share: 0.3},
	}
	least := float32(0)
	seeds := flashlight.NewSeeds(g.dim, learn(t, g, upTo(40, 50)))
	tests := []struct {
		name   string
		change func(q *flashlight.Query)
	}{
		{"default", func(*flashlight.Query) {}},
		{"paper", func(q *flashlight.Query) { q.Plan = flashlight.PaperPlan(); q.Plan.Probes.Share = 0.3 }},
		{"source-seed", func(q *flashlight.Query) { q.Plan.Seed = flashlight.SeedSource }},
		{"both-seeds", func(q *flashlight.Query) { q.Plan.Seed = flashlight.SeedBoth }},
		{"learned-seed", func(q *flashlight.Query) { q.Plan.Seed, q.Seeds = flashlight.SeedLearned, seeds }},
		{"anchors-round", func(q *flashlight.Query) { q.Plan.AnchorsFrom = flashlight.AnchorsRound }},
		{"anchors-all", func(q *flashlight.Query) { q.Plan.AnchorsFrom = flashlight.AnchorsAll }},
		{"budget", func(q *flashlight.Query) { q.Plan.MaxScored = 40 }},
		{"filter", func(q *flashlight.Query) { q.Allowed = every(7) }},
		{"narrow-filter", func(q *flashlight.Query) { q.Allowed = every(97) }},
		{"widened", func(q *flashlight.Query) { q.Plan.Rounds, q.Plan.PerRound = 2, 3 }},
		{"min-score", func(q *flashlight.Query) { q.MinScore = &least }},
		{"exact", func(q *flashlight.Query) { q.Plan.Method = flashlight.MethodExact }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := g.query(11, 10, plan)
			q.Excluded, q.Explain = roaring.BitmapOf(11), true
			tt.change(q)
			e := flashlight.Executor{Clock: ticking()}
			truth := exact(t, g, q)
			hits, report, err := e.Run(context.Background(), q, newListSearch(g), g.memory(), nil)
			require.NoError(t, err)
			golden(t, tt.name, describe(q.Plan, hits, report, truth))
		})
	}
}

// describe prints an answer and its report.
func describe(plan flashlight.Plan, hits []index.Hit, report flashlight.Report, truth []index.Hit) string {
	var w strings.Builder
	fmt.Fprintf(&w, "plan    %v\nstop    %s after %d rounds, %d rows scored\ncost    %s\n",
		plan, report.Stop, report.Rounds, report.RowsScored, cost(report.Cost))
	found := 0
	for _, h := range hits {
		if len(truth) > 0 && h.Score >= truth[len(truth)-1].Score {
			found++
		}
	}
	fmt.Fprintf(&w, "found   %d of the best %d\n", found, len(truth))
	for i, r := range report.Trace {
		fmt.Fprintf(&w, "\nround %d", i+1)
		if r.Widening {
			w.WriteString(", widening")
		}
		w.WriteString("\n")
		for _, a := range r.Aims {
			fmt.Fprintf(&w, "  aim     %s", a.From)
			if a.Anchors != nil {
				fmt.Fprintf(&w, " %v, %d of %d neurons changed", a.Anchors, a.Changed, a.Neurons)
			}
			if a.Sources != nil {
				fmt.Fprintf(&w, " from %v", a.Sources)
			}
			w.WriteString("\n")
		}
		fmt.Fprintf(&w, "  probes  %v: %s\n  scored  %d, best %.4f, %d entered, %v\n",
			r.Probes, cost(r.Cost), r.Scored, r.Best, r.Entered, r.Elapsed)
	}
	w.WriteString("\n")
	for _, h := range hits {
		fmt.Fprintf(&w, "%6d  %.4f\n", h.ID, h.Score)
	}
	return w.String()
}

func cost(c index.Cost) string {
	return fmt.Sprintf("%d lists, %d rows, %d codes", c.Lists, c.Rows, c.Codes)
}

// golden compares text with testdata/name.golden, or writes it there with -update.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), text, "run with -update if the change is meant")
}
