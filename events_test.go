package flashdb_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/vfs"
)

// A recorder keeps what an EventListener is told, progress only as its stages.
type recorder struct {
	mu     sync.Mutex
	events []any
	stages map[string]bool
}

func (r *recorder) add(e any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// take returns the events since the last take.
func (r *recorder) take() []any {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}

func (r *recorder) listener() flashdb.EventListener {
	r.stages = map[string]bool{}
	return flashdb.EventListener{
		RebuildStarted:  func(e flashdb.RebuildStarted) { r.add(e) },
		RebuildFinished: func(e flashdb.RebuildFinished) { e.Result.Elapsed = 0; r.add(e) },
		RebuildProgress: func(e flashdb.RebuildProgress) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.stages[e.Stage] = true
		},
		IndexUnusable: func(e flashdb.IndexUnusable) { r.add(e) },
		TornTail:      func(e flashdb.TornTail) { r.add(e) },
		Flushed:       func(e flashdb.Flushed) { e.Elapsed = 0; r.add(e) },
		WritesRefused: func(e flashdb.WritesRefused) { r.add(e) },
	}
}

func TestEvents(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "db")
	var r recorder
	var log bytes.Buffer
	opts := &flashdb.Options{Events: r.listener(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	open := func() (*flashdb.DB, *flashdb.Collection) {
		t.Helper()
		db, err := flashdb.Open(dir, opts)
		require.NoError(t, err)
		c, err := db.Collection("c")
		if err != nil {
			c, err = db.CreateCollection("c", flashdb.Schema{Dim: 2})
		}
		require.NoError(t, err)
		return db, c
	}
	db, c := open()
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "a", Embedding: []float32{1, 0}}, flashdb.Node{Key: "b", Embedding: []float32{0, 1}}))

	_, err := c.Rebuild(ctx, nil)
	require.NoError(t, err)
	assert.Empty(t, r.take(), "nothing to do is no event")

	res, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 1})
	require.NoError(t, err)
	res.Elapsed = 0
	assert.Equal(t, []any{
		flashdb.RebuildStarted{Collection: "c", Generation: 1},
		flashdb.RebuildFinished{Collection: "c", Result: res},
	}, r.take())
	assert.NotEmpty(t, r.stages)
	assert.Contains(t, log.String(), "msg=rebuilt")

	cancelled, cancel := context.WithCancel(ctx)
	_, err = c.Rebuild(cancelled, &flashdb.RebuildOptions{Force: true, Progress: func(string, int64, int64) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	events := r.take()
	require.Len(t, events, 2)
	assert.ErrorIs(t, events[1].(flashdb.RebuildFinished).Err, context.Canceled)
	require.NoError(t, db.Close())

	// A crash tears the log, and something damages the index.
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "*.log"))
	require.NoError(t, err)
	require.NotEmpty(t, segments)
	last := segments[len(segments)-1]
	f, err := os.OpenFile(last, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.Write(make([]byte, 5))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index", "c", "gen-000001.ivf"), []byte("torn"), 0o600))
	db, c = open()
	_, err = c.Search(ctx, []float32{1, 0}, 1, nil)
	require.NoError(t, err)
	events = r.take()
	require.Len(t, events, 2)
	assert.Equal(t, int64(5), events[0].(flashdb.TornTail).Bytes)
	unusable := events[1].(flashdb.IndexUnusable)
	assert.Equal(t, uint64(1), unusable.Generation)
	require.ErrorIs(t, unusable.Err, flashdb.ErrCorrupt)
	assert.Contains(t, log.String(), "level=WARN msg=\"index not usable")
	require.NoError(t, db.Close())
}

// TestReadOnlyIsToldOnce fails every write of the log.
func TestReadOnlyIsToldOnce(t *testing.T) {
	var r recorder
	var broken atomic.Bool
	fsys := vfs.Faulty(vfs.OS(), func(op vfs.Op) error {
		if broken.Load() && strings.Contains(op.Path, "wal") {
			return errors.New("no space left")
		}
		return nil
	})
	db, err := flashdb.OpenOn(fsys, filepath.Join(t.TempDir(), "db"), &flashdb.Options{Events: r.listener()})
	require.NoError(t, err)
	broken.Store(true)
	for range 2 {
		_, err = db.CreateCollection("c", flashdb.Schema{Dim: 2})
		require.ErrorIs(t, err, flashdb.ErrReadOnly)
	}
	events := r.take()
	require.Len(t, events, 1)
	require.ErrorContains(t, events[0].(flashdb.WritesRefused).Err, "no space left")
	broken.Store(false)
	require.NoError(t, db.Close())
}

// TestFlushedIsTold writes more than FlushBytes, and waits for the event.
func TestFlushedIsTold(t *testing.T) {
	flushed := make(chan flashdb.Flushed, 16)
	db, err := flashdb.Open(filepath.Join(t.TempDir(), "db"), &flashdb.Options{
		FlushBytes: 1,
		Events:     flashdb.EventListener{Flushed: func(e flashdb.Flushed) { flushed <- e }},
	})
	require.NoError(t, err)
	c, err := db.CreateCollection("c", flashdb.Schema{Dim: 2})
	require.NoError(t, err)
	require.NoError(t, c.Upsert(context.Background(), flashdb.Node{Key: "a", Embedding: []float32{1, 0}}))
	e := <-flushed
	require.NoError(t, e.Err)
	assert.Equal(t, uint64(2), e.LSN)
	require.NoError(t, db.Close())
}
