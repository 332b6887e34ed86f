//go:build unix

package tests

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
	"github.com/flashdb/flashdb/internal/attempts"
)

// irregular are what may stand in the place of a file and is none.
var irregular = map[string]func(t *testing.T, path string){
	"named pipe": func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) },
	"socket": func(t *testing.T, path string) {
		t.Chdir(filepath.Dir(path)) // a short path
		l, err := net.Listen("unix", filepath.Base(path))
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
	},
	"directory": func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) },
	"device": func(t *testing.T, path string) {
		if err := syscall.Mknod(path, syscall.S_IFCHR|0o600, 1<<8|3); err != nil { // that of /dev/null
			t.Skipf("no devices here: %v", err)
		}
	},
}

// soon fails the test if fn blocks.
func soon(t *testing.T, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("it waits")
	}
}

// TestIrregularFiles puts what is no file into the place of each kind of file. Nothing waits for
// the other end of a pipe.
func TestIrregularFiles(t *testing.T) {
	ctx := context.Background()
	im := newImage(t, 300, 7)
	const generation = "index/papers/gen-000001.ivf"
	for kind, make := range irregular {
		for _, name := range []string{"flash.db", im.log, generation, "owner.pid", "backup-00000001.tmp", "control.sock"} {
			for _, readOnly := range []bool{true, false} {
				if kind == "socket" && name == "control.sock" {
					continue // as it should be
				}
				t.Run(kind+"/"+filepath.Base(name)+"/"+strconv.FormatBool(readOnly), func(t *testing.T) {
					attempts.Count(t, 1, "files")
					dir := filepath.Join(t.TempDir(), "d.flash")
					im.write(t, dir, "", nil)
					path := filepath.Join(dir, name)
					require.NoError(t, os.RemoveAll(path))
					make(t, path)
					soon(t, func() {
						db, err := flashdb.Open(dir, &flashdb.Options{ReadOnly: readOnly})
						switch {
						case name == "flash.db":
							require.ErrorIs(t, err, flashdb.ErrCorrupt)
							require.ErrorContains(t, err, "flash.db")
							require.ErrorContains(t, err, "not a regular file")
							return
						case name == im.log:
							require.ErrorContains(t, err, "not a regular file")
							require.ErrorContains(t, err, filepath.Base(im.log))
							return
						}
						require.NoError(t, err)
						if name == "control.sock" && !readOnly { // only who listens needs the name
							_, err = control.Serve(db, nil)
							require.ErrorContains(t, err, "is not a socket")
							require.NoError(t, db.Close())
							return
						}
						c, err := db.Collection("papers")
						require.NoError(t, err)
						res, err := c.Predict(ctx, "node1", 5, nil)
						require.NoError(t, err)
						require.Len(t, res.Hits, 5)
						if name == generation {
							require.Zero(t, res.Stats.Generation, "derived data: the answers come without it")
							findings, err := db.Check(ctx)
							require.NoError(t, err)
							require.Len(t, findings, 1)
							require.Contains(t, findings[0], "not a regular file")
						}
						require.NoError(t, db.Close())
					})
				})
			}
		}
	}
}

// TestOwnerIsOnlyTold: owner.pid says who has the database open, and whatever is in its place keeps
// nobody from opening it.
func TestOwnerIsOnlyTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d.flash")
	p := openPlace(t, dir)
	p.puts(3)
	require.NoError(t, p.db.Close())
	owner := filepath.Join(dir, "owner.pid")
	for _, tt := range []struct {
		name string
		make func(t *testing.T)
		says string
	}{
		{"none", func(*testing.T) {}, "another process has it open"},
		{"a pid", func(t *testing.T) { require.NoError(t, os.WriteFile(owner, []byte("4711\n"), 0o600)) }, "process 4711 has it open"},
		{"garbage", func(t *testing.T) { require.NoError(t, os.WriteFile(owner, []byte("\x1b[31mroot"), 0o600)) }, "another process has it open"},
		{"negative", func(t *testing.T) { require.NoError(t, os.WriteFile(owner, []byte("-1"), 0o600)) }, "another process has it open"},
		{"huge", func(t *testing.T) {
			f, err := os.Create(owner)
			require.NoError(t, err)
			require.NoError(t, f.Truncate(1<<40))
			require.NoError(t, f.Close())
		}, "another process has it open"},
		{"a pipe", func(t *testing.T) { require.NoError(t, syscall.Mkfifo(owner, 0o600)) }, "another process has it open"},
		{"a directory", func(t *testing.T) { require.NoError(t, os.MkdirAll(filepath.Join(owner, "x"), 0o700)) }, "another process has it open"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(owner))
			tt.make(t)
			soon(t, func() {
				locked, err := bolt.Open(filepath.Join(dir, "flash.db"), 0o600, nil) // as another process
				require.NoError(t, err)
				_, err = flashdb.Open(dir, nil)
				require.ErrorIs(t, err, flashdb.ErrLocked)
				require.ErrorContains(t, err, tt.says)
				require.NoError(t, locked.Close())
				p.holds(dir)
			})
		})
	}
}
