package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/internal/attr"
	"github.com/flashdb/flashdb/internal/format"
)

// ErrAttribute is matched by errors about an attribute that cannot have a value, because it is of
// another type, or because there are too many attributes.
var ErrAttribute = errors.New("attribute refused")

// maxAttributes is how many attributes a collection may have. To read a node is a lookup for each.
const maxAttributes = 256

// SetAttributes changes attributes of a live node, and keeps those that it does not name. Row, tags
// and payload stay.
type SetAttributes struct {
	UID, ID uint32
	Set     []attr.Named // each name once
	Remove  []string     // ignored where the node has none of that name
}

// Collection returns o.UID.
func (o SetAttributes) Collection() uint32 { return o.UID }

// An Attribute describes an attribute of a collection.
type Attribute struct {
	Name  string
	Kind  attr.Kind
	Count uint64 // of the nodes that have it, at least 1
}

func compareAttribute(a Attribute, name string) int { return strings.Compare(a.Name, name) }

// attribute returns the attribute of that name.
func (c *collection) attribute(name string) (Attribute, bool) {
	at, ok := slices.BinarySearchFunc(c.attributes, name, compareAttribute)
	if !ok {
		return Attribute{}, false
	}
	return c.attributes[at], true
}

func (o SetAttributes) encode(w *format.Writer) {
	w.Uint8(kindSetAttributes)
	w.Uvarint(uint64(o.UID))
	w.Uvarint(uint64(o.ID))
	encodeAttributes(w, o.Set)
	encodeTags(w, o.Remove)
}

func encodeAttributes(w *format.Writer, all []attr.Named) {
	w.Uvarint(uint64(len(all)))
	var value [16]byte
	for _, a := range all {
		w.String(a.Name)
		w.Blob(a.Append(value[:0]))
	}
}

func decodeAttributes(r *format.Reader) (all []attr.Named) {
	for range r.Count(3) { // an empty name, the length of a value, its kind
		a := attr.Named{Name: r.String()}
		value := r.Blob()
		if r.Err() != nil {
			return nil
		}
		var err error
		if a.Value, err = attr.Decode(value); err != nil {
			r.Fail("attribute %q: %w", a.Name, err)
			return nil
		}
		all = append(all, a)
	}
	return all
}

func (o SetAttributes) apply(c *Changes, _ uint64) error {
	col, err := c.edit(o.UID)
	if err != nil {
		return err
	}
	if !col.live(o.ID) {
		return fmt.Errorf("set attributes in %q: node with id %d: %w", col.name, o.ID, ErrNotFound)
	}
	for _, name := range o.Remove {
		c.removeAttribute(col, o.ID, name)
	}
	return c.setAttributes(col, o.ID, o.Set)
}

// replaceAttributes gives a node, which may be new, these attributes and no others.
func (c *Changes) replaceAttributes(col *edit, id uint32, fresh bool, all []attr.Named) error {
	if !fresh {
		for _, a := range slices.Clone(col.attributes) {
			if !slices.ContainsFunc(all, func(n attr.Named) bool { return n.Name == a.Name }) {
				c.removeAttribute(col, id, a.Name)
			}
		}
	}
	return c.setAttributes(col, id, all)
}

// setAttributes sets attributes of a node, and keeps its others.
func (c *Changes) setAttributes(col *edit, id uint32, all []attr.Named) error {
	if len(all) == 0 {
		return c.err
	}
	if !c.layout.blocked() {
		return fmt.Errorf("attributes in %q: %w", col.name, c.layout.needsBlocks(c.file, "attributes"))
	}
	for _, a := range all {
		if err := attr.CheckName(a.Name); err != nil {
			return fmt.Errorf("%w: %w", ErrAttribute, err)
		}
		if !a.Kind().Valid() {
			return fmt.Errorf("%w: attribute %q has no value", ErrAttribute, a.Name)
		}
		if now, ok := col.attribute(a.Name); ok && now.Kind != a.Kind() {
			c.removeAttribute(col, id, a.Name)
			if _, still := col.attribute(a.Name); still {
				return fmt.Errorf("%w: attribute %q of %q is a %v, and %s a %v", ErrAttribute, a.Name, col.name, now.Kind, shownValue(a.Value), a.Kind())
			}
		}
		if err := c.setAttribute(col, id, a); err != nil {
			return err
		}
	}
	return c.err
}

