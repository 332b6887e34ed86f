package filter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attr"
)

// written writes an expression without comparisons.
func written(n *Node) string {
	if n.Op == "" {
		return n.Tag
	}
	args := make([]string, len(n.Args))
	for i, a := range n.Args {
		args[i] = written(a)
	}
	return fmt.Sprintf("%s(%s)", n.Op, strings.Join(args, ", "))
}

func TestLower(t *testing.T) {
	kinds := map[string]attr.Kind{"price": attr.Number, "brand": attr.String, "sold": attr.Bool, "released": attr.Time}
	leaf := func(name string, r attr.Range) *Node {
		cut := func(c attr.Cut) string {
			if c.Kind() == 0 {
				return ""
			}
			return fmt.Sprint(c.Value, map[bool]string{true: "+"}[c.After])
		}
		return &Node{Tag: name + "[" + cut(r.From) + ":" + cut(r.To) + "]"}
	}
	for text, want := range map[string]string{
		"a and not b":                "and(a, not(b))",
		"sold":                       "or(sold, sold[true:true+])",
		`"sold"`:                     "sold",
		"price":                      "price",
		"price < 20 or a":            "or(price[:20], a)",
		"price<20":                   "price[:20]",
		"other<20":                   "other<20",
		"price > 20":                 "price[20+:]",
		"price >= 20":                "price[20:]",
		"price <= 20":                "price[:20+]",
		"price = 20":                 "price[20:20+]",
		"price != 20":                "and(price[:], not(price[20:20+]))",
		"has price":                  "price[:]",
		`brand in (A, B)`:            "or(brand[A:A+], brand[B:B+])",
		`brand not in ("A")`:         "and(brand[:], not(brand[A:A+]))",
		"released > 9999-12-31":      "and(released[:], not(released[:]))",
		"not (sold and price >= -1)": "not(and(or(sold, sold[true:true+]), price[-1:]))",
	} {
		n, err := Parse(text)
		require.NoError(t, err, text)
		n, err = n.Lower(kinds, leaf)
		require.NoError(t, err, text)
		assert.Equal(t, want, written(n), text)
	}
	for text, says := range map[string]string{
		"prise < 20":     "did you mean price?",
		`price = "A"`:    "price is a number",
		"sold < true":    "which has no order",
		"a or price<":    "without a value",
		"not (size = 1)": `no node has an attribute "size"`,
	} {
		n, err := Parse(text)
		if err == nil {
			_, err = n.Lower(kinds, leaf)
		}
		assert.ErrorContains(t, err, says, text)
	}
}
