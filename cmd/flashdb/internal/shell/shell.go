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
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/peterh/liner"
)

// maxLine bounds a line of a pipe.
const maxLine = 1 << 20

// ErrQuit is what Run returns to end the shell.
var ErrQuit = errors.New("quit")

// A Shell runs lines.
type Shell struct {
	// Run runs the words of one line; there is at least one. Its context ends with an interrupt
	// from the keyboard. An error is printed, ErrQuit ends the shell.
	Run func(ctx context.Context, words []string) error
	// Complete returns what the word at the cursor may become, whole words.
	Complete func(ctx context.Context, p Partial) []string
	// Prompt is what stands before each line on a terminal.
	Prompt func() string

	// Fail returns how the text of an error is printed; nil: as it is.
	Fail func(text string) string

	In       io.Reader
	Err      io.Writer
	Terminal bool   // a person types: edit, complete and prompt
	History  string // file of earlier lines; "": none

	term *liner.State // while a person types
}

// Ask asks the person at the terminal while a line runs, and returns the answer.
func (s *Shell) Ask(ctx context.Context, question string) (string, error) {
	if s.term == nil {
		return "", errors.New("standard input is not a terminal, so that nothing can be asked")
	}
	return prompt(ctx, s.term, question)
}

// Loop runs lines until the input ends. It returns an error when the input could not be read, or
// when a line of a pipe failed: a script must not look as if it had worked.
func (s *Shell) Loop(ctx context.Context) error {
	if s.Terminal {
		return s.interactive(ctx)
	}
	return s.Script(ctx, s.In, "line")
}

// Script runs the lines of r. A line that fails does not end it, but the failure is returned in the
// end; name is what errors call a line.
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
			s.fail(fmt.Sprintf("%s %d: %v", name, number, err))
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

// interactive runs what a person types. An interrupt ends the line that runs, or drops the one that
// is being typed; the shell goes on. It ends with the input, and when the process is told to.
func (s *Shell) interactive(ctx context.Context) error {
	// The interrupt that ends a line must not end the next ones, as it would through a context of
	// the whole program.
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	term := liner.NewLiner()
	defer term.Close()
	s.term = term
	term.SetCtrlCAborts(true)
	term.SetMultiLineMode(true)
	term.SetTabCompletionStyle(liner.TabPrints)
	term.SetWordCompleter(func(line string, pos int) (string, []string, string) { return s.completer(ctx, line, pos) })
	past, err := openHistory(s.History, term)
	if err != nil {
		fmt.Fprintf(s.Err, "earlier lines are not recalled: %v\n", err)
	}
	defer past.close()
	for {
		text, err := prompt(ctx, term, s.Prompt())
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			continue
		case errors.Is(err, io.EOF):
			fmt.Fprintln(s.Err)
			return nil
		case ctx.Err() != nil:
			fmt.Fprintln(s.Err)
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("read a line: %w", err)
		}
		if past.add(text) {
			term.AppendHistory(text)
		}
		one, stop := signal.NotifyContext(ctx, os.Interrupt)
		err = s.line(one, text)
		stop()
		switch {
		case errors.Is(err, ErrQuit):
			return nil
		case err != nil && one.Err() != nil && errors.Is(err, context.Canceled):
			fmt.Fprintln(s.Err, "interrupted")
		case err != nil:
			s.fail(err.Error())
		}
	}
}

// prompt reads a line. When ctx ends it returns at once, and what waits for the keyboard stays
// behind: the process is about to end.
func prompt(ctx context.Context, term *liner.State, text string) (string, error) {
	type typed struct {
		line string
		err  error
	}
	if ctx.Err() != nil { // a prompt that is shown now would change the terminal after its end
		return "", ctx.Err()
	}
	done := make(chan typed, 1)
	go func() {
		line, err := term.Prompt(text)
		done <- typed{line, err}
	}()
	select {
	case t := <-done:
		return t.line, t.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// fail prints why a line failed.
func (s *Shell) fail(text string) {
	if s.Fail != nil {
		text = s.Fail(text)
	}
	fmt.Fprintln(s.Err, text)
}

// completer is Complete as package liner wants it.
func (s *Shell) completer(ctx context.Context, line string, pos int) (head string, completions []string, tail string) {
	p := SplitPartial(line[:pos])
	for _, word := range s.Complete(ctx, p) {
		end := " "
		if strings.HasSuffix(word, "=") || strings.HasSuffix(word, string(filepath.Separator)) {
			end = "" // more is to come
		}
		completions = append(completions, Quote(word)+end)
	}
	return line[:p.Start], completions, line[pos:]
}

// printable tells whether an editor can show a line.
func printable(line string) bool {
	return utf8.ValidString(line) && !strings.ContainsFunc(line, unicode.IsControl)
}
