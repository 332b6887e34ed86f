// Command flashdb is the command line of the flashdb vector database: it makes collections, imports
// embeddings, edges and trained decoders, predicts links, rebuilds the index and measures its
// recall. `flashdb demo` shows all of it on real data; `flashdb help` lists the rest.
//
// Every command prints text for people, or with --json one object, or one object per line, for
// programs. An error is one line on stderr and an exit code that is not 0.
//
// The commands form a tree made afresh by newRoot, so that a test, or a shell that runs one line
// after another, never meets flag values of an earlier run.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, keeps := withKeeper(ctx)
	after := func(d time.Duration) <-chan time.Time {
		if keeps.Load() {
			return nil // it ends in its own time
		}
		return time.After(d)
	}
	done := make(chan int, 1)
	go func() { done <- run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr) }()
	os.Exit(exitCode(ctx, done, stop, after, os.Stderr))
}

// graceTime is how long a command may take to end after it was interrupted. What it was writing is
// safe at any moment: the next open finds it as after a crash.
const graceTime = 10 * time.Second

// exitCode waits for that of the command. One that waits where nothing can interrupt it, as for the
// other end of a named pipe, is left to itself after graceTime; and a second signal ends the
// process at once, as stop gives signals back their effect.
func exitCode(ctx context.Context, done <-chan int, stop func(), after func(time.Duration) <-chan time.Time, errOut io.Writer) int {
	select {
	case code := <-done:
		return code
	case <-ctx.Done():
	}
	stop()
	select {
	case code := <-done:
		return code
	case <-after(graceTime):
		fmt.Fprintln(errOut, "flashdb: interrupted")
		return exitFailed
	}
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	a := &app{in: in, out: out, err: errOut, color: "auto"}
	root := a.tree()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	var coded *codedError
	isCoded := errors.As(err, &coded)
	if !isCoded || !coded.said {
		fmt.Fprintln(errOut, a.color.Red(errOut, "flashdb: "+plainError(ctx, cmd, err)))
	}
	switch {
	case isCoded:
		return coded.code
	case errors.Is(err, flashdb.ErrLocked):
		return exitLocked
	}
	return exitFailed
}

// Exit codes. docs/cli.md explains them.
const (
	exitOK      = 0 // done, or nothing to do
	exitFailed  = 1
	exitRefused = 2 // the quality gate keeps the earlier index, or the live release
	exitLocked  = 3 // another process has the database open
)

// A codedError is an error with an exit code of its own.
type codedError struct {
	code int
	err  error
	said bool // by the program that failed
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// oneLine joins the lines of an error's text, as a joined error has one a fault.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// An app is what the commands of one tree share.
type app struct {
	in       io.Reader
	out, err io.Writer
	tables   io.Writer      // where tables go in the modes csv and tsv
	titles   string         // the first line of the last table there
	json     bool           // --json
	mode     string         // of tables: see outputModes; "" is table
	color    terminal.Color // --color
	shared   database       // of the shell, open already; nil elsewhere

	// ask asks the person at the terminal of the shell; nil elsewhere.
	ask func(ctx context.Context, question string) (string, error)
}

// newRoot makes a fresh command tree.
func newRoot(in io.Reader, out, errOut io.Writer) *cobra.Command {
	return (&app{in: in, out: out, err: errOut, color: "auto"}).tree()
}

// tree makes the commands of a.
func (a *app) tree() *cobra.Command {
	if a.mode == modeCSV || a.mode == modeTSV {
		a.tables, a.out = a.out, io.Discard // nothing but tables
	}
	root := &cobra.Command{
		Use:   "flashdb",
		Short: "Vector database for learned link prediction",
		Long: `flashdb keeps node embeddings and trained decoders in a directory and answers:
which k nodes score highest against this source under my decoder?

A database is a directory DIR that holds collections. A node has a key, an
embedding, and known links that are not predicted again.`,
		Example: `  flashdb demo                    # all of it on real data
  flashdb create papers.flash papers --dim 128
  flashdb import papers.flash papers embeddings.npy --keys nodes.tsv
  flashdb link papers.flash papers train.tsv --ids
  flashdb decoder add papers.flash papers cites decoder.pt
  flashdb rebuild papers.flash
  flashdb predict papers.flash papers 1706.03762 -k 10`,
		Args:          usage.NoCommand,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          help,
		Version:       version(),
	}
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.PersistentFlags().BoolVar(&a.json, "json", a.json, "print one JSON object, or one on each line")
	root.PersistentFlags().Var(&a.color, "color", "color text: auto, always or never")
	completeWords(root, "color", terminal.ColorModes...)
	root.SetFlagErrorFunc(usage.FlagError)
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"See it work:", []*cobra.Command{a.demoCommand()}},
		{"Build a database:", []*cobra.Command{
			a.trainCommand(), a.createCommand(), a.importCommand(), a.putCommand(), a.embedCommand(), a.linkCommand(), a.decoderCommand(), a.releaseCommand(), a.deleteCommand(), a.unlinkCommand(), a.dropCommand(),
		}},
		{"Ask it:", []*cobra.Command{
			a.predictCommand(), a.scoreCommand(), a.searchCommand(), a.keysCommand(), a.getCommand(), a.browseCommand(), a.evalCommand(), a.exportCommand(),
		}},
		{"Look after it:", []*cobra.Command{
			a.shellCommand(), a.reportCommand(), a.rebuildCommand(), a.serveCommand(), a.calibrateCommand(), a.statsCommand(), a.checkCommand(),
			a.checkpointCommand(), a.compactCommand(), a.backupCommand(), a.restoreCommand(), a.snapshotCommand(), a.remoteCommand(), a.versionCommand(),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		root.SetHelpCommandGroupID(g.title) // the last one
		root.SetCompletionCommandGroupID(g.title)
		for _, cmd := range g.commands {
			cmd.GroupID = g.title
			root.AddCommand(cmd)
		}
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	if a.shared == nil {
		a.completeNames(root)
	}
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Short, cmd.Args, cmd.RunE = "Print a script that lets a shell complete these commands", usage.NoCommand, help
		case "help":
			cmd.Run, cmd.RunE = nil, helpFor
		}
	}
	return root
}

func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// helpFor is the command help: unlike cobra's own, it fails for what is no command.
func helpFor(cmd *cobra.Command, words []string) error {
	about, rest, err := cmd.Root().Find(words)
	if err == nil {
		err = usage.NoCommand(about, rest)
	}
	if err != nil {
		return err
	}
	about.InitDefaultHelpFlag()
	about.InitDefaultVersionFlag()
	return about.Help()
}
