package flashdb

import (
	"context"
	"fmt"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/storage"
)

// A writeKind says what a write does. The numbers are part of encoded batches (batchVersion).
type writeKind uint8

const (
	writeUpsert writeKind = 1 + iota
	writeTags
	writePayload
	writeDelete
	writeLink
	writeUnlink
	writeDecoder
	writeNoDecoder
	writeMeta
	writeCreate
	writeDrop
	writeAttributes
	writeKinds = iota
)

// String returns what errors say before the name of the collection.
func (k writeKind) String() string {
	return [...]string{
		writeUpsert: "upsert into", writeTags: "set tags in", writePayload: "set payload in", writeDelete: "delete from",
		writeLink: "link in", writeUnlink: "unlink in", writeDecoder: "put decoder into", writeNoDecoder: "drop decoder from",
		writeMeta: "set meta of", writeCreate: "create", writeDrop: "drop",
		writeAttributes: "set attributes in",
	}[k]
}

// A write is one call that changes a collection, alone or in a Batch. Its kind says which fields it
// uses.
type write struct {
	kind       writeKind
	collection string // set in a Batch only

	nodes      []Node          // upsert
	keys       []string        // delete; set tags, payload and attributes have exactly one
	tags       []string        // set tags
	attributes Attributes      // set attributes
	payload    []byte          // set payload
	edges      []Edge          // link, unlink
	name       string          // decoders, meta
	decoder    decoder.Decoder // put decoder
	value      string          // meta
	schema     Schema          // create
}

// linkSize estimates what a link takes in a record besides the name of its relation: the id of its
// target as a varint.
const linkSize = 4

// size estimates how many bytes the record of w has, without its decoder.
func (w *write) size() int {
	n := len(w.payload) + len(w.name) + len(w.value)
	for i := range w.nodes {
		node := &w.nodes[i]
		n += len(node.Key) + 4*len(node.Embedding) + len(node.Payload) + bytesOf(node.Tags) + bytesOfAttributes(node.Attributes)
	}
	for i := range w.edges {
		n += linkSize + len(w.edges[i].Relation)
	}
	return n + bytesOf(w.keys) + bytesOf(w.tags) + bytesOfAttributes(w.attributes)
}

func bytesOf(texts []string) (n int) {
	for _, s := range texts {
		n += len(s)
	}
	return n
}

// A prepared write has been checked against the schema of its collection. Its keys are still to be
// resolved, against the newest state.
type prepared struct {
	c     *Collection      // nil for create and drop, when there may be no collection
	of    int              // its index in the batch
	puts  storage.PutNodes // nodes of an upsert, with rows as they are stored
	do    func(r *record) error
	count int // of deleted nodes or removed links
}

// prepare checks w.
func (w *write) prepare(c *Collection) (*prepared, error) {
	p := &prepared{c: c}
	switch w.kind {
	case writeUpsert:
		puts, err := c.puts(w.nodes)
		p.puts = puts
		return p, err
	case writeTags:
		p.do = func(r *record) error { return c.setTags(r, w.keys[0], w.tags) }
		return p, validateTags(w.keys[0], w.tags)
	case writePayload:
		p.do = func(r *record) error { return c.setPayload(r, w.keys[0], w.payload) }
		return p, validatePayload(w.keys[0], w.payload)
	case writeAttributes:
		set, remove, err := attributesOf(w.keys[0], w.attributes)
		p.do = func(r *record) error { return c.setAttributes(r, w.keys[0], set, remove) }
		return p, err
	case writeDelete:
		p.do = func(r *record) (err error) { p.count, err = c.deleteNodes(r, w.keys); return err }
	case writeLink:
		p.do = func(r *record) error { return c.link(r, w.edges, false) }
	case writeUnlink:
		p.do = func(r *record) (err error) { p.count, err = c.unlink(r, w.edges); return err }
	case writeDecoder:
		blob, err := c.decoderBlob(w.name, w.decoder)
		p.do = func(r *record) error { return r.emit(storage.PutDecoder{UID: c.uid, Name: w.name, Blob: blob}) }
		return p, err
	case writeNoDecoder:
		p.do = func(r *record) error { return c.dropDecoder(r, w.name) }
	case writeMeta:
		p.do = func(r *record) error {
			return r.emit(storage.SetMeta{UID: c.uid, Name: w.name, Value: w.value})
		}
		return p, validateKey(w.name)
	}
	return p, nil
}

// resolve emits the operations of p.
func (p *prepared) resolve(r *record) error {
	if p.c == nil {
		return p.do(r)
	}
	info, ok := r.changes.Collection(p.c.name)
	if !ok || info.UID != p.c.uid {
		return fmt.Errorf("it was dropped: %w", ErrNotFound)
	}
	if p.do != nil {
		return p.do(r)
	}
	if len(p.puts) == 0 {
		return nil
	}
	for i := range p.puts {
		p.puts[i].UID = p.c.uid // the uid of a collection that the batch creates is known only now
	}
	if err := r.changes.Resolve(p.c.uid, p.puts); err != nil {
		return err
	}
	return r.emit(p.puts)
}

// appendPrepared adds p to prepared writes. It joins consecutive upserts into one collection,
// because rows that are written together cost less to store.
func appendPrepared(all []*prepared, p *prepared) []*prepared {
	if n := len(all); n > 0 && p.do == nil && all[n-1].do == nil && all[n-1].c == p.c {
		all[n-1].puts = append(all[n-1].puts, p.puts...)
		return all
	}
	return append(all, p)
}

// write commits one write on c, and returns how many nodes it deleted or links it removed.
func (c *Collection) write(ctx context.Context, w write) (count int, err error) {
	leave, err := c.db.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	var p *prepared
	err = c.writable()
	if err == nil {
		p, err = w.prepare(c)
	}
	if err == nil {
		err = c.db.commit(ctx, p.resolve)
	}
	if err != nil {
		return 0, fmt.Errorf("%s %q: %w", w.kind, c.name, err)
	}
	return p.count, nil
}
