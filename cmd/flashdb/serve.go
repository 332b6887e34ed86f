package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/prometheus"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/control"
)

func (a *app) serveCommand() *cobra.Command {
	var logFormat, drift, metrics string
	var schedule flashdb.RebuildSchedule
	var memory sizeFlag
	cmd := &cobra.Command{
		Use:   "serve DIR [--rebuild-every D] [--metrics HOST:PORT]",
		Short: "Hold a database open for the other commands, until interrupted",
		Long: `Serve holds a database open and answers the other commands through control.sock in its
directory. They find it by themselves: queries need not open the database each time, and a job
can rebuild it meanwhile. Serve ends on SIGINT and SIGTERM, and logs on stderr.

It is not a network server: only processes of the same user on this machine reach it. With
--metrics it also answers Prometheus at http://HOST:PORT/metrics. Whoever reaches that address
can read counts, sizes, times and the names of collections.`,
		Example: `  flashdb serve papers.flash &
  flashdb serve papers.flash --rebuild-every 24h --if-drift 5% --log json
  flashdb serve papers.flash --metrics 127.0.0.1:9187`,
		Args: usage.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := checkDuration("rebuild-every", cmd.Flags().Changed("rebuild-every"), schedule.Every); err != nil {
				return err
			}
			if drift != "" {
				if schedule.MinDrift, err = parseShare(drift); err != nil {
					return fmt.Errorf("--if-drift %q: %w", drift, err)
				}
			}
			logger, err := newLogger(logFormat, a.err)
			if err != nil {
				return err
			}
			return a.serve(cmd.Context(), args[0], metrics, flashdb.Options{MustExist: true, Rebuild: schedule, MemoryBytes: int64(memory), Logger: logger})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&logFormat, "log", "auto", "text, json, or auto: text on a terminal, else json")
	fs.DurationVar(&schedule.Every, "rebuild-every", 0, "rebuild every collection after this `time`, again and again")
	fs.StringVar(&drift, "if-drift", "", "rebuild only if this `share` of the rows is newer than the index or deleted, such as 5%")
	fs.StringVar(&metrics, "metrics", "", "answer scrapes of metrics at this `host:port`, such as 127.0.0.1:9187")
	memory.register(fs)
	completeWords(cmd, "log", "auto", "text", "json")
	return cmd
}

// newLogger returns a logger that writes to w.
func newLogger(format string, w io.Writer) (*slog.Logger, error) {
	if format == "auto" {
		format = "json"
		if terminal.Is(w) {
			format = "text"
		}
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, nil)), nil
	}
	return nil, fmt.Errorf("--log %q: use text, json or auto", format)
}

// listenForScrapes listens at an address that names its host: without one the whole network would
// be let in by a slip.
func listenForScrapes(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return nil, fmt.Errorf("--metrics %q: want HOST:PORT, such as 127.0.0.1:9187", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	return l, nil
}

func (a *app) serve(ctx context.Context, dir, metrics string, opts flashdb.Options) (err error) {
	db, err := flashdb.Open(dir, &opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := control.Serve(db, &control.Options{Logger: opts.Logger}); err != nil {
		return err
	}
	if metrics != "" {
		scrapes, err := listenForScrapes(metrics)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: prometheus.Handler(db), ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = server.Serve(scrapes) }() // until it is closed
		defer server.Close()
	}
	names, err := db.Collections(context.WithoutCancel(ctx)) // a signal ends what comes after it
	if err != nil {
		return err
	}
	socket := filepath.Join(dir, control.SocketName)
	if a.json {
		err = a.emit(struct {
			Dir         string   `json:"dir"`
			Socket      string   `json:"socket"`
			PID         int      `json:"pid"`
			Collections []string `json:"collections"`
		}{dir, socket, os.Getpid(), append([]string{}, names...)})
	} else {
		_, err = fmt.Fprintf(a.out, "serving %s through %s, process %d: %s (%s)\n", show.Text(dir), show.Text(socket), os.Getpid(),
			show.Count(len(names), "collection"), orDash(shownList(names, 8)))
	}
	if err != nil {
		return err
	}
	start := time.Now()
	<-ctx.Done()
	opts.Logger.Info("closing", "dir", dir, "served_seconds", math.Round(time.Since(start).Seconds()))
	return nil
}
