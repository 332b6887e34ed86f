package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
)

// TestReportGrowth measures what a report shows of growth, with the sources in the collection and
// in another one, and looks for what it leaves behind.
func TestReportGrowth(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	var rows strings.Builder
	for i := range 8 * growthLeast {
		fmt.Fprintf(&rows, "{\"key\": \"n%d\", \"embedding\": [%d, %d, 1]}\n", i, i%97, i%89)
	}
	require.NoError(t, os.WriteFile("rows.jsonl", []byte(rows.String()), 0o600))
	require.NoError(t, os.WriteFile("dot.json", []byte(`{"kind": "dot", "dim": 3}`), 0o600))
	for _, line := range []string{
		"create db c --dim 3", "import db c rows.jsonl", "decoder add db c dot dot.json", "rebuild db --force --calibrate-time -1s --progress none",
		"create db users --dim 3", "import db users rows.jsonl --count 100",
	} {
		require.Zero(t, run(t.Context(), strings.Fields(line), nil, io.Discard, os.Stderr), line)
	}
	err := new(app).withDB(t.Context(), "db", flashdb.Options{ReadOnly: true}, func(db database) error {
		c, err := db.Collection(t.Context(), "c")
		require.NoError(t, err)
		users, err := db.Collection(t.Context(), "users")
		require.NoError(t, err)
		stats, err := db.Stats(t.Context())
		require.NoError(t, err)
		for _, from := range []collection{c, users} {
			r := reporter{db: db, c: c, from: from, sources: 2, progress: terminal.NewProgress(io.Discard), growthTime: time.Hour, planTime: time.Millisecond}
			g, err := r.growth(t.Context(), r.stats(stats), "dot")
			require.NoError(t, err)
			assert.Empty(t, g.Note)
			assert.Equal(t, 2, g.Sources)
			var rows []int
			for _, p := range g.Points {
				rows = append(rows, p.Rows)
				assert.Positive(t, p.Planned)
				assert.Positive(t, p.Exact)
				assert.Positive(t, p.Recall)
			}
			assert.Equal(t, []int{1000, 2000, 4000, 8000}, rows)
		}
		return nil
	})
	require.NoError(t, err)
	for flags, want := range map[string]string{
		"--growth-time 1ns": "Not all was measured within --growth-time 1ns",
		"--growth-time 0":   "Not measured: --growth-time 0.",
	} {
		line := "report db c -o r.html --sources 2 " + flags
		require.Zero(t, run(t.Context(), strings.Fields(line), nil, io.Discard, os.Stderr), line)
		page, err := os.ReadFile("r.html")
		require.NoError(t, err)
		assert.Contains(t, string(page), want)
	}
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*"))
	require.NoError(t, err)
	assert.Empty(t, left)

	stopped, stop := context.WithCancel(t.Context())
	stop()
	assert.NotZero(t, run(stopped, strings.Fields("report db c -o stopped.html"), nil, io.Discard, io.Discard))
}

func TestReportDelta(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	all := flashdb.Stats{DurableLSN: 2345}
	assert.Nil(t, reportDelta(all, flashdb.CollectionStats{}, now), "no index")

	s := flashdb.CollectionStats{Generation: 3, BuildLSN: 2300, Written: now.Add(-3 * time.Hour)}
	d := reportDelta(all, s, now)
	assert.Equal(t, "3 hours ago", d.Facts[0].Value)
	assert.Equal(t, "45", d.Facts[1].Value)
	assert.Equal(t, "The index holds every row as it is now.", d.Text)

	s.DeltaRows, s.Drift = 7, flashdb.Drift{OldestLSN: 2301, Residual: 1.5, RecallLoss: .01}
	assert.Equal(t, "The oldest newer row is of write 2,301 of 2,345. Writes bear no times, but that one came after the build of the index began. "+
		"Newer rows lie 1.5 times as far from their centroids as those of the index. By a rule of thumb recall may have lost 0.010.", reportDelta(all, s, now).Text)
}

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "just now", time.Minute: "1 minute ago", 90 * time.Minute: "1 hour ago", 47 * time.Hour: "47 hours ago", 49 * time.Hour: "2 days ago",
	} {
		assert.Equal(t, want, ago(d))
	}
}
