package flashdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/internal/attr"
	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

// Attributes are typed values by name: see Node.Attributes.
type Attributes map[string]any

// MarshalJSON writes times as objects, {"time": "2025-01-01T10:00:00Z"}, which UnmarshalJSON reads,
// so that every value keeps its type.
func (a Attributes) MarshalJSON() ([]byte, error) {
	if a == nil {
		return []byte("null"), nil
	}
	of := make(map[string]any, len(a))
	for name, x := range a {
		if t, ok := x.(time.Time); ok {
			x = jsonTime{t}
		}
		of[name] = x
	}
	return json.Marshal(of)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *Attributes) UnmarshalJSON(b []byte) error {
	var of map[string]json.RawMessage
	if err := json.Unmarshal(b, &of); err != nil {
		return err
	}
	*a = nil
	if of != nil {
		*a = make(Attributes, len(of))
	}
	for name, text := range of {
		var x any
		var t jsonTime
		err := json.Unmarshal(text, &x)
		if _, isObject := x.(map[string]any); err == nil && isObject {
			err = json.Unmarshal(text, &t)
			x = t.Time
		}
		if err != nil {
			return fmt.Errorf("attribute %q: %w", name, err)
		}
		(*a)[name] = x
	}
	return nil
}

type jsonTime struct {
	Time time.Time `json:"time"`
}

// AttributeStats describe an attribute of the nodes of a collection.
type AttributeStats struct {
	Name string
	// Type is number, string, bool or time.
	Type string
	// Nodes counts those that have it, Distinct its values.
	Nodes, Distinct uint64
	// Lowest and Highest are as in Node.Attributes. Strings are in the order of their bytes.
	Lowest, Highest any
}

// UnmarshalJSON gives times their type again.
func (s *AttributeStats) UnmarshalJSON(b []byte) error {
	type plain AttributeStats
	if err := json.Unmarshal(b, (*plain)(s)); err != nil || s.Type != attr.Time.String() {
		return err
	}
	for _, x := range []*any{&s.Lowest, &s.Highest} {
		text, _ := (*x).(string)
		t, _, err := attr.ParseTime(text)
		if err != nil {
			return fmt.Errorf("attribute %q: %w", s.Name, err)
		}
		*x = t.UTC()
	}
	return nil
}

// attributesOf checks attributes of the node under key. It returns those with a value, by name, and
// the names of the others.
func attributesOf(key string, of Attributes) (set []attr.Named, remove []string, err error) {
	if len(of) == 0 {
		return nil, nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if err := attr.CheckName(name); err != nil {
			return nil, nil, fmt.Errorf("node %q: %w: %w", key, ErrInvalid, err)
		}
		if of[name] == nil {
			remove = append(remove, name)
			continue
		}
		v, err := attr.Of(of[name])
		if err != nil {
			return nil, nil, fmt.Errorf("node %q: %w: attribute %q: %w", key, ErrInvalid, name, err)
		}
		set = append(set, attr.Named{Name: name, Value: v})
	}
	return set, remove, nil
}

// anyOf returns attributes as callers see them, nil for none.
func anyOf(all []attr.Named) Attributes {
	if len(all) == 0 {
		return nil
	}
	of := make(Attributes, len(all))
	for _, a := range all {
		of[a.Name] = a.Any()
	}
	return of
}

// SetAttributes sets the attributes of the node under key that it names, or returns ErrNotFound. A
// nil value removes one. Those that it does not name stay, and so does the rest of the node: no
// rebuild is needed.
func (c *Collection) SetAttributes(ctx context.Context, key string, attributes Attributes) error {
	_, err := c.write(ctx, write{kind: writeAttributes, keys: []string{key}, attributes: attributes})
	return err
}

// SetAttributes is Collection.SetAttributes in a collection of that name.
func (b *Batch) SetAttributes(collection, key string, attributes Attributes) {
	b.writes = append(b.writes, write{kind: writeAttributes, collection: collection, keys: []string{key}, attributes: maps.Clone(attributes)})
}

