package control

import (
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

func TestSocketLivesAsLongAsItsOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	socket := filepath.Join(dir, SocketName)
	for range 2 {
		db, err := flashdb.Open(dir, nil)
		require.NoError(t, err)
		_, err = Serve(db, nil)
		require.NoError(t, err)
		info, err := os.Lstat(socket)
		require.NoError(t, err)
		if runtime.GOOS != "windows" {
			assert.Equal(t, fs.ModeSocket|0o600, info.Mode())
		}
		c, err := Dial(dir)
		require.NoError(t, err)
		pid, err := c.Owner(context.Background())
		require.NoError(t, err)
		assert.Equal(t, os.Getpid(), pid)
		require.NoError(t, c.Close())
		require.NoError(t, db.Close(), "which closes the server")
		assert.NoFileExists(t, socket)
		_, err = Dial(dir)
		require.ErrorIs(t, err, ErrNoOwner)
	}
}

func TestServerThatIsClosedAlone(t *testing.T) {
	ctx := context.Background()
	db := open(t)
	for range 2 {
		s, err := Serve(db, nil)
		require.NoError(t, err)
		_, err = Serve(db, nil)
		require.ErrorIs(t, err, flashdb.ErrExists, "it would take the socket of the first")
		c, err := Dial(db.Dir())
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		assert.NoFileExists(t, filepath.Join(db.Dir(), SocketName))
		_, err = c.Owner(ctx)
		require.ErrorIs(t, err, ErrNoOwner)
		require.NoError(t, c.Close())
		require.NoError(t, db.Checkpoint(ctx), "the database is open")
	}
}

func TestServeThatFails(t *testing.T) {
	db := open(t)
	socket := filepath.Join(db.Dir(), SocketName)
	require.NoError(t, os.WriteFile(socket, nil, 0o600))
	_, err := Serve(db, nil)
	require.ErrorContains(t, err, "control.sock is not a socket")
	require.NoError(t, os.Remove(socket))
	s, err := Serve(db, nil)
	require.NoError(t, err, "the failed one let go of everything")
	require.NoError(t, s.Close())

	if runtime.GOOS != "windows" { // which does not rename what is open
		moved := db.Dir() + ".moved"
		require.NoError(t, os.Rename(db.Dir(), moved))
		require.NoError(t, os.Mkdir(db.Dir(), 0o700))
		_, err = Serve(db, nil)
		require.ErrorIs(t, err, flashdb.ErrReadOnly)
		assert.NoFileExists(t, socket)
		require.NoError(t, os.Remove(db.Dir()))
		require.NoError(t, os.Rename(moved, db.Dir()))
	}
	require.NoError(t, db.Close())
	_, err = Serve(db, nil)
	require.ErrorIs(t, err, flashdb.ErrClosed)

	reader, err := flashdb.Open(db.Dir(), &flashdb.Options{ReadOnly: true})
	require.NoError(t, err)
	_, err = Serve(reader, nil)
	require.ErrorIs(t, err, flashdb.ErrReadOnly)
	require.NoError(t, reader.Close())
}

// A directory that was moved takes its socket along, and the one that another owner made in its
// place stays.
func TestMovedDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename what is open")
	}
	old, _ := openServed(t)
	dir, moved := old.Dir(), old.Dir()+".moved"
	require.NoError(t, os.Rename(dir, moved))
	next, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	_, err = Serve(next, nil)
	require.NoError(t, err)
	require.ErrorIs(t, old.Close(), flashdb.ErrReadOnly)
	assert.FileExists(t, filepath.Join(moved, SocketName), "nothing is changed there")
	c, err := Dial(dir)
	require.NoError(t, err, "the other's socket is left alone")
	require.NoError(t, c.Close())
	require.NoError(t, next.Close())
	assert.NoFileExists(t, filepath.Join(dir, SocketName))
}

func TestDeadOwnersSocketIsSwept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	l, err := net.Listen("unix", filepath.Join(dir, SocketName))
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())

	held, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	assert.NoFileExists(t, filepath.Join(dir, SocketName), "even without Serve")

	// A second Open does not own the directory, and leaves the socket alone.
	_, err = Serve(held, nil)
	require.NoError(t, err)
	_, err = flashdb.Open(dir, nil)
	require.ErrorIs(t, err, flashdb.ErrLocked)
	assert.FileExists(t, filepath.Join(dir, SocketName))
	require.NoError(t, held.Close())
}

// TestCloseEndsARebuild closes the database, or the server alone, while a client waits for a
// rebuild that reports its progress.
func TestCloseEndsARebuild(t *testing.T) {
	ctx := context.Background()
	for _, all := range []bool{true, false} {
		t.Run(strconv.FormatBool(all), func(t *testing.T) {
			db := open(t)
			s, err := Serve(db, nil)
			require.NoError(t, err)
			client, err := Dial(db.Dir())
			require.NoError(t, err)
			defer client.Close()
			c, err := client.CreateCollection(ctx, "c", flashdb.Schema{Dim: 2})
			require.NoError(t, err)
			nodes := make([]flashdb.Node, 3000)
			for i := range nodes {
				nodes[i] = flashdb.Node{Key: string(rune('a' + i)), Embedding: []float32{float32(i), 1}}
			}
			require.NoError(t, c.Upsert(ctx, nodes...))
			closed := make(chan error, 1)
			once := false
			res, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Progress: func(string, int64, int64) {
				if once {
					return
				}
				once = true
				if all {
					go func() { closed <- db.Close() }()
				} else {
					go func() { closed <- s.Close() }()
				}
			}})
			assert.True(t, once, "there was progress")
			if err == nil {
				assert.True(t, res.Built, "it was done before Close")
			} else {
				assert.ErrorIs(t, err, flashdb.ErrClosed)
			}
			require.NoError(t, <-closed)
			assert.NoFileExists(t, filepath.Join(db.Dir(), SocketName))
		})
	}
}
