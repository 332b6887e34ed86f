package remote

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/attr"
	"github.com/flashdb/flashdb/internal/filter"
)

// An engine knows tags alone. An attribute is a tag there that begins with attributeMark, which no
// tag of a user may do:
//
//	mark name mark value
//
// A name has no control characters. A value is 16 hexadecimal digits, whose order is that of the
// values, or a text. So the values of an attribute between two others are the tags between two
// texts, which is a Span.
const (
	attributeMark = "\x02"
	behindMark    = "\x03" // what follows all tags that begin with attributeMark
	// behindValue makes the first text behind a value, because no text has a zero byte.
	behindValue = "\x01"
)

// attributeTag returns the tag for a value of an attribute.
func attributeTag(name string, v attr.Value) string {
	if !v.Kind().Fixed() {
		return attributeMark + name + attributeMark + v.Text()
	}
	return fmt.Sprintf("%s%s%s%016x", attributeMark, name, attributeMark, v.Bits())
}

// attributeLeaf returns the leaf of a Filter for the values of an attribute in a range.
func attributeLeaf(name string, r attr.Range) *Filter {
	if r.From.Kind() != 0 && r == attr.Point(r.From.Value) {
		return &Filter{Tag: attributeTag(name, r.From.Value)}
	}
	from, to := attributeMark+name+attributeMark, attributeMark+name+behindMark
	if r.From.Kind() != 0 {
		from = attributeTag(name, r.From.Value)
		if r.From.After {
			from += behindValue
		}
	}
	if r.To.Kind() != 0 {
		to = attributeTag(name, r.To.Value)
		if r.To.After {
			to += behindValue
		}
	}
	return &Filter{Span: &filter.Span{From: from, To: to}}
}

// tagsOf returns the tags of a node in an engine: its own, and those for its attributes.
func (v *Version) tagsOf(n *flashdb.Node) ([]string, error) {
	for _, tag := range n.Tags {
		if strings.HasPrefix(tag, attributeMark) {
			return nil, fmt.Errorf("node %q: tag %q: %w: a tag in an engine does not begin with a control character 2", n.Key, tag, flashdb.ErrInvalid)
		}
	}
	tags := slices.Clip(n.Tags)
	for name, x := range n.Attributes {
		if x == nil {
			continue
		}
		value, err := attr.Of(x)
		if err == nil {
			err = attr.CheckName(name)
		}
		if err == nil && strings.ContainsRune(value.Text(), 0) {
			err = fmt.Errorf("%q has a zero byte, which not every engine stores", value.Text())
		}
		if err == nil && v.Attributes[name] != value.Kind().String() {
			err = v.wrongKind(name, value.Kind())
		}
		if err != nil {
			return nil, fmt.Errorf("node %q: attribute %q: %w: %w", n.Key, name, flashdb.ErrInvalid, err)
		}
		tags = append(tags, attributeTag(name, value))
	}
	return tags, nil
}

// wrongKind is the error for a value of another type than the version's.
func (v *Version) wrongKind(name string, kind attr.Kind) error {
	if have, ok := v.Attributes[name]; ok {
		return fmt.Errorf("it is a %v, and in this version a %s", kind, have)
	}
	return fmt.Errorf("this version has no such attribute: push a collection that has it")
}

// attributesOf takes the tags of a row apart into those of the user and attributes.
func (v *Version) attributesOf(tags []string) (own []string, attributes flashdb.Attributes, _ error) {
	for _, tag := range tags {
		rest, ok := strings.CutPrefix(tag, attributeMark)
		if !ok {
			own = append(own, tag)
			continue
		}
		name, text, _ := strings.Cut(rest, attributeMark)
		value, err := v.value(name, text)
		if err != nil {
			return nil, nil, fmt.Errorf("attribute %q: %w: %w", name, ErrForeign, err)
		}
		if attributes == nil {
			attributes = flashdb.Attributes{}
		}
		attributes[name] = value.Any()
	}
	return own, attributes, nil
}

// value returns the value that a tag has for an attribute.
func (v *Version) value(name, text string) (attr.Value, error) {
	kind, err := attr.ParseKind(v.Attributes[name])
	if err != nil {
		return attr.Value{}, err
	}
	if !kind.Fixed() {
		return attr.OfString(text)
	}
	bits, err := strconv.ParseUint(text, 16, 64)
	if err != nil || len(text) != 16 {
		return attr.Value{}, fmt.Errorf("%q is not 16 hexadecimal digits", text)
	}
	return attr.OfBits(kind, bits)
}

// filter parses an expression of tags and attributes.
func (v *Version) filter(text string) (*Filter, error) {
	f, err := filter.Parse(text)
	if err == nil && f != nil {
		kinds := map[string]attr.Kind{}
		for name, kind := range v.Attributes {
			if kinds[name], err = attr.ParseKind(kind); err != nil {
				return nil, fmt.Errorf("version %s: attribute %q: %w: %w", v.ID, name, ErrForeign, err)
			}
		}
		f, err = f.Lower(kinds, attributeLeaf)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", flashdb.ErrInvalid, err)
	}
	return f, nil
}
