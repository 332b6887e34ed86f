// Command bench measures flashdb on real graphs: how much of the decoder's true top-k each plan
// finds and how fast, beside the exact scan timed in the same run, and how the time of a query
// grows with the number of rows.
//
//	bench graph   -data DIR -graph NAME   recall, latency, queries per second, build, disk and memory
//	bench growth  -data DIR               latency over subsets of a graph, genes by default
//	bench scan    -data DIR -graph NAME   codes per second of the index alone
//	bench seeds   -data DIR -graph NAME   recall from each seed of the first round
//	bench budgets -data DIR -graph NAME   recall by rows scored, of any decoder and ways to find rows
//	bench latency -dir DATABASE           single queries of a database that is there
//	bench rebuild -data DIR -graph NAME   reads beside writes and an online rebuild
//	bench newer   -data DIR -graph NAME   queries beside a stream of upserts, without a rebuild
//	bench relations -dir DATABASE         what a calibration can tell of one relation from few sources
//	bench copies  -data DIR -out FOLDER   writes a larger graph: the rows of one over and over, with noise
//	bench paper   -data DIR [-quick]      trains, measures, and writes the page that reproduces the paper
//	bench report  -in FILE -doc FILE      tables and plots of what graph and growth wrote with -json
//
// DIR holds a folder for each graph; dataset.go says what is in it. README.md says what the
// commands print and how long most of them take.
//
// It is a module of its own, so that plotting adds no dependency to flashdb. It measures flashdb
// through the API of the root package, as any program sees it. Only scan, seeds, budgets and paper
// measure the packages below.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

const usage = `usage: bench COMMAND [flags]

  graph    measure plans on one graph: recall, latency, queries per second, build, disk, memory
  growth   measure how the time of a query grows with the number of rows
  scan     measure searches of the index alone, without a decoder: codes per second
  seeds    measure what the seeds of the first round find: recall
  budgets  measure what ways to find rows give by the number scored, for any decoder: recall
  latency  measure single queries of a database that is there: latency, page faults
  rebuild  measure reads beside writes and an online rebuild: latency, errors, memory
  newer    measure queries beside a stream of upserts, without a rebuild: latency, memory, recall
  relations  measure what a calibration can tell of one relation from few sources
  copies   write a larger graph: the rows of one over and over, with noise
  paper    reproduce the Flashlight paper: train, measure, write docs/paper.md
  report   rewrite the tables of a Markdown file and the plots from results in JSON lines

"bench COMMAND -h" lists the flags of a command.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs one command. Results go to stdout; progress, which nothing parses, to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return errors.New("no command: use graph, growth, scan, seeds, budgets, latency, rebuild, newer, relations, copies, paper or report")
	}
	switch name, rest := args[0], args[1:]; name {
	case "graph":
		return graphCommand(ctx, rest, stdout, stderr)
	case "growth":
		return growthCommand(ctx, rest, stdout, stderr)
	case "scan":
		return scanCommand(ctx, rest, stdout, stderr)
	case "seeds":
		return seedsCommand(ctx, rest, stdout, stderr)
	case "budgets":
		return budgetsCommand(ctx, rest, stdout, stderr)
	case "latency":
		return latencyCommand(ctx, rest, stdout, stderr)
	case "rebuild":
		return rebuildCommand(ctx, rest, stdout, stderr)
	case "newer":
		return newerCommand(ctx, rest, stdout, stderr)
	case "relations":
		return relationsCommand(ctx, rest, stdout, stderr)
	case "copies":
		return copiesCommand(ctx, rest, stdout, stderr)
	case "paper":
		return paperCommand(ctx, rest, stdout, stderr)
	case "report":
		return reportCommand(rest, stderr)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return nil
	default:
		return fmt.Errorf("unknown command %q: use graph, growth, scan, seeds, budgets, latency, rebuild, newer, relations, copies, paper or report", name)
	}
}

// newFlags returns an empty set of flags for a command.
func newFlags(name string, stderr io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet("bench "+name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	return fs
}

// parse parses a command's flags; no command takes anything else.
func parse(fs *flag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: everything is given by flags", fs.Arg(0))
	}
	return nil
}
