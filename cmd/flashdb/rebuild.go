package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) rebuildCommand() *cobra.Command {
	var opts flashdb.RebuildOptions
	var collection, drift string
	progressMode := "auto"
	var all bool
	var deadline time.Duration
	var tolerance shareFlag
	var memory sizeFlag
	cmd := &cobra.Command{
		Use:        "rebuild DIR [COLLECTION]",
		SuggestFor: []string{"index", "build", "reindex", "train"},
		Short:      "Build the index of each collection anew",
		Long: `Rebuild builds a new index for each collection, or for one, and serves it. Below 20,000 nodes
queries scan every node: an index is built only with --force.

Before the new index is served, every decoder is calibrated on it (see calibrate). It is
refused if its recall at the same cost is lower than that of the index served now.

When another process has DIR open and answers on its control socket, that process does the
rebuild; interrupting this command cancels it there. A rebuild that fails, is refused or is
cancelled leaves the earlier index served, and the other collections are still rebuilt.

An open database indexes newer rows by itself, in segments beside the index, once there are
16,384 of them. --newer does it now, also for fewer: seconds, without training or calibrating.
A rebuild takes the place of the index and its segments.

Exit code: 0 done or nothing to do, 1 error, 2 refused, 3 another process has DIR open and
serves no control socket.`,
		Example: `  flashdb rebuild papers.flash                    # the nightly job
  flashdb rebuild papers.flash --if-drift 5% --deadline 1h
  flashdb rebuild papers.flash --newer             # after an import
  flashdb rebuild papers.flash papers --force`,
		Args:    usage.Args(1, 2),
		PreRunE: onlyNewer,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			if collection, err = oneCollection(args[1:], collection); err != nil {
				return err
			}
			if all && collection != "" {
				return errors.New("--all and a collection exclude each other")
			}
			if err := checkDuration("deadline", cmd.Flags().Changed("deadline"), deadline); err != nil {
				return err
			}
			if drift != "" {
				if opts.MinDrift, err = parseShare(drift); err != nil {
					return fmt.Errorf("--if-drift %q: %w", drift, err)
				}
			}
			opts.Tolerance = float64(tolerance)
			if deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, deadline, fmt.Errorf("the deadline of %v passed: give more time with --deadline", deadline))
				defer cancel()
			}
			if !slices.Contains(terminal.ProgressModes, progressMode) {
				return fmt.Errorf("--progress %q: use %s", progressMode, strings.Join(terminal.ProgressModes, ", "))
			}
			return a.rebuild(ctx, args[0], collection, opts, memory, terminal.NewProgressAs(progressMode, a.err))
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&collection, "collection", "", "only this collection, as COLLECTION does (default all)")
	fs.BoolVar(&all, "all", false, "every collection, which is the default")
	fs.BoolVar(&opts.NewerOnly, "newer", false, "only index the rows that are newer than the index, beside it")
	fs.BoolVar(&opts.Force, "force", false, "build below 20,000 nodes or without changes, and serve the index whatever its recall")
	fs.StringVar(&drift, "if-drift", "", "rebuild only if this `share` of the rows is newer than the index or deleted, such as 5%")
	fs.DurationVar(&deadline, "deadline", 0, "cancel the rebuild after this `time`; the earlier index is kept")
	fs.StringVar(&progressMode, "progress", progressMode, "on stderr: bar, json, none, or auto: a bar on a terminal, else json")
	fs.Var(&tolerance, "tolerance", "recall at equal cost may fall by this `share`, such as 2% (default 1%)")
	addBuildFlags(fs, &opts, &memory)
	completeWords(cmd, "progress", terminal.ProgressModes...)
	return cmd
}

// addBuildFlags adds the flags of every command that builds an index.
func addBuildFlags(fs *pflag.FlagSet, opts *flashdb.RebuildOptions, memory *sizeFlag) {
	fs.DurationVar(&opts.CalibrateTime, "calibrate-time", 0, "`time` to calibrate a decoder (default 10s; negative: not at all)")
	fs.IntVar(&opts.Workers, "workers", 0, "threads at most (default all cores; half of them in a process that serves queries)")
	memory.register(fs)
	fs.IntVar(&opts.Lists, "lists", 0, "number of inverted lists (default min(n/16, 16 sqrt n) of n rows)")
	fs.IntVar(&opts.Bits, "bits", 0, "bits per sub-quantizer, 4 or 8 (default 4)")
	fs.Uint64Var(&opts.RandomSeed, "seed", 0, "seed of random numbers: the same rows and seed give the same index")
	fs.BoolVar(&opts.OmitRows, "omit-rows", false, "leave full rows out of the index: half the disk, slower scoring")
}

// onlyNewer returns an error for a flag that has no meaning beside --newer.
func onlyNewer(cmd *cobra.Command, _ []string) error {
	fs := cmd.Flags()
	if !fs.Changed("newer") {
		return nil
	}
	for _, name := range []string{"force", "if-drift", "tolerance", "calibrate-time", "lists", "bits", "seed", "omit-rows", "memory"} {
		if fs.Changed(name) {
			return fmt.Errorf("--newer and --%s exclude each other: nothing is trained, compared or calibrated for newer rows", name)
		}
	}
	return nil
}

