package tests

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/vfs"
)

var errDisk = errors.New("disk on fire")

// twins are collections that every write of a trial changes alike, in one batch. Links lead from
// the first to the second as they lead within each.
var twins = []string{"c", "twin"}

// A trial is a fixed run of a database on a disk that fails at some point. Its writes are batches
// across two collections, which must always be the same. The log and the index are on fs, the bbolt
// file is a real one whose writes are injected too.
type trial struct {
	t      *testing.T
	dir    string
	fs     vfs.FS
	inject func(vfs.Op) error
	// store is called before each write to the bbolt file, as inject before every other operation.
	store func(off int64, b []byte) error

	db        *flashdb.DB
	c         *flashdb.Collection
	generator *generator
	ledger
}

// A ledger says what a database was asked to do, and what it acknowledged.
type ledger struct {
	created      bool   // the collection was acknowledged
	acked, tried int64  // writes acknowledged, and begun
	generation   uint64 // of the last rebuild that was acknowledged
}

func newTrial(t *testing.T, dir string, fs vfs.FS) *trial {
	r := &trial{t: t, dir: dir, fs: fs, generator: newGenerator("", 11), inject: func(vfs.Op) error { return nil }}
	r.store = func(int64, []byte) error {
		return r.inject(vfs.Op{Kind: vfs.OpWrite, Path: filepath.Join(dir, "flash.db")})
	}
	return r
}

func (r *trial) open() (err error) {
	inject := func(op vfs.Op) error { return r.inject(op) }
	r.db, err = openOn(vfs.Faulty(r.fs, inject), r.dir, &flashdb.Options{FlushBytes: 1 << 40, Workers: 1, CalibrateTime: -1})
	if err != nil {
		return err
	}
	hookStoreWrites(r.db, func(off int64, b []byte) error { return r.store(off, b) })
	for _, name := range twins {
		if !r.created {
			_, err = r.db.CreateCollection(name, flashdb.Schema{Dim: modelDim})
		}
		if err != nil && !errors.Is(err, flashdb.ErrExists) { // it may be there and not acknowledged
			return err
		}
	}
	r.created = true
	r.c, err = r.db.Collection("c")
	return err
}

func (r *trial) writes(n int) error {
	for range n {
		write := r.generator.next()
		r.tried++
		if err := write.applyBoth(context.Background(), r.db, r.generator.m, twins[0], twins[1]); err != nil {
			return fmt.Errorf("%s: %w", write.name, err)
		}
		r.generator.applied(write)
		r.acked++
	}
	return nil
}

func (r *trial) checkpoint() error {
	_, err := r.db.Stats(context.Background())
	return err
}

func (r *trial) rebuild() error {
	res, err := r.c.Rebuild(context.Background(), &flashdb.RebuildOptions{Force: true, Lists: 3})
	if err == nil {
		r.generation = res.Generation
	}
	return err
}

// newer puts the rows that are newer than the index into a segment.
func (r *trial) newer() error {
	_, err := r.c.Rebuild(context.Background(), &flashdb.RebuildOptions{NewerOnly: true})
	return err
}

func (r *trial) predict() error {
	for key := range r.generator.m.nodes {
		_, err := r.c.Search(context.Background(), r.generator.m.nodes[key].Embedding, 5, nil)
		return err
	}
	return nil
}

// other makes a collection with an index and drops it.
func (r *trial) other() error {
	c, err := r.db.CreateCollection("other", flashdb.Schema{Dim: 2})
	if err == nil {
		err = c.Upsert(context.Background(), flashdb.Node{Key: "a", Embedding: []float32{1, 2}})
	}
	if err == nil {
		_, err = c.Rebuild(context.Background(), &flashdb.RebuildOptions{Force: true})
	}
	if err != nil {
		return err
	}
	return r.db.DropCollection(context.Background(), "other")
}

func (r *trial) close() error {
	db := r.db
	r.db = nil
	return db.Close()
}

