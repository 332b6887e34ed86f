package storage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/failpoint"
	"github.com/flashdb/flashdb/internal/vfs"
	"github.com/flashdb/flashdb/storage"
)

const compactDim = 64

// bulk makes a collection of n nodes with tags, links, a decoder and meta, all flushed.
func bulk(t *testing.T, s *storage.Store, n int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	ops := []storage.Op{storage.CreateCollection{UID: 1, Name: "c", Schema: storage.Schema{Dim: compactDim}}}
	for i := range n {
		row := make([]float32, compactDim)
		for d := range row {
			row[d] = rng.Float32()
		}
		ops = append(ops, storage.PutNode{
			UID: 1, ID: uint32(i), Key: fmt.Sprintf("k%d", i), Row: row, Tags: []string{fmt.Sprint(i % 5)}, Payload: make([]byte, 100),
		})
	}
	ops = append(ops, storage.Link{UID: 1, Source: 0, Targets: []uint32{1, 2}})
	ops = append(ops, storage.PutDecoder{UID: 1, Name: "d", Blob: []byte("blob")}, storage.SetMeta{UID: 1, Name: "m", Value: "v"})
	commit(t, s, 1, ops...)
	flush(t, s)
}

// thin deletes all nodes but those whose id is a multiple of keep.
func thin(t *testing.T, s *storage.Store, lsn uint64, n, keep int) {
	t.Helper()
	var ops []storage.Op
	for i := range n {
		if i%keep != 0 {
			ops = append(ops, storage.DeleteNode{UID: 1, ID: uint32(i)})
		}
	}
	commit(t, s, lsn, ops...)
	flush(t, s)
}

// A viewer is a Store or a Pin.
type viewer interface {
	View(fn func(*storage.View) error) error
}

// dump is what a view shows of collection 1, as text.
func dump(t *testing.T, s viewer) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, s.View(func(v *storage.View) error {
		infos := v.Collections()
		fmt.Fprint(&out, infos, v.Tags(1), v.Decoders(1), v.Tombs(1))
		row := make([]float32, compactDim)
		for id := range infos[0].NextID {
			n, ok := v.Node(1, id)
			v.Row(row, 1, id)
			fmt.Fprintln(&out, id, ok, n.Key, n.Tags, len(n.Payload), row[:2], v.Links(1, id, 1))
		}
		return nil
	}))
	return out.String()
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

func TestCompactShrinksAndChangesNothing(t *testing.T) {
	const n = 10_000
	path := newPath(t)
	s := open(t, path)
	bulk(t, s, n)
	thin(t, s, 2, n, 10)
	require.NoError(t, s.PublishGeneration(1, 3, 1))
	want := dump(t, s)
	var copied int64
	before, after, err := s.Compact(context.Background(), nil, func(n int64) { copied = n })
	require.NoError(t, err)
	assert.Equal(t, after, sizeOf(t, path))
	assert.Less(t, after, before/5, "a tenth is left, and the room bbolt keeps to grow in")
	assert.Positive(t, copied)
	assert.Less(t, copied, after)
	assert.Equal(t, want, dump(t, s))
	assertClean(t, s)
	assert.NoFileExists(t, path+".compact")

	// It goes on, and the lock with it.
	_, err = storage.Open(path, nil)
	assert.ErrorIs(t, err, storage.ErrLocked)
	commit(t, s, 3, storage.PutNode{UID: 1, ID: n, Key: "after", Row: make([]float32, compactDim)})
	flush(t, s)
	want = dump(t, s)
	require.NoError(t, s.Close())
	s = open(t, path)
	assert.Equal(t, want, dump(t, s))
	assertClean(t, s)
	_, again, err := s.Compact(context.Background(), nil, nil)
	require.NoError(t, err)
	assert.LessOrEqual(t, again, after+1<<20)
}

// TestCompactBesideReadersAndTheWriter compacts over and over while everything else goes on.
func TestCompactBesideReadersAndTheWriter(t *testing.T) {
	const n = 500
	s := open(t, newPath(t))
	bulk(t, s, n)
	var stop atomic.Bool
	var work sync.WaitGroup
	for range 2 {
		work.Go(func() {
			row := make([]float32, compactDim)
			for !stop.Load() {
				assert.NoError(t, s.View(func(v *storage.View) error {
					assert.True(t, v.Row(row, 1, 7))
					_, ok := v.ID(1, "k7")
					assert.True(t, ok)
					return nil
				}))
			}
		})
	}
	work.Go(func() {
		for lsn := uint64(2); !stop.Load(); lsn++ {
			c := s.Begin()
			id, ok := c.ID(1, "k8")
			assert.True(t, ok)
			assert.NoError(t, c.Apply(storage.PutNode{UID: 1, ID: id, Key: "k8", Row: make([]float32, compactDim)}, lsn))
			s.Stage(c)
			s.Publish()
			if lsn%16 == 0 {
				_, err := s.Flush()
				assert.NoError(t, err)
			}
		}
	})
	for range 20 {
		_, _, err := s.Compact(context.Background(), nil, nil)
		require.NoError(t, err)
	}
	stop.Store(true)
	work.Wait()
	flush(t, s)
	assertClean(t, s)
}

