package storage

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/internal/format"
)

// PutNodes is many PutNodes of one collection, in order. In the log they are encoded one by one.
// Applying them together costs much less if the ids are new.
type PutNodes []PutNode

// Collection returns the UID of the collection, or 0 without nodes.
func (o PutNodes) Collection() uint32 {
	if len(o) == 0 {
		return 0
	}
	return o[0].UID
}

func (o PutNodes) encode(w *format.Writer) {
	for i := range o {
		o[i].encode(w)
	}
}

func (o PutNodes) apply(c *Changes, lsn uint64) error {
	for i := 0; i < len(o); {
		if o[i].UID != o[0].UID {
			return fmt.Errorf("put nodes of collections with UIDs %d and %d at once", o[0].UID, o[i].UID)
		}
		col, err := c.edit(o[i].UID)
		if err != nil {
			return err
		}
		n := o[i:].fresh(c, col)
		if n >= c.lender.opts.minRun {
			if err := c.putRun(col, o[i:i+n], lsn); err != nil {
				return err
			}
			i += n
			continue
		}
		for end := i + max(n, 1); i < end; i++ {
			if err := o[i].apply(c, lsn); err != nil {
				return err
			}
		}
	}
	return nil
}

// fresh returns how many nodes from the first on have the next new ids, and keys that no layer
// mentions.
func (o PutNodes) fresh(c *Changes, col *edit) int {
	for i := range o {
		id := uint64(col.nextID) + uint64(i)
		if o[i].UID != col.uid || uint64(o[i].ID) != id || id > maxID {
			return i
		}
		if _, mentioned := c.mentioned(o[i].UID, o[i].Key); mentioned {
			return i
		}
	}
	return len(o)
}

// putRun adds nodes that are fresh.
func (c *Changes) putRun(col *edit, nodes []PutNode, lsn uint64) error {
	size := 0
	for i := range nodes {
		size += recordSize(nodes[i].Key, nodes[i].Tags, nodes[i].Payload)
	}
	dim := col.schema.Dim
	r := &run{
		uid: col.uid, first: col.nextID, dim: dim, lsn: lsn,
		rows: make([]float32, 0, dim*len(nodes)), records: make([]byte, 0, size), ends: make([]int, 0, len(nodes)),
	}
	keys := newKeyTable(len(nodes))
	for i := range nodes {
		o := nodes[i]
		tags, err := o.check(col)
		if err != nil {
			return fmt.Errorf("put node %q into %q: %w", o.Key, col.name, err)
		}
		hash := hashKey(o.UID, o.Key)
		if _, twice := keys.find(hash, func(id uint32) bool { return r.key(int(id-r.first)) == o.Key }); twice {
			return fmt.Errorf("put node %q into %q: the key comes twice with a new id", o.Key, col.name)
		}
		r.add(o, tags)
		keys.insert(hash, o.ID)
		if len(tags) > 0 {
			if err := c.retag(o.UID, o.ID, nil, tags); err != nil {
				return err
			}
		}
		if err := c.setAttributes(col, o.ID, o.Attributes); err != nil {
			return fmt.Errorf("put node %q into %q: %w", o.Key, col.name, err)
		}
	}
	col.holdRange(col.nextID, len(nodes))
	col.nextID += uint32(len(nodes))
	col.count += len(nodes)
	c.own.addRun(r, keys)
	return nil
}

// unknownID stands for the ID of a node whose key was not found.
const unknownID = maxID + 1

// Resolve sets the ID of each node to put into a collection: that of its key if that is in use,
// else the next new one.
func (c *Changes) Resolve(uid uint32, nodes []PutNode) error {
	col := c.catalog.byUID[uid]
	if col == nil {
		return collectionNotFound(uid)
	}
	var ask []int // indices of keys that only bbolt can know
	for i := range nodes {
		v, mentioned := c.mentioned(uid, nodes[i].Key)
		switch {
		case !mentioned:
			ask = append(ask, i)
			nodes[i].ID = unknownID
		case v.live:
			nodes[i].ID = v.id
		default:
			nodes[i].ID = unknownID
		}
	}
	slices.SortFunc(ask, func(a, b int) int { return strings.Compare(nodes[a].Key, nodes[b].Key) })
	c.findKeys(uid, nodes, ask)
	if c.err != nil {
		return c.err
	}
	next := uint64(col.nextID)
	added := newKeyTable(len(nodes))
	indexOf := func(i uint32) *PutNode { return &nodes[i] }
	for i := range nodes {
		o := &nodes[i]
		if o.ID != unknownID {
			continue
		}
		hash := hashKey(uid, o.Key)
		if first, twice := added.find(hash, func(j uint32) bool { return indexOf(j).Key == o.Key }); twice {
			o.ID = nodes[first].ID
			continue
		}
		if next > maxID {
			return fmt.Errorf("put node %q into %q: no id is left", o.Key, col.name)
		}
		added.insert(hash, uint32(i))
		o.ID = uint32(next)
		next++
	}
	return nil
}

// findKeys sets the ID of those nodes whose keys bbolt has. The indices to look at are in the order
// of the keys.
func (c *Changes) findKeys(uid uint32, nodes []PutNode, indices []int) {
	if len(indices) == 0 || !c.acquire() {
		return
	}
	defer c.release()
	defer c.db.guard(&c.err)
	defer faults(faults(true))
	c.seekKeys(uid, nodes, indices)
	// What is not found is looked up once more from the root, see get: it would be given a new id.
	missing := indices[:0]
	for _, i := range indices {
		if nodes[i].ID == unknownID {
			missing = append(missing, i)
		}
	}
	if len(missing) > 0 && c.err == nil {
		c.uid = 0
		c.seekKeys(uid, nodes, missing)
	}
}

// seekKeys is one pass of findKeys. What lies between two of bbolt's keys costs one lookup for all,
// and so does what lies beyond the last. It may panic.
func (c *Changes) seekKeys(uid uint32, nodes []PutNode, indices []int) {
	t := c.table(uid, idsBucket)
	if t.Bucket == nil {
		return
	}
	cur := t.Cursor()
	var key []byte
	var found, value []byte
	for n, i := range indices {
		key = append(key[:0], nodes[i].Key...)
		if n == 0 || (found != nil && bytes.Compare(found, key) < 0) {
			found, value = cur.Seek(key)
		}
		if found == nil {
			return // the bucket ends before this key, and so before all that follow
		}
		if !bytes.Equal(found, key) {
			continue
		}
		stored, err := t.open(found, value)
		if err == nil {
			nodes[i].ID, err = decodeUint32(stored)
		}
		if err != nil {
			c.damaged(uid, idsBucket, c.layout.shownKey(idsBucket, key), err)
			return
		}
	}
}