// oneCollection is the collection that an argument or a flag names.
func oneCollection(args []string, flag string) (string, error) {
	if len(args) == 0 {
		return flag, nil
	}
	if flag != "" && flag != args[0] {
		return "", fmt.Errorf("%s and --collection %s are two collections: give one", show.Text(args[0]), show.Text(flag))
	}
	return args[0], nil
}

// rebuild rebuilds one collection, or all of them: what is the matter with one does not keep the
// others from their turn.
func (a *app) rebuild(ctx context.Context, dir, collection string, opts flashdb.RebuildOptions, memory sizeFlag, p *terminal.Progress) error {
	if err := opts.Validate(); err != nil {
		return err
	}
	var refused, failed error
	err := a.withDB(ctx, dir, flashdb.Options{MemoryBytes: int64(memory)}, func(db database) error {
		if err := a.budgetFor(db, memory); err != nil {
			return err
		}
		names := []string{collection}
		if collection == "" {
			var err error
			if names, err = db.Collections(ctx); err != nil {
				return err
			}
		}
		for _, name := range names {
			err := a.rebuildOne(ctx, db, name, opts, p)
			switch {
			case errors.Is(err, flashdb.ErrQuality):
				refused = errors.Join(refused, err)
			case ctx.Err() != nil:
				return err
			default:
				failed = errors.Join(failed, err)
			}
		}
		return nil
	})
	whole := errors.Join(err, failed, refused)
	if err == nil && failed == nil && refused != nil {
		return &codedError{code: exitRefused, err: whole}
	}
	return whole
}

// rebuildOne rebuilds a collection and prints what came of it.
func (a *app) rebuildOne(ctx context.Context, db database, name string, opts flashdb.RebuildOptions, p *terminal.Progress) error {
	c, err := collectionOf(ctx, db, name)
	if err != nil {
		return err
	}
	opts.Workers = cmp.Or(opts.Workers, a.buildWorkers(db))
	res, err := rebuildWith(ctx, c, opts, p)
	if err != nil {
		return err
	}
	return a.printRebuild(name, nil, res, p)
}

// buildWorkers is RebuildOptions.Workers where --workers does not say it: all cores if this command
// alone has the database open, and else 0, the default beside queries.
func (a *app) buildWorkers(db database) int {
	if a.shared != nil || db.DB() == nil {
		return 0
	}
	return runtime.GOMAXPROCS(0)
}

// rebuildWith rebuilds and shows the progress.
func rebuildWith(ctx context.Context, c collection, opts flashdb.RebuildOptions, p *terminal.Progress) (flashdb.RebuildResult, error) {
	defer p.Clear()
	opts.Progress = func(stage string, done, total int64) {
		p.Update(fmt.Sprintf("rebuild %s: %s", c.Name(), stage), done, total)
	}
	return c.Rebuild(ctx, &opts)
}

// printRebuild prints what was built. embedded, if not nil, is how many nodes of a release were
// embedded before.
func (a *app) printRebuild(name string, embedded *int, res flashdb.RebuildResult, p *terminal.Progress) error {
	for _, of := range res.Calibrations {
		if text := describeScans(of); text != "" {
			if text = "decoder " + text; !p.Remark(text) {
				a.remark("%s", text)
			}
		}
	}
	if a.json {
		return a.emit(struct {
			Collection string  `json:"collection"`
			Built      bool    `json:"built"`
			Reason     string  `json:"reason,omitempty"`
			Generation uint64  `json:"generation"`
			Segments   int     `json:"segments,omitempty"`
			Rows       int     `json:"rows"`
			Lists      int     `json:"lists"`
			Bytes      int64   `json:"bytes"`
			Calibrated int     `json:"calibrated_decoders"`
			Embedded   *int    `json:"embedded,omitempty"`
			Seconds    float64 `json:"seconds"`
		}{name, res.Built, res.Reason, res.Generation, res.Segments, res.Rows, res.Lists, res.Bytes, len(res.Calibrations), embedded, res.Elapsed.Seconds()})
	}
	if embedded != nil && *embedded > 0 {
		fmt.Fprintf(a.out, "%s: embedded %s from their links\n", name, show.Count(*embedded, "node"))
	}
	var err error
	if res.Segments > 0 {
		_, err = fmt.Fprintf(a.out, "%s: indexed newer rows beside generation %d, now in %s: the newest has %s in %s, %s, %s\n", name, res.Generation,
			show.Count(res.Segments, "segment"), show.Count(res.Rows, "row"), show.Count(res.Lists, "list"), show.Bytes(res.Bytes), show.Duration(res.Elapsed))
	} else if res.Built {
		_, err = fmt.Fprintf(a.out, "%s: built generation %d: %s in %s, %s, %s\n", name, res.Generation,
			show.Count(res.Rows, "row"), show.Count(res.Lists, "list"), show.Bytes(res.Bytes), show.Duration(res.Elapsed))
		for _, of := range res.Calibrations {
			fmt.Fprintf(a.out, "  decoder %s calibrated on %s of %s, exact scan %s\n", show.Text(of.Decoder), show.Count(of.Sources, "source"), show.Text(of.SourceCollection), show.Duration(of.Exact))
		}
	} else {
		_, err = fmt.Fprintf(a.out, "%s: nothing to do: %s\n", name, res.Reason)
	}
	return err
}
