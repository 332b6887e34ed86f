package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/peterh/liner"
)

// maxLine bounds a line of a pipe.
const maxLine = 1 << 20

// ErrQuit is what Run returns to end the shell.
var ErrQuit = errors.New("quit")

// A Shell runs lines.
type Shell struct {
	// Run runs the words of one line; there is at least one. Its context ends
	// with an interrupt from the keyboard. An error is printed, ErrQuit ends the
	// shell.
	Run func(ctx context.Context, words []string) error
	// Complete returns what the word at the cursor may become, whole words.
	Complete func(p Partial) []string
	// Prompt is what stands before each line on a terminal.
	Prompt func() string

	In       io.Reader
	Err      io.Writer
	Terminal bool   // a person types: edit, complete and prompt
	History  string // file of earlier lines; "": none
}

// Loop runs lines until the input ends. It returns an error when the input could
// not be read, or when a line of a pipe failed: a script must not look as if it
// had worked.
func (s *Shell) Loop(ctx context.Context) error {
	if s.Terminal {
		return s.interactive(ctx)
	}
	return s.Script(ctx, s.In, "line")
}

// Script runs the lines of r. A line that fails does not end it, but the failure
// is returned in the end; name is what errors call a line.
func (s *Shell) Script(ctx context.Context, r io.Reader, name string) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	failed, number := 0, 0
	for lines.Scan() {
		number++
		switch err := s.line(ctx, lines.Text()); {
		case errors.Is(err, ErrQuit):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failed++
			fmt.Fprintf(s.Err, "%s %d: %v\n", name, number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s %d: %w", name, number+1, err)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d lines failed", failed, number)
	}
	return nil
}

// line runs one line.
func (s *Shell) line(ctx context.Context, text string) error {
	words, err := Split(text)
	if err != nil || len(words) == 0 {
		return err
	}
	return s.Run(ctx, words)
}

// interactive runs what a person types. An interrupt ends the line that runs, or
// drops the one that is being typed; the shell goes on.
func (s *Shell) interactive(ctx context.Context) error {
	term := liner.NewLiner()
	defer term.Close()
	term.SetCtrlCAborts(true)
	term.SetMultiLineMode(true)
	term.SetTabCompletionStyle(liner.TabPrints)
	term.SetWordCompleter(s.completer)
	s.loadHistory(term)
	defer s.saveHistory(term)
	for {
		text, err := term.Prompt(s.Prompt())
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			continue
		case errors.Is(err, io.EOF):
			fmt.Fprintln(s.Err)
			return nil
		case err != nil:
			return fmt.Errorf("read a line: %w", err)
		}
		if strings.TrimSpace(text) != "" {
			term.AppendHistory(text)
		}
		// The interrupt that ends a line must not end the next ones, as it would
		// through a context of the whole program.
		one, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt)
		err = s.line(one, text)
		stop()
		switch {
		case errors.Is(err, ErrQuit):
			return nil
		case err != nil && one.Err() != nil && errors.Is(err, context.Canceled):
			fmt.Fprintln(s.Err, "interrupted")
		case err != nil:
			fmt.Fprintln(s.Err, err)
		}
	}
}

// completer is Complete as package liner wants it.
func (s *Shell) completer(line string, pos int) (head string, completions []string, tail string) {
	p := SplitPartial(line[:pos])
	for _, word := range s.Complete(p) {
		completions = append(completions, Quote(word)+" ")
	}
	return line[:p.Start], completions, line[pos:]
}

func (s *Shell) loadHistory(term *liner.State) {
	if s.History == "" {
		return
	}
	if f, err := os.Open(s.History); err == nil {
		_, _ = term.ReadHistory(f) // a history that cannot be read is no reason not to start
		f.Close()
	}
}

func (s *Shell) saveHistory(term *liner.State) {
	if s.History == "" {
		return
	}
	err := os.MkdirAll(filepath.Dir(s.History), 0o700)
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(s.History, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	}
	if err == nil {
		_, err = term.WriteHistory(f)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintf(s.Err, "the history of this session is not kept: %v\n", err)
	}
}
