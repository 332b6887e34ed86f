package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) checkpointCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "checkpoint DIR",
		Short: "Move what the log holds into the store",
		Long: `Checkpoint moves the changes that only the log holds into flash.db and drops the log
files that are no longer needed. It happens by itself soon after every change and when a
database is closed; this waits until it is done, so that flash.db holds all that was
acknowledged before. Reads and writes go on meanwhile.`,
		Example: `  flashdb checkpoint papers.flash`,
		Args:    usage.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.checkpoint(cmd.Context(), args[0])
		},
	}
}

func (a *app) checkpoint(ctx context.Context, dir string) error {
	return a.withDB(ctx, dir, flashdb.Options{}, func(db database) error {
		start := time.Now()
		if err := db.Checkpoint(ctx); err != nil {
			return err
		}
		elapsed := time.Since(start)
		s, err := db.Stats(ctx)
		if err != nil {
			return err
		}
		if a.json {
			return a.emit(struct {
				Applied uint64  `json:"applied_lsn"`
				WAL     int64   `json:"wal_bytes"`
				Seconds float64 `json:"seconds"`
			}{s.AppliedLSN, s.Disk.WAL, elapsed.Seconds()})
		}
		_, err = fmt.Fprintf(a.out, "checkpointed %s in %s: up to write %s in the store, log %s\n",
			show.Text(dir), show.Duration(elapsed), show.Number(s.AppliedLSN), show.Bytes(s.Disk.WAL))
		return err
	})
}
