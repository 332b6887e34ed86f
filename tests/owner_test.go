package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestSecondProcess opens a database that this process has open in another one, which is told whose
// it is.
func TestSecondProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "test.flash")
	db := openDB(t, dir)
	defer checkAndClose(t, db)
	s := newSaga(t, dir, 1)
	s.run(0)
	require.Len(t, s.errors, 1)
	require.Contains(t, s.errors[0], flashdb.ErrLocked.Error())
	require.Contains(t, s.errors[0], fmt.Sprintf("process %d has it open", os.Getpid()))
}

// TestOwnerDied opens a database whose owner was killed: its lock went with it, and the file that
// named it misleads nobody.
func TestOwnerDied(t *testing.T) {
	s := newSaga(t, filepath.Join(t.TempDir(), "test.flash"), 1)
	s.life.Writes = 1 << 30 // it never ends by itself, however late the kill comes
	s.run(5)
	require.False(t, s.closed)
	require.FileExists(t, filepath.Join(s.life.Dir, "owner.pid"))
	s.verify()
	require.NoFileExists(t, filepath.Join(s.life.Dir, "owner.pid"))
}
