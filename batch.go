package flashdb

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/wal"
)

// A Batch collects writes to one or several collections. DB.Apply makes all of them one atomic
// write:
//
//	var b flashdb.Batch
//	b.Upsert("users", ann)
//	b.Upsert("items", dune, emma)
//	b.PutDecoder("items", "reads", trained)
//	err := db.Apply(ctx, &b)
//
// The writes are applied in the order of the calls. Each sees the effect of those before it, so of
// two writes to the same thing the later one wins. Nothing is checked before Apply, and a Batch
// belongs to no DB. A Batch keeps copies of its arguments, except decoders, which must not change
// until it is applied. The zero value is an empty batch. A Batch is for one goroutine at a time.
type Batch struct{ writes []write }

// Upsert is Collection.Upsert in a collection of that name.
func (b *Batch) Upsert(collection string, nodes ...Node) {
	w := write{kind: writeUpsert, collection: collection, nodes: slices.Clone(nodes)}
	for i := range w.nodes {
		n := &w.nodes[i]
		n.Embedding, n.Tags, n.Payload = slices.Clone(n.Embedding), slices.Clone(n.Tags), bytes.Clone(n.Payload)
		n.Attributes = maps.Clone(n.Attributes)
	}
	b.writes = append(b.writes, w)
}

// SetTags is Collection.SetTags in a collection of that name.
func (b *Batch) SetTags(collection, key string, tags []string) {
	b.writes = append(b.writes, write{kind: writeTags, collection: collection, keys: []string{key}, tags: slices.Clone(tags)})
}

// SetPayload is Collection.SetPayload in a collection of that name.
func (b *Batch) SetPayload(collection, key string, payload []byte) {
	b.writes = append(b.writes, write{kind: writePayload, collection: collection, keys: []string{key}, payload: bytes.Clone(payload)})
}

// Delete is Collection.Delete in a collection of that name.
func (b *Batch) Delete(collection string, keys ...string) {
	b.writes = append(b.writes, write{kind: writeDelete, collection: collection, keys: slices.Clone(keys)})
}

// Link is Collection.Link in a collection of that name.
func (b *Batch) Link(collection string, edges ...Edge) {
	b.writes = append(b.writes, write{kind: writeLink, collection: collection, edges: slices.Clone(edges)})
}

// Unlink is Collection.Unlink in a collection of that name.
func (b *Batch) Unlink(collection string, edges ...Edge) {
	b.writes = append(b.writes, write{kind: writeUnlink, collection: collection, edges: slices.Clone(edges)})
}

// PutDecoder is Collection.PutDecoder in a collection of that name.
func (b *Batch) PutDecoder(collection, name string, d decoder.Decoder) {
	b.writes = append(b.writes, write{kind: writeDecoder, collection: collection, name: name, decoder: d})
}

// DropDecoder is Collection.DropDecoder in a collection of that name.
func (b *Batch) DropDecoder(collection, name string) {
	b.writes = append(b.writes, write{kind: writeNoDecoder, collection: collection, name: name})
}

// SetMeta is Collection.SetMeta in a collection of that name.
func (b *Batch) SetMeta(collection, name, value string) {
	b.writes = append(b.writes, write{kind: writeMeta, collection: collection, name: name, value: value})
}

// CreateCollection is DB.CreateCollection. Later writes of the batch may fill the collection.
func (b *Batch) CreateCollection(name string, s Schema) {
	b.writes = append(b.writes, write{kind: writeCreate, collection: name, schema: s})
}

// DropCollection is DB.DropCollection. A batch may drop a collection, create it again and fill it:
// readers then find the old collection or the new one, and nothing in between.
func (b *Batch) DropCollection(name string) {
	b.writes = append(b.writes, write{kind: writeDrop, collection: name})
}

// Len returns how many writes b holds: one for each call.
func (b *Batch) Len() int { return len(b.writes) }

// MaxBatchBytes is how large a batch may be: 1 GiB, the largest record of the log. A record holds
// keys, embeddings, tags, payloads, decoders and strings. A link takes about 4 bytes and the name
// of its relation.
const MaxBatchBytes = wal.MaxPayload

