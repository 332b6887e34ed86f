package postgres

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/filter"
	"github.com/flashdb/flashdb/remote"
	"github.com/flashdb/flashdb/remote/conformance"
)

func TestFilter(t *testing.T) {
	for text, want := range map[string]struct {
		sql  string
		args []any
	}{
		"":                          {"true", nil},
		"a":                         {"tags @> $1::text[]", []any{[]string{"a"}}},
		"not a":                     {"(NOT tags @> $1::text[])", []any{[]string{"a"}}},
		"a and b":                   {"(tags @> $1::text[])", []any{[]string{"a", "b"}}},
		"a or b or c":               {"(tags && $1::text[])", []any{[]string{"a", "b", "c"}}},
		`a and ("b'; --" or not c)`: {"(((NOT tags @> $1::text[]) OR tags && $2::text[]) AND tags @> $3::text[])", []any{[]string{"c"}, []string{"b'; --"}, []string{"a"}}},
		`"a\x00"`:                   {"false", nil},
		`a or "\xff"`:               {"(false OR tags && $1::text[])", []any{[]string{"a"}}},
	} {
		f, err := filter.Parse(text)
		require.NoError(t, err)
		var q query
		sql, err := q.where(f)
		require.NoError(t, err)
		assert.Equal(t, want.sql, sql, text)
		assert.Equal(t, want.args, q.args, text)
	}
	var q query
	span := &remote.Filter{Span: &filter.Span{From: "a'", To: "b"}}
	sql, err := q.where(&remote.Filter{Op: remote.Or, Args: []*remote.Filter{span, {Tag: "c"}}})
	require.NoError(t, err)
	assert.Equal(t, `(EXISTS (SELECT FROM unnest(tags) AS tag WHERE tag >= $1::text COLLATE "C" AND tag < $2::text COLLATE "C") OR tags && $3::text[])`, sql)
	assert.Equal(t, []any{"a'", "b", []string{"c"}}, q.args)
	for _, f := range []*remote.Filter{
		{Op: "xor"},
		{Op: remote.Not},
		{Op: remote.And, Args: []*remote.Filter{{Tag: "a"}, {Op: remote.Or, Args: []*remote.Filter{{Op: "1 = 1; --"}}}}},
	} {
		_, err := new(query).where(f)
		assert.ErrorIs(t, err, flashdb.ErrInvalid)
	}
}

// tokens of a condition. Nothing else may be in one.
var tokens = regexp.MustCompile(`^(?:\(|\)|NOT |true|false| AND | OR |tags (@>|&&) \$(\d+)::text\[\])`)

// A condition evaluates what where writes.
type condition struct {
	t    *testing.T
	text string
	args []any
	tags []string
}

// next takes one token, and returns it with its parts.
func (c *condition) next() []string {
	m := tokens.FindStringSubmatch(c.text)
	require.NotNil(c.t, m, "%q", c.text)
	c.text = c.text[len(m[0]):]
	return m
}

func (c *condition) value() bool {
	m := c.next()
	switch {
	case m[0] == "true":
		return true
	case m[0] == "false":
		return false
	case m[1] != "":
		n, err := strconv.Atoi(m[2])
		require.NoError(c.t, err)
		of := c.args[n-1].([]string)
		has := func(tag string) bool { return slices.Contains(c.tags, tag) }
		if m[1] == "&&" {
			return slices.ContainsFunc(of, has)
		}
		return !slices.ContainsFunc(of, func(tag string) bool { return !has(tag) })
	}
	require.Equal(c.t, "(", m[0])
	if strings.HasPrefix(c.text, "NOT ") {
		c.next()
		v := !c.value()
		require.Equal(c.t, ")", c.next()[0])
		return v
	}
	v, op := c.value(), ""
	for {
		between := c.next()[0]
		if between == ")" {
			return v
		}
		require.True(c.t, op == "" || op == between, "one operator between brackets")
		op = between
		if w := c.value(); op == " AND " {
			v = v && w
		} else {
			v = v || w
		}
	}
}

// FuzzFilter compares conditions with the filters that they stand for. No tag is in the text of a
// condition, as the text holds the tokens alone.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{"a", "not (a or b) and c", `a and "b'; drop table x" or not not "$1"`, `"\x00" or a`, "a and a and not a", "a or b or c", `not "\xff"`} {
		f.Add(text, "a b")
		f.Add(text, "c")
	}
	f.Fuzz(func(t *testing.T, text, tags string) {
		n, err := filter.Parse(text)
		if err != nil {
			t.Skip()
		}
		var q query
		sql, err := q.where(n)
		require.NoError(t, err)
		var row []string
		for _, tag := range strings.Fields(tags) {
			if storable(tag) {
				row = append(row, tag)
			}
		}
		c := condition{t: t, text: sql, args: q.args, tags: row}
		assert.Equal(t, conformance.Matches(n, row), c.value(), "%s", sql)
		assert.Empty(t, c.text)
		for _, arg := range q.args {
			for _, tag := range arg.([]string) {
				assert.True(t, storable(tag))
			}
		}
	})
}
