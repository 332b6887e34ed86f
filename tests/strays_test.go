//go:build unix

package tests

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/vfs"
)

// strayKinds make what may be found under a name after a power loss, or put there by another
// program.
var strayKinds = []struct {
	name string
	make func(t *testing.T, path, outside string)
}{
	{"file", func(t *testing.T, path, _ string) { writeStray(t, path, "foreign") }},
	{"empty file", func(t *testing.T, path, _ string) { writeStray(t, path, "") }},
	{"empty directory", func(t *testing.T, path, _ string) { require.NoError(t, os.Mkdir(path, 0o700)) }},
	{"directory", func(t *testing.T, path, _ string) {
		require.NoError(t, os.MkdirAll(filepath.Join(path, "sub"), 0o700))
		writeStray(t, filepath.Join(path, "sub", "kept"), "foreign")
		writeStray(t, filepath.Join(path, "gen-000001.ivf"), "foreign")
	}},
	{"link to a directory", func(t *testing.T, path, outside string) { require.NoError(t, os.Symlink(outside, path)) }},
	{"link to a file", func(t *testing.T, path, outside string) {
		require.NoError(t, os.Symlink(filepath.Join(outside, "gen-000001.ivf"), path))
	}},
	{"dangling link", func(t *testing.T, path, outside string) {
		require.NoError(t, os.Symlink(filepath.Join(outside, "none"), path))
	}},
	{"named pipe", func(t *testing.T, path, _ string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) }},
	{"socket", func(t *testing.T, path, _ string) {
		work, err := os.Getwd() // the name of a socket may not be long
		require.NoError(t, err)
		t.Chdir(filepath.Dir(path))
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Base(path), Net: "unix"})
		require.NoError(t, err)
		l.SetUnlinkOnClose(false)
		require.NoError(t, l.Close())
		t.Chdir(work)
	}},
}

func writeStray(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// strayPlaces are names in the directory of a database. What is ours there is a regular file, and
// may go.
var strayPlaces = []struct {
	name string
	ours bool
}{
	{"index", false},
	{"index/.DS_Store", false},
	{"index/papers", false},
	{"index/dropped", false},
	{"index/papers/.nfs0001", false},
	{"index/papers/notes.ivf", false},
	{"index/papers/gen-000001.ivf", true}, // the served one
	{"index/papers/gen-000002.ivf", true},
	{"index/papers/gen-000002.ivf.tmp", true},
	{"index/papers/gen-000002.ivf.tmp.rows.tmp", true},
	{"index/dropped/.nfs0001", false},
	{"index/dropped/gen-000003.ivf", true},
	{"backup-1.tmp", false},
	{"backup-0badcafe.tmp", true},
	{"flash.db.compact", true},
	{"control.sock", false},
	{"README", false},
	{"wal/notes", false},
}

// TestStrayEntriesStopNothing puts an entry of every kind at every place: the database opens,
// answers as before, takes writes, and leaves alone what is not its own. Strays names it.
func TestStrayEntriesStopNothing(t *testing.T) {
	im := newImage(t, 200, 31)
	count := 0
	for _, place := range strayPlaces {
		for _, kind := range some(strayKinds) {
			if strings.Contains(kind.name, "link") && !strings.HasPrefix(place.name, "index/") && !strings.HasPrefix(place.name, "wal/") {
				continue // refused: see TestSymlinksAreRefused
			}
			count++
			t.Run(place.name+"/"+kind.name, func(t *testing.T) {
				s := strayTrial{t: t, dir: filepath.Join(t.TempDir(), "d.flash"), im: &im, outside: t.TempDir()}
				writeStray(t, filepath.Join(s.outside, "gen-000001.ivf"), "precious")
				im.write(t, s.dir, "", nil)
				s.path = filepath.Join(s.dir, filepath.FromSlash(place.name))
				require.NoError(t, os.RemoveAll(s.path))
				require.NoError(t, os.MkdirAll(filepath.Dir(s.path), 0o700))
				kind.make(t, s.path, s.outside)
				regular := strings.HasSuffix(kind.name, "file") && !strings.Contains(kind.name, "link")
				s.foreign = !(place.ours && regular) &&
					!(place.name == "index" && kind.name == "empty directory") &&
					!(place.name == "index/papers" && kind.name == "empty directory") &&
					!(place.name == "index/dropped" && kind.name == "empty directory") &&
					!(place.name == "control.sock" && kind.name == "socket")
				s.run(place.name)
			})
		}
	}
	attempts.Count(t, count, "entries")
}

type strayTrial struct {
	t                  *testing.T
	im                 *image
	dir, path, outside string
	foreign            bool // nothing of it is flashdb's
}

func (s *strayTrial) run(place string) {
	t, ctx := s.t, context.Background()
	before := listing(t, s.path)
	var log bytes.Buffer
	opts := &flashdb.Options{MustExist: true, CalibrateTime: -1, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	db, err := openOn(vfs.Unsynced(vfs.OS()), s.dir, opts)
	require.NoError(t, err)
	got, err := answers(db)
	require.NoError(t, err)
	require.Equal(t, s.im.whole, got)

	findings, err := db.Check(ctx)
	require.NoError(t, err)
	for _, f := range findings {
		require.Contains(t, f, "rebuild", "the index is missing at most")
	}
	strays, err := db.Strays(ctx)
	require.NoError(t, err)
	named := strings.Contains(strings.Join(strays, "\n"), s.path)
	// The log has its own directory, where it passes over other names.
	require.Equal(t, s.foreign && !strings.HasPrefix(place, "wal/"), named, "%q", strays)
	require.Equal(t, named, strings.Contains(log.String(), "left alone") && strings.Contains(log.String(), s.path), log.String())

	c, err := db.Collection("papers")
	require.NoError(t, err)
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "new", Embedding: make([]float32, 8)}))
	res, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	if err != nil {
		require.ErrorContains(t, err, s.path)
		require.ErrorContains(t, err, "move it away")
	} else {
		require.True(t, res.Built)
		hits, err := c.Predict(ctx, "new", 3, nil)
		require.NoError(t, err)
		require.Equal(t, res.Generation, hits.Stats.Generation)
	}
	if _, err = db.Compact(ctx, nil); err != nil {
		require.Equal(t, "flash.db.compact", place)
		require.ErrorContains(t, err, "move it away")
		require.NotContains(t, err.Error(), "\n")
	}
	_, err = db.Backup(ctx, &bytes.Buffer{}, nil)
	require.NoError(t, err)
	require.NoError(t, db.DropCollection(ctx, "papers"))
	require.NoError(t, db.Close())

	db, err = openOn(vfs.Unsynced(vfs.OS()), s.dir, opts)
	require.NoError(t, err)
	names, err := db.Collections(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"users"}, names)
	require.NoError(t, db.Close())
	if s.foreign {
		require.Equal(t, before, listing(t, s.path), "what is foreign stays")
	}
	content, err := os.ReadFile(filepath.Join(s.outside, "gen-000001.ivf"))
	require.NoError(t, err)
	require.Equal(t, "precious", string(content))
	require.NoFileExists(t, filepath.Join(s.outside, "none"))
}

