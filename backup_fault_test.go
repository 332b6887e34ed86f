package flashdb_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/vfs"
)

var errInjected = errors.New("injected failure")

// A breaker makes the n-th operation after arm fail, once.
type breaker struct {
	n      atomic.Int64 // operations until the failure; 0 when not armed
	failed atomic.Pointer[vfs.Op]
}

func (b *breaker) arm(n int64) {
	b.failed.Store(nil)
	b.n.Store(n)
}

// tripped disarms the breaker and returns what failed, or nil.
func (b *breaker) tripped() *vfs.Op {
	b.n.Store(0)
	return b.failed.Load()
}

func (b *breaker) inject(op vfs.Op) error {
	if b.n.Load() > 0 && b.n.Add(-1) == 0 {
		b.failed.Store(&op)
		return errInjected
	}
	return nil
}

// TestEveryFailureOfABackup fails each operation of a backup once. The backup leaves no file
// behind, the database still works, and the next backup succeeds.
func TestEveryFailureOfABackup(t *testing.T) {
	ctx := context.Background()
	d := &testDB{t: t, dir: filepath.Join(t.TempDir(), "db")}
	d.open()
	fill(t, d)
	before := contentsOf(t, d.DB)
	require.NoError(t, d.Close())
	var b breaker
	var err error
	d.DB, err = flashdb.OpenOn(vfs.Faulty(vfs.OS(), b.inject), d.dir, nil)
	require.NoError(t, err)
	t.Cleanup(d.checkAndClose)
	var stream bytes.Buffer
	for n := int64(1); ; n++ {
		stream.Reset()
		b.arm(n)
		res, err := d.Backup(ctx, &stream, nil)
		op := b.tripped()
		if op == nil {
			require.NoError(t, err)
			require.Greater(t, n, int64(20))
			attempts.Count(t, int(n-1), "operations")
			break
		}
		if err == nil {
			require.Equal(t, []string{"papers"}, res.LeftOut, "failed at %s", op)
			require.Equal(t, before, contentsOf(t, restoreDB(t, stream.Bytes()).DB), "failed at %s", op)
		} else {
			require.ErrorIs(t, err, errInjected, "failed at %s", op)
		}
		if op.Kind == vfs.OpRemove {
			require.NoError(t, os.Remove(op.Path))
		} else {
			requireNames(t, d.dir, "flash.db", "index", "owner.pid", "wal")
		}
	}
	require.Equal(t, before, contentsOf(t, restoreDB(t, stream.Bytes()).DB))
	require.Equal(t, before, contentsOf(t, d.DB))
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, "backup-0badcafe.tmp"), []byte("of a dead backup"), 0o600))
	d.reopen()
	requireNames(t, d.dir, "flash.db", "index", "owner.pid", "wal")
}

// TestEveryFailureOfARestore fails each operation of a restore once. The restore leaves nothing
// behind, and the next one succeeds.
func TestEveryFailureOfARestore(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	fill(t, d)
	stream := backUp(t, d.DB, nil)
	before := contentsOf(t, d.DB)
	parent := t.TempDir()
	dir := filepath.Join(parent, "db")
	for n := int64(1); ; n++ {
		var b breaker
		fsys := vfs.Faulty(vfs.OS(), b.inject)
		b.arm(n)
		_, err := flashdb.RestoreOn(fsys, ctx, bytes.NewReader(stream), dir, nil)
		op := b.tripped()
		if op == nil {
			require.NoError(t, err)
			require.Greater(t, n, int64(20))
			attempts.Count(t, int(n-1), "operations")
			break
		}
		if err == nil { // opening succeeds although the search for strays failed
			require.Contains(t, []vfs.Kind{vfs.OpReadDir, vfs.OpType}, op.Kind)
			again := &testDB{t: t, dir: dir}
			again.open()
			require.Equal(t, before, contentsOf(t, again.DB), "failed at %s", op)
			again.checkAndClose()
			require.NoError(t, os.RemoveAll(dir))
			continue
		}
		require.ErrorContains(t, err, errInjected.Error(), "failed at %s", op) // Check may have reported it as a finding
		if !strings.HasPrefix(op.Kind.String(), "remove") {
			requireNames(t, parent)
		}
		require.NoError(t, os.RemoveAll(dir))
	}
	requireNames(t, parent, "db")
	restored := &testDB{t: t, dir: dir}
	restored.open()
	require.Equal(t, before, contentsOf(t, restored.DB))
	restored.checkAndClose()
}
