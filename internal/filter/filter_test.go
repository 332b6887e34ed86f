package filter

import (
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attr"
)

// tagged is a universe of eight ids: bit 0 of an id says that it has tag "one", bit 1 tag "two",
// bit 2 tag "a b".
func tagged(tag string) *roaring.Bitmap {
	bit := map[string]uint32{"one": 1, "two": 2, "a b": 4}[tag]
	b := roaring.New()
	for id := range uint32(8) {
		if id&bit != 0 {
			b.Add(id)
		}
	}
	if b.IsEmpty() {
		return nil
	}
	return b
}

// eight is that universe, without attributes.
type eight struct{ unknown []string }

func (*eight) All() *roaring.Bitmap {
	all := roaring.New()
	all.AddRange(0, 8)
	return all
}
func (*eight) Tag(tag string) *roaring.Bitmap             { return tagged(tag) }
func (e *eight) Unknown(tag string)                       { e.unknown = append(e.unknown, tag) }
func (*eight) Attribute(string) (attr.Kind, bool)         { return 0, false }
func (*eight) Attributes() []string                       { return nil }
func (*eight) Match(string, []attr.Range) *roaring.Bitmap { panic("there are no attributes") }

func TestFilter(t *testing.T) {
	tests := []struct {
		expr string
		want []uint32
	}{
		{"one", []uint32{1, 3, 5, 7}},
		{"not one", []uint32{0, 2, 4, 6}},
		{"one and two", []uint32{3, 7}},
		{"one or two", []uint32{1, 2, 3, 5, 6, 7}},
		{`one and "a b"`, []uint32{5, 7}},
		{"one or two and unknown", []uint32{1, 3, 5, 7}},
		{"(one or two) and not (one and two)", []uint32{1, 2, 5, 6}},
		{"not not one", []uint32{1, 3, 5, 7}},
		{"NOT one AND two", []uint32{2, 6}},
		{"unknown", []uint32{}},
		{"not unknown", []uint32{0, 1, 2, 3, 4, 5, 6, 7}},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			n, err := Parse(tt.expr)
			require.NoError(t, err)
			require.False(t, compares(n))
			got, err := n.Find(&eight{})
			require.NoError(t, err)
			require.Equal(t, tt.want, append([]uint32{}, got.ToArray()...))
		})
	}
}

func TestFilterRefuses(t *testing.T) {
	for expr, says := range map[string]string{
		"(":           "byte 1",
		"one two":     `unexpected "two"`,
		"one and":     "end of the expression",
		"and":         "expected a tag",
		")":           "expected a tag",
		`"open`:       "does not end",
		"not":         "expected a tag",
		"one or (two": "expected )",
		`"\q"`:        "does not end",
		"(one) (two)": "unexpected",
		strings.Repeat("(", 300) + "one" + strings.Repeat(")", 300): "nested deeper",
		strings.Repeat("not ", 300) + "one":                         "nested deeper",
		"one " + strings.Repeat("x", 1<<20):                         "byte 4",
		strings.Repeat("one or ", 1<<16) + ") or two":               `one or ) or two`,
	} {
		_, err := Parse(expr)
		require.Error(t, err, expr)
		require.ErrorContains(t, err, says, expr)
		require.Less(t, len(err.Error()), 1000)
	}
	n, err := Parse("  ")
	require.NoError(t, err)
	require.Nil(t, n)
}
