package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/internal/attr"
	"github.com/flashdb/flashdb/internal/codec"
)

// A typedName is the name of an attribute on the command line, and its type where that is given.
type typedName struct {
	name string
	kind attr.Kind // 0: not given
}

// parseTypedName reads name or name:type.
func parseTypedName(text string) (typedName, error) {
	n := typedName{name: text}
	if at := strings.LastIndexByte(text, ':'); at >= 0 {
		kind, err := attr.ParseKind(text[at+1:])
		if err != nil {
			return n, fmt.Errorf("%q: %w", text, err)
		}
		n = typedName{text[:at], kind}
	}
	return n, attr.CheckName(n.name)
}

// kindsOf returns the types of the attributes that a collection has.
func kindsOf(ctx context.Context, db database, collection string) (map[string]attr.Kind, error) {
	of, err := statsOf(ctx, db, collection)
	kinds := map[string]attr.Kind{}
	for _, a := range of.Attributes {
		kind, err := attr.ParseKind(a.Type)
		if err != nil {
			return nil, err
		}
		kinds[a.Name] = kind
	}
	return kinds, err
}

// parseAttributes reads name=value and name:type=value. A value without a type has that of the
// attribute, or if there is none yet the one that it looks like.
func parseAttributes(texts []string, kinds map[string]attr.Kind) (flashdb.Attributes, error) {
	all := flashdb.Attributes{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--attr %q: want name=value, such as price=12.5", text)
		}
		n, err := parseTypedName(name)
		if err != nil {
			return nil, fmt.Errorf("--attr %w", err)
		}
		if _, twice := all[n.name]; twice {
			return nil, fmt.Errorf("--attr %s is given twice: a node has one value of each", n.name)
		}
		known := kinds[n.name]
		if n.kind == 0 {
			n.kind = known
		}
		if n.kind == 0 {
			n.kind = attr.Guess(value)
		}
		v, err := attr.Parse(n.kind, value)
		if err != nil {
			return nil, fmt.Errorf("--attr %s is a %v: %w", n.name, n.kind, err)
		}
		all[n.name] = v.Any()
	}
	return all, nil
}

// shownAttributes writes attributes as filters compare them, by name.
func shownAttributes(all flashdb.Attributes) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, show.Text(name)+" "+shownValue(all[name]))
	}
	return strings.Join(parts, ", ")
}

func shownValue(x any) string {
	v, err := attr.Of(x)
	switch {
	case err != nil:
		return fmt.Sprint(x)
	case v.Kind() == attr.String:
		return strconv.Quote(v.Text())
	}
	return v.String()
}

// jsonAttributes are attributes as --json prints them: a time is a string.
func jsonAttributes(all flashdb.Attributes) map[string]any {
	if len(all) == 0 {
		return nil
	}
	out := make(map[string]any, len(all))
	for name, x := range all {
		out[show.JSON(name)] = jsonValue(x)
	}
	return out
}

func jsonValue(x any) any {
	if t, ok := x.(time.Time); ok {
		return t.Format(time.RFC3339Nano)
	}
	return x
}

// describeAttribute says what a collection has of an attribute.
func describeAttribute(a flashdb.AttributeStats) string {
	values := fmt.Sprintf("%s to %s", show.Clip(shownValue(a.Lowest), 40), show.Clip(shownValue(a.Highest), 40))
	if a.Distinct == 1 {
		values = show.Clip(shownValue(a.Lowest), 40)
	}
	return fmt.Sprintf("%s: %s of %s, %s, %s", show.Text(a.Name), a.Type, show.Count(a.Nodes, "node"), show.Count(a.Distinct, "value"), values)
}

type jsonAttribute struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nodes    uint64 `json:"nodes"`
	Distinct uint64 `json:"distinct"`
	Lowest   any    `json:"lowest"`
	Highest  any    `json:"highest"`
}

func newJSONAttributes(all []flashdb.AttributeStats) (out []jsonAttribute) {
	for _, a := range all {
		out = append(out, jsonAttribute{show.JSON(a.Name), a.Type, a.Nodes, a.Distinct, jsonValue(a.Lowest), jsonValue(a.Highest)})
	}
	return out
}

// attributesOf returns the attributes of a collection as an export writes them.
func attributesOf(of flashdb.CollectionStats) (all []codec.Attribute) {
	for _, a := range of.Attributes {
		all = append(all, codec.Attribute{Name: a.Name, Type: a.Type})
	}
	return all
}
