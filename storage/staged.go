package storage

import (
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/internal/failpoint"
	"github.com/flashdb/flashdb/internal/format"
)

// A staged release is filled by transactions of its own, beside the log: what is put is durable
// when the call returns, and is written once. It may run beside the writer.

// An IDRow is a row and the node it is of.
type IDRow struct {
	ID  uint32
	Row []float32
}

// PutStagedRows stores rows of nodes of a collection in a staged release, in one synced
// transaction. It leaves out those of nodes that were deleted. Of two rows of one node the later
// one stays.
func (s *Store) PutStagedRows(name string, uid uint32, rows []IDRow) error {
	return s.putStagedRows(name, uid, rows, false)
}

// PutEmbeddedRows is PutStagedRows for rows that were computed from the links of their nodes. Those
// are in EmbeddedIDs until other rows are put.
func (s *Store) PutEmbeddedRows(name string, uid uint32, rows []IDRow) error {
	return s.putStagedRows(name, uid, rows, true)
}

func (s *Store) putStagedRows(name string, uid uint32, rows []IDRow, embedded bool) error {
	return s.fill(name, uid, func(w *writer, col *collection, set *rowSet) (after func(), err error) {
		all, ids := newLayer(), make([]uint32, 0, len(rows))
		for _, r := range rows {
			if len(r.Row) != col.schema.Dim {
				return nil, fmt.Errorf("row has %d values, want %d", len(r.Row), col.schema.Dim)
			}
			if i := firstNonFinite(r.Row); i >= 0 {
				return nil, fmt.Errorf("row value %d is %v, want a finite number", i, r.Row[i])
			}
			if r.ID < col.nextID && !col.live(r.ID) {
				continue
			}
			all.nodes[nodeKey{w.uid, r.ID}] = node{record: []byte{}, row: r.Row, lsn: s.Applied()}
			ids = append(ids, r.ID)
		}
		slices.Sort(ids)
		ids = slices.Compact(ids)
		w.rowBlocks(ids, all)
		held := set.held.Load().Clone()
		held.AddMany(ids)
		held.RunOptimize()
		w.putHeld(w.set, held)
		w.markEmbedded(ids, embedded)
		return func() { set.held.Store(held) }, w.err
	})
}

// markEmbedded notes whether the rows of ids were computed from links. A damaged value is replaced:
// it must not keep rows from being put.
func (w *writer) markEmbedded(ids []uint32, embedded bool) {
	if w.err != nil {
		return
	}
	marked, err := loadEmbedded(w.set, w.file)
	switch {
	case err != nil:
		marked = roaring.New()
	case marked.IsEmpty() && !embedded:
		return
	}
	if embedded {
		marked.AddMany(ids)
	} else {
		marked.AndNot(roaring.BitmapOf(ids...))
	}
	var value []byte
	if !marked.IsEmpty() {
		value, err = encodeBitmap(marked)
		w.fail(err)
	}
	w.put(w.set, keyEmbedded, value)
}

// loadEmbedded returns the ids of a set whose rows were computed from links.
func loadEmbedded(set table, file string) (*roaring.Bitmap, error) {
	value, err := set.get(keyEmbedded)
	if err == nil && value == nil {
		return roaring.New(), nil
	}
	var ids *roaring.Bitmap
	if err == nil {
		ids, err = decodeBitmap(value)
	}
	return ids, located(err, file, "embedded")
}

// EmbeddedIDs returns the ids of the nodes whose rows in the release that v is of were computed
// from their links.
func (v *View) EmbeddedIDs(uid uint32) *roaring.Bitmap {
	set := v.setOf(uid)
	if set == nil || !v.acquire() {
		return roaring.New()
	}
	defer v.release()
	defer v.db.guard(&v.err)
	defer faults(faults(true))
	bkt := setBucket(v.tx, uid, set.uid)
	if bkt == nil {
		return roaring.New() // not flushed as yet
	}
	ids, err := loadEmbedded(v.layout.collection(bkt, set.uid), v.file)
	if err != nil {
		v.fail(err)
		return roaring.New()
	}
	return ids
}

// PutStaged applies PutDecoder, DropDecoder, SetPlans, or SetMeta of an encoder, to a staged
// release, in one synced transaction. SetMeta with an empty value removes the value.
func (s *Store) PutStaged(name string, ops ...Op) error {
	if len(ops) == 0 {
		return nil
	}
	return s.fill(name, ops[0].Collection(), func(w *writer, col *collection, _ *rowSet) (func(), error) {
		for _, op := range ops {
			if err := w.staged(op); err != nil {
				return nil, fmt.Errorf("collection %q: %w", col.name, err)
			}
		}
		return nil, w.err
	})
}

