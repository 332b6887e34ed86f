// Command flashdb-remote copies collections of a flashdb database into an engine on other machines,
// and predicts over it. `flashdb remote` runs it where it is installed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand(openEngine).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "flashdb-remote:", err)
		os.Exit(exitCode(err))
	}
}

// exitCode is 2 for a wrong call and 1 for any other failure, as that of flashdb.
func exitCode(err error) int {
	var usage usageError
	if errors.As(err, &usage) || errors.Is(err, flashdb.ErrInvalid) {
		return 2
	}
	return 1
}

// usageError is an error in the arguments.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// program is what all commands share.
type program struct {
	open    func(ctx context.Context, url string) (remote.Engine, error)
	engine  string
	json    bool
	quiet   bool
	timeout time.Duration
	partial bool
}

// newCommand returns the command. open connects to an engine.
func newCommand(open func(ctx context.Context, url string) (remote.Engine, error)) *cobra.Command {
	p := &program{open: open}
	root := &cobra.Command{
		Use:   "flashdb-remote",
		Short: "Link prediction over OpenSearch or PostgreSQL",
		Long: `Copies collections of a flashdb database into an engine on other machines, and predicts over it.

The engine is named by --engine or the environment variable FLASHDB_ENGINE:

    http://host:9200,http://other:9200    OpenSearch with its k-NN plugin
    postgres://host:5432/database         PostgreSQL with pgvector

Passwords and API keys are never part of it. They are read from the environment or from files, as
docs/remote.md says. DIR is a small directory beside the program, for links and calibrations.`,
		SilenceUsage: true, SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q: flashdb-remote help lists them", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := root.PersistentFlags()
	flags.StringVar(&p.engine, "engine", "", "address of the engine (default $FLASHDB_ENGINE)")
	flags.BoolVar(&p.json, "json", false, "print JSON")
	flags.BoolVarP(&p.quiet, "quiet", "q", false, "print no progress")
	flags.DurationVar(&p.timeout, "timeout", 0, "how long one call of the engine may take (default 30s)")
	flags.BoolVar(&p.partial, "partial", false, "answer also while parts of the rows do not answer")
	root.AddCommand(p.push(), p.predict(), p.eval(), p.calibrate(), p.drop(), p.stats())
	return root
}

// exactly checks the number of arguments.
func exactly(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || (most >= 0 && len(args) > most) {
			return usageError{fmt.Errorf("want %s: flashdb-remote %s", names, cmd.Use)}
		}
		return nil
	}
}

// database opens the remote database in dir.
func (p *program) database(ctx context.Context, dir string) (*remote.DB, error) {
	address := p.engine
	if address == "" {
		address = os.Getenv("FLASHDB_ENGINE")
	}
	if address == "" {
		return nil, usageError{errors.New("no engine is named: use --engine or set FLASHDB_ENGINE")}
	}
	e, err := p.open(ctx, address)
	if err != nil {
		return nil, err
	}
	db, err := remote.Open(ctx, dir, e, &remote.Options{Timeout: p.timeout, Partial: p.partial})
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return db, nil
}

// collection opens a remote database and calls fn with one of its collections.
func (p *program) collection(ctx context.Context, dir, name string, fn func(*remote.Collection) error) error {
	db, err := p.database(ctx, dir)
	if err != nil {
		return err
	}
	c, err := db.Collection(ctx, name)
	if err == nil {
		err = fn(c)
	}
	return errors.Join(err, db.Close())
}

// progress prints a line on standard error at most twice a second, if that is a terminal.
func (p *program) progress() func(stage string, done, total int64) {
	info, err := os.Stderr.Stat()
	if p.quiet || err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	var last time.Time
	return func(stage string, done, total int64) {
		if time.Since(last) < time.Second/2 {
			return
		}
		last = time.Now()
		of := ""
		if total > 0 {
			of = fmt.Sprintf(" of %d", total)
		}
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s: %d%s", stage, done, of)
	}
}

// done ends the line of progress.
func (p *program) done(progress func(string, int64, int64)) {
	if progress != nil {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

// scheme returns the part of an address before "://".
func scheme(address string) string {
	s, _, _ := strings.Cut(address, "://")
	return s
}
