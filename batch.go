package flashdb

import (
	"bytes"
	"context"
	"fmt"
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
// The writes take place in the order of the calls. Each finds what those before it did, so that of
// two writes to the same thing the later one stays. Nothing is checked before Apply, and a Batch
// belongs to no DB. It keeps copies of what it is given, decoders excepted, which must not change.
// The zero value is an empty batch. A Batch is for one goroutine at a time.
type Batch struct{ writes []write }

// Upsert is Collection.Upsert in a collection of that name.
func (b *Batch) Upsert(collection string, nodes ...Node) {
	w := write{kind: writeUpsert, collection: collection, nodes: slices.Clone(nodes)}
	for i := range w.nodes {
		n := &w.nodes[i]
		n.Embedding, n.Tags, n.Payload = slices.Clone(n.Embedding), slices.Clone(n.Tags), bytes.Clone(n.Payload)
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

// Len returns how many writes b holds: one for each call.
func (b *Batch) Len() int { return len(b.writes) }

// Reset makes b empty.
func (b *Batch) Reset() { b.writes = nil }

// Apply carries out the writes of b as one atomic write. Readers see all of them or none, whichever
// collections they read, and so it is after a crash: once Apply has returned nil they are durable.
// If one of them fails, none takes place, and the error says which, counted from 1. Apply leaves b
// as it is, so that it can be tried again.
//
// A batch has a limit of 1 GiB, that of a record of the log; a larger one is refused with
// ErrInvalid, as it could not be atomic. Decoders are calibrated afterwards, as by
// Collection.PutDecoder.
func (db *DB) Apply(ctx context.Context, b *Batch) error {
	leave, err := db.enter()
	if err != nil {
		return err
	}
	defer leave()
	if b == nil {
		return fmt.Errorf("apply batch: %w: it is nil", ErrInvalid)
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
	if err := b.fits(wal.MaxPayload); err != nil {
		return err
	}
	ready := make([]*prepared, 0, len(b.writes))
	for i := range b.writes {
		w := &b.writes[i]
		c, err := db.collection(w.collection)
		var p *prepared
		if err == nil {
			p, err = w.prepare(c)
		}
		if err != nil {
			return b.failed(i, err)
		}
		p.of = i
		ready = appendPrepared(ready, p)
	}
	return db.commit(ctx, func(r *record) error {
		for _, p := range ready {
			if err := p.resolve(r); err != nil {
				return b.failed(p.of, err)
			}
		}
		return nil
	})
}

// fits refuses a batch whose record would have more than limit bytes, before any memory is taken
// for it.
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
