package flashdb_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/vfs"
)

// A record is one log record: its level, its message, and its attributes without dir.
type record struct {
	level   slog.Level
	message string
	attrs   map[string]any
}

// A recorder is a slog.Handler that keeps its records. It is safe for concurrent use.
type recorder struct{ records chan record }

func newRecorder() recorder { return recorder{make(chan record, 100)} }

func (r recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r recorder) WithAttrs([]slog.Attr) slog.Handler       { panic("unexpected") }
func (r recorder) WithGroup(string) slog.Handler            { panic("unexpected") }

func (r recorder) Handle(_ context.Context, told slog.Record) error {
	of := record{told.Level, told.Message, map[string]any{}}
	told.Attrs(func(a slog.Attr) bool {
		if a.Key != "dir" && a.Key != "seconds" {
			of.attrs[a.Key] = a.Value.Any()
		}
		return true
	})
	r.records <- of
	return nil
}

// take returns the records since the last take.
func (r recorder) take() (all []record) {
	for {
		select {
		case of := <-r.records:
			all = append(all, of)
		default:
			return all
		}
	}
}

func TestEvents(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "db")
	r := newRecorder()
	opts := &flashdb.Options{Logger: slog.New(r)}
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
	assert.Equal(t, []record{
		{slog.LevelInfo, "rebuild started", map[string]any{"collection": "c", "generation": uint64(1)}},
		{slog.LevelInfo, "rebuilt", map[string]any{"collection": "c", "generation": uint64(1), "rows": int64(2), "lists": int64(1), "bytes": res.Bytes}},
	}, r.take())

	cancelled, cancel := context.WithCancel(ctx)
	_, err = c.Rebuild(cancelled, &flashdb.RebuildOptions{Force: true, Progress: func(string, int64, int64) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	told := r.take()
	require.Len(t, told, 2)
	assert.Equal(t, "not rebuilt: the earlier index stays", told[1].message)
	assert.ErrorIs(t, told[1].attrs["err"].(error), context.Canceled)
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
	told = r.take()
	require.Len(t, told, 2)
	assert.Equal(t, int64(5), told[0].attrs["bytes"])
	assert.Equal(t, slog.LevelWarn, told[1].level)
	assert.Equal(t, "index not usable: exact scan until the next rebuild", told[1].message)
	assert.Equal(t, uint64(1), told[1].attrs["generation"])
	assert.ErrorIs(t, told[1].attrs["err"].(error), flashdb.ErrCorrupt)
	require.NoError(t, db.Close())
}

// TestReadOnlyIsToldOnce fails every write of the log.
func TestReadOnlyIsToldOnce(t *testing.T) {
	r := newRecorder()
	var broken atomic.Bool
	fsys := vfs.Faulty(vfs.OS(), func(op vfs.Op) error {
		if broken.Load() && strings.Contains(op.Path, "wal") {
			return errors.New("no space left")
		}
		return nil
	})
	db, err := flashdb.OpenOn(fsys, filepath.Join(t.TempDir(), "db"), &flashdb.Options{Logger: slog.New(r)})
	require.NoError(t, err)
	broken.Store(true)
	for range 2 {
		_, err = db.CreateCollection("c", flashdb.Schema{Dim: 2})
		require.ErrorIs(t, err, flashdb.ErrReadOnly)
	}
	told := r.take()
	require.Len(t, told, 1)
	assert.Equal(t, slog.LevelError, told[0].level)
	require.ErrorContains(t, told[0].attrs["err"].(error), "no space left")
	broken.Store(false)
	require.NoError(t, db.Close())
}

// TestFlushedIsTold writes more than FlushBytes, and waits for the record.
func TestFlushedIsTold(t *testing.T) {
	r := newRecorder()
	db, err := flashdb.Open(filepath.Join(t.TempDir(), "db"), &flashdb.Options{FlushBytes: 1, Logger: slog.New(r)})
	require.NoError(t, err)
	c, err := db.CreateCollection("c", flashdb.Schema{Dim: 2})
	require.NoError(t, err)
	require.NoError(t, c.Upsert(context.Background(), flashdb.Node{Key: "a", Embedding: []float32{1, 0}}))
	assert.Equal(t, record{slog.LevelDebug, "flushed", map[string]any{"lsn": uint64(2)}}, <-r.records)
	require.NoError(t, db.Close())
}