// run does a bit of everything until the first error.
func (r *trial) run() error {
	writes := func(n int) func() error { return func() error { return r.writes(n) } }
	steps := []func() error{
		r.open, writes(10), r.checkpoint, writes(4), r.rebuild, writes(3), r.predict, r.rebuild, writes(2), r.newer, r.close,
		r.open, writes(3), r.predict, r.newer, writes(2), r.checkpoint, r.other, r.release, writes(2), r.newer, r.rebuild, r.checkpoint, writes(3), r.close,
		r.open, writes(1), r.close,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// afterFailure checks what a database that met err still does, and closes it.
func (r *trial) afterFailure(err error) {
	require.ErrorIs(r.t, err, errDisk)
	if r.db == nil {
		return
	}
	if errors.Is(err, flashdb.ErrReadOnly) && r.c != nil {
		err := r.generator.next().do(context.Background(), r.c)
		assert.ErrorIs(r.t, err, flashdb.ErrReadOnly)
		assert.ErrorIs(r.t, err, errDisk, "the first reason stays")
		assert.NoError(r.t, r.generator.m.diff(context.Background(), r.c, ""), "reads go on, and what failed is not seen")
	}
	_ = r.close() // may well fail
}

// verify opens what a trial left behind, without faults, and compares it with what was
// acknowledged.
func (l *ledger) verify(t *testing.T, dir string, fs vfs.FS) {
	ctx := context.Background()
	db, err := openOn(fs, dir, &flashdb.Options{Workers: 1, CalibrateTime: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	findings, err := db.Check(ctx)
	require.NoError(t, err)
	require.Empty(t, findings)
	c, err := db.Collection("c")
	var twin *flashdb.Collection
	if err == nil {
		twin, err = db.Collection("twin")
	}
	if errors.Is(err, flashdb.ErrNotFound) {
		require.False(t, l.created)
		return
	}
	require.NoError(t, err)
	a := replayed(t, c, "", 11, l.acked, l.tried)
	require.NoError(t, a.m.linkedFrom("c").diff(ctx, twin, ""), "both have what a batch did, or none")
	stats, err := db.Stats(ctx)
	require.NoError(t, err)
	require.GreaterOrEqual(t, stats.Collections[0].Generation, l.generation)
	d := dotDecoder(t, modelDim)
	require.NoError(t, c.PutDecoder(ctx, "verify", d))
	a.m.predicts(t, c, d, "verify", 3)
	wholeRelease(ctx, t, db)
}

// replayed returns a generator that has done as many writes as c shows: all that were acknowledged,
// and of the others those before some point.
func replayed(t testing.TB, c *flashdb.Collection, prefix string, seed uint64, acked, tried int64) *generator {
	t.Helper()
	a := newGenerator(prefix, seed)
	var diffs []string
	for n := acked; n <= tried; n++ {
		err := a.skipTo(int(n)).m.diff(context.Background(), c, prefix)
		if err == nil {
			return a
		}
		diffs = append(diffs, fmt.Sprintf("after write %d: %v", n, err))
	}
	require.Fail(t, "not what was acknowledged", "%d writes of %q acknowledged, %d tried:\n%s", acked, prefix, tried, strings.Join(diffs, "\n"))
	return nil
}

// TestNthOperationFails lets every operation on the disk fail once, or for good, in a run that does
// a bit of everything.
func TestNthOperationFails(t *testing.T) {
	modes := []struct {
		name   string
		inject func(n int64) func(vfs.Op) error
	}{
		{"once", func(n int64) func(vfs.Op) error { return vfs.FailNth(n, errDisk, nil) }},
		{"changes from then on", func(n int64) func(vfs.Op) error {
			var seen atomic.Int64
			return func(op vfs.Op) error {
				if seen.Add(1) >= n && op.Kind.Changes() {
					return errDisk
				}
				return nil
			}
		}},
	}
	var ops []vfs.Op
	whole := newTrial(t, filepath.Join(t.TempDir(), "whole"), vfs.NewMem())
	whole.inject = func(op vfs.Op) error { ops = append(ops, op); return nil }
	require.NoError(t, whole.run())
	whole.verify(t, whole.dir, whole.fs)
	require.Greater(t, len(ops), 200)
	numbers := make([]int, len(ops))
	for i := range numbers {
		numbers[i] = i + 1
	}

	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			root := t.TempDir()
			failed := 0
			numbers := some(some(numbers)) // every 25th with -short: a history is long
			for _, n := range numbers {
				r := newTrial(t, filepath.Join(root, fmt.Sprint(n)), vfs.NewMem())
				r.inject = mode.inject(int64(n))
				if err := r.run(); err != nil {
					failed++
					r.afterFailure(err)
				}
				require.Nil(t, r.db)
				r.verify(t, r.dir, r.fs)
				if t.Failed() {
					require.Fail(t, "operation that failed", "number %d, %s", n, ops[n-1])
				}
			}
			attempts.Count(t, len(numbers), "operations")
			t.Logf("%d operations, %d runs ended with an error", len(ops), failed)
		})
	}
}

// TestFailedFlush checks that a database whose bbolt file cannot be written refuses writes, answers
// queries all the same, and has lost nothing.
func TestFailedFlush(t *testing.T) {
	for _, opened := range []bool{false, true} {
		t.Run(fmt.Sprintf("queried before %v", opened), func(t *testing.T) {
			ctx := context.Background()
			r := newTrial(t, filepath.Join(t.TempDir(), "test.flash"), vfs.NewMem())
			require.NoError(t, r.open())
			require.NoError(t, r.writes(20))
			require.NoError(t, r.checkpoint())
			require.NoError(t, r.rebuild())
			d := dotDecoder(t, modelDim)
			require.NoError(t, r.c.PutDecoder(ctx, "z", d)) // a name that no write uses
			require.NoError(t, r.writes(20))
			if opened {
				r.generator.m.predicts(t, r.c, d, "z", 1)
				require.NoError(t, r.writes(10))
			}
			r.store = func(int64, []byte) error { return errDisk }
			require.ErrorIs(t, r.checkpoint(), errDisk)

			err := r.generator.next().do(ctx, r.c)
			require.ErrorIs(t, err, flashdb.ErrReadOnly)
			require.ErrorIs(t, err, errDisk)
			r.generator.m.predicts(t, r.c, d, "z", 5)
			require.ErrorIs(t, r.close(), errDisk)

			r.store = func(int64, []byte) error { return nil }
			require.NoError(t, r.open())
			r.generator.m.predicts(t, r.c, d, "z", 5)
			require.NoError(t, setMetaWrite("a", "b").do(ctx, r.c))
			require.NoError(t, r.close())
		})
	}
}
