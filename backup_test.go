package flashdb_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/dbtest"
)

// fill makes two collections with everything that a database can hold: "papers" with an index and
// with rows written and deleted after its build, and "plain" without an index.
func fill(t testing.TB, d *testDB) {
	t.Helper()
	const dim, n = 8, 300
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(11, 4))
	c := d.collection("papers", dim)
	var nodes []flashdb.Node
	for i := range n {
		nodes = append(nodes, flashdb.Node{
			Key: fmt.Sprintf("p%d", i), Embedding: randomVector(rng, dim),
			Tags: []string{[]string{"red", "green", "blue"}[i%3]}, Payload: []byte{byte(i)},
		})
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	var edges []flashdb.Edge
	for i := range n / 2 {
		for _, to := range []int{i + 1, i + 2} {
			edges = append(edges, flashdb.Edge{Source: fmt.Sprintf("p%d", i), Target: fmt.Sprintf("p%d", to)})
		}
	}
	require.NoError(t, c.Link(ctx, edges...))
	require.NoError(t, c.PutDecoder(ctx, "cites", randomMLP(t, rng, dim, 6)))
	require.NoError(t, c.SetMeta(ctx, "origin", "test"))
	res, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 6})
	require.NoError(t, err)
	require.True(t, res.Built)
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "new", Embedding: randomVector(rng, dim)}))
	_, err = c.Delete(ctx, "p7", "p8")
	require.NoError(t, err)

	plain := d.collection("plain", 2)
	require.NoError(t, plain.Upsert(ctx, flashdb.Node{Key: "a\x00b", Embedding: []float32{1, 2}}))
	require.NoError(t, c.Link(ctx,
		flashdb.Edge{SourceCollection: "plain", Source: "a\x00b", Target: "p2"},
		flashdb.Edge{SourceCollection: "plain", Source: "a\x00b", Target: "new"}))
	require.NoError(t, plain.Link(ctx, flashdb.Edge{SourceCollection: "papers", Source: "p1", Target: "a\x00b"}))
}

func contentsOf(t testing.TB, db *flashdb.DB) *dbtest.Contents {
	t.Helper()
	all, err := dbtest.ContentsOf(context.Background(), db)
	require.NoError(t, err)
	return all
}

func backUp(t testing.TB, db *flashdb.DB, opts *flashdb.BackupOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	res, err := db.Backup(context.Background(), &out, opts)
	require.NoError(t, err)
	require.Equal(t, int64(out.Len()), res.Packed)
	return out.Bytes()
}

// restoreDB restores a stream into a new directory and opens it; the cleanup demands that DB.Check
// finds nothing.
func restoreDB(t testing.TB, stream []byte) *testDB {
	t.Helper()
	d := &testDB{t: t, dir: filepath.Join(t.TempDir(), "restored.flash")}
	_, err := flashdb.Restore(context.Background(), bytes.NewReader(stream), d.dir, nil)
	require.NoError(t, err)
	requireNames(t, filepath.Dir(d.dir), "restored.flash")
	d.open()
	t.Cleanup(d.checkAndClose)
	return d
}

// requireNames demands what a directory holds.
func requireNames(t testing.TB, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.ElementsMatch(t, want, names)
}

