package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPlainError(t *testing.T) {
	ended, end := context.WithCancel(context.Background())
	end()
	ctx := context.Background()
	full := &fs.PathError{Op: "write", Path: filepath.Join("far", "x.zst"), Err: syscall.ENOSPC}
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{ended, context.Canceled, "interrupted"},
		{ended, goesOn(fmt.Errorf("import: %w", context.Canceled)), "interrupted: the same command again goes on where it was"},
		{ended, errors.New("broken"), "broken"},
		{ctx, &fs.PathError{Op: "stat", Path: "x.npy", Err: errors.New("no such file")}, "x.npy: no such file"},
		{ctx, fmt.Errorf("back up db: %w", full), "the disk of far is full: make room and give the command again; what was stored before is safe"},
		{ctx, goesOn(full), "the disk of far is full: make room and give the command again, which goes on where it was; what was stored before is safe"},
		{ctx, syscall.ENOSPC, "the disk is full: make room and give the command again; what was stored before is safe"},
		{ctx, fmt.Errorf("open database db: %w", &fs.PathError{Op: "open", Path: "flash.db", Err: syscall.EROFS}), "open database db: flash.db: read-only file system: this command must write there; predict, search, get, stats, check, export and backup need not"},
	} {
		assert.Equal(t, c.want, plainError(c.ctx, &cobra.Command{Use: "x"}, c.err))
	}
	require.NoError(t, goesOn(nil))
}

func TestSwappedArguments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	code, _, errOut := runLine("create", dir, "c", "--dim", "2")
	require.Zero(t, code, errOut)
	code, _, errOut = runLine("get", "c", dir, "key")
	assert.Equal(t, exitFailed, code)
	assert.Equal(t, "flashdb: open database c: not found: there is no such directory: `flashdb create` makes a database: the database comes first: say "+dir+" c\n", errOut)
	_, _, errOut = runLine("get", dir, "c", "key")
	assert.NotContains(t, errOut, "comes first")
}

// TestBackupOfReadOnlyFiles needs no room beside what it backs up, nor leave to write there.
func TestBackupOfReadOnlyFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	code, _, errOut := runLine("create", dir, "c", "--dim", "2")
	require.Zero(t, code, errOut)
	assert.False(t, readOnlyFiles(dir))
	assert.False(t, readOnlyFiles(filepath.Join(dir, "nothing")))
	irregular := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(irregular, "flash.db"), 0o500))
	assert.False(t, readOnlyFiles(irregular), "what is no regular file is not opened")
	require.NoError(t, os.Chmod(filepath.Join(dir, "flash.db"), 0o400))
	if !readOnlyFiles(dir) {
		t.Skip("this user may write to every file")
	}
	code, _, errOut = runLine("backup", dir, filepath.Join(t.TempDir(), "db.zst"))
	require.Zero(t, code, errOut)
}
