package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/shell"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/control"
)

// maxReads bounds how deep .read may nest.
const maxReads = 16

func (a *app) shellCommand() *cobra.Command {
	var use string
	cmd := &cobra.Command{
		Use:   "shell DIR [--use COLLECTION]",
		Short: "Ask and change a database line by line",
		Long: `Shell opens a database once and runs commands line by line: the verbs of this program without
their DIR and, after ` + "`use`" + `, without their COLLECTION. It completes verbs, flags, decoders, tags
and keys with Tab and reads pipes too. .help says more. Lines are kept in flashdb/history in the
user's configuration directory, which nobody else may read; a line that begins with a blank is
not kept.

The database stays open meanwhile. Other flashdb commands are answered through this process, and
find it by themselves. When another process has the database open, the shell asks that one. A
database whose files can only be read is opened for reading.`,
		Example: `  flashdb shell papers.flash
  echo 'predict 1706.03762 -k 3' | flashdb shell papers.flash --use papers`,
		Args: usage.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			readOnly := readOnlyFiles(args[0])
			db, err := a.open(cmd.Context(), args[0], flashdb.Options{MustExist: true, ReadOnly: readOnly})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			if own := db.DB(); own != nil && !readOnly {
				if _, err := control.Serve(own, nil); err != nil {
					return err
				}
			}
			s := &session{dir: args[0], db: db, in: a.in, out: a.out, stdout: a.out, err: a.err, mode: modeTable, color: a.color}
			if a.json {
				s.mode = modeJSON
			}
			defer func() { err = errors.Join(err, s.output("")) }()
			return s.run(cmd.Context(), use)
		},
	}
	cmd.Flags().StringVar(&use, "use", "", "the `collection` to begin with; default the only one")
	return cmd
}

// A session is one run of the shell. Each line runs in a command tree of its own on the one open
// database.
type session struct {
	dir        string
	db         database
	collection string // in use; "": none
	in         io.Reader
	out        io.Writer // stdout, or file
	stdout     io.Writer
	file       *os.File // of .output
	err        io.Writer
	mode       string
	color      terminal.Color
	timer      bool
	reads      int // nesting of .read
	lines      *shell.Shell
}

func (s *session) run(ctx context.Context, use string) error {
	names, err := s.db.Collections(ctx)
	if err != nil {
		return err
	}
	switch {
	case use != "":
		if err := s.use(ctx, []string{use}); err != nil {
			return err
		}
	case len(names) == 1:
		s.collection = names[0]
	}
	s.lines = &shell.Shell{
		Run:      s.line,
		Complete: s.complete,
		Prompt:   s.prompt,
		In:       s.in,
		Err:      s.err,
		Fail:     func(text string) string { return s.color.Red(s.err, text) },
		Terminal: terminal.Is(s.in) && terminal.Is(s.stdout),
	}
	if s.lines.Terminal {
		if dir, err := os.UserConfigDir(); err == nil {
			s.lines.History = filepath.Join(dir, "flashdb", "history")
		}
		fmt.Fprintf(s.stdout, "%s: %s. Type .help for help, .quit to leave.\n", show.Text(s.dir), orNone(shownList(names, 5), "no collection yet"))
	}
	return s.lines.Loop(ctx)
}

func orNone(s, none string) string {
	if s == "" {
		return none
	}
	return s
}

func (s *session) prompt() string {
	if s.collection == "" {
		return "flashdb> "
	}
	return s.collection + "> "
}

// line runs the words of one line.
func (s *session) line(ctx context.Context, words []string) (err error) {
	if s.timer {
		defer func(start time.Time) { fmt.Fprintf(s.err, "%s\n", show.Duration(time.Since(start))) }(time.Now())
	}
	switch {
	case words[0] == "use":
		return s.use(ctx, words[1:])
	case words[0] == "quit", words[0] == "exit":
		return shell.ErrQuit
	case strings.HasPrefix(words[0], "."):
		return s.dot(ctx, words)
	}
	if why, ok := notInShell[words[0]]; ok {
		return fmt.Errorf("%s %s: leave the shell and run `flashdb %s`", words[0], why, words[0])
	}
	root := s.tree()
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	args := strings.Fields(cmd.CommandPath())
	switch usage.GivenByShell(cmd) {
	case 1:
		args = append(args, s.dir)
	case 2:
		if s.collection == "" && !asksHelp(rest) {
			return errors.New("no collection is in use: say `use NAME`")
		}
		args = append(args, s.dir, s.collection)
	}
	root.SetArgs(append(args, rest...))
	switch err := root.ExecuteContext(ctx); {
	case err == nil && cmd.Name() == "drop":
		return s.leaveDropped(ctx)
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, control.ErrNoOwner):
		return errors.New("the process that had the database open is gone: leave the shell and start it again")
	default:
		return errors.New(oneLine(err))
	}
}

// asksHelp tells whether a verb is only to describe itself.
func asksHelp(words []string) bool {
	return slices.Contains(words, "--help") || slices.Contains(words, "-h")
}

// notInShell are the commands that have no place in it, and why.
var notInShell = map[string]string{
	"shell":      "is what this is",
	"serve":      "is not needed, for the shell answers other commands too",
	"browse":     "waits until it is interrupted",
	"demo":       "makes a database of its own",
	"restore":    "makes a database of its own",
	"completion": "is for other shells",
}

// app is what the commands of one line share.
func (s *session) app() *app {
	a := &app{in: noInput{}, out: s.out, err: s.err, mode: s.mode, json: s.mode == modeJSON, color: s.color, shared: s.db}
	if s.lines != nil && s.lines.Terminal {
		a.ask = s.lines.Ask
	}
	return a
}

// noInput is the standard input of a verb: the shell itself reads that.
type noInput struct{}

func (noInput) Read([]byte) (int, error) {
	return 0, errors.New("the shell reads its lines there: name a file")
}

// tree makes a fresh command tree on the open database. Its verbs do not name what the shell fills
// in.
func (s *session) tree() *cobra.Command {
	root := s.app().tree()
	for _, cmd := range root.Commands() {
		if _, ok := notInShell[cmd.Name()]; ok {
			root.RemoveCommand(cmd)
			continue
		}
		usage.Shorten(cmd)
	}
	root.Use = ""
	root.SetUsageTemplate(strings.NewReplacer("{{.UseLine}}", "{{trim .UseLine}}", "{{.CommandPath}}", "{{trim .CommandPath}}").Replace(root.UsageTemplate()))
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// use changes the collection that the verbs ask, or lists what there is.
func (s *session) use(ctx context.Context, words []string) error {
	switch len(words) {
	case 0:
		names, err := s.db.Collections(ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			fmt.Fprintln(s.out, show.Text(name))
		}
		return nil
	case 1:
		if _, err := collectionOf(ctx, s.db, words[0]); err != nil {
			return err
		}
		s.collection = words[0]
		return nil
	}
	return errors.New("usage: use COLLECTION")
}

// leaveDropped has no collection in use any more when it was dropped.
func (s *session) leaveDropped(ctx context.Context) error {
	names, err := s.db.Collections(ctx)
	if err == nil && !slices.Contains(names, s.collection) {
		s.collection = ""
	}
	return err
}
