package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A table has cells of text; the first column is aligned to the left and the others, which are
// numbers, to the right.
type table struct {
	title  string // of the text form; the Markdown form has headings of its own
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write writes the table as Markdown, or else in columns.
func (t table) write(w io.Writer, markdown bool) error {
	if !markdown {
		return t.text(w)
	}
	_, err := io.WriteString(w, t.markdown())
	return err
}

// text writes the table in columns.
func (t table) text(w io.Writer) error {
	fmt.Fprintln(w, t.title)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	// The first column is padded here, since a tabwriter aligns all alike.
	width := 0
	for _, row := range append([][]string{t.header}, t.rows...) {
		width = max(width, len(row[0]))
	}
	for _, row := range append([][]string{t.header}, t.rows...) {
		fmt.Fprintf(tw, "%-*s\t%s\t\n", width, row[0], strings.Join(row[1:], "\t"))
	}
	return tw.Flush()
}

// markdown returns the table as lines of Markdown.
func (t table) markdown() string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.header)
	b.WriteString("|---|" + strings.Repeat("--:|", len(t.header)-1) + "\n")
	for _, row := range t.rows {
		line(row)
	}
	return b.String()
}
