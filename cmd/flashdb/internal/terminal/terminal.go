// Package terminal writes what the command shows on a terminal: the progress of long work, colours,
// and text wrapped to the width.
package terminal

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Is tells whether a stream is a file that a person looks at or types in.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width is how many columns a line of text may have on w: those of a terminal, and at most 108.
func Width(w io.Writer) int {
	width := 108
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			width = max(40, min(width, columns-1))
		}
	}
	return width
}

// Fold breaks a text at spaces so that it fits w: see Width. Lines but the first are indented by so
// much.
func Fold(w io.Writer, text string, indent int) string {
	width := Width(w)
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