func shownValue(v attr.Value) string {
	if v.Kind() == attr.String {
		return strconv.Quote(v.Text())
	}
	return v.String()
}

func (c *Changes) setAttribute(col *edit, id uint32, a attr.Named) error {
	if _, ok := col.attribute(a.Name); !ok && len(col.attributes) >= maxAttributes {
		return fmt.Errorf("%w: attribute %q of %q would be one more than the %d that a collection may have", ErrAttribute, a.Name, col.name, maxAttributes)
	}
	k := columnOf(col.uid, a.Name, id)
	i := int(id % columnIDs)
	own := c.own.columns[k]
	if own == nil {
		old, had := c.attributeOf(k, i)
		if had && old == a.Value {
			return nil
		}
		if own = c.copyColumn(k); own == nil {
			own = newColumn(a.Kind())
		}
		c.own.columns[k] = own
	}
	if !own.has(i) {
		col.count1(a.Name, a.Kind(), 1)
	}
	own.set(i, a.Value)
	return c.err
}

// removeAttribute removes an attribute of a node, if it has it.
func (c *Changes) removeAttribute(col *edit, id uint32, name string) {
	now, ok := col.attribute(name)
	if !ok {
		return
	}
	k := columnOf(col.uid, name, id)
	i := int(id % columnIDs)
	if _, had := c.attributeOf(k, i); !had {
		return
	}
	own := c.own.columns[k]
	if own == nil {
		if own = c.copyColumn(k); own == nil {
			return // damaged, which c.err says
		}
	}
	own.remove(i)
	c.own.columns[k] = own
	if own.empty() {
		c.own.columns[k] = nil
	}
	col.count1(name, now.Kind, -1)
}

// copyColumn returns a copy of the newest state of a column, or nil if no id has a value.
func (c *Changes) copyColumn(k columnKey) *column {
	if layer, ok := c.columnOfLayers(k); ok {
		if layer == nil {
			return nil
		}
		return layer.clone()
	}
	stored, ok := c.storedColumn(k)
	if !ok {
		return nil
	}
	col, err := stored.column()
	if err != nil {
		c.damaged(k.uid, attributesBucket, shownColumn(k.name, k.n), err)
		return nil
	}
	return col
}

// count1 adds to the number of nodes that have an attribute, which begins with the first of them
// and ends with the last.
func (e *edit) count1(name string, kind attr.Kind, by int) {
	if !e.ownAttributes {
		e.attributes, e.ownAttributes = slices.Clone(e.attributes), true
	}
	e.attributed = true
	at, ok := slices.BinarySearchFunc(e.attributes, name, compareAttribute)
	if !ok {
		e.attributes = slices.Insert(e.attributes, at, Attribute{Name: name, Kind: kind})
	}
	e.attributes[at].Count += uint64(by)
	if e.attributes[at].Count == 0 {
		e.attributes = slices.Delete(e.attributes, at, at+1)
	}
}

// appendAttributeKey appends the key of an attribute in bucket attributes, under which its kind and
// count are. Those of its columns begin with it.
func appendAttributeKey(b []byte, name string) []byte { return append(append(b, name...), 0) }

// splitAttributeKey takes a key of bucket attributes apart. column is false for the attribute
// itself.
func splitAttributeKey(key []byte) (name string, n uint32, column, ok bool) {
	at := bytes.IndexByte(key, 0)
	if at < 0 || (len(key) != at+1 && len(key) != at+5) {
		return "", 0, false, false
	}
	if name = string(key[:at]); len(key) == at+1 {
		return name, 0, false, true
	}
	return name, binary.BigEndian.Uint32(key[at+1:]), true, true
}

// shownColumn is how errors name a column.
func shownColumn(name string, n uint32) string { return fmt.Sprintf("%q column %d", name, n) }

func encodeAttribute(a Attribute) []byte {
	return binary.AppendUvarint([]byte{byte(a.Kind)}, a.Count)
}

func decodeAttribute(name string, b []byte) (Attribute, error) {
	r := format.NewReader("", "value", 0, b)
	a := Attribute{Name: name, Kind: attr.Kind(r.Uint8()), Count: r.Uvarint()}
	if r.Err() == nil && (!a.Kind.Valid() || a.Count == 0) {
		r.Fail("%v of %d nodes", a.Kind, a.Count)
	}
	return a, r.End()
}
