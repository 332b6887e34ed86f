package flashdb_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

func TestBeforeClose(t *testing.T) {
	db, err := flashdb.Open(filepath.Join(t.TempDir(), "db"), nil)
	require.NoError(t, err)
	errStuck := errors.New("stuck")
	began, end := make(chan struct{}), make(chan struct{})
	calls := 0
	_, err = db.BeforeClose(func() error {
		calls++
		close(began)
		<-end
		_, err := db.BeforeClose(func() error { panic("too late") })
		assert.ErrorIs(t, err, flashdb.ErrClosed)
		_, err = db.CreateCollection("c", flashdb.Schema{Dim: 1})
		assert.NoError(t, err, "calls are answered meanwhile")
		_, err = flashdb.Open(db.Dir(), nil)
		assert.ErrorIs(t, err, flashdb.ErrLocked)
		root, err := db.OpenRoot()
		assert.NoError(t, err)
		return errors.Join(errStuck, root.Close())
	})
	require.NoError(t, err)
	forget, err := db.BeforeClose(func() error { panic("taken back") })
	require.NoError(t, err)
	forget()

	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- db.Close() }()
	<-began
	go func() { second <- db.Close() }()
	select {
	case err := <-second:
		t.Fatalf("a second Close does not wait for the first: %v", err)
	default:
	}
	close(end)
	closed := []error{<-first, <-second}
	assert.Equal(t, 1, calls)
	stuck := 0
	for _, err := range closed {
		if errors.Is(err, errStuck) {
			stuck++
		}
	}
	assert.Equal(t, 1, stuck, "%v", closed)
	_, err = db.OpenRoot()
	require.ErrorIs(t, err, flashdb.ErrClosed)
}

func TestOpenRoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	root, err := db.OpenRoot()
	require.NoError(t, err)
	_, err = root.Lstat("flash.db")
	require.NoError(t, err)
	require.NoError(t, root.Close())
	_, err = db.CreateCollection("c", flashdb.Schema{Dim: 1})
	require.NoError(t, err)
	if runtime.GOOS != "windows" { // Windows does not rename an open directory
		require.NoError(t, os.Rename(dir, dir+".moved"))
		_, err = db.OpenRoot()
		require.ErrorIs(t, err, flashdb.ErrReadOnly)
		require.NoError(t, os.Rename(dir+".moved", dir))
	}
	_ = db.Close()

	db, err = flashdb.Open(dir, &flashdb.Options{ReadOnly: true})
	require.NoError(t, err)
	_, err = db.OpenRoot()
	require.ErrorIs(t, err, flashdb.ErrReadOnly)
	require.NoError(t, db.Close())
}
