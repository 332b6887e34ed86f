package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

// A repeatable is an error of a command that goes on where it was when it is given again.
type repeatable struct{ err error }

func (r *repeatable) Error() string { return r.err.Error() }
func (r *repeatable) Unwrap() error { return r.err }

// goesOn marks an error, if there is one.
func goesOn(err error) error {
	if err == nil {
		return nil
	}
	return &repeatable{err}
}

// plainError says why a command failed to somebody who knows commands and files, and not this
// program's source: what was wrong, where, and what to do.
func plainError(ctx context.Context, cmd *cobra.Command, err error) string {
	var again *repeatable
	repeat := errors.As(err, &again)
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
		if repeat {
			return "interrupted: the same command again goes on where it was"
		}
		return "interrupted"
	}
	text := oneLine(err)
	var file *fs.PathError
	if errors.As(err, &file) { // without the name of the system call
		text = strings.Replace(text, file.Error(), file.Path+": "+file.Err.Error(), 1)
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		text = fullDisk(file) + ": make room and give the command again"
		if repeat {
			text += ", which goes on where it was"
		}
		return text + "; what was stored before is safe"
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission) && strings.HasPrefix(text, "open database "):
		return text + ": this command must write there; predict, search, get, stats, check, export and backup need not"
	}
	for _, hint := range []string{swapped(cmd), otherFile(cmd)} {
		if hint != "" {
			return text + ": " + hint
		}
	}
	return text
}

// fullDisk says where there is no room.
func fullDisk(file *fs.PathError) string {
	if file == nil {
		return "the disk is full"
	}
	return "the disk of " + show.Text(filepath.Dir(file.Path)) + " is full"
}

// swapped tells whether DIR and COLLECTION stand the wrong way round.
func swapped(cmd *cobra.Command) string {
	names := usage.ArgumentNames(cmd)
	args := cmd.Flags().Args()
	if len(args) < 2 || len(names) < 2 || names[0] != "DIR" || names[1] != "COLLECTION" || isDatabase(args[0]) || !isDatabase(args[1]) {
		return ""
	}
	return fmt.Sprintf("the database comes first: say %s %s", show.Text(args[1]), show.Text(args[0]))
}

// otherFile tells whether a backup stands where a database is wanted, or a database where a backup
// is.
func otherFile(cmd *cobra.Command) string {
	args := cmd.Flags().Args()
	if len(args) == 0 {
		return ""
	}
	if cmd.Name() == "restore" && isDatabase(args[0]) {
		return show.Text(args[0]) + " is a database, and a backup is wanted, which `flashdb backup` writes"
	}
	names := usage.ArgumentNames(cmd)
	info, err := os.Stat(args[0])
	if err == nil && info.Mode().IsRegular() && len(names) > 0 && names[0] == "DIR" && isCompressed(args[0]) {
		return "if it is a backup, `flashdb restore` makes a database of it"
	}
	return ""
}

// isDatabase tells whether a path looks like a database.
func isDatabase(path string) bool {
	_, err := os.Stat(filepath.Join(path, "flash.db"))
	return err == nil
}