// listing describes an entry and all that is in it. Files of a generation go with the folder of
// their collection.
func listing(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		if filepath.Base(path) == "gen-000001.ivf" && d.Type().IsRegular() && filepath.Base(filepath.Dir(filepath.Dir(path))) == "index" {
			return nil
		}
		fmt.Fprintln(&b, path, d.Type())
		if d.Type().IsRegular() {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			fmt.Fprintf(&b, "%q\n", content)
		}
		return nil
	}))
	return b.String()
}

// TestUnreadableIndexFolders makes every look at the index directory fail, as for another user's
// folder.
func TestUnreadableIndexFolders(t *testing.T) {
	im := newImage(t, 200, 32)
	for _, place := range []string{"index", "index/papers", "index/papers/gen-000001.ivf"} {
		t.Run(place, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d.flash")
			im.write(t, dir, "", nil)
			bad := filepath.Join(dir, filepath.FromSlash(place))
			db, err := openOn(denied{path: bad}.fs(), dir, nil)
			require.NoError(t, err)
			got, err := answers(db)
			require.NoError(t, err)
			require.Equal(t, im.whole, got)
			findings, err := db.Check(context.Background())
			require.NoError(t, err)
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], os.ErrPermission.Error())
			strays, err := db.Strays(context.Background())
			require.NoError(t, err)
			require.NotEmpty(t, strays)
			assert.Contains(t, strays[0], os.ErrPermission.Error())
			c, err := db.Collection("papers")
			require.NoError(t, err)
			require.NoError(t, c.Upsert(context.Background(), flashdb.Node{Key: "new", Embedding: make([]float32, 8)}))
			require.NoError(t, db.DropCollection(context.Background(), "papers"))
			require.NoError(t, db.Close())
		})
	}
}

// denied is a path that the process may not look at.
type denied struct{ path string }

func (d denied) fs() vfs.FS {
	return vfs.Faulty(vfs.OS(), func(op vfs.Op) error {
		if op.Path == d.path || strings.HasPrefix(op.Path, d.path+string(filepath.Separator)) {
			return &os.PathError{Op: op.Kind.String(), Path: op.Path, Err: os.ErrPermission}
		}
		return nil
	})
}
