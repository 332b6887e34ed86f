package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) snapshotCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "snapshot DIR TARGET",
		Short: "Make a read-only copy of a database that many processes can read",
		Long: `Snapshot makes TARGET, a folder of a few files: one state of the database DIR, compacted. Commands
take it for their DIR as they take a database, and open it without a lock. So any number of
processes on any number of machines read it at a time, also from a read-only disk or from a file
system without locks. Nothing is ever written to it, and what would write is refused.

TARGET must not exist, or be empty. It gets its name when it is complete, and is never half
written. While it is made, it needs as much disk space as flash.db takes once more, and DIR the
same. Run ` + "`flashdb rebuild`" + ` before, so that it has an index of all rows.
` + "`flashdb check TARGET`" + ` reads it and compares the checksum of each file.`,
		Example: `  flashdb snapshot papers.flash papers-1.snap
  flashdb check papers-1.snap
  flashdb predict papers-1.snap papers --all --shard 2/8 --out links-2.jsonl`,
		Args: usage.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.snapshot(cmd.Context(), args[0], args[1])
		},
	}
}

// snapshot restores a backup to target while it is made.
func (a *app) snapshot(ctx context.Context, dir, target string) error {
	start := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := terminal.NewProgress(a.err)
	r, w := io.Pipe()
	var packed flashdb.BackupResult
	backedUp := make(chan error, 1)
	begin := func() {
		err := a.withReadableDB(ctx, dir, func(db database) (err error) {
			packed, err = db.Backup(ctx, w, &flashdb.BackupOptions{Progress: p.Update})
			return err
		})
		w.CloseWithError(err) // which the restore reads: EOF if it is nil
		backedUp <- err
	}
	in := &lateReader{r: r, begin: begin}
	res, err := flashdb.Restore(ctx, in, target, &flashdb.RestoreOptions{Name: "backup of " + show.Text(dir), Snapshot: true})
	r.CloseWithError(err)
	if in.begun {
		if why := <-backedUp; why != nil && (err == nil || errors.Is(err, why)) {
			err = why
		}
	}
	p.Clear()
	if err != nil {
		return err
	}
	a.reportLeftOut(packed)
	elapsed := time.Since(start)
	if a.json {
		return a.emit(struct {
			LSN     uint64   `json:"lsn"`
			Files   int      `json:"files"`
			Bytes   int64    `json:"bytes"`
			LeftOut []string `json:"left_out"`
			Seconds float64  `json:"seconds"`
		}{res.LSN, res.Files, res.Bytes, append([]string{}, packed.LeftOut...), elapsed.Seconds()})
	}
	_, err = fmt.Fprintf(a.out, "made %s, a snapshot of %s: %s, %s, up to write %s, %s\n", show.Text(target), show.Text(dir),
		show.Count(res.Files, "file"), show.Bytes(res.Bytes), show.Number(res.LSN), show.Duration(elapsed))
	return err
}

// A lateReader begins what writes to it when it is read for the first time. A bad target is
// refused before.
type lateReader struct {
	r     io.Reader
	begin func() // in a goroutine of its own
	begun bool
}

func (l *lateReader) Read(b []byte) (int, error) {
	if !l.begun {
		l.begun = true
		go l.begin()
	}
	return l.r.Read(b)
}
