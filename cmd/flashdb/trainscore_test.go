package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/control"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/internal/wire"
	"github.com/flashdb/flashdb/train"
)

// TestDescribePlans checks that the summary has a plan for each k whose queries take one.
func TestDescribePlans(t *testing.T) {
	plan := func(rows int, mean, bound, worst float64) flashdb.PlanPoint {
		return flashdb.PlanPoint{
			Plan: flashlight.Plan{PerRound: rows}, Mean: mean, P5: mean, Worst: worst, Bound: bound,
			Time: time.Duration(rows) * time.Millisecond,
		}
	}
	var r trainRun
	r.describePlans(flashdb.Calibration{Sources: 200, Exact: time.Second, Frontiers: []flashdb.Frontier{
		{K: 10, Plans: []flashdb.PlanPoint{plan(10, .95, .94, .9), plan(20, .99, .985, .3), plan(28, .99, .987, .95), plan(90, 1, .999, 1)}},
		{K: 50, Plans: []flashdb.PlanPoint{plan(10, .95, .94, .9), plan(20, .985, .975, .9)}},
		{K: 100, Plans: []flashdb.PlanPoint{plan(10, .95, .94, .9)}},
		{K: 200},
	}})
	require.Len(t, r.report.Plans, 2)
	assert.Equal(t, []int{10, 50}, []int{r.report.Plans[0].K, r.report.Plans[1].K})
	assert.Equal(t, .987, r.report.Plans[0].Bound, "it serves the poorest sources better, at less than half as much again")
	assert.Equal(t, .985, r.report.Plans[1].Recall, "only its mean reaches it")
	assert.Contains(t, r.report.NoPlan, "k = 100 and 200")
}

// measuring is a collection that is calibrated with the results given, one after another.
type measuring struct {
	results []flashdb.Calibration
	times   []time.Duration
}

func (m *measuring) Calibrate(_ context.Context, opts *flashdb.CalibrateOptions) ([]flashdb.Calibration, error) {
	m.times = append(m.times, opts.Time)
	return m.results[len(m.times)-1 : len(m.times)], nil
}

// TestCalibratesOnceMore: a calibration that finds no plan is repeated for longer, unless its time
// was given.
func TestCalibratesOnceMore(t *testing.T) {
	found := func(recall float64) flashdb.Calibration {
		p := flashdb.PlanPoint{Mean: recall, Bound: recall - .001, Time: time.Millisecond}
		return flashdb.Calibration{Sources: 200, Exact: time.Second, Frontiers: []flashdb.Frontier{{K: 10, Plans: []flashdb.PlanPoint{p}}}}
	}
	for name, c := range map[string]struct {
		given   time.Duration
		results []flashdb.Calibration
		want    []time.Duration
		plans   int
	}{
		"a plan":       {0, []flashdb.Calibration{found(.99)}, []time.Duration{10 * time.Second}, 1},
		"one later":    {0, []flashdb.Calibration{found(.9), found(.99)}, []time.Duration{10 * time.Second, time.Minute}, 1},
		"none":         {0, []flashdb.Calibration{found(.9), found(.9)}, []time.Duration{10 * time.Second, time.Minute}, 0},
		"time as said": {5 * time.Second, []flashdb.Calibration{found(.9)}, []time.Duration{5 * time.Second}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := &measuring{results: c.results}
			r := trainRun{model: &train.Model{}, r: &trainRequest{calibrateTime: c.given, progress: terminal.NewProgress(io.Discard)}}
			require.NoError(t, r.calibrate(t.Context(), m))
			assert.Equal(t, c.want, m.times)
			assert.Len(t, r.report.Plans, c.plans)
		})
	}
}

// TestScoreOf: a score without its decoder is none, and a decoder that cannot be read is an error.
func TestScoreOf(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "db")
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	_, err = db.CreateCollection("c", flashdb.Schema{Dim: 2})
	require.NoError(t, err)
	c, err := control.Local(db).Collection(ctx, "c")
	require.NoError(t, err)
	measured, err := decoder.NewDistMult([]float32{1, 2})
	require.NoError(t, err)
	other, err := decoder.NewDistMult([]float32{3, 4})
	require.NoError(t, err)

	score, err := scoreOf(ctx, c)
	require.NoError(t, err)
	require.Nil(t, score, "nothing was measured")

	const name = "\xffd" // which JSON alone would change
	text, err := wire.Encode(storedScore{Decoder: name, Weights: checksumOf(measured), Text: "MRR 0.5"})
	require.NoError(t, err)
	require.NoError(t, c.SetMeta(ctx, metaScore, string(text)))
	score, err = scoreOf(ctx, c)
	require.NoError(t, err)
	require.Nil(t, score, "the decoder has gone")

	require.NoError(t, c.PutDecoder(ctx, name, other))
	score, err = scoreOf(ctx, c)
	require.NoError(t, err)
	require.Nil(t, score, "it is another decoder")

	require.NoError(t, c.PutDecoder(ctx, name, measured))
	score, err = scoreOf(ctx, c)
	require.NoError(t, err)
	require.Equal(t, "MRR 0.5", score.Text)

	require.NoError(t, db.Close())
	path, blob := filepath.Join(dir, "flash.db"), decoder.Marshal(measured)
	stored, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(stored), string(blob))
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(stored, blob, make([]byte, len(blob))), 0o600))
	db, err = flashdb.Open(dir, nil)
	require.NoError(t, err)
	c, err = control.Local(db).Collection(ctx, "c")
	require.NoError(t, err)
	_, err = scoreOf(ctx, c)
	require.ErrorIs(t, err, flashdb.ErrCorrupt)
}
