package postgres

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

// A query holds the arguments of a statement. Values reach the server as arguments only.
type query struct{ args []any }

// arg adds an argument and returns how the statement names it.
func (q *query) arg(value any) string {
	q.args = append(q.args, value)
	return "$" + strconv.Itoa(len(q.args))
}

// maxArgs is a little less than the number of arguments that the protocol allows.
const maxArgs = 65_000

// where returns the condition that rows match a filter. The tags of one `and` are one argument, and
// so are those of one `or`.
func (q *query) where(f *remote.Filter) (string, error) {
	if f == nil {
		return "true", nil
	}
	if len(q.args) > maxArgs {
		return "", fmt.Errorf("filter: %w: it has more than %d parts", flashdb.ErrInvalid, maxArgs)
	}
	switch f.Op {
	case "":
		if f.Span != nil {
			return q.between(f.Span.From, f.Span.To), nil
		}
		if !storable(f.Tag) {
			return "false", nil // no row has it
		}
		return "tags @> " + q.arg([]string{f.Tag}) + "::text[]", nil
	case remote.Not:
		if len(f.Args) != 1 {
			return "", fmt.Errorf("filter: %w: not has %d arguments, want 1", flashdb.ErrInvalid, len(f.Args))
		}
		inner, err := q.where(f.Args[0])
		return "(NOT " + inner + ")", err
	case remote.And:
		return q.join(f, "true", "tags @> ", " AND ")
	case remote.Or:
		return q.join(f, "false", "tags && ", " OR ")
	}
	return "", fmt.Errorf("filter: %w: unknown operator %q", flashdb.ErrInvalid, f.Op)
}

// between returns the condition that a row has a tag from one text on and before another.
func (q *query) between(from, to string) string {
	if !storable(from) || !storable(to) {
		return "false"
	}
	return `EXISTS (SELECT FROM unnest(tags) AS tag WHERE tag >= ` + q.arg(from) + `::text COLLATE "C" AND tag < ` + q.arg(to) + `::text COLLATE "C")`
}

// join returns the conditions of an `and` or an `or`. none is what it means without arguments.
func (q *query) join(f *remote.Filter, none, tagged, between string) (string, error) {
	var tags, parts []string
	for _, a := range f.Args {
		if a.Op == "" && a.Span == nil && storable(a.Tag) {
			tags = append(tags, a.Tag)
			continue
		}
		part, err := q.where(a)
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	if len(tags) > 0 {
		parts = append(parts, tagged+q.arg(tags)+"::text[]")
	}
	if len(parts) == 0 {
		return none, nil
	}
	return "(" + strings.Join(parts, between) + ")", nil
}

// storable reports whether the server can store a text: it is UTF-8 without a zero byte.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// storables returns the keys that the server can store. No row has another one.
func storables(keys []string) []string {
	kept := make([]string, 0, len(keys))
	for _, key := range keys {
		if storable(key) {
			kept = append(kept, key)
		}
	}
	return kept
}
