package flashdb_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/vfs"
)

// newSnapshot makes a snapshot of a filled database, and returns what it must hold.
func newSnapshot(t *testing.T) (dir string, d *testDB) {
	t.Helper()
	d = openDB(t)
	fill(t, d)
	dir = filepath.Join(t.TempDir(), "snap")
	res, err := flashdb.Restore(context.Background(), bytes.NewReader(backUp(t, d.DB, nil)), dir, &flashdb.RestoreOptions{Snapshot: true})
	require.NoError(t, err)
	require.Equal(t, 2, res.Files)
	requireNames(t, filepath.Dir(dir), "snap")
	requireNames(t, dir, "index", "snapshot.db", "snapshot.files")
	return dir, d
}

// entriesOf describes every file and directory below dir: bytes, modes and times of changes.
func entriesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries := snapshotOf(t, dir)
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			entries[path] += info.Mode().String() + info.ModTime().String()
		}
		return err
	}))
	return entries
}

func TestSnapshotIsReadByManyAndLeftAlone(t *testing.T) {
	ctx := context.Background()
	dir, d := newSnapshot(t)
	want := contentsOf(t, d.DB)
	before := entriesOf(t, dir)
	lockAgainstAll(t, filepath.Join(dir, "snapshot.db"))
	var readers []*flashdb.DB
	for _, opts := range []*flashdb.Options{nil, {ReadOnly: true}, {MustExist: true}} {
		db, err := flashdb.Open(dir, opts)
		require.NoError(t, err)
		readers = append(readers, db)
	}
	for _, db := range readers {
		assert.Equal(t, want, contentsOf(t, db))
		findings, err := db.Check(ctx)
		require.NoError(t, err)
		assert.Empty(t, findings)
		strays, err := db.Strays(ctx)
		require.NoError(t, err)
		assert.Empty(t, strays)
		s, err := db.Stats(ctx)
		require.NoError(t, err)
		assert.Equal(t, uint64(1), s.Collections[0].Generation)
		assert.Positive(t, s.Disk.Store)
	}
	db := readers[0]
	c, err := db.Collection("papers")
	require.NoError(t, err)
	for name, change := range map[string]func() error{
		"create":  func() error { _, err := db.CreateCollection("x", flashdb.Schema{Dim: 1}); return err },
		"drop":    func() error { return db.DropCollection(ctx, "papers") },
		"upsert":  func() error { return c.Upsert(ctx, flashdb.Node{Key: "x", Embedding: make([]float32, 8)}) },
		"rebuild": func() error { _, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true}); return err },
		"compact": func() error { _, err := db.Compact(ctx, nil); return err },
		"serve":   func() error { _, err := control.Serve(db, nil); return err },
	} {
		err := change()
		assert.ErrorIs(t, err, flashdb.ErrReadOnly, name)
		assert.ErrorContains(t, err, "it is a snapshot, which is never written to", name)
	}
	require.NoError(t, db.Checkpoint(ctx))
	for _, db := range readers {
		require.NoError(t, db.Close())
	}
	assert.Equal(t, before, entriesOf(t, dir), "nothing was written")
}

// TestSnapshotBecomesADatabase backs a snapshot up, and restores that as a database and as another
// snapshot.
func TestSnapshotBecomesADatabase(t *testing.T) {
	dir, d := newSnapshot(t)
	want := contentsOf(t, d.DB)
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	stream := backUp(t, db, nil)
	require.NoError(t, db.Close())
	r := restoreDB(t, stream)
	assert.Equal(t, want, contentsOf(t, r.DB))
	c, err := r.Collection("papers")
	require.NoError(t, err)
	require.NoError(t, c.Upsert(context.Background(), flashdb.Node{Key: "later", Embedding: make([]float32, 8)}))

	again := filepath.Join(t.TempDir(), "again")
	require.NoError(t, os.Mkdir(again, 0o700)) // an empty directory may be there
	_, err = flashdb.Restore(context.Background(), bytes.NewReader(stream), again, &flashdb.RestoreOptions{Snapshot: true})
	require.NoError(t, err)
	db, err = flashdb.Open(again, nil)
	require.NoError(t, err)
	assert.Equal(t, want, contentsOf(t, db))
	require.NoError(t, db.Close())
}