// Apply makes all writes of b one atomic write. Readers see all of them or none, whichever
// collections they read. Once Apply has returned nil, they are durable. After a crash, all of them
// are there or none. If one fails, none is applied, and the error says which one, counted from 1.
// Apply does not change b, so it can be applied again.
//
// A batch of more than MaxBatchBytes is refused with ErrInvalid, as it could not be atomic.
// Decoders are calibrated once the batch is durable, as Collection.PutDecoder does.
func (db *DB) Apply(ctx context.Context, b *Batch) error {
	leave, err := db.enter()
	if err != nil {
		return err
	}
	defer leave()
	if b == nil {
		return fmt.Errorf("apply batch: %w: it is nil", ErrInvalid)
	}
	if b.drops() {
		// A rebuild of a collection must not publish into its removed directory.
		if err := db.rebuilds.take(ctx); err != nil {
			return fmt.Errorf("apply batch: %w", err)
		}
		defer db.rebuilds.pass()
	}
	if err := db.applyBatch(ctx, b); err != nil {
		return fmt.Errorf("apply batch: %w", err)
	}
	for i := range b.writes {
		w := &b.writes[i]
		if w.kind != writeDecoder {
			continue
		}
		if c, err := db.collection(w.collection); err == nil {
			c.calibrateStored(ctx, w.name)
		}
	}
	return nil
}

func (db *DB) applyBatch(ctx context.Context, b *Batch) error {
	if err := b.fits(MaxBatchBytes); err != nil {
		return err
	}
	ready := make([]*prepared, 0, len(b.writes))
	in := reshaping{db: db}
	for i := range b.writes {
		p, err := in.prepare(&b.writes[i])
		if err != nil {
			return b.failed(i, err)
		}
		p.of = i
		ready = appendPrepared(ready, p)
	}
	err := db.commit(ctx, func(r *record) error {
		for _, p := range ready {
			if err := p.resolve(r); err != nil {
				return b.failed(p.of, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, c := range in.dropped {
		db.forget(c.uid, c.name)
	}
	return nil
}

// drops reports whether b drops a collection.
func (b *Batch) drops() bool {
	return slices.ContainsFunc(b.writes, func(w write) bool { return w.kind == writeDrop })
}

// A reshaping is the state while a batch that may create and drop collections is prepared.
type reshaping struct {
	db      *DB
	made    map[string]*Collection // collections that the batch has created so far; nil for one that it drops
	dropped []*Collection          // collections that the batch drops; their uids are known once it is resolved
}

// prepare checks w. For a collection that the batch creates it makes a handle with the schema. The
// handle gets its uid when the batch is resolved. Nothing outside the batch uses it.
func (s *reshaping) prepare(w *write) (*prepared, error) {
	if s.made == nil {
		s.made = map[string]*Collection{}
	}
	switch w.kind {
	case writeCreate:
		if err := w.schema.checkNew(w.collection); err != nil {
			return nil, err
		}
		c := &Collection{db: s.db, name: w.collection, schema: w.schema}
		s.made[w.collection] = c
		return &prepared{do: func(r *record) (err error) { c.uid, err = c.schema.create(r, c.name); return err }}, nil
	case writeDrop:
		c := &Collection{name: w.collection}
		s.made[w.collection] = nil
		s.dropped = append(s.dropped, c)
		return &prepared{do: func(r *record) (err error) { c.uid, err = dropIn(r, c.name); return err }}, nil
	}
	c, ours := s.made[w.collection]
	if ours && c == nil {
		return nil, fmt.Errorf("collection %q %w: the batch drops it before", w.collection, ErrNotFound)
	}
	if !ours {
		var err error
		if c, err = s.db.collection(w.collection); err != nil {
			return nil, err
		}
	}
	return w.prepare(c)
}

// fits refuses a batch whose record would have more than limit bytes, before memory is allocated
// for the record. Decoders do not count here: commit checks the record itself.
func (b *Batch) fits(limit int) error {
	size := 0
	for i := range b.writes {
		if size += b.writes[i].size(); size > limit {
			return b.failed(i, fmt.Errorf("%w: up to here the batch has %d bytes, and at most %d can be atomic: split it", ErrInvalid, size, limit))
		}
	}
	return nil
}

// failed says which write of b an error is about.
func (b *Batch) failed(i int, err error) error {
	w := &b.writes[i]
	return fmt.Errorf("write %d of %d, %s %q: %w", i+1, len(b.writes), w.kind, w.collection, err)
}
