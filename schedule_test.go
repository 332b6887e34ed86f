package flashdb_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

func TestScheduleWindow(t *testing.T) {
	const h = time.Hour
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 3, day, hour, minute, 0, 0, time.UTC) }
	for _, c := range []struct {
		name      string
		from, to  time.Duration
		due, want time.Time
	}{
		{"any time", 0, 0, at(1, 12, 5), at(1, 12, 5)},
		{"before it opens", 2 * h, 5 * h, at(1, 1, 59), at(1, 2, 0)},
		{"as it opens", 2 * h, 5 * h, at(1, 2, 0), at(1, 2, 0)},
		{"inside", 2 * h, 5 * h, at(1, 4, 59), at(1, 4, 59)},
		{"as it closes", 2 * h, 5 * h, at(1, 5, 0), at(2, 2, 0)},
		{"end of the month", 2 * h, 5 * h, at(31, 6, 0), at(32, 2, 0)},
		{"over midnight, before", 23 * h, 4 * h, at(1, 22, 0), at(1, 23, 0)},
		{"over midnight, late", 23 * h, 4 * h, at(1, 23, 30), at(1, 23, 30)},
		{"over midnight, early", 23 * h, 4 * h, at(2, 3, 30), at(2, 3, 30)},
		{"over midnight, closed", 23 * h, 4 * h, at(2, 4, 0), at(2, 23, 0)},
		{"from midnight", 0, 4 * h, at(2, 5, 0), at(3, 0, 0)},
		{"until midnight", 22 * h, 24 * h, at(2, 23, 59), at(2, 23, 59)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := flashdb.RebuildSchedule{Every: h, From: c.from, To: c.to}
			assert.Equal(t, c.want, flashdb.Next(s, c.due))
		})
	}
}

// TestScheduleKeepsToTheClockOnTheWall crosses the start of summer time: on 2026-03-29 the hour
// from 2 to 3 does not exist in Berlin.
func TestScheduleKeepsToTheClockOnTheWall(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zones on this machine: ", err)
	}
	s := flashdb.RebuildSchedule{Every: time.Hour, From: 4 * time.Hour, To: 5 * time.Hour}
	got := flashdb.Next(s, time.Date(2026, 3, 28, 12, 0, 0, 0, berlin))
	assert.Equal(t, time.Date(2026, 3, 29, 4, 0, 0, 0, berlin), got)
}

func TestScheduleRefused(t *testing.T) {
	const h = time.Hour
	for _, s := range []flashdb.RebuildSchedule{
		{Every: -1},
		{Every: h, MinDrift: -1},
		{Every: h, From: 25 * h, To: h},
		{Every: h, From: -h, To: h},
		{Every: h, From: h, To: h},
		{Every: h, From: h, To: 25 * h},
	} {
		_, err := flashdb.Open(t.TempDir(), &flashdb.Options{Rebuild: s})
		require.ErrorIs(t, err, flashdb.ErrInvalid, "%+v", s)
		require.ErrorContains(t, err, "Options.Rebuild")
	}
}

// rebuilt returns the collections that were rebuilt since the last call, with their generations.
func rebuilt(r recorder) (all []string) {
	for _, told := range r.take() {
		if told.message == "rebuilt" {
			all = append(all, fmt.Sprint(told.attrs["collection"], " ", told.attrs["generation"]))
		}
	}
	return all
}

// TestScheduledRebuilds runs turns by a fake clock.
func TestScheduledRebuilds(t *testing.T) {
	ctx := context.Background()
	clock := flashdb.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	r := newRecorder()
	opts := &flashdb.Options{
		Rebuild: flashdb.RebuildSchedule{Every: 24 * time.Hour, MinDrift: .1, From: 2 * time.Hour, To: 5 * time.Hour},
		Logger:  slog.New(r),
	}
	clock.SetClock(opts)
	db, err := flashdb.Open(filepath.Join(t.TempDir(), "db"), opts)
	require.NoError(t, err)
	assert.Equal(t, 38*time.Hour, <-clock.Waits, "a day, and until the window opens")

	// One collection is large enough for an index, and the other is not.
	c, err := db.CreateCollection("large", flashdb.Schema{Dim: 2})
	require.NoError(t, err)
	_, err = db.CreateCollection("empty", flashdb.Schema{Dim: 2})
	require.NoError(t, err)
	nodes := make([]flashdb.Node, 20_000)
	for i := range nodes {
		nodes[i] = flashdb.Node{Key: fmt.Sprint(i), Embedding: []float32{float32(i % 97), float32(i % 89)}}
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	clock.Advance(37 * time.Hour)
	assert.Empty(t, rebuilt(r), "not due yet")
	clock.Advance(time.Hour)
	assert.Equal(t, 24*time.Hour, <-clock.Waits)
	assert.Equal(t, []string{"large 1"}, rebuilt(r))

	// At the second turn too few rows have moved, at the third enough.
	require.NoError(t, c.Upsert(ctx, nodes[:1000]...))
	clock.Advance(24 * time.Hour)
	assert.Equal(t, 24*time.Hour, <-clock.Waits)
	assert.Empty(t, rebuilt(r))
	require.NoError(t, c.Upsert(ctx, nodes[:5000]...))
	clock.Advance(24 * time.Hour)
	<-clock.Waits
	assert.Equal(t, []string{"large 2"}, rebuilt(r))
	require.NoError(t, db.Close(), "while the next turn is waited for")
}
