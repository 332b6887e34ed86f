package wal

import (
	"context"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/vfs"
)

// changes are what somebody else may do to the active segment of an open log.
var changes = map[string]func(t *testing.T, fsys vfs.FS, name string, size int64){
	"emptied":            func(t *testing.T, fsys vfs.FS, name string, _ int64) { truncate(t, fsys, name, 0) },
	"cut in the header":  func(t *testing.T, fsys vfs.FS, name string, _ int64) { truncate(t, fsys, name, 7) },
	"cut in a record":    func(t *testing.T, fsys vfs.FS, name string, size int64) { truncate(t, fsys, name, size-3) },
	"cut after a record": func(t *testing.T, fsys vfs.FS, name string, size int64) { truncate(t, fsys, name, size-frameSize-5) },
	"longer":             func(t *testing.T, fsys vfs.FS, name string, size int64) { truncate(t, fsys, name, size+9) },
	"removed":            func(t *testing.T, fsys vfs.FS, name string, _ int64) { require.NoError(t, fsys.Remove(name)) },
	"renamed":            func(t *testing.T, fsys vfs.FS, name string, _ int64) { require.NoError(t, fsys.Rename(name, name+"~")) },
	"replaced": func(t *testing.T, fsys vfs.FS, name string, _ int64) {
		require.NoError(t, fsys.Remove(name))
		write(t, fsys, name, []byte("other"))
	},
}

func truncate(t *testing.T, fsys vfs.FS, name string, size int64) {
	t.Helper()
	f, err := fsys.OpenRW(name)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(size))
	require.NoError(t, f.Close())
}

// What follows a hole would be acknowledged and not be found again, so a log whose active segment
// is changed under it takes nothing more. It says which file, and what it knows to be durable stays
// what it was.
func TestActiveSegmentChanged(t *testing.T) {
	systems := map[string]func(t *testing.T) (vfs.FS, string){
		"memory": func(t *testing.T) (vfs.FS, string) { return newDir(t), dir },
		"disk":   func(t *testing.T) (vfs.FS, string) { return vfs.OS(), t.TempDir() },
	}
	for system, start := range systems {
		for name, change := range changes {
			for _, when := range []string{"before the write", "during the sync"} {
				t.Run(fmt.Sprintf("%s/%s/%s", system, name, when), func(t *testing.T) {
					attempts.Count(t, 1, "segments changed")
					base, dir := start(t)
					var syncing func()
					l, err := Open(vfs.Faulty(base, func(op vfs.Op) error {
						if op.Kind == vfs.OpSync && syncing != nil {
							syncing()
						}
						return nil
					}), dir, nil)
					require.NoError(t, err)
					for i := range 3 {
						mustDo(t, l, fmt.Sprint("rec", i))
					}
					path := l.path(1)
					now := func() {
						size, err := base.Size(path)
						require.NoError(t, err)
						change(t, base, path, size)
						syncing = nil
					}
					if when == "during the sync" {
						syncing = now
					} else {
						now()
					}
					_, err = l.Do(context.Background(), record("behind"))
					require.ErrorIs(t, err, ErrFailed)
					require.ErrorIs(t, err, format.ErrCorrupt)
					require.ErrorContains(t, err, path)
					if name == "removed" || name == "renamed" {
						assert.ErrorIs(t, err, fs.ErrNotExist)
					}
					assert.Equal(t, LSN(3), l.Durable())
					_, err = l.Do(context.Background(), record("again"))
					require.ErrorIs(t, err, ErrFailed)
					require.NoError(t, l.Close())
				})
			}
		}
	}
}

// A segment that is no longer needed may be gone already.
func TestDropOfARemovedSegment(t *testing.T) {
	mem := newDir(t)
	l := mustOpen(t, mem, nil)
	mustDo(t, l, "one")
	require.NoError(t, mem.Remove(segmentPath(1)))
	require.NoError(t, l.Drop(1))
	assert.Equal(t, LSN(2), mustDo(t, l, "two"))
	assert.Equal(t, []string{"2:two"}, replayed(t, l, 1))
}