func TestRestoreGivesTheSameDatabase(t *testing.T) {
	d := openDB(t)
	fill(t, d)
	before := contentsOf(t, d.DB)
	var calls int
	var last, total int64
	stream := backUp(t, d.DB, &flashdb.BackupOptions{Progress: func(_ string, done, all int64) { calls, last, total = calls+1, done, all }})
	assert.Positive(t, calls)
	assert.Equal(t, total, last)
	requireNames(t, d.dir, "flash.db", "index", "owner.pid", "wal")

	r := restoreDB(t, stream)
	assert.Equal(t, before, contentsOf(t, r.DB))
	s, err := r.Stats(context.Background())
	require.NoError(t, err)
	assert.Equal(t, uint64(1), s.Collections[0].Generation, "the index came along")
	assert.Equal(t, uint64(1), s.Collections[0].DeltaRows)

	source, err := d.Stats(context.Background())
	require.NoError(t, err)
	verified, err := flashdb.VerifyBackup(context.Background(), bytes.NewReader(stream), nil)
	require.NoError(t, err)
	assert.Equal(t, source.DurableLSN, verified.LSN)
	assert.Equal(t, 2, verified.Files)
	assert.Equal(t, total, verified.Bytes)

	// The restored database gives out new ids and does not reuse old ones.
	c, err := r.Collection("papers")
	require.NoError(t, err)
	require.NoError(t, c.Upsert(context.Background(), flashdb.Node{Key: "later", Embedding: make([]float32, 8)}))
	r.reopen()
}

func TestBackupWithoutIndex(t *testing.T) {
	d := openDB(t)
	fill(t, d)
	before := contentsOf(t, d.DB)
	whole, less := backUp(t, d.DB, nil), backUp(t, d.DB, &flashdb.BackupOptions{WithoutIndex: true})
	assert.Less(t, len(less), len(whole))
	r := restoreDB(t, less)
	assert.Equal(t, before, contentsOf(t, r.DB))
	s, err := r.Stats(context.Background())
	require.NoError(t, err)
	assert.Zero(t, s.Collections[0].Generation)
	c, err := r.Collection("papers")
	require.NoError(t, err)
	res, err := c.Rebuild(context.Background(), &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)
	assert.Equal(t, 299, res.Rows)
	r.reopen()
	assert.Equal(t, before, contentsOf(t, r.DB))
}

// A damaged index is left out of a backup, which is complete without it.
func TestBackupLeavesOutADamagedIndex(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"header": func(b []byte) []byte { b[20] ^= 1; return b },
		"rows":   func(b []byte) []byte { b[len(b)-2] ^= 1; return b },
		"cut":    func(b []byte) []byte { return b[:len(b)/2] },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := &testDB{t: t, dir: filepath.Join(dir, "db")}
			d.open()
			fill(t, d)
			before := contentsOf(t, d.DB)
			require.NoError(t, d.Close())
			file := filepath.Join(d.dir, "index", "papers", "gen-000001.ivf")
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, damage(b), 0o600))
			d.open()
			var out bytes.Buffer
			res, err := d.Backup(context.Background(), &out, nil)
			require.NoError(t, err)
			assert.Equal(t, []string{"papers"}, res.LeftOut)
			require.NoError(t, d.Close())
			assert.Equal(t, before, contentsOf(t, restoreDB(t, out.Bytes()).DB))
		})
	}
}

// TestBackupBesideEverything backs up while writers, a deleter, queries and rebuilds run. Writers
// put pairs of nodes, each pair in one batch. A backup must hold both or none of a pair, and every
// pair that was acknowledged before the backup began.
func TestBackupBesideEverything(t *testing.T) {
	const dim, writers = 4, 3
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", dim)
	require.NoError(t, c.PutDecoder(ctx, "dot", dotDecoder(t, dim)))
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "source", Embedding: make([]float32, dim)}))
	var stop atomic.Bool
	var acked [writers]atomic.Int64
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 3))
			for i := int64(1); !stop.Load(); i++ {
				pair := []flashdb.Node{
					{Key: fmt.Sprintf("left %d %d", w, i), Embedding: randomVector(rng, dim)},
					{Key: fmt.Sprintf("right %d %d", w, i), Embedding: randomVector(rng, dim)},
				}
				if !assert.NoError(t, c.Upsert(ctx, pair...)) {
					return
				}
				acked[w].Store(i)
			}
		})
	}
	work.Go(func() {
		for !stop.Load() {
			_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 2})
			assert.NoError(t, err)
			_, err = c.Predict(ctx, "source", 3, nil)
			assert.NoError(t, err)
		}
	})
	for range 6 {
		var want [writers]int64
		for w := range writers {
			want[w] = acked[w].Load()
		}
		stream := backUp(t, d.DB, nil)
		r := restoreDB(t, stream)
		got := map[string]bool{}
		rc, err := r.Collection("c")
		require.NoError(t, err)
		for key, err := range rc.Keys(ctx) {
			require.NoError(t, err)
			got[key] = true
		}
		for w := range writers {
			for i := int64(1); i <= want[w]; i++ {
				require.True(t, got[fmt.Sprintf("left %d %d", w, i)], "pair %d of writer %d was acknowledged before", i, w)
			}
		}
		for key := range got {
			if rest, ok := strings.CutPrefix(key, "left"); ok {
				require.True(t, got["right"+rest], "half of the batch of %q", key)
			}
		}
		_, err = rc.Predict(ctx, "source", 3, nil)
		require.NoError(t, err)
	}
	stop.Store(true)
	work.Wait()
}

