package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// colorModes are what --color takes.
var colorModes = []string{"auto", "always", "never"}

// A colorFlag is the value of --color.
type colorFlag string

func (f *colorFlag) Type() string   { return "when" }
func (f *colorFlag) String() string { return string(*f) }

func (f *colorFlag) Set(s string) error {
	if !slices.Contains(colorModes, s) {
		return fmt.Errorf("use %s", strings.Join(colorModes, ", "))
	}
	*f = colorFlag(s)
	return nil
}

// on tells whether what is written to w is coloured. Without a wish only a
// terminal is, one that knows colours and whose user has not declined them
// (https://no-color.org).
func (f colorFlag) on(w io.Writer) bool {
	switch f {
	case "always":
		return true
	case "never":
		return false
	}
	term := os.Getenv("TERM")
	if runtime.GOOS == "windows" { // consoles before Windows Terminal print the escapes
		return os.Getenv("NO_COLOR") == "" && os.Getenv("WT_SESSION") != "" && isTerminal(w)
	}
	return os.Getenv("NO_COLOR") == "" && term != "" && term != "dumb" && isTerminal(w)
}

// The two colours there are: what is not the result is dim, errors are red.
const (
	dimOn   = "\x1b[2m"
	redOn   = "\x1b[31m"
	colored = "\x1b[0m"
)

// dim writes the lines of a text as beside the point.
func (a *app) dim(text string) string {
	if !a.color.on(a.out) {
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

// red writes the text of an error.
func (a *app) red(text string) string {
	if !a.color.on(a.err) {
		return text
	}
	return redOn + text + colored
}
