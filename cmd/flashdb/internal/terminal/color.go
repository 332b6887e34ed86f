package terminal

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// ColorModes are what --color takes.
var ColorModes = []string{"auto", "always", "never"}

// A Color is the value of --color: one of ColorModes. It is a pflag.Value.
type Color string

// Type implements pflag.Value.
func (f *Color) Type() string { return "when" }

// String implements pflag.Value.
func (f *Color) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *Color) Set(s string) error {
	if !slices.Contains(ColorModes, s) {
		return fmt.Errorf("use %s", strings.Join(ColorModes, ", "))
	}
	*f = Color(s)
	return nil
}

// on tells whether what is written to w is coloured. Without a wish only a terminal is, one that
// knows colours and whose user has not declined them (https://no-color.org).
func (f Color) on(w io.Writer) bool {
	switch f {
	case "always":
		return true
	case "never":
		return false
	}
	term := os.Getenv("TERM")
	if runtime.GOOS == "windows" { // consoles before Windows Terminal print the escapes
		return os.Getenv("NO_COLOR") == "" && os.Getenv("WT_SESSION") != "" && Is(w)
	}
	return os.Getenv("NO_COLOR") == "" && term != "" && term != "dumb" && Is(w)
}

// The two colours there are: what is not the result is dim, errors are red.
const (
	dimOn   = "\x1b[2m"
	redOn   = "\x1b[31m"
	colored = "\x1b[0m"
)

// Dim marks the lines of a text, which goes to w, as beside the point.
func (f Color) Dim(w io.Writer, text string) string {
	if !f.on(w) {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = dimOn + line + colored
		}
	}
	return strings.Join(lines, "\n")
}

// Red marks the text of an error, which goes to w.
func (f Color) Red(w io.Writer, text string) string {
	if !f.on(w) {
		return text
	}
	return redOn + text + colored
}