func (c *Collection) setAttributes(r *record, key string, set []attr.Named, remove []string) error {
	id, ok := r.changes.ID(c.uid, key)
	if !ok {
		return fmt.Errorf("node %q %w", key, ErrNotFound)
	}
	if len(set)+len(remove) == 0 {
		return nil
	}
	return r.emit(storage.SetAttributes{UID: c.uid, ID: id, Set: set, Remove: remove})
}

// invalidAttribute makes the error of a value of another type than its attribute's one about an
// argument.
func invalidAttribute(err error) error {
	if errors.Is(err, storage.ErrAttribute) {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return err
}

// bytesOfAttributes estimates what attributes take in a record.
func bytesOfAttributes(of Attributes) (n int) {
	for name, x := range of {
		n += len(name) + 12
		if s, ok := x.(string); ok {
			n += len(s)
		}
	}
	return n
}

// encodeAttributes appends attributes to an encoded batch: their number, and for each its name and
// the bytes of its value, none for nil.
func encodeAttributes(out *format.Writer, of Attributes) error {
	out.Uvarint(uint64(len(of)))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out.String(name)
		if of[name] == nil {
			out.Blob(nil)
			continue
		}
		v, err := attr.Of(of[name])
		if err != nil {
			return fmt.Errorf("%w: attribute %q: %w", ErrInvalid, name, err)
		}
		out.Blob(v.Append(nil))
	}
	return nil
}

func decodeAttributes(r *format.Reader) (of Attributes) {
	for range r.Count(2) {
		name, value := r.String(), r.Blob()
		if r.Err() != nil {
			return nil
		}
		if of == nil {
			of = Attributes{}
		}
		if len(value) == 0 {
			of[name] = nil
			continue
		}
		v, err := attr.Decode(value)
		if err != nil {
			r.Fail("attribute %q: %w", name, err)
			return nil
		}
		of[name] = v.Any()
	}
	return of
}

// attributeStats describes the attributes of a collection.
func attributeStats(v *storage.View, uid uint32) (all []AttributeStats) {
	for _, a := range v.Attributes(uid) {
		s := v.Spread(uid, a.Name)
		all = append(all, AttributeStats{
			Name: a.Name, Type: a.Kind.String(), Nodes: a.Count, Distinct: s.Distinct, Lowest: s.Low.Any(), Highest: s.High.Any(),
		})
	}
	return all
}

// A filterSource is what a filter is evaluated on: a snapshot of a collection.
type filterSource struct {
	v       *storage.View
	info    storage.Info
	all     *roaring.Bitmap
	unknown []string // tags that no node has
}

// All implements filter.Source.
func (s *filterSource) All() *roaring.Bitmap {
	if s.all == nil {
		s.all = liveIDs(s.v, s.info)
	}
	return s.all
}

// Tag implements filter.Source.
func (s *filterSource) Tag(tag string) *roaring.Bitmap { return s.v.Tag(s.info.UID, tag) }

// Unknown implements filter.Source.
func (s *filterSource) Unknown(tag string) {
	if !slices.Contains(s.unknown, tag) {
		s.unknown = append(s.unknown, tag)
	}
}

// Attribute implements filter.Source.
func (s *filterSource) Attribute(name string) (attr.Kind, bool) {
	a, ok := s.v.Attribute(s.info.UID, name)
	return a.Kind, ok
}

// Attributes implements filter.Source.
func (s *filterSource) Attributes() (names []string) {
	for _, a := range s.v.Attributes(s.info.UID) {
		names = append(names, a.Name)
	}
	return names
}

// Match implements filter.Source.
func (s *filterSource) Match(name string, ranges []attr.Range) *roaring.Bitmap {
	return s.v.Match(s.info.UID, name, ranges)
}
