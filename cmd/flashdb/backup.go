package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/internal/output"
)

// stdStream names standard input or output where a file is wanted.
const stdStream = "-"

func (a *app) backupCommand() *cobra.Command {
	var opts flashdb.BackupOptions
	cmd := &cobra.Command{
		Use:   "backup DIR FILE",
		Short: "Write a whole database, as it is now, into one compressed file",
		Long: `Backup writes everything a database holds into one file, compressed with zstd and
checksummed. FILE appears, or is replaced, when the backup is complete; it is never half
written. FILE - is standard output. While it runs, a backup needs as much disk space in DIR as
flash.db takes, or none if the files of DIR are read-only.`,
		Example: `  flashdb backup papers.flash papers.zst
  flashdb restore --verify papers.zst
  flashdb backup papers.flash - | ssh elsewhere 'cat > papers.zst'`,
		Args: usage.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.backup(cmd.Context(), args[0], args[1], opts)
		},
	}
	cmd.Flags().BoolVar(&opts.WithoutIndex, "without-index", false, "leave the index out: smaller, and rebuilt after the restore")
	cmd.Flags().BoolVar(&opts.AllReleases, "all-releases", false, "also the staged releases and the former one (default the live one only)")
	return cmd
}

func (a *app) backup(ctx context.Context, dir, file string, opts flashdb.BackupOptions) error {
	if file == stdStream && terminal.Is(a.data()) {
		return errors.New("backup: standard output is a terminal: redirect it, or name a file")
	}
	var target output.Target
	if file != stdStream {
		var err error
		if target, err = output.Resolve(file, dir); err != nil {
			return err
		}
	}
	p := terminal.NewProgress(a.err)
	opts.Progress = p.Update
	var res flashdb.BackupResult
	err := a.withReadableDB(ctx, dir, func(db database) (err error) {
		write := func(w io.Writer) (err error) {
			res, err = db.Backup(ctx, w, &opts)
			return err
		}
		if file == stdStream {
			return write(a.data())
		}
		return target.Write(write)
	})
	p.Clear()
	if err != nil {
		return err
	}
	a.reportLeftOut(res)
	if file == stdStream {
		return nil
	}
	return a.printBackup(fmt.Sprintf("backed up %s to %s", show.Text(dir), show.Text(file)), res)
}

// reportLeftOut names the collections whose index is not in a backup.
func (a *app) reportLeftOut(res flashdb.BackupResult) {
	if len(res.LeftOut) > 0 {
		fmt.Fprintf(a.err, "flashdb: the index of %s is damaged or missing and was left out: `flashdb rebuild` repairs it\n", strings.Join(res.LeftOut, ", "))
	}
}

// withReadableDB runs fn on the database in dir, opened read-only where its files cannot be
// written.
func (a *app) withReadableDB(ctx context.Context, dir string, fn func(database) error) error {
	err := a.withDB(ctx, dir, flashdb.Options{ReadOnly: a.shared == nil && readOnlyFiles(dir)}, fn)
	if errors.Is(err, flashdb.ErrReadOnly) {
		return fmt.Errorf("%w: its files are read-only here", err)
	}
	return err
}

// readOnlyFiles tells whether a database can be read and not be written.
func readOnlyFiles(dir string) bool {
	name := filepath.Join(dir, "flash.db")
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return false // which the open says, and does not wait for
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err == nil {
		_ = f.Close()
	}
	return errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)
}

func (a *app) printBackup(what string, res flashdb.BackupResult) error {
	if a.json {
		return a.emit(struct {
			LSN     uint64   `json:"lsn"`
			Files   int      `json:"files"`
			Bytes   int64    `json:"bytes"`
			Packed  int64    `json:"packed_bytes"`
			LeftOut []string `json:"left_out"`
			Seconds float64  `json:"seconds"`
		}{res.LSN, res.Files, res.Bytes, res.Packed, append([]string{}, res.LeftOut...), res.Elapsed.Seconds()})
	}
	_, err := fmt.Fprintf(a.out, "%s: %s, %s packed to %s, up to write %s, %s\n", what,
		show.Count(res.Files, "file"), show.Bytes(res.Bytes), show.Bytes(res.Packed), show.Number(res.LSN), show.Duration(res.Elapsed))
	return err
}

func (a *app) restoreCommand() *cobra.Command {
	var verify bool
	var limit int64
	cmd := &cobra.Command{
		Use:   "restore FILE DIR | restore --verify FILE",
		Short: "Make a database from a backup, or verify one",
		Long: `Restore makes the database DIR from a backup. DIR must not exist, or be empty. Restore
verifies every checksum, unpacks the backup beside DIR, checks it as
` + "`flashdb check`" + ` does, and only then gives it the name DIR.

With --verify it does the same in the directory for temporary files (TMPDIR), which needs as
much disk space, and keeps nothing. FILE - is standard input.`,
		Example: `  flashdb restore papers.zst papers.flash
  flashdb restore --verify papers.zst`,
		Args: func(cmd *cobra.Command, given []string) error {
			if verify {
				return usage.Args(1, 1)(cmd, given)
			}
			return usage.Args(2, 2)(cmd, given)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return fmt.Errorf("restore: --max-bytes is %d, want a positive number", limit)
			}
			if verify {
				return a.restore(cmd.Context(), args[0], "", limit)
			}
			return a.restore(cmd.Context(), args[0], args[1], limit)
		},
	}
	cmd.Flags().BoolVar(&verify, "verify", false, "do all of it with FILE and keep nothing")
	cmd.Flags().Int64Var(&limit, "max-bytes", 0, "refuse a backup that unpacks to more (default 64 MiB and 1000 times its size)")
	return cmd
}

// restore restores file to dir, or only verifies it if dir is empty.
func (a *app) restore(ctx context.Context, file, dir string, limit int64) error {
	in := a.in
	if file != stdStream {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	p := terminal.NewProgress(a.err)
	opts := flashdb.RestoreOptions{
		Name:     file,
		MaxBytes: uint64(limit),
		Progress: p.Update,
	}
	var res flashdb.BackupResult
	var err error
	what := fmt.Sprintf("%s is whole", show.Text(file))
	if dir == "" {
		res, err = flashdb.VerifyBackup(ctx, in, &opts)
	} else {
		what = fmt.Sprintf("restored %s to %s", show.Text(file), show.Text(dir))
		res, err = flashdb.Restore(ctx, in, dir, &opts)
	}
	p.Clear()
	if err != nil {
		return err
	}
	return a.printBackup(what, res)
}
