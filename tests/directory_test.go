package tests

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
	"github.com/flashdb/flashdb/internal/vfs"
)

// A place is a database, with the nodes that it acknowledged.
type place struct {
	t  *testing.T
	db *flashdb.DB
	c  *flashdb.Collection
	n  int
}

func openPlace(t *testing.T, dir string) *place {
	t.Helper()
	db, err := flashdb.Open(dir, &flashdb.Options{CalibrateTime: -1})
	require.NoError(t, err)
	_, err = control.Serve(db, nil)
	require.NoError(t, err)
	c, err := db.CreateCollection("c", flashdb.Schema{Dim: 4})
	require.NoError(t, err)
	return &place{t: t, db: db, c: c}
}

// put upserts one more node.
func (p *place) put() error {
	v := []float32{1, 0, 0, float32(p.n)}
	err := p.c.Upsert(context.Background(), flashdb.Node{Key: fmt.Sprint(p.n), Embedding: v})
	if err == nil {
		p.n++
	}
	return err
}

func (p *place) puts(n int) {
	p.t.Helper()
	for range n {
		require.NoError(p.t, p.put())
	}
}

// reads makes sure that what was acknowledged is answered.
func (p *place) reads() {
	p.t.Helper()
	ctx := context.Background()
	for i := range p.n {
		node, err := p.c.Get(ctx, fmt.Sprint(i))
		require.NoError(p.t, err)
		require.Equal(p.t, float32(i), node.Embedding[3])
	}
	res, err := p.c.Search(ctx, []float32{0, 0, 0, 1}, p.n, nil)
	require.NoError(p.t, err)
	require.Len(p.t, res.Hits, p.n)
	require.Equal(p.t, fmt.Sprint(p.n-1), res.Hits[0].Key)
}

// holds opens the database in dir, which must be clean and hold what p acknowledged.
func (p *place) holds(dir string) {
	p.t.Helper()
	db, err := flashdb.Open(dir, &flashdb.Options{MustExist: true, CalibrateTime: -1})
	require.NoError(p.t, err)
	defer db.Close()
	c, err := db.Collection("c")
	require.NoError(p.t, err)
	(&place{t: p.t, db: db, c: c, n: p.n}).reads()
	stats, err := db.Stats(context.Background())
	require.NoError(p.t, err)
	require.Equal(p.t, uint64(p.n), stats.Collections[0].Nodes)
	findings, err := db.Check(context.Background())
	require.NoError(p.t, err)
	require.Empty(p.t, findings)
}

// tree lists what is under dir, with sizes of files.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		rel, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		if d.Type().IsRegular() {
			rel = fmt.Sprintf("%s %d", rel, info.Size())
		}
		list = append(list, rel)
		return nil
	}))
	return list
}

// TestWorkingDirectory opens two databases by one relative path from two working directories, and
// works on both from a third.
func TestWorkingDirectory(t *testing.T) {
	ctx := context.Background()
	base := t.TempDir()
	dirs := []string{filepath.Join(base, "a"), filepath.Join(base, "b")}
	var places []*place
	for _, dir := range dirs {
		require.NoError(t, os.Mkdir(dir, 0o700))
		t.Chdir(dir)
		places = append(places, openPlace(t, "data.flash"))
		require.Equal(t, filepath.Join(dir, "data.flash"), places[len(places)-1].db.Dir())
	}
	elsewhere := filepath.Join(base, "elsewhere")
	require.NoError(t, os.Mkdir(elsewhere, 0o700))
	for _, cwd := range []string{dirs[0], dirs[1], elsewhere} {
		t.Chdir(cwd)
		for i, p := range places {
			p.puts(20 + i)
			require.NoError(t, p.db.Checkpoint(ctx)) // which begins a log segment, and removes the one before
			p.puts(5)
			res, err := p.c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
			require.NoError(t, err)
			require.True(t, res.Built)
			_, err = p.db.Compact(ctx, nil)
			require.NoError(t, err)
			var stream strings.Builder
			_, err = p.db.Backup(ctx, &stream, nil)
			require.NoError(t, err)
			p.puts(5)
			p.reads()
		}
	}
	for _, p := range places {
		require.NoError(t, p.db.Close())
	}
	for i, dir := range dirs {
		require.Equal(t, []string{"data.flash"}, names(t, dir))
		for _, left := range []string{"control.sock", "owner.pid"} {
			require.NoFileExists(t, filepath.Join(dir, "data.flash", left))
		}
		places[i].holds(filepath.Join(dir, "data.flash"))
	}
	require.Empty(t, names(t, elsewhere))
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// lost makes sure that a database whose directory was taken away refuses all that writes, says why,
// and answers on.
func (p *place) lost(says string) {
	p.t.Helper()
	ctx := context.Background()
	refused := func(what string, err error) {
		p.t.Helper()
		require.ErrorIs(p.t, err, flashdb.ErrReadOnly, what)
		require.ErrorContains(p.t, err, says, what)
		require.NotContains(p.t, err.Error(), "\n", what)
	}
	refused("upsert", p.put())
	refused("upsert again", p.put())
	refused("checkpoint", p.db.Checkpoint(ctx))
	_, err := p.c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	refused("rebuild", err)
	_, err = p.db.Compact(ctx, nil)
	refused("compact", err)
	_, err = p.db.Backup(ctx, new(strings.Builder), nil)
	refused("backup", err)
	refused("drop", p.db.DropCollection(ctx, "c"))
	_, err = p.db.CreateCollection("d", flashdb.Schema{Dim: 4})
	refused("create", err)
	p.reads()
	refused("close", p.db.Close())
}

// TestDirectoryIsReplaced moves the directory of an open database away and puts another in its
// place, as a restore in place does.
func TestDirectoryIsReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename a directory that is open")
	}
	base := t.TempDir()
	dir, away := filepath.Join(base, "d.flash"), filepath.Join(base, "away.flash")
	old := openPlace(t, dir)
	old.puts(10)
	_, err := old.c.Rebuild(context.Background(), &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)
	old.puts(10)

	require.NoError(t, os.Rename(dir, away))
	next := openPlace(t, dir) // of this process as well: it is another directory
	next.puts(20)
	before := tree(t, dir)
	old.lost("the directory was moved or replaced: another one is at " + dir)
	require.Equal(t, before, tree(t, dir), "nothing of the new owner's was touched")

	next.puts(5)
	next.reads()
	require.NoError(t, next.db.Checkpoint(context.Background()))
	require.NoError(t, next.db.Close())
	next.holds(dir)
	old.holds(away)
}

func TestDirectoryIsRemoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not remove what is open")
	}
	dir := filepath.Join(t.TempDir(), "d.flash")
	p := openPlace(t, dir)
	p.puts(10)
	require.NoError(t, os.RemoveAll(dir))
	p.lost("the directory was moved or replaced: there is nothing at " + dir)
	require.NoDirExists(t, dir)
}

// TestDirectoryComesBack: what was refused once is refused until a reopen, for nobody knows what
// another process did meanwhile.
func TestDirectoryComesBack(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename a directory that is open")
	}
	base := t.TempDir()
	dir, away := filepath.Join(base, "d.flash"), filepath.Join(base, "away.flash")
	p := openPlace(t, dir)
	p.puts(10)
	require.NoError(t, os.Rename(dir, away))
	require.ErrorIs(t, p.put(), flashdb.ErrReadOnly)
	require.NoError(t, os.Rename(away, dir))
	require.ErrorIs(t, p.put(), flashdb.ErrReadOnly)
	p.reads()
	require.NoError(t, p.db.Close())
	p.holds(dir)
}

// TestFilesAreReplaced takes single files away from an open database.
func TestFilesAreReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename what is open")
	}
	copied := func(t *testing.T, from, to string) {
		b, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, b, 0o600))
	}
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, dir string)
		says string
	}{
		{"flash.db replaced", func(t *testing.T, dir string) {
			copied(t, filepath.Join(dir, "flash.db"), filepath.Join(dir, "new"))
			require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "flash.db")))
		}, "flash.db is not the file that was opened"},
		{"flash.db removed", func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "flash.db")))
		}, "flash.db is not the file that was opened"},
		{"log removed", func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "wal")))
		}, "it was moved, removed or replaced"},
		{"log segment removed", func(t *testing.T, dir string) {
			for _, name := range names(t, filepath.Join(dir, "wal")) {
				require.NoError(t, os.Remove(filepath.Join(dir, "wal", name)))
			}
		}, "it was moved, removed or replaced"},
		{"log segment replaced", func(t *testing.T, dir string) {
			for _, name := range names(t, filepath.Join(dir, "wal")) {
				name = filepath.Join(dir, "wal", name)
				copied(t, name, name+".new")
				require.NoError(t, os.Rename(name+".new", name))
			}
		}, "it was moved, removed or replaced"},
		{"log a symbolic link", func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(filepath.Join(dir, "wal"), dir+"-wal"))
			require.NoError(t, os.Symlink(dir+"-wal", filepath.Join(dir, "wal")))
		}, "wal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d.flash")
			p := openPlace(t, dir)
			p.puts(10)
			tt.do(t, dir)
			before := tree(t, dir)
			err := p.put()
			require.ErrorIs(t, err, flashdb.ErrReadOnly)
			require.ErrorContains(t, err, tt.says)
			require.ErrorIs(t, p.put(), flashdb.ErrReadOnly)
			p.reads()
			require.Equal(t, before, tree(t, dir))
			_ = p.db.Close()
			if strings.HasPrefix(tt.name, "flash.db") {
				require.Equal(t, before, tree(t, dir), "nobody knows whose the directory is")
			}
		})
	}
}

