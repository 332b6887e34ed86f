package storage

import (
	"fmt"

	"github.com/flashdb/flashdb/internal/format"
)

// SetTags replaces the tags of a live node. Its row and payload stay.
type SetTags struct {
	UID, ID uint32
	Tags    []string // in any order
}

// SetPayload replaces the payload of a live node. Its row and tags stay.
type SetPayload struct {
	UID, ID uint32
	Payload []byte
}

// Collection returns o.UID.
func (o SetTags) Collection() uint32 { return o.UID }

// Collection returns o.UID.
func (o SetPayload) Collection() uint32 { return o.UID }

func (o SetTags) encode(w *format.Writer) {
	w.Uint8(kindSetTags)
	w.Uvarint(uint64(o.UID))
	w.Uvarint(uint64(o.ID))
	encodeTags(w, o.Tags)
}

func (o SetPayload) encode(w *format.Writer) {
	w.Uint8(kindSetPayload)
	w.Uvarint(uint64(o.UID))
	w.Uvarint(uint64(o.ID))
	w.Blob(o.Payload)
}

func (o SetTags) apply(c *Changes, _ uint64) error {
	tags, err := checkTags(o.Tags)
	if err != nil {
		return fmt.Errorf("set tags of node with id %d: %w", o.ID, err)
	}
	n, err := c.liveNode("set tags", o.UID, o.ID)
	if err != nil {
		return err
	}
	c.setRecord(o.UID, o.ID, n.Key, tags, n.Payload)
	return c.retag(o.UID, o.ID, n.Tags, tags)
}

func (o SetPayload) apply(c *Changes, _ uint64) error {
	if err := checkBlob("payload", len(o.Payload)); err != nil {
		return fmt.Errorf("set payload of node with id %d: %w", o.ID, err)
	}
	n, err := c.liveNode("set payload", o.UID, o.ID)
	if err != nil {
		return err
	}
	c.setRecord(o.UID, o.ID, n.Key, n.Tags, o.Payload)
	return c.err
}

// liveNode returns what is stored of a live node.
func (c *Changes) liveNode(verb string, uid, id uint32) (Node, error) {
	col, err := c.edit(uid)
	if err != nil {
		return Node{}, err
	}
	if !col.live(id) {
		return Node{}, fmt.Errorf("%s in %q: node with id %d: %w", verb, col.name, id, ErrNotFound)
	}
	n, ok := c.node(uid, id)
	if !ok {
		return Node{}, c.missing(col, id)
	}
	return n, nil
}

// setRecord replaces the record of a node. The row stays where it is, in this layer, a lower one or
// the file: it need not be read or written, and it is not newer than the served generation because
// of this.
func (c *Changes) setRecord(uid, id uint32, key string, tags []string, payload []byte) {
	k := nodeKey{uid, id}
	n := c.own.nodes[k]
	n.record = appendRecord(c.slab.alloc(recordSize(key, tags, payload)), key, tags, payload)
	c.own.nodes[k] = n
}