// A blockingWriter blocks every Write until it is released.
type blockingWriter struct {
	begun   chan struct{}
	once    sync.Once
	release chan struct{}
}

func (b *blockingWriter) Write(p []byte) (int, error) {
	b.once.Do(func() { close(b.begun) })
	<-b.release
	return len(p), nil
}

func TestBackupBlocksNobody(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", 1024)
	rng := rand.New(rand.NewPCG(5, 5))
	var nodes []flashdb.Node
	for i := range 1024 { // more than the compressor buffers
		nodes = append(nodes, flashdb.Node{Key: fmt.Sprint(i), Embedding: randomVector(rng, 1024)})
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	w := &blockingWriter{begun: make(chan struct{}), release: make(chan struct{})}
	done := make(chan error)
	go func() {
		_, err := d.Backup(ctx, w, nil)
		done <- err
	}()
	<-w.begun
	// The stream is blocked. Writes, flushes, rebuilds and queries are not.
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "x", Embedding: make([]float32, 1024)}))
	_, err := d.Stats(ctx)
	require.NoError(t, err)
	_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 2})
	require.NoError(t, err)
	_, err = c.Search(ctx, make([]float32, 1024), 1, nil)
	require.NoError(t, err)
	closed := make(chan error)
	go func() { closed <- d.Close() }()
	// Close ends the backup as soon as its Write returns.
	<-flashdb.Closing(d.DB).Done()
	close(w.release)
	require.ErrorIs(t, <-done, flashdb.ErrClosed)
	require.NoError(t, <-closed)
	d.open()
	requireNames(t, d.dir, "flash.db", "index", "owner.pid", "wal")
}

func TestRestoreWantsAVacantDirectory(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	fill(t, d)
	stream := backUp(t, d.DB, nil)
	parent := t.TempDir()

	full := filepath.Join(parent, "full")
	require.NoError(t, os.Mkdir(full, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(full, "notes.txt"), []byte("mine"), 0o600))
	_, err := flashdb.Restore(ctx, bytes.NewReader(stream), full, nil)
	require.ErrorIs(t, err, flashdb.ErrExists)
	requireNames(t, full, "notes.txt")
	_, err = flashdb.Restore(ctx, bytes.NewReader(stream), filepath.Join(full, "notes.txt"), nil)
	require.Error(t, err)
	_, err = flashdb.Restore(ctx, bytes.NewReader(stream), d.dir, nil)
	require.ErrorIs(t, err, flashdb.ErrExists)

	empty := filepath.Join(parent, "empty")
	require.NoError(t, os.Mkdir(empty, 0o700))
	_, err = flashdb.Restore(ctx, bytes.NewReader(stream), empty, nil)
	require.NoError(t, err)
	requireNames(t, parent, "full", "empty")
	requireNames(t, empty, "flash.db", "index", "wal")
}
