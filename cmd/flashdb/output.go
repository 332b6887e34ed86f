package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
)

// emit writes v as one line of JSON.
func (a *app) emit(v any) error {
	e := json.NewEncoder(a.data())
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// data is where results for programs go, whatever the mode of tables.
func (a *app) data() io.Writer {
	if a.tables != nil {
		return a.tables
	}
	return a.out
}

// titled is table for one whose first line names the columns.
func (a *app) titled(fn func(w io.Writer)) error { return a.tableWith(0, a.dim, fn) }

// table aligns tab-separated lines that fn writes, with two spaces between columns.
// tabwriter.AlignRight is for tables of numbers alone.
func (a *app) table(flags uint, fn func(w io.Writer)) error {
	return a.tableWith(flags, func(line string) string { return line }, fn)
}

// tableWith is table that shows its first line by title.
func (a *app) tableWith(flags uint, title func(string) string, fn func(w io.Writer)) error {
	if a.tables != nil {
		return a.delimited(fn)
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', flags)
	fn(w)
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(a.out, title(strings.TrimRight(line, " \n"))); err != nil {
			return err
		}
		title = func(line string) string { return line }
	}
	return nil
}

// delimited writes the cells of a table for programs.
func (a *app) delimited(fn func(w io.Writer)) error {
	var text strings.Builder
	fn(&text)
	w := csv.NewWriter(a.tables)
	first := true
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSpace(line)
		again := first && line == a.titles // one table goes on with the lines of the next
		if first {
			first, a.titles = false, line
		}
		if again {
			continue
		}
		if a.mode == modeTSV {
			if _, err := fmt.Fprintln(a.tables, line); err != nil {
				return err
			}
			continue
		}
		if err := w.Write(strings.Split(line, "\t")); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// dim writes the lines of a text as beside the point.
func (a *app) dim(text string) string { return a.color.Dim(a.out, text) }

// folded breaks a text so that it fits where the output goes.
func (a *app) folded(text string, indent int) string { return terminal.Fold(a.out, text, indent) }
