package show

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text returns a key or other stored text fit for a terminal: as it is when it is printable UTF-8,
// Go-quoted otherwise, so that no key can move the cursor.
func Text(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// Word returns text as a person types it into a shell: in quotes where that is needed. Backslashes
// alone need none, as they are in paths of Windows.
func Word(s string) string {
	if s != "" && s == Text(s) && !strings.ContainsAny(s, " \t\n\"'`$&|;<>()*?[]#~!{}=") {
		return s
	}
	return "'" + strings.ReplaceAll(Text(s), "'", `'\''`) + "'"
}

// JSON returns s for a JSON string, which holds Unicode only: Go-quoted when it is not UTF-8, so
// that different keys stay different.
func JSON(s string) string {
	if !utf8.ValidString(s) {
		return strconv.Quote(s)
	}
	return s
}

// JSONs is JSON of each, and a list even of none.
func JSONs(texts []string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = JSON(s)
	}
	return out
}

// Clip shortens s to at most width runes by taking out its middle.
func Clip(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	head := (width - 1) / 2
	tail := width - 1 - head
	return string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
}

// DidYouMean asks for what an unknown word may have been, or is empty.
func DidYouMean(words []string) string {
	if len(words) == 0 {
		return ""
	}
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = Text(w)
	}
	return "did you mean " + strings.Join(texts, " or ") + "?"
}
