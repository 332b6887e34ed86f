package filter

import (
	"fmt"
	"maps"
	"slices"

	"github.com/flashdb/flashdb/internal/attr"
)

// Lower returns the expression without comparisons, for an engine that knows tags alone. A leaf
// that asks for values of an attribute in a range becomes leaf(name, range); the zero Range is all
// values. kinds are the types of all attributes.
//
// A bare word is a tag here, or an attribute of type bool that is true, or a comparison written as
// one word. Unlike with Find, it may be the first two at a time, as it is not known which tags
// there are.
func (n *Node) Lower(kinds map[string]attr.Kind, leaf func(name string, r attr.Range) *Node) (*Node, error) {
	switch {
	case n.Op != "":
		all := make([]*Node, len(n.Args))
		for i, a := range n.Args {
			var err error
			if all[i], err = a.Lower(kinds, leaf); err != nil {
				return nil, err
			}
		}
		return &Node{Op: n.Op, Args: all}, nil
	case n.Compare != nil:
		return n.Compare.lower(kinds, leaf)
	case n.Quoted:
		return n, nil
	}
	if kinds[n.Tag] == attr.Bool {
		return &Node{Op: Or, Args: []*Node{n, leaf(n.Tag, attr.Point(attr.OfBool(true)))}}, nil
	}
	if name, op, rest, ok := split(n.Tag); ok && kinds[name] != 0 {
		if rest == "" {
			return nil, fmt.Errorf("filter: %s is without a value: write %s %s 20", n.Tag, name, op)
		}
		return (&Compare{Name: name, Op: op, Values: []Literal{{Text: rest}}}).lower(kinds, leaf)
	}
	return n, nil
}

func (c *Compare) lower(kinds map[string]attr.Kind, leaf func(name string, r attr.Range) *Node) (*Node, error) {
	kind, ok := kinds[c.Name]
	if !ok {
		return nil, fmt.Errorf("filter: %w", c.unknownAmong(slices.Sorted(maps.Keys(kinds)), false))
	}
	ranges, not, err := c.ranges(kind)
	if err != nil {
		return nil, err
	}
	any := make([]*Node, len(ranges))
	for i, r := range ranges {
		any[i] = leaf(c.Name, r)
	}
	found := &Node{Op: Or, Args: any}
	if len(any) == 1 {
		found = any[0]
	}
	has := leaf(c.Name, attr.Range{})
	switch {
	case len(any) == 0: // none
		return &Node{Op: And, Args: []*Node{has, {Op: Not, Args: []*Node{has}}}}, nil
	case not:
		return &Node{Op: And, Args: []*Node{has, {Op: Not, Args: []*Node{found}}}}, nil
	}
	return found, nil
}