// TestStoreIsReplacedUnderItsOwner: a second owner of the same directory, by a new flash.db, shares
// its log with the first, which must notice.
func TestStoreIsReplacedUnderItsOwner(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename what is open")
	}
	dir := filepath.Join(t.TempDir(), "d.flash")
	old := openPlace(t, dir)
	old.puts(10)
	require.NoError(t, old.db.Checkpoint(context.Background()))
	b, err := os.ReadFile(filepath.Join(dir, "flash.db"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new"), b, 0o600))
	require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "flash.db")))

	db, err := flashdb.Open(dir, &flashdb.Options{CalibrateTime: -1})
	require.NoError(t, err)
	_, err = control.Serve(db, nil)
	require.NoError(t, err)
	c, err := db.Collection("c")
	require.NoError(t, err)
	next := &place{t: t, db: db, c: c, n: 10}
	next.puts(20)
	before := tree(t, dir)
	old.lost("flash.db is not the file that was opened")
	require.Equal(t, before, tree(t, dir))
	next.puts(5)
	require.NoError(t, next.db.Close())
	next.holds(dir)
}

// TestLinksPutThereLater: a symbolic link that comes after Open leads nowhere.
func TestLinksPutThereLater(t *testing.T) {
	ctx := context.Background()
	base := t.TempDir()
	dir, outside := filepath.Join(base, "d.flash"), filepath.Join(base, "outside")
	for _, inside := range []bool{false, true} {
		for _, link := range []string{"index", "index/c"} {
			require.NoError(t, os.RemoveAll(dir))
			p := openPlace(t, dir)
			p.puts(10)
			to := outside
			if inside {
				to = filepath.Join(dir, "within")
			}
			require.NoError(t, os.MkdirAll(filepath.Join(to, "c"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(to, "c", "gen-000009.ivf"), []byte("precious"), 0o600))
			require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(link)), 0o700))
			if inside {
				rel, err := filepath.Rel(filepath.Dir(filepath.Join(dir, link)), to)
				require.NoError(t, err)
				to = rel
			}
			if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
				t.Skipf("no symbolic links here: %v", err)
			}
			_, err := p.c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
			require.Error(t, err)
			p.reads()
			p.puts(1)
			_ = p.db.DropCollection(ctx, "c")
			_ = p.db.Close()
			if inside {
				to = filepath.Join(dir, "within")
			}
			require.Equal(t, []string{".", "c", "c/gen-000009.ivf 8"}, tree(t, to))
		}
	}
}

// TestSecondOpenSaysWho: in this process, it says so; in another, its pid, if owner.pid has one.
func TestSecondOpenSaysWho(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d.flash")
	p := openPlace(t, dir)
	p.puts(3)
	_, err := flashdb.Open(dir, nil)
	require.ErrorIs(t, err, flashdb.ErrLocked)
	require.ErrorContains(t, err, "this process has it open already")
	_, err = flashdb.Open(dir, &flashdb.Options{ReadOnly: true})
	require.ErrorContains(t, err, "this process has it open already")
	require.NoError(t, p.db.Close())

	r, err := flashdb.Open(dir, &flashdb.Options{ReadOnly: true})
	require.NoError(t, err)
	_, err = flashdb.Open(dir, nil)
	require.ErrorContains(t, err, "this process has it open already")
	require.NoError(t, r.Close())
	p.holds(dir)
}

// TestOpenSyncsTheDirectoriesItMakes: each directory that Open or Restore makes is durable once the
// one that holds it is synced.
func TestOpenSyncsTheDirectoriesItMakes(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "x", "y", "d.flash")
	var ops []string
	fsys := vfs.Faulty(vfs.OS(), func(op vfs.Op) error {
		if op.Kind == vfs.OpMkdirAll || op.Kind == vfs.OpSyncDir {
			ops = append(ops, op.String())
		}
		return nil
	})
	db, err := openOn(fsys, dir, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	sync := func(dir string) string { return vfs.Op{Kind: vfs.OpSyncDir, Path: dir}.String() }
	mkdir := func(dir string) string { return vfs.Op{Kind: vfs.OpMkdirAll, Path: dir}.String() }
	x, y := filepath.Join(base, "x"), filepath.Join(base, "x", "y")
	at := -1
	for _, want := range []string{mkdir(x), sync(base), mkdir(y), sync(x), mkdir(dir), sync(y), mkdir(filepath.Join(dir, "wal")), sync(dir)} {
		next := -1
		for i := at + 1; i < len(ops) && next < 0; i++ {
			if ops[i] == want {
				next = i
			}
		}
		require.Greater(t, next, at, "%s is missing or early in %q", want, ops)
		at = next
	}
}
