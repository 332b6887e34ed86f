package filter

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/internal/attr"
	"github.com/flashdb/flashdb/internal/nearest"
)

// A Source is what an expression is evaluated on.
type Source interface {
	// All returns every live id, from which `not` subtracts.
	All() *roaring.Bitmap
	// Tag returns the ids that have a tag, or nil.
	Tag(tag string) *roaring.Bitmap
	// Unknown is told of each tag that no node has.
	Unknown(tag string)
	// Attribute returns the type of an attribute that some node has.
	Attribute(name string) (attr.Kind, bool)
	// Attributes returns the names of all attributes, for errors.
	Attributes() []string
	// Match returns the ids whose value of an attribute is in one of some ranges, as a bitmap of
	// the caller's.
	Match(name string, ranges []attr.Range) *roaring.Bitmap
}

// Find returns the ids that match, as a bitmap that the caller owns. An attribute that no node has,
// or a value of another type than its, is an error.
//
// A bare word is a tag. If no node has that tag, it may also be an attribute of type bool, which
// must then be true, or a comparison written as one word, such as price<20. Where the name in such
// a word is a letter away from that of an attribute, it is an error.
func (n *Node) Find(in Source) (*roaring.Bitmap, error) {
	switch {
	case n.Op == Not:
		b, err := n.Args[0].Find(in)
		if err != nil {
			return nil, err
		}
		return roaring.AndNot(in.All(), b), nil
	case n.Op != "":
		return n.join(in)
	case n.Compare != nil:
		return n.Compare.find(in)
	}
	tagged := in.Tag(n.Tag)
	known := tagged != nil && !tagged.IsEmpty()
	if !n.Quoted {
		if kind, ok := in.Attribute(n.Tag); ok && (kind == attr.Bool || !known) {
			return bare(in, n.Tag, kind, known)
		}
		if name, op, rest, ok := split(n.Tag); ok && !known {
			if _, ok := in.Attribute(name); ok {
				if rest == "" {
					return nil, fmt.Errorf("filter: %s is without a value: write %s %s 20", n.Tag, name, op)
				}
				return (&Compare{Name: name, Op: op, Values: []Literal{{Text: rest}}}).find(in)
			}
			if mistyped(name, in.Attributes()) {
				return nil, fmt.Errorf("filter: %w", (&Compare{Name: name}).unknown(in))
			}
		}
	}
	if !known {
		in.Unknown(n.Tag)
		return roaring.New(), nil
	}
	return tagged.Clone(), nil
}

// mistyped reports whether a name is a letter or so away from one of others.
func mistyped(name string, others []string) bool {
	return slices.ContainsFunc(nearest.Among(name, others, 2), func(other string) bool {
		longer := len(other) - len(name)
		return max(longer, -longer) <= 1 && len(name) > 2
	})
}

func (n *Node) join(in Source) (*roaring.Bitmap, error) {
	b, err := n.Args[0].Find(in)
	if err != nil {
		return nil, err
	}
	for _, a := range n.Args[1:] {
		other, err := a.Find(in)
		if err != nil {
			return nil, err
		}
		if n.Op == And {
			b.And(other)
		} else {
			b.Or(other)
		}
	}
	return b, nil
}

// bare finds an attribute that is named alone: one of type bool, or one that is no tag.
func bare(in Source, name string, kind attr.Kind, tag bool) (*roaring.Bitmap, error) {
	switch {
	case tag:
		return nil, fmt.Errorf("filter: %s is both a tag and an attribute: write %q for the tag, or %s = true", name, name, name)
	case kind != attr.Bool:
		return nil, fmt.Errorf("filter: %s is no tag, and a %v attribute: compare it, such as %s %s, or write has %s", name, kind, name, example[kind], name)
	}
	return in.Match(name, []attr.Range{attr.Point(attr.OfBool(true))}), nil
}

// example is how to compare a kind.
var example = map[attr.Kind]string{attr.Number: "< 20", attr.String: `= "A"`, attr.Bool: "= true", attr.Time: ">= 2025-01-01"}

func (c *Compare) find(in Source) (*roaring.Bitmap, error) {
	kind, ok := in.Attribute(c.Name)
	if !ok {
		return nil, fmt.Errorf("filter: %w", c.unknown(in))
	}
	ranges, not, err := c.ranges(kind)
	if err != nil {
		return nil, err
	}
	found := in.Match(c.Name, ranges)
	if !not {
		return found, nil
	}
	b := in.Match(c.Name, []attr.Range{{}})
	b.AndNot(found)
	return b, nil
}

