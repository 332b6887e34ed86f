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
	"github.com/flashdb/flashdb/internal/shell"
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
and keys with Tab, keeps a history, and reads pipes too. .help says more.

The database stays open, so other processes reach it only through this one: they ask it by
themselves. When another process has it open, the shell asks that one.`,
		Example: `  flashdb shell papers.flash
  echo 'predict 1706.03762 -k 3' | flashdb shell papers.flash --use papers`,
		Args: args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			db, err := a.open(cmd.Context(), args[0], flashdb.Options{MustExist: true, Control: true})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			s := &session{dir: args[0], db: db, in: a.in, out: a.out, stdout: a.out, err: a.err, mode: modeTable}
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

// A session is one run of the shell. Each line runs in a command tree of its own
// on the one open database.
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
	timer      bool
	reads      int // nesting of .read
	lines      *shell.Shell
}

// A sharedDB stays open when a command is done with it.
type sharedDB struct{ database }

func (sharedDB) Close() error { return nil }

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
		Complete: func(p shell.Partial) []string { return s.complete(ctx, p) },
		Prompt:   s.prompt,
		In:       s.in,
		Err:      s.err,
		Terminal: isTerminal(s.in) && isTerminal(s.stdout),
	}
	if s.lines.Terminal {
		if dir, err := os.UserConfigDir(); err == nil {
			s.lines.History = filepath.Join(dir, "flashdb", "history")
		}
		fmt.Fprintf(s.stdout, "%s: %s. Type .help for help, .quit to leave.\n", shown(s.dir), orNone(shownList(names, 5), "no collection yet"))
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
		defer func(start time.Time) { fmt.Fprintf(s.err, "%s\n", took(time.Since(start))) }(time.Now())
	}
	switch {
	case words[0] == "use":
		return s.use(ctx, words[1:])
	case words[0] == "quit", words[0] == "exit":
		return shell.ErrQuit
	case strings.HasPrefix(words[0], "."):
		return s.dot(ctx, words)
	}
	root := s.tree()
	cmd, rest, err := root.Find(words)
	if err != nil {
		return fmt.Errorf("%w; .help lists the verbs", err)
	}
	args := strings.Fields(cmd.CommandPath())[1:]
	takes := strings.Fields(cmd.Use)[1:]
	if len(takes) > 0 && takes[0] == "DIR" {
		args = append(args, s.dir)
	}
	if len(takes) > 1 && takes[1] == "COLLECTION" && !slices.Contains(rest, "--help") && cmd.Name() != "create" {
		if s.collection == "" {
			return errors.New("no collection is in use: say `use NAME`")
		}
		args = append(args, s.collection)
	}
	root.SetArgs(append(args, rest...))
	switch err := root.ExecuteContext(ctx); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return errors.New(oneLine(err))
	}
}

// tree makes a fresh command tree on the open database.
func (s *session) tree() *cobra.Command {
	a := &app{in: s.in, out: s.out, err: s.err, mode: s.mode, json: s.mode == modeJSON, shared: s.db}
	root := a.tree()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "shell", "serve", "demo", "restore", "completion":
			root.RemoveCommand(cmd)
		}
	}
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
			fmt.Fprintln(s.out, shown(name))
		}
		return nil
	case 1:
		if _, err := s.db.Collection(ctx, words[0]); err != nil {
			return err
		}
		s.collection = words[0]
		return nil
	}
	return errors.New("usage: use COLLECTION")
}
