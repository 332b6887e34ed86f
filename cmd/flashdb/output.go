package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
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

// table aligns tab-separated lines that fn writes, with two spaces between
// columns. tabwriter.AlignRight is for tables of numbers alone.
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

// shown returns a key or other stored text fit for a terminal: as it is when it
// is printable UTF-8, Go-quoted otherwise, so that no key can move the cursor.
func shown(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// jsonText returns s for a JSON string, which holds Unicode only: Go-quoted when
// it is not UTF-8, so that different keys stay different.
func jsonText(s string) string {
	if !utf8.ValidString(s) {
		return strconv.Quote(s)
	}
	return s
}

// jsonTexts is jsonText of each, and a list even of none.
func jsonTexts(texts []string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = jsonText(s)
	}
	return out
}

// clip shortens s to at most width runes by taking out its middle.
func clip(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	head := (width - 1) / 2
	tail := width - 1 - head
	return string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
}

// grouped writes a count with commas: 33,445.
func grouped[N int | int64 | uint64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	var b strings.Builder
	for i, digit := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return sign + b.String()
}

// counted writes a count and its noun: "1 row", "33,445 rows".
func counted[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(n) + " " + noun + "s"
}

// sized writes a number of bytes: 4.1 MB.
func sized(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	v := float64(n)
	i := 0
	for ; v >= 999.5 && i < len(units)-1; i++ {
		v /= 1000
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", v, units[i])
}

// took writes a duration to three digits or so: 1.23 ms, 4.5 s.
func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/float64(time.Microsecond))
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", millis(d))
	case d < 2*time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// folded breaks a text at spaces so that it fits the terminal, or 108
// columns of a file. Lines but the first are indented by so much.
func (a *app) folded(text string, indent int) string {
	width := 108
	if f, ok := a.out.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			width = max(40, min(width, columns-1))
		}
	}
	var b strings.Builder
	column := 0
	for i, word := range strings.Split(text, " ") {
		switch n := utf8.RuneCountInString(word); {
		case i == 0:
			column = n
		case column+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent + n
		default:
			b.WriteByte(' ')
			column += 1 + n
		}
		b.WriteString(word)
	}
	return b.String()
}