// TestCompactEndsWithItsContext also shows that a copy that was given up, or died, leaves nothing.
func TestCompactEndsWithItsContext(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	bulk(t, s, 100)
	want := dump(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err := s.Compact(ctx, nil, nil)
	require.ErrorIs(t, err, context.Canceled)
	assert.NoFileExists(t, path+".compact")
	assert.Equal(t, want, dump(t, s))
	commit(t, s, 2, storage.SetMeta{UID: 1, Name: "m", Value: "w"})
	flush(t, s)

	require.NoError(t, s.Close())
	require.NoError(t, os.WriteFile(path+".compact", []byte("half a copy"), 0o600))
	s = open(t, path)
	assert.NoFileExists(t, path+".compact")
	_, _, err = s.Compact(context.Background(), nil, nil)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, _, err = s.Compact(context.Background(), nil, nil)
	require.ErrorIs(t, err, storage.ErrClosed)
}

// TestEveryFailureOfCompact fails each operation of the file system once.
func TestEveryFailureOfCompact(t *testing.T) {
	boom := errors.New("boom")
	for n := int64(1); ; n++ {
		path := newPath(t)
		s := open(t, path)
		bulk(t, s, 50)
		want := dump(t, s)
		var failed *vfs.Op
		nth := vfs.FailNth(n, boom, nil)
		dir, err := vfs.OpenDir(filepath.Dir(path))
		require.NoError(t, err)
		fsys := vfs.Faulty(dir, func(op vfs.Op) error {
			err := nth(op)
			if err != nil {
				failed = &op
			}
			return err
		})
		_, _, err = s.Compact(context.Background(), fsys, nil)
		require.NoError(t, dir.Close())
		if failed == nil {
			require.NoError(t, err)
			require.Greater(t, n, int64(3))
			return
		}
		require.ErrorIs(t, err, boom, "failed at %s", failed)
		assert.NoFileExists(t, path+".compact")
		assert.Equal(t, want, dump(t, s), "failed at %s", failed)
		commit(t, s, 2, storage.SetMeta{UID: 1, Name: "m", Value: "w"})
		_, err = s.Flush()
		if failed.Kind == vfs.OpSyncDir {
			require.ErrorIs(t, err, boom, "nobody knows which file a crash would leave")
			_, _, err = s.Compact(context.Background(), nil, nil)
			require.ErrorIs(t, err, boom)
		} else {
			require.NoError(t, err, "failed at %s", failed)
		}
		require.NoError(t, s.Close())
		s = open(t, path)
		assertClean(t, s)
	}
}

// TestCompactDiesAnywhere opens what a kill at each step would leave.
func TestCompactDiesAnywhere(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	bulk(t, s, 50)
	want := dump(t, s)
	left := map[failpoint.Point]string{}
	failpoint.Hook(func(p failpoint.Point) {
		dir := filepath.Join(t.TempDir(), "left")
		assert.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Dir(path))))
		left[p] = filepath.Join(dir, filepath.Base(path))
	})
	defer failpoint.Hook(nil)
	_, _, err := s.Compact(context.Background(), nil, nil)
	failpoint.Hook(nil)
	require.NoError(t, err)
	require.Len(t, left, 2)
	for point, path := range left {
		s := open(t, path)
		assert.Equal(t, want, dump(t, s), point)
		assertClean(t, s)
		assert.NoFileExists(t, path+".compact")
	}
}

// TestLockOfAReplacedFileIsNone opens while the owner compacts: the lock it waits for is that of a
// file which has lost its name by the time it gets it.
func TestLockOfAReplacedFileIsNone(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("there is no way to see that a file is open")
	}
	path := newPath(t)
	s := open(t, path)
	bulk(t, s, 50)
	opened := make(chan error, 1)
	wait := func() {
		waiting, err := storage.Open(path, &storage.Options{ReadOnly: true, Timeout: 300 * time.Millisecond})
		if err == nil {
			err = waiting.Close()
		}
		opened <- err
	}
	failpoint.Hook(func(p failpoint.Point) {
		if p != failpoint.CompactRename {
			return
		}
		go wait()
		for openFiles(t, path) < 2 {
			select {
			case err := <-opened: // it gave up unseen, as on a machine that stood still
				if !errors.Is(err, storage.ErrLocked) {
					opened <- err
					return
				}
				go wait()
			default:
				runtime.Gosched()
			}
		}
	})
	defer failpoint.Hook(nil)
	_, _, err := s.Compact(context.Background(), nil, nil)
	require.NoError(t, err)
	require.ErrorIs(t, <-opened, storage.ErrLocked)
}

// openFiles returns how often this process has a file open.
func openFiles(t *testing.T, path string) (n int) {
	entries, err := os.ReadDir("/proc/self/fd")
	assert.NoError(t, err)
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && target == path {
			n++
		}
	}
	return n
}
