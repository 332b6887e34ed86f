package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

// A repeatable is an error of a command that the same command continues.
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
			return "interrupted: give the same command again to continue"
		}
		return "interrupted"
	}
	text := oneLine(err)
	var file *fs.PathError
	if errors.As(err, &file) { // without the name of the system call
		text = strings.Replace(text, file.Error(), file.Path+": "+file.Err.Error(), 1)
	}
	text = withoutKinds(err, text)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		text = fullDisk(file) + ": make room and give the command again"
		if repeat {
			text += " to continue"
		}
		return text + "; what was stored before is safe"
	case errors.Is(err, fs.ErrPermission) && file != nil && unreadable(file.Path):
		return text + ": this user may not read it: run the command as its owner"
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission) && strings.HasPrefix(text, "open database "):
		return text + ": this command must write there; predict, search, get, stats, check, export and backup need not"
	}
	if hint := swapped(cmd, text); hint != "" {
		return hint
	}
	if hint := otherFile(cmd); hint != "" {
		return text + ": " + hint
	}
	return text
}

// withoutKinds leaves out of an error's text the words that programs tell kinds of errors apart by,
// and what is said twice.
func withoutKinds(err error, text string) string {
	if errors.Is(err, flashdb.ErrInvalid) {
		text = strings.Replace(text, flashdb.ErrInvalid.Error()+": ", "", 1)
	}
	text = strings.Replace(text, flashdb.ErrNotFound.Error()+": there is no such directory", "there is no such directory", 1)
	if before, after, ok := strings.Cut(text, flashdb.ErrLocked.Error()+": "); ok && strings.HasPrefix(before, "open database ") {
		database, _, _ := strings.Cut(before, ": open ")
		text = database + ": " + after
	}
	// predict in "c": node "a" not found in collection "c"
	parts := strings.Split(text, ": ")
	for i, call := range parts {
		_, name, ok := strings.Cut(call, ` in "`)
		if rest := strings.Join(parts[i+1:], ": "); ok && strings.Contains(rest, ` in collection "`+name) {
			return strings.Join(slices.Delete(parts, i, i+1), ": ")
		}
	}
	return text
}

// unreadable tells whether a file or a directory is there that this user may not read.
func unreadable(path string) bool {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return false // to open a pipe waits for its writer
	}
	if err == nil {
		var f *os.File
		if f, err = os.Open(path); err == nil {
			_ = f.Close() // nothing was read
		}
	}
	return errors.Is(err, fs.ErrPermission)
}

// fullDisk says where there is no room.
func fullDisk(file *fs.PathError) string {
	if file == nil {
		return "the disk is full"
	}
	return "the disk of " + show.Text(filepath.Dir(file.Path)) + " is full"
}

// swapped says how the arguments stand the right way round, if they do not. text is the error.
func swapped(cmd *cobra.Command, text string) string {
	names, args := usage.ArgumentNames(cmd), cmd.Flags().Args()
	if len(args) < 2 || len(names) < 1 {
		return ""
	}
	say := func(i, j int) string { // the command line with two arguments swapped
		right := slices.Clone(args)
		right[i], right[j] = right[j], right[i]
		for i, arg := range right {
			right[i] = show.Text(arg)
		}
		return fmt.Sprintf("say `%s %s`", cmd.CommandPath(), strings.Join(right, " "))
	}
	if cmd.Name() == "restore" && !exists(args[0]) && isRegular(args[1]) {
		return "the backup comes first: " + say(0, 1)
	}
	if len(names) < 2 || names[0] != "DIR" || names[1] != "COLLECTION" {
		return ""
	}
	at := slices.IndexFunc(args, isDatabase)
	if at > 0 {
		return "the database comes first: " + say(0, at)
	}
	// collection "a" not found; the database has c
	_, has, ok := strings.Cut(text, fmt.Sprintf("collection %q not found; the database has ", args[1]))
	if ok && at == 0 && len(args) > 2 && len(names) > 2 && slices.Contains(strings.Split(has, ", "), args[2]) {
		return fmt.Sprintf("COLLECTION comes before %s: %s", strings.TrimSuffix(names[2], "..."), say(1, 2))
	}
	return ""
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
	if isRegular(args[0]) && len(names) > 0 && names[0] == "DIR" && isCompressed(args[0]) {
		return "if it is a backup, `flashdb restore` makes a database of it"
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// isDatabase tells whether a path looks like a database.
func isDatabase(path string) bool {
	return exists(filepath.Join(path, "flash.db")) || exists(filepath.Join(path, "snapshot.db"))
}