func TestSnapshotNoticesDamage(t *testing.T) {
	whole, _ := newSnapshot(t)
	generation := filepath.Join("index", "papers", "gen-000001.ivf")
	remove := func(name string) func(string) error {
		return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
	}
	write := func(name, text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	cut := func(name string) func(string) error {
		return func(dir string) error {
			info, err := os.Stat(filepath.Join(dir, name))
			return errors.Join(err, os.Truncate(filepath.Join(dir, name), info.Size()-1))
		}
	}
	flip := func(name string, share float64) func(string) error {
		return func(dir string) error {
			b, err := os.ReadFile(filepath.Join(dir, name))
			b[int(share*float64(len(b)-1))] ^= 1
			return errors.Join(err, os.WriteFile(filepath.Join(dir, name), b, 0o600))
		}
	}
	for name, tt := range map[string]struct {
		damage func(dir string) error
		open   string // of the error of Open; "" for a finding of Check
	}{
		"no list":           {remove("snapshot.files"), "snapshot.files: file at offset 0: it is missing: the snapshot was copied in part"},
		"empty list":        {write("snapshot.files", ""), "snapshot.files: header at offset 0"},
		"list cut":          {cut("snapshot.files"), "snapshot.files: trailer at offset"},
		"list flipped":      {flip("snapshot.files", .5), "snapshot.files: trailer at offset"},
		"no store":          {remove("snapshot.db"), "snapshot.db: file at offset 0: it is missing"},
		"no generation":     {remove(generation), generation + ": file at offset 0: it is missing"},
		"store cut":         {cut("snapshot.db"), "bytes, the snapshot had"},
		"generation cut":    {cut(generation), "bytes, the snapshot had"},
		"a log":             {func(dir string) error { return os.Mkdir(filepath.Join(dir, "wal"), 0o700) }, "a snapshot has no log, and there is a directory"},
		"store flipped":     {flip("snapshot.db", 1), ""}, // in a page that nothing reads
		"generation middle": {flip(generation, .5), ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "snap")
			require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
			require.NoError(t, tt.damage(dir))
			db, err := flashdb.Open(dir, nil)
			if tt.open != "" {
				require.ErrorIs(t, err, flashdb.ErrCorrupt)
				require.ErrorContains(t, err, tt.open)
				return
			}
			require.NoError(t, err)
			findings, err := db.Check(context.Background())
			require.NoError(t, err)
			require.NotEmpty(t, findings)
			assert.Contains(t, findings[0], "the checksum is")
			require.NoError(t, db.Close())
		})
	}
	t.Run("a stray", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "snap")
		require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "owner.pid"), nil, 0o600))
		db, err := flashdb.Open(dir, nil)
		require.NoError(t, err)
		strays, err := db.Strays(context.Background())
		require.NoError(t, err)
		assert.Len(t, strays, 1)
		require.NoError(t, db.Close())
	})
}

func TestSnapshotRefusesTargets(t *testing.T) {
	ctx := context.Background()
	dir, d := newSnapshot(t)
	stream := backUp(t, d.DB, nil)
	opts := &flashdb.RestoreOptions{Snapshot: true}
	before := entriesOf(t, dir)
	for name, tt := range map[string]struct {
		target string
		want   error
	}{
		"a snapshot": {dir, flashdb.ErrExists}, "the database": {d.dir, flashdb.ErrExists},
		"inside a snapshot": {filepath.Join(dir, "x"), flashdb.ErrInvalid}, "inside the database": {filepath.Join(d.dir, "x"), flashdb.ErrInvalid},
	} {
		_, err := flashdb.Restore(ctx, bytes.NewReader(stream), tt.target, opts)
		assert.ErrorIs(t, err, tt.want, name)
	}
	assert.Equal(t, before, entriesOf(t, dir))
	requireNames(t, d.dir, "flash.db", "index", "owner.pid", "wal")
	target := filepath.Join(filepath.Dir(dir), "cut")
	_, err := flashdb.Restore(ctx, bytes.NewReader(stream[:len(stream)/2]), target, opts)
	require.ErrorIs(t, err, flashdb.ErrCorrupt)
	requireNames(t, filepath.Dir(dir), "snap")
}

// TestEveryFailureOfASnapshot fails each operation of making a snapshot once. It leaves nothing
// behind.
func TestEveryFailureOfASnapshot(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	fill(t, d)
	stream := backUp(t, d.DB, nil)
	before := contentsOf(t, d.DB)
	parent := t.TempDir()
	dir := filepath.Join(parent, "snap")
	for n := int64(1); ; n++ {
		var b breaker
		b.arm(n)
		_, err := flashdb.RestoreOn(vfs.Faulty(vfs.OS(), b.inject), ctx, bytes.NewReader(stream), dir, &flashdb.RestoreOptions{Snapshot: true})
		op := b.tripped()
		if err == nil { // it was only about strays, or about the sizes that Compact returns
			if op != nil {
				require.Contains(t, []vfs.Kind{vfs.OpReadDir, vfs.OpType, vfs.OpSize}, op.Kind, "%s", op)
			}
			db, err := flashdb.Open(dir, nil)
			require.NoError(t, err)
			require.Equal(t, before, contentsOf(t, db), "failed at %s", op)
			require.NoError(t, db.Close())
			require.NoError(t, os.RemoveAll(dir))
			if op == nil {
				require.Greater(t, n, int64(30))
				attempts.Count(t, int(n-1), "operations")
				return
			}
			continue
		}
		require.ErrorContains(t, err, errInjected.Error(), "failed at %s", op)
		if op.Kind == vfs.OpRemoveAll && filepath.Dir(op.Path) == parent {
			continue
		}
		requireNames(t, parent)
	}
}
