package storage

import (
	"bytes"
	"encoding/binary"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/attr"
)

// columnOfLayers returns what the layers say of a column, if one mentions it: nil for none.
func (r *reader) columnOfLayers(k columnKey) (c *column, ok bool) {
	for i := len(r.layers) - 1; i >= 0; i-- {
		if len(r.layers[i].columns) == 0 {
			continue
		}
		if c, ok := r.layers[i].columns[k]; ok {
			return c, true
		}
	}
	return nil, false
}

// storedColumn returns a column of bbolt.
func (r *reader) storedColumn(k columnKey) (c storedColumn, ok bool) {
	value := r.get(k.uid, attributesBucket, k.appendTo(nil))
	if value == nil {
		return c, false
	}
	c, err := readColumn(value)
	if err != nil {
		r.damaged(k.uid, attributesBucket, shownColumn(k.name, k.n), err)
		return c, false
	}
	return c, true
}

// attributeOf returns the value of the i-th id of a column.
func (r *reader) attributeOf(k columnKey, i int) (v attr.Value, ok bool) {
	if c, mentioned := r.columnOfLayers(k); mentioned {
		if c == nil || !c.has(i) {
			return v, false
		}
		return c.value(i), true
	}
	c, ok := r.storedColumn(k)
	if !ok {
		return v, false
	}
	at, ok := c.has(i)
	if !ok {
		return v, false
	}
	v, err := c.distinct(c.place(at))
	if err != nil {
		r.damaged(k.uid, attributesBucket, shownColumn(k.name, k.n), err)
		return v, false
	}
	return v, true
}

// Attributes returns the attributes that nodes of a collection have, by name. They must not be
// changed.
func (r *reader) Attributes(uid uint32) []Attribute {
	if col := r.catalog.byUID[uid]; col != nil {
		return col.attributes
	}
	return nil
}

// Attribute returns the attribute of that name.
func (r *reader) Attribute(uid uint32, name string) (Attribute, bool) {
	if col := r.catalog.byUID[uid]; col != nil {
		return col.attribute(name)
	}
	return Attribute{}, false
}

// NodeAttribute returns one attribute of a live node.
func (r *reader) NodeAttribute(uid, id uint32, name string) (attr.Value, bool) {
	if _, ok := r.Attribute(uid, name); !ok {
		return attr.Value{}, false
	}
	return r.attributeOf(columnOf(uid, name, id), int(id%columnIDs))
}

// NodeAttributes returns the attributes of a live node, by name.
func (r *reader) NodeAttributes(uid, id uint32) (all []attr.Named) {
	for _, a := range r.Attributes(uid) {
		if v, ok := r.attributeOf(columnOf(uid, a.Name, id), int(id%columnIDs)); ok {
			all = append(all, attr.Named{Name: a.Name, Value: v})
		}
	}
	return all
}

// columns calls fn for each column of an attribute, as a layer has it or as bbolt has it.
func (r *reader) columns(uid uint32, name string, fn func(n uint32, c *column, stored *storedColumn)) {
	newer := map[uint32]*column{}
	for _, l := range r.layers {
		for k, c := range l.columns {
			if k.uid == uid && k.name == name {
				newer[k.n] = c
			}
		}
	}
	first := appendAttributeKey(nil, name)
	var c storedColumn
	r.from(uid, attributesBucket, first, func(key, value []byte) bool {
		if !bytes.HasPrefix(key, first) {
			return false
		}
		if len(key) != len(first)+4 {
			return true // the attribute itself
		}
		n := binary.BigEndian.Uint32(key[len(first):])
		if _, known := newer[n]; known {
			return true
		}
		if err := c.read(value); err != nil {
			r.damaged(uid, attributesBucket, shownColumn(name, n), err)
			return false
		}
		fn(n, nil, &c)
		return true
	})
	for n, c := range newer {
		if c != nil {
			fn(n, c, nil)
		}
	}
}

// A Spread describes the values of an attribute.
type Spread struct {
	Distinct  uint64
	Low, High attr.Value
}

// Spread returns how many values of an attribute there are, the lowest and the highest. It reads
// all of them.
func (r *reader) Spread(uid uint32, name string) (s Spread) {
	var fixed []uint64 // sorted at the end, which costs less than a map
	texts := map[string]struct{}{}
	add := func(v attr.Value) {
		if v.Kind().Fixed() {
			fixed = append(fixed, v.Bits())
		} else {
			texts[v.Text()] = struct{}{}
		}
		if s.Low.Kind() == 0 || attr.Compare(v, s.Low) < 0 {
			s.Low = v
		}
		if s.High.Kind() == 0 || attr.Compare(v, s.High) > 0 {
			s.High = v
		}
	}
	r.columns(uid, name, func(n uint32, c *column, stored *storedColumn) {
		if c != nil {
			c.all(func(i int) { add(c.value(i)) })
			return
		}
		values, err := stored.values()
		if err != nil {
			r.damaged(uid, attributesBucket, shownColumn(name, n), err)
		}
		for _, v := range values {
			add(v)
		}
	})
	slices.Sort(fixed)
	s.Distinct = uint64(len(slices.Compact(fixed)) + len(texts))
	return s
}

// loadAttributes reads what attributes a collection has.
func loadAttributes(t table) (all []Attribute, err error) {
	cur := t.Cursor()
	for key, stored := cur.First(); key != nil; {
		name, _, column, ok := splitAttributeKey(key)
		if column || !ok { // of no attribute, as none comes before it: check reports it
			key, stored = cur.Next()
			continue
		}
		value, err := t.open(key, stored)
		var a Attribute
		if err == nil {
			a, err = decodeAttribute(name, value)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, a)
		key, stored = cur.Seek(append([]byte(a.Name), 1)) // behind its columns
	}
	return all, nil
}

// attributes writes the attributes that a collection has now, and the columns that changed.
func (w *writer) attributes(before, col *collection, keys []columnKey, all *layer) {
	if before == nil {
		before = &collection{}
	}
	for _, a := range before.attributes {
		if _, still := col.attribute(a.Name); !still {
			w.put(w.table(attributesBucket), appendAttributeKey(nil, a.Name), nil)
		}
	}
	for _, a := range col.attributes {
		if old, ok := before.attribute(a.Name); !ok || old != a {
			w.put(w.table(attributesBucket), appendAttributeKey(nil, a.Name), encodeAttribute(a))
		}
	}
	for _, k := range keys {
		var value []byte
		if c := all.columns[k]; c != nil {
			value = c.encode()
		}
		if w.err == nil {
			w.put(w.table(attributesBucket), k.appendTo(nil), value)
		}
	}
}

// attributesBucketOf returns the bucket of a collection, nil if it has and had no attributes.
func attributesBucketOf(b *bolt.Bucket) *bolt.Bucket { return b.Bucket(bucketNames[attributesBucket]) }
