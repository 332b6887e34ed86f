package filter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attr"
)

// shop is a universe of ids with attributes and tags.
type shop struct {
	nodes   []map[string]any
	tags    map[string][]uint32
	unknown []string
}

func (s *shop) All() *roaring.Bitmap {
	all := roaring.New()
	all.AddRange(0, uint64(len(s.nodes)))
	return all
}

func (s *shop) Tag(tag string) *roaring.Bitmap {
	if ids := s.tags[tag]; len(ids) > 0 {
		return roaring.BitmapOf(ids...)
	}
	return nil
}

func (s *shop) Unknown(tag string) { s.unknown = append(s.unknown, tag) }

func (s *shop) Attribute(name string) (attr.Kind, bool) {
	for _, n := range s.nodes {
		if v, err := attr.Of(n[name]); err == nil {
			return v.Kind(), true
		}
	}
	return 0, false
}

func (s *shop) Attributes() (names []string) {
	for _, n := range s.nodes {
		for name := range n {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (s *shop) Match(name string, ranges []attr.Range) *roaring.Bitmap {
	b := roaring.New()
	for id, n := range s.nodes {
		v, err := attr.Of(n[name])
		if err == nil && slices.ContainsFunc(ranges, func(r attr.Range) bool { return r.Holds(v) }) {
			b.Add(uint32(id))
		}
	}
	return b
}

func at(text string) time.Time {
	t, _, err := attr.ParseTime(text)
	if err != nil {
		panic(err)
	}
	return t
}

func newShop() *shop {
	return &shop{
		nodes: []map[string]any{
			{"price": 5, "brand": "A", "sold": true, "released": at("2025-01-01")},
			{"price": 20, "brand": "B", "sold": false, "released": at("2025-01-01T23:59:59.999999Z")},
			{"price": -1.5, "brand": "in", "released": at("2025-01-02")},
			{"price": 100, "unit price": 3},
			{},
		},
		tags: map[string][]uint32{"new": {0, 4}, "in": {1}, "has": {2}, "x<y": {3}, "price<1": {4}, "both": {0}, "brand": {3}},
	}
}

func TestCompare(t *testing.T) {
	tests := []struct {
		expr string
		want []uint32
	}{
		{"price < 20", []uint32{0, 2}},
		{"price <20", []uint32{0, 2}},
		{"price< 20", []uint32{0, 2}},
		{"price<20", []uint32{0, 2}},
		{"price <= 20 and not sold", []uint32{1, 2}},
		{"price > 5", []uint32{1, 3}},
		{"price >= 5", []uint32{0, 1, 3}},
		{"price = 5", []uint32{0}},
		{"price == 5.0", []uint32{0}},
		{"price = 5e0", []uint32{0}},
		{"price != 5", []uint32{1, 2, 3}},
		{"not price = 5", []uint32{1, 2, 3, 4}},
		{"price in (5, 100)", []uint32{0, 3}},
		{"price in(5,100,)x", nil},
		{"price in (5,100)", []uint32{0, 3}},
		{"price not in (5,100)", []uint32{1, 2}},
		{"has price", []uint32{0, 1, 2, 3}},
		{"not has price", []uint32{4}},
		{`brand = "A"`, []uint32{0}},
		{`brand = A`, []uint32{0}},
		{`brand in ("A", "B")`, []uint32{0, 1}},
		{`brand IN (A, "in")`, []uint32{0, 2}},
		{`brand > "A"`, []uint32{1, 2}},
		{`"unit price" < 5`, []uint32{3}},
		{`"unit price"<5`, []uint32{3}},
		{`has "unit price"`, []uint32{3}},
		{"sold", []uint32{0}},
		{"not sold", []uint32{1, 2, 3, 4}},
		{"sold = false", []uint32{1}},
		{"sold != true", []uint32{1}},
		{"released = 2025-01-01", []uint32{0, 1}},
		{"released >= 2025-01-01", []uint32{0, 1, 2}},
		{"released > 2025-01-01", []uint32{2}},
		{"released < 2025-01-02", []uint32{0, 1}},
		{"released <= 2025-01-01", []uint32{0, 1}},
		{"released <= 2025-01-01T00:00:00Z", []uint32{0}},
		{`released = "2025-01-02"`, []uint32{2}},
		{"released > 9999-12-31", []uint32{}},
		{"released <= 9999-12-31", []uint32{0, 1, 2}},
		{"released = 2025-01-01T02:00:00+02:00", []uint32{0}},
		{`price < 20 and brand in ("A", "B") and released >= 2025-01-01 and not sold or new`, []uint32{0, 4}},
		{`(price < 20 or price > 50) and not (brand = A)`, []uint32{2, 3}},
		// Tags of today, also those that are spelt like words of comparisons.
		{"in", []uint32{1}},
		{"in and in", []uint32{1}},
		{"has", []uint32{2}},
		{"has or in", []uint32{1, 2}},
		{"not in", []uint32{0, 2, 3, 4}},
		{"x<y", []uint32{3}},
		{"price<1", []uint32{4}},
		{"new and unheard", []uint32{}},
		{"a=b", []uint32{}},
		{`"brand"`, []uint32{3}},
		{"brand", []uint32{3}},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			n, err := Parse(tt.expr)
			if tt.want == nil {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			got, err := n.Find(newShop())
			require.NoError(t, err)
			require.Equal(t, tt.want, append([]uint32{}, got.ToArray()...))
		})
	}
}

// compares reports whether an expression asks something of an attribute.
func compares(n *Node) bool { return n.Compare != nil || slices.ContainsFunc(n.Args, compares) }

func TestCompareRefuses(t *testing.T) {
	for expr, says := range map[string]string{
		"prise < 20":              `no node has an attribute "prise": did you mean price?`,
		"prise<20":                "did you mean price?",
		"has colour":              `there is brand, price, released, sold, unit price`,
		"new = 1":                 "new is a tag",
		"price = A":               "price is a number, and A a string",
		`price = "20"`:            "leave the quotes out",
		"brand = 20":              `brand is a string, and 20 a number: write "20"`,
		"brand = true":            `write "true"`,
		"price = 2025-01-01":      "price is a number, and 2025-01-01 a time",
		"released > 20":           "released is a time",
		"released > 2025-02-30":   "released is a time",
		"sold > false":            "sold is a bool, which has no order",
		"sold = 1":                "sold is a bool, and 1 a number",
		"price":                   "price is no tag, and a number attribute: compare it, such as price < 20",
		"price<":                  "price< is without a value",
		"price = 1e999":           "price is a number",
		"price in (1, B)":         "price is a number, and B a string",
		"price < 5 and prise < 5": "did you mean price?",
	} {
		n, err := Parse(expr)
		require.NoError(t, err, expr)
		require.True(t, compares(n) || !strings.Contains(expr, " "), expr)
		_, err = n.Find(newShop())
		require.ErrorContains(t, err, says, expr)
	}
	for expr, says := range map[string]string{
		"price <":            "expected a value but found end",
		"price < and":        "expected a value",
		"price <> 20":        `unknown comparison "<>"`,
		"price => 20":        `unknown comparison "=>"`,
		"price in 5":         "expected ( after in",
		"price in ()":        "expected a value",
		"price in (5":        "expected , or ) in the list",
		"price in (5 6)":     "expected , or ) in the list",
		"price in (5,)":      "expected a value",
		"price not in":       "expected ( after in",
		"price < 20 30":      `unexpected "30"`,
		"price < (20)":       "expected a value",
		"has":                "",
		"has price brand":    `unexpected "brand"`,
		"price < 20 brand":   "unexpected",
		"< 20":               `unexpected "20"`,
		`price = "open`:      "does not end",
		"price between 1, 2": "unexpected",
	} {
		_, err := Parse(expr)
		if says == "" {
			require.NoError(t, err, expr)
			continue
		}
		require.ErrorContains(t, err, says, expr)
		require.Less(t, len(err.Error()), 1000)
	}
	s := newShop()
	s.nodes[0]["both"] = true
	n, err := Parse("both")
	require.NoError(t, err)
	_, err = n.Find(s)
	require.ErrorContains(t, err, `both is both a tag and an attribute: write "both" for the tag, or both = true`)
	empty := &shop{}
	n, err = Parse("price < 20")
	require.NoError(t, err)
	_, err = n.Find(empty)
	require.ErrorContains(t, err, "the collection has no attributes")
}

// TestUnknownTags: each tag that no node has is told, and no other.
func TestUnknownTags(t *testing.T) {
	s := newShop()
	n, err := Parse("new or unheard or sold or price<20 or a=b")
	require.NoError(t, err)
	_, err = n.Find(s)
	require.NoError(t, err)
	assert.Equal(t, []string{"unheard", "a=b"}, s.unknown)
}

func FuzzFilter(f *testing.F) {
	for _, s := range []string{
		"one", "not (one or \"a b\") and two", "((", `"\`, "or", "\xff and \x00",
		`price < 20 and brand in ("A", B) and released >= 2025-01-01 and not sold`, "price<20", "price< 20", "has price", "price not in (1,2)", "x = ", "in in (in)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := Parse(s)
		if err != nil || n == nil {
			return
		}
		in := newShop()
		b, err := n.Find(in)
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "filter: "), err)
			require.False(t, strings.Contains(fmt.Sprint(err), "%!"))
			return
		}
		require.LessOrEqual(t, b.GetCardinality(), uint64(len(in.nodes)))
		if !compares(n) {
			_, err := n.Find(&eight{})
			require.NoError(t, err, "an expression of tags alone is never an error where there are no attributes")
		}
	})
}
