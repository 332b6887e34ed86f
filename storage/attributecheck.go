package storage

// attributes checks the attributes of a collection (invariant 12).
func (c *collectionChecker) attributes() {
	var of Attribute // whose columns come
	left, whole := uint64(0), true
	end := func() {
		if left != 0 && whole {
			c.found("attributes: %q is of %d nodes, and its columns hold %d", of.Name, of.Count, of.Count-left)
		}
	}
	c.each(attributesBucket, func(key, stored []byte) {
		value, sound := c.sound(attributesBucket, key, stored)
		name, n, isColumn, ok := splitAttributeKey(key)
		if !ok {
			c.found("attributes: key %q is that of no attribute", key)
			return
		}
		if !isColumn {
			end()
			of, left, whole = Attribute{Name: name}, 0, false
			if !sound {
				return
			}
			a, err := decodeAttribute(name, value)
			if err != nil {
				c.found("attributes: %q: %v", name, err)
				return
			}
			of, left, whole = a, a.Count, true
			return
		}
		if name != of.Name {
			c.found("attributes: %s is of an attribute that is missing", shownColumn(name, n))
			return
		}
		count, ok := uint64(0), false
		if sound {
			count, ok = c.column(of, n, value)
		}
		left, whole = left-count, whole && ok
	})
	end()
}

// column checks one column of an attribute, and returns how many nodes have a value in it unless it
// cannot be read.
func (c *collectionChecker) column(of Attribute, n uint32, value []byte) (count uint64, ok bool) {
	stored, err := readColumn(value)
	if err == nil && of.Kind != 0 && stored.kind != of.Kind {
		c.found("attributes: %s holds values of type %v, and the attribute is a %v", shownColumn(of.Name, n), stored.kind, of.Kind)
	}
	var values *column
	if err == nil {
		values, err = stored.column()
	}
	if err != nil {
		c.found("attributes: %s: %v", shownColumn(of.Name, n), err)
		return 0, false
	}
	values.all(func(i int) {
		id := uint64(n)*columnIDs + uint64(i)
		if id > maxID || !c.col.live(uint32(id)) {
			c.found("attributes: %s has id %d, which is not live", shownColumn(of.Name, n), id)
		}
	})
	return uint64(stored.count), true
}
