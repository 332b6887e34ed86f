package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/internal/attr"
	"github.com/flashdb/flashdb/internal/codec"
)

// columnTypes are the types of the attributes of an import: those that a flag or a header gives,
// those that the collection has, and for the others those that all values of the file look like.
// The first pass over the file finds the last.
type columnTypes struct {
	asked   map[string]attr.Kind                 // by flag
	lookUp  func() (map[string]attr.Kind, error) // those of the collection; nil for a new one
	known   map[string]attr.Kind                 // what lookUp returned, once the file has attributes
	guessed map[string]guess
	settled bool // the first pass is over
}

// A guess is what the values of a column look like so far.
type guess struct {
	kind attr.Kind
	text bool // they are texts, which can always be strings
}

// ask reads the values of --attributes: names of columns, each perhaps with a type.
func (t *columnTypes) ask(texts []string) (columns []string, err error) {
	t.asked = map[string]attr.Kind{}
	for _, text := range texts {
		n, err := parseTypedName(text)
		if err != nil {
			return nil, fmt.Errorf("--attributes %w", err)
		}
		if slices.Contains(columns, n.name) {
			return nil, fmt.Errorf("--attributes names %s twice", n.name)
		}
		columns = append(columns, n.name)
		if n.kind != 0 {
			t.asked[n.name] = n.kind
		}
	}
	return columns, nil
}

// of returns the attributes of a row. In the first pass it leaves out those of unknown type.
func (t *columnTypes) of(row map[string]any) (flashdb.Attributes, error) {
	if len(row) == 0 {
		return nil, nil
	}
	if t.known == nil && t.lookUp != nil {
		var err error
		if t.known, err = t.lookUp(); err != nil {
			return nil, err
		}
	}
	all := flashdb.Attributes{}
	for column, x := range row {
		n, kind := typedName{name: column}, attr.Kind(0)
		if _, isField := x.(codec.Field); isField && t.asked[column] == 0 {
			if parsed, err := parseTypedName(column); err == nil { // @price:number
				n, kind = parsed, parsed.kind
			}
		}
		for _, k := range []map[string]attr.Kind{t.asked, t.known} {
			if kind == 0 {
				kind = k[n.name]
			}
		}
		if kind == 0 && t.settled {
			kind = t.guessed[n.name].kind
		}
		if kind == 0 {
			if err := t.guess(n.name, x); err != nil {
				return nil, err
			}
			continue
		}
		v, err := typed(x, kind)
		if err != nil {
			return nil, fmt.Errorf("attribute %s is a %v: %w", show.Text(n.name), kind, err)
		}
		all[n.name] = v.Any()
	}
	return all, nil
}

// guess notes what a value looks like. A value that has a type in its file keeps it. A Field may be
// of any type, and a Text is a time or a string. Texts of several types are strings.
func (t *columnTypes) guess(name string, x any) error {
	if t.guessed == nil {
		t.guessed = map[string]guess{}
	}
	here, before := guess{text: true}, t.guessed[name]
	switch x := x.(type) {
	case codec.Field:
		here.kind = attr.Guess(string(x))
	case codec.Text:
		if here.kind = attr.Guess(string(x)); here.kind != attr.Time {
			here.kind = attr.String
		}
	default:
		v, err := attr.Of(x)
		if err != nil {
			return fmt.Errorf("attribute %s: %w", show.Text(name), err)
		}
		here = guess{v.Kind(), v.Kind() == attr.String}
	}
	switch {
	case before.kind == 0 || before.kind == here.kind:
		here.text = here.text && (before.kind == 0 || before.text)
	case before.text && here.text:
		here.kind = attr.String
	default:
		return fmt.Errorf("attribute %s is a %v in the rows before, and here a %v", show.Text(name), before.kind, here.kind)
	}
	t.guessed[name] = here
	return nil
}

// typed returns a value of a file as one of a type. Texts are read as that type.
func typed(x any, kind attr.Kind) (attr.Value, error) {
	switch of := x.(type) {
	case codec.Field:
		return attr.Parse(kind, string(of))
	case codec.Text:
		if x = string(of); kind == attr.Time {
			return attr.Parse(kind, string(of))
		}
	case string:
		if kind == attr.Time {
			return attr.Parse(kind, of)
		}
	}
	v, err := attr.Of(x)
	if err == nil && v.Kind() != kind {
		err = fmt.Errorf("%s is a %v", shownValue(x), v.Kind())
	}
	return v, err
}

// settle ends the first pass, and says what types the values look like.
func (t *columnTypes) settle() string {
	t.settled = true
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(t.guessed)) {
		parts = append(parts, fmt.Sprintf("%s %v", show.Text(name), t.guessed[name].kind))
	}
	if len(parts) == 0 {
		return ""
	}
	return "attributes, by what their values look like: " + strings.Join(parts, ", ")
}