// ranges returns which values of an attribute of a kind match: those in one of the ranges, or with
// not, those in none of them.
func (c *Compare) ranges(kind attr.Kind) (ranges []attr.Range, not bool, err error) {
	if c.Op == Has {
		return []attr.Range{{}}, false, nil
	}
	if kind == attr.Bool && !slices.Contains([]Comparison{Equal, NotEqual, In, NotIn}, c.Op) {
		return nil, false, fmt.Errorf("filter: %s is a bool, which has no order: write %s, not %s, or %s = true", c.Name, c.Name, c.Name, c.Name)
	}
	for _, value := range c.Values {
		point, err := value.point(c.Name, kind)
		if err != nil {
			return nil, false, err
		}
		ranges = append(ranges, point)
	}
	p := ranges[0]
	switch c.Op {
	case NotEqual, NotIn:
		return ranges, true, nil
	case Less:
		return []attr.Range{{To: p.From}}, false, nil
	case LessEqual:
		return []attr.Range{{To: p.To}}, false, nil
	case Greater:
		if p.To.Kind() == 0 { // the last day there is
			return nil, false, nil
		}
		return []attr.Range{{From: p.To}}, false, nil
	case GreaterEqual:
		return []attr.Range{{From: p.From}}, false, nil
	}
	return ranges, false, nil
}

// unknown is the error for an attribute that no node has.
func (c *Compare) unknown(in Source) error {
	tagged := in.Tag(c.Name)
	return c.unknownAmong(in.Attributes(), tagged != nil && !tagged.IsEmpty())
}

// unknownAmong is unknown where these attributes are known, and whether the name is a tag.
func (c *Compare) unknownAmong(names []string, tag bool) error {
	what := "the collection has no attributes"
	near := nearest.Among(c.Name, names, 2)
	switch {
	case tag:
		what = fmt.Sprintf("%s is a tag, which is written alone", c.Name)
	case len(near) > 0:
		what = fmt.Sprintf("did you mean %s?", strings.Join(near, " or "))
	case len(names) > 0:
		const most = 8
		what = "there is " + strings.Join(names[:min(most, len(names))], ", ")
		if len(names) > most {
			what += fmt.Sprintf(" and %d more", len(names)-most)
		}
	}
	return fmt.Errorf("no node has an attribute %q: %s", c.Name, what)
}

// UnknownAttribute is the error for an attribute that no node has, with the nearest name.
func UnknownAttribute(in Source, name string) error { return (&Compare{Name: name}).unknown(in) }

// point returns the range that a value stands for: a day is all of its 24 hours in UTC.
func (l Literal) point(name string, kind attr.Kind) (attr.Range, error) {
	looks := attr.String
	if !l.Quoted {
		looks = attr.Guess(l.Text)
	}
	switch {
	case kind == attr.Time:
		return l.times(name)
	case looks == kind:
	case kind == attr.String:
		return attr.Range{}, fmt.Errorf("filter: %s is a string, and %s a %v: write %q", name, l, looks, l.Text)
	case l.Quoted && attr.Guess(l.Text) == kind:
		return attr.Range{}, fmt.Errorf("filter: %s is a %v, and %s a string: leave the quotes out", name, kind, l)
	default:
		return attr.Range{}, fmt.Errorf("filter: %s is a %v, and %s a %v: compare it such as %s %s", name, kind, l, looks, name, example[kind])
	}
	v, err := attr.Parse(kind, l.Text)
	if err != nil {
		return attr.Range{}, fmt.Errorf("filter: %s: %w", name, err)
	}
	return attr.Point(v), nil
}

func (l Literal) times(name string) (attr.Range, error) {
	t, day, err := attr.ParseTime(l.Text)
	if err != nil {
		return attr.Range{}, fmt.Errorf("filter: %s is a time: %w", name, err)
	}
	from, err := attr.OfTime(t)
	if err != nil {
		return attr.Range{}, fmt.Errorf("filter: %s: %w", name, err)
	}
	if !day {
		return attr.Point(from), nil
	}
	r := attr.Range{From: attr.Cut{Value: from}}
	if next, err := attr.OfTime(t.Add(24 * time.Hour)); err == nil { // there is none behind year 9999
		r.To = attr.Cut{Value: next}
	}
	return r, nil
}
