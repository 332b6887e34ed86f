// Package fault words what decoder and decoder/weights refuse: one error of one line that lists
// every fault, and names of a file in quotes.
package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// List collects what is wrong with a spec, its tensors or options, in the order it was found.
type List []error

// Add adds a fault.
func (l *List) Add(format string, args ...any) { *l = append(*l, fmt.Errorf(format, args...)) }

// shownFaults bounds the length of a message.
const shownFaults = 12

// Err returns nil if there are no faults and otherwise one error of one line that lists them after
// subject.
func (l List) Err(subject string) error {
	switch len(l) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s: %w", subject, l[0])
	}
	return &listError{subject: subject, faults: l}
}

// listError is errors.Join on one line.
type listError struct {
	subject string
	faults  List
}

func (e *listError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d faults", e.subject, len(e.faults))
	for i, err := range e.faults {
		if i == shownFaults {
			fmt.Fprintf(&b, "; and %d more", len(e.faults)-i)
			break
		}
		fmt.Fprintf(&b, "; (%d) %v", i+1, err)
	}
	return b.String()
}

func (e *listError) Unwrap() []error { return e.faults }

// Word checks a field that holds one of a few words or nothing.
func (l *List) Word(field, got string, want ...string) {
	if got != "" && !slices.Contains(want, got) {
		l.Add("%s is %q; want one of %s", field, got, Words(want...))
	}
}

// Words joins words with commas.
func Words[S ~string](words ...S) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = string(w)
	}
	return strings.Join(quoted, ", ")
}

// JSON words an error of encoding/json for a reader who knows the spec and not its Go type.
func JSON(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		field := wrong.Field
		if field == "" {
			field = "the document"
		}
		return fmt.Errorf("%s is a JSON %s; want %s (byte %d)", field, wrong.Value, jsonName(wrong.Type.String()), wrong.Offset)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("no valid JSON: %w (byte %d)", err, syntax.Offset)
	}
	return err
}

// jsonName gives the JSON word for a Go type of a Spec's field.
func jsonName(goType string) string {
	switch {
	case goType == "int":
		return "a whole number"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case strings.HasPrefix(goType, "[]"):
		return "an array"
	case strings.HasSuffix(goType, "Spec"):
		return "an object"
	}
	return "a string"
}

// shownKeys bounds the length of a message that lists keys.
const shownKeys = 12

// Quoted lists keys for a message.
func Quoted(keys []string) string {
	if len(keys) == 0 {
		return "no tensors"
	}
	var b strings.Builder
	for i, k := range keys {
		if i == shownKeys {
			fmt.Fprintf(&b, " and %d more", len(keys)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if k == "" { // of a .npy
			k = "a tensor without a name"
		} else {
			k = Quote(k)
		}
		b.WriteString(k)
	}
	return b.String()
}

// Quote makes a key of a file fit for a message.
func Quote(key string) string {
	const most = 80
	if len(key) > most {
		return strconv.Quote(key[:most]) + "..."
	}
	return strconv.Quote(key)
}
