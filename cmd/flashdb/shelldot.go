package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/shell"
	"github.com/flashdb/flashdb/internal/output"
)

// How results are printed; .mode in the shell.
const (
	modeTable = "table" // for people
	modeJSON  = "json"
	modeCSV   = "csv"
	modeTSV   = "tsv"
)

var outputModes = []string{modeTable, modeJSON, modeCSV, modeTSV}

const shellHelp = `The verbs are those of flashdb, without DIR and COLLECTION:

  use NAME               the collection that the verbs below ask; alone, lists them
  predict KEY... -k 5    help predict says more, and so for each verb
%s
  .mode MODE             print tables for people, json, csv or tsv; now %s
  .timer on|off          print how long each line took
  .output FILE           print results to FILE; alone, to the screen again
  .read FILE             run the lines of FILE
  .help                  this
  .quit                  leave; so does the end of the input

Words with blanks or other odd bytes go between quotes: 'two words', "tab\t", "\x00".
Tab completes. Ctrl-C ends what runs, not the shell. A line that begins with a blank
is not kept in the history.
`

// dot runs a command of the shell itself.
func (s *session) dot(ctx context.Context, words []string) error {
	rest := words[1:]
	one := func(usage string) error {
		if len(rest) != 1 {
			return fmt.Errorf("usage: %s", usage)
		}
		return nil
	}
	switch words[0] {
	case ".help":
		fmt.Fprintf(s.stdout, shellHelp, s.verbs(), s.mode)
		return nil
	case ".quit", ".exit":
		return shell.ErrQuit
	case ".mode":
		if err := one(".mode " + strings.Join(outputModes, "|")); err != nil {
			return err
		}
		if !slices.Contains(outputModes, rest[0]) {
			return fmt.Errorf("mode %q is unknown: use %s", rest[0], strings.Join(outputModes, ", "))
		}
		s.mode = rest[0]
		return nil
	case ".timer":
		if err := one(".timer on|off"); err != nil {
			return err
		}
		if rest[0] != "on" && rest[0] != "off" {
			return errors.New("usage: .timer on|off")
		}
		s.timer = rest[0] == "on"
		return nil
	case ".output":
		if len(rest) == 0 {
			return s.output("")
		}
		if err := one(".output [FILE]"); err != nil {
			return err
		}
		return s.output(rest[0])
	case ".read":
		if err := one(".read FILE"); err != nil {
			return err
		}
		return s.read(ctx, rest[0])
	}
	return fmt.Errorf("%s is unknown: .help lists what there is", words[0])
}

// verbs lists the verbs, some per line.
func (s *session) verbs() string {
	var b strings.Builder
	line := "                        "
	for _, cmd := range s.tree().Commands() {
		if len(line)+len(cmd.Name()) > 78 {
			b.WriteString(line + "\n")
			line = "                        "
		}
		line += " " + cmd.Name()
	}
	b.WriteString(line + "\n")
	return b.String()
}

// output sends results to a file, or with no name back to the screen.
func (s *session) output(name string) error {
	var closed error
	if s.file != nil {
		closed = s.file.Close()
		s.file, s.out = nil, s.stdout
	}
	if name == "" || closed != nil {
		return closed
	}
	target, err := output.Resolve(name, s.dir)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(target.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	s.file, s.out = f, f
	return nil
}

// read runs the lines of a file.
func (s *session) read(ctx context.Context, name string) error {
	if s.reads == maxReads {
		return fmt.Errorf(".read %s: %d files read each other already", name, maxReads)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	s.reads++
	defer func() { s.reads-- }()
	return s.lines.Script(ctx, f, name)
}
