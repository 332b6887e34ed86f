package codec

import (
	"fmt"
	"strconv"
	"strings"
)

// Error says what is wrong with an input file and where.
type Error struct {
	File    string // as the caller named it
	Section string // the part of File that Offset counts from, such as `entry "W.npy"`; empty: the file
	Line    int    // 1-based line of a text file; 0 in binary formats
	Offset  int64  // bytes from the start of Section, after decompression
	Cause   error
}

// Error is one line: file, section, line, byte if it is not the first, cause.
func (e *Error) Error() string {
	var s strings.Builder
	s.WriteString(e.File)
	if e.Section != "" {
		s.WriteString(": " + e.Section)
	}
	if e.Line > 0 {
		fmt.Fprintf(&s, ": line %d", e.Line)
	}
	if e.Offset > 0 {
		fmt.Fprintf(&s, ": byte %d", e.Offset)
	}
	fmt.Fprintf(&s, ": %v", e.Cause)
	return s.String()
}

func (e *Error) Unwrap() error { return e.Cause }

// quote makes a name from a file fit for a message: printable, on one line, and of a readable
// length.
func quote(name string) string {
	const most = 80
	if len(name) > most {
		return strconv.Quote(name[:most]) + "..."
	}
	return strconv.Quote(name)
}

// list quotes the first few of names for a message.
func list(names []string) string {
	const most = 8
	var s strings.Builder
	for i, name := range names {
		if i == most {
			fmt.Fprintf(&s, " and %d more", len(names)-most)
			break
		}
		if i > 0 {
			s.WriteString(", ")
		}
		s.WriteString(quote(name))
	}
	return s.String()
}
