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

	"github.com/flashdb/flashdb"
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
		{ended, goesOn(fmt.Errorf("import: %w", context.Canceled)), "interrupted: give the same command again to continue"},
		{ended, errors.New("broken"), "broken"},
		{ctx, &fs.PathError{Op: "stat", Path: "x.npy", Err: errors.New("no such file")}, "x.npy: no such file"},
		{ctx, fmt.Errorf("back up db: %w", full), "the disk of far is full: make room and give the command again; what was stored before is safe"},
		{ctx, goesOn(full), "the disk of far is full: make room and give the command again to continue; what was stored before is safe"},
		{ctx, syscall.ENOSPC, "the disk is full: make room and give the command again; what was stored before is safe"},
		{ctx, fmt.Errorf("search in %q: %w: k is 0", "c", flashdb.ErrInvalid), `search in "c": k is 0`},
		{ctx, errors.New(`score in "c": node "a" not found in collection "c"`), `node "a" not found in collection "c"`},
		{ctx, errors.New(`a.tsv: score in "c": node "a" not found in collection "c"`), `a.tsv: node "a" not found in collection "c"`},
		{ctx, errors.New(`link in "c": node "a" not found in collection "d"`), `link in "c": node "a" not found in collection "d"`},
		{ctx, fmt.Errorf("open database db: open /x/db/flash.db: %w: process 7 has it open", flashdb.ErrLocked), "open database db: process 7 has it open"},
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
	file := filepath.Join(t.TempDir(), "e.tsv")
	require.NoError(t, os.WriteFile(file, []byte("a\tb\n"), 0o600))
	backup := filepath.Join(t.TempDir(), "b.zst")
	code, _, errOut = runLine("backup", dir, backup)
	require.Zero(t, code, errOut)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"get", "c", dir, "key"}, "the database comes first: say `flashdb get " + dir + " c key`"},
		{[]string{"link", file, "c", dir}, "the database comes first: say `flashdb link " + dir + " c " + file + "`"},
		{[]string{"get", dir, "key", "c"}, "COLLECTION comes before KEY: say `flashdb get " + dir + " c key`"},
		{[]string{"restore", "new", backup}, "the backup comes first: say `flashdb restore " + backup + " new`"},
		{[]string{"get", dir, "c", "key"}, "node \"key\" not found in collection \"c\": `flashdb keys` finds keys"},
		{[]string{"get", dir, "d", "key"}, "collection \"d\" not found; the database has c"},
	} {
		code, _, errOut = runLine(c.args...)
		assert.Equal(t, exitFailed, code)
		assert.Equal(t, "flashdb: "+c.want+"\n", errOut)
	}
}

// TestUnreadable needs a user who may not read every file.
func TestUnreadable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	code, _, errOut := runLine("create", dir, "c", "--dim", "2")
	require.Zero(t, code, errOut)
	assert.False(t, unreadable(dir))
	assert.False(t, unreadable(filepath.Join(dir, "nothing")))
	require.NoError(t, os.Chmod(filepath.Join(dir, "flash.db"), 0))
	if !unreadable(filepath.Join(dir, "flash.db")) {
		t.Skip("this user may read every file")
	}
	_, _, errOut = runLine("stats", dir)
	assert.Contains(t, errOut, "flash.db: permission denied: this user may not read it")
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