// staged writes one operation of PutStaged.
func (w *writer) staged(op Op) error {
	put := func(b bucket, what, name string, blob []byte) error {
		if err := checkName(what+" name", name); err != nil {
			return err
		}
		if err := checkBlob(what, len(blob)); err != nil {
			return err
		}
		w.put(w.table(b), []byte(name), blob)
		return w.err
	}
	switch op := op.(type) {
	case PutDecoder:
		if err := put(plansBucket, "plans", op.Name, nil); err != nil {
			return err
		}
		return put(decodersBucket, "decoder", op.Name, append([]byte{}, op.Blob...))
	case SetPlans:
		if t := w.table(decodersBucket); w.err == nil && t.Get([]byte(op.Name)) == nil {
			return fmt.Errorf("set plans of decoder %q: %w", op.Name, ErrNotFound)
		}
		return put(plansBucket, "plans", op.Name, append([]byte{}, op.Blob...))
	case SetMeta:
		if metaOf(op.Name) != encoderBucket {
			return fmt.Errorf("meta %q belongs to no release", op.Name)
		}
		if op.Value == "" {
			return put(encoderBucket, "meta", op.Name, nil)
		}
		return put(encoderBucket, "meta", op.Name, []byte(op.Value))
	}
	return fmt.Errorf("%T is not for a release", op)
}

// fill writes to a set of a staged release in one synced transaction. after runs once it is
// committed.
func (s *Store) fill(name string, uid uint32, fn func(w *writer, col *collection, set *rowSet) (after func(), err error)) error {
	s.file.Lock()
	defer s.file.Unlock()
	switch {
	case s.closed.Load():
		return ErrClosed
	case s.opts.ReadOnly:
		return ErrReadOnly
	}
	r, err := s.flushed.find(name)
	if err != nil {
		return err
	}
	if r.state != Staged {
		return fmt.Errorf("release %q: %w: it is %v, and only a staged one is written to", name, ErrState, r.state)
	}
	set, col := r.sets[uid], s.flushed.byUID[uid]
	if set == nil || col == nil {
		return fmt.Errorf("release %q does not name this collection: %w", name, ErrNotFound)
	}
	var after func()
	err = s.update(func(tx *bolt.Tx) (err error) {
		w := s.layout.setWriter(tx, s.path, col, set.uid)
		if w.err == nil {
			after, err = fn(w, col, set)
		}
		switch {
		case w.err != nil:
			return w.err
		case err != nil:
			return refusal{err}
		}
		failpoint.ReleaseFill.Reach()
		return nil
	})
	if err != nil {
		return fmt.Errorf("fill release %q: %w", name, err)
	}
	if after != nil {
		after()
	}
	set.stamp.Store(s.stamps.Add(1))
	return nil
}

// AddNode inserts a node that has no row in the live release. It must come with the collection's
// NextID. The collection must be one that a release was staged over.
type AddNode struct {
	UID, ID uint32
	Key     string
	Tags    []string // in any order
	Payload []byte
}

// Collection returns o.UID.
func (o AddNode) Collection() uint32 { return o.UID }

func (o AddNode) encode(w *format.Writer) {
	w.Uint8(kindAddNode)
	w.Uvarint(uint64(o.UID))
	w.Uvarint(uint64(o.ID))
	w.String(o.Key)
	encodeTags(w, o.Tags)
	w.Blob(o.Payload)
}

func (o AddNode) apply(c *Changes, _ uint64) error {
	col, err := c.edit(o.UID)
	if err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("add node %q to %q: %w", o.Key, col.name, err) }
	if err := checkName("key", o.Key); err != nil {
		return fail(err)
	}
	if err := checkBlob("payload", len(o.Payload)); err != nil {
		return fail(err)
	}
	tags, err := checkTags(o.Tags)
	if err != nil {
		return fail(err)
	}
	switch _, used := c.ID(o.UID, o.Key); {
	case col.held == nil:
		return fail(fmt.Errorf("no release was staged over it, and so each of its nodes has a row"))
	case used:
		return fail(fmt.Errorf("the key is in use"))
	case o.ID != col.nextID || o.ID > maxID:
		return fail(fmt.Errorf("id %d is not the next one, which is %d", o.ID, col.nextID))
	}
	col.nextID++
	col.count++
	c.own.ids[nameKey{o.UID, o.Key}] = idOf{o.ID, true}
	c.setRecord(o.UID, o.ID, o.Key, tags, o.Payload)
	return c.retag(o.UID, o.ID, nil, tags)
}
