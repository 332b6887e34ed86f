package flashdb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/delta"
	"github.com/flashdb/flashdb/internal/failpoint"
	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

// Schema is what is fixed when a collection is created.
type Schema struct {
	// Dim is the width of every embedding, 1 to 8192.
	Dim int
	// Normalize scales every embedding to Euclidean length 1 when it is stored, and every query
	// vector when it is asked with.
	Normalize bool
}

// String returns the schema in words, such as "dimension 64, normalized".
func (s Schema) String() string {
	if s.Normalize {
		return fmt.Sprintf("dimension %d, normalized", s.Dim)
	}
	return fmt.Sprintf("dimension %d", s.Dim)
}

// A Collection is a set of nodes with embeddings of one width, the decoders that were trained on
// them, and an index. It is safe for concurrent use. It is valid until it is dropped or its DB is
// closed.
type Collection struct {
	db     *DB
	uid    uint32
	name   string
	schema Schema
	// release is the release that is not live whose rows the handle sees. Such a handle is only
	// read: see Release.Collection. It is empty for the live release.
	release string
	frozen  *frozen // not nil in a handle of a Snapshot, which is only read, too

	served  served
	newer   atomic.Int64  // rows put since a segment was last asked for
	merged  atomic.Uint64 // number of the last merge of segments, which may be being built
	queries sync.Pool     // of *query

	dot        decoder.Decoder // what Search ranks by
	decodersMu sync.Mutex      // guards decoders and only
	decoders   map[string]*trained
	only       *trained // the one decoder of the collection, once a call has looked it up; else nil
}

// CreateCollection creates an empty collection. Its name has 1 to 64 letters, digits, dots, dashes
// and underscores, and begins with neither dot nor dash. It also names a directory, and databases
// are copied between systems. So it must not end with a dot, must not be a device name of Windows,
// such as con or nul.txt, and must not differ only in case from the name of another collection.
func (db *DB) CreateCollection(name string, s Schema) (*Collection, error) {
	leave, err := db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if err = s.checkNew(name); err == nil {
		err = db.commit(context.Background(), func(r *record) error {
			_, err := s.create(r, name)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("create collection: %w", err)
	}
	return db.collection(name)
}

// checkNew refuses names and schemas that no collection can have.
func (s Schema) checkNew(name string) error {
	if err := storage.CheckNewCollectionName(name); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if s.Dim < 1 || s.Dim > maxDim {
		return fmt.Errorf("collection %q: %w: dim is %d, want 1 to %d", name, ErrInvalid, s.Dim, maxDim)
	}
	return nil
}

// create creates an empty collection of schema s and returns its uid.
func (s Schema) create(r *record, name string) (uid uint32, err error) {
	switch other, ok := r.changes.CollectionLike(name); {
	case other == name && ok:
		info, _ := r.changes.Collection(name)
		return 0, fmt.Errorf("collection %q %w, of dimension %d", name, ErrExists, info.Schema.Dim)
	case ok:
		return 0, fmt.Errorf("%w: name %q differs from collection %q only in case, and file names have none on some systems", ErrInvalid, name, other)
	}
	uid = r.changes.NextUID()
	return uid, r.emit(storage.CreateCollection{UID: uid, Name: name, Schema: storage.Schema{Dim: s.Dim, Normalize: s.Normalize}})
}

// OpenCollection returns the collection of that name. It creates the collection when there is none:
// see CreateCollection. A collection with another Schema is an error that matches ErrExists.
func (db *DB) OpenCollection(name string, s Schema) (*Collection, error) {
	c, err := db.Collection(name)
	if errors.Is(err, ErrNotFound) {
		if c, err = db.CreateCollection(name, s); errors.Is(err, ErrExists) {
			c, err = db.Collection(name) // created meanwhile
		}
	}
	if err == nil && c.schema != s {
		return nil, fmt.Errorf("open collection: %q %w with %s, and not %s", name, ErrExists, c.schema, s)
	}
	return c, err
}

// Collection returns the collection of that name, or ErrNotFound.
func (db *DB) Collection(name string) (*Collection, error) {
	leave, err := db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	return db.collection(name)
}

func (db *DB) collection(name string) (*Collection, error) {
	var info storage.Info
	err := db.store.View(func(v *storage.View) error {
		var ok bool
		if info, ok = v.Collection(name); !ok {
			return fmt.Errorf("collection %q %w", name, ErrNotFound)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	c := db.collections[info.UID]
	if c == nil {
		if c, err = db.handle(info, ""); err != nil {
			return nil, err
		}
		// Batches that are published from here on are applied to c: apply needs db.mu to find the
		// open collections.
		info, c.served.lsn, _ = db.store.Collection(name)
		c.served.stamp = info.Stamp
		db.collections[info.UID] = c
	}
	return c, nil
}

// handle makes a handle on a collection as of a release.
func (db *DB) handle(info storage.Info, release string) (*Collection, error) {
	dot, err := decoder.NewDot(info.Schema.Dim)
	if err != nil {
		return nil, err
	}
	c := &Collection{
		db:       db,
		uid:      info.UID,
		name:     info.Name,
		release:  release,
		schema:   Schema{Dim: info.Schema.Dim, Normalize: info.Schema.Normalize},
		dot:      dot,
		decoders: map[string]*trained{},
	}
	c.queries.New = func() any { return newQuery(c) }
	return c, nil
}

// loaded returns the open handle of a collection, or nil.
func (db *DB) loaded(uid uint32) *Collection {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.collections[uid]
}

// DropCollection deletes a collection with everything in it, and the links between it and other
// collections. It waits for a running rebuild or compaction and for the log. If ctx ends during the
// wait, nothing is dropped. Files in the folder of its index that flashdb has not made stay there,
// and are logged.
func (db *DB) DropCollection(ctx context.Context, name string) error {
	leave, err := db.enter()
	if err != nil {
		return err
	}
	defer leave()
	// A rebuild of the collection must not publish into its removed directory.
	if err := db.rebuilds.take(ctx); err != nil {
		return err
	}
	defer db.rebuilds.pass()
	var uid uint32
	err = db.commit(ctx, func(r *record) (err error) {
		uid, err = dropIn(r, name)
		return err
	})
	if err != nil {
		return fmt.Errorf("drop collection: %w", err)
	}
	db.forget(uid, name)
	return nil
}

// dropIn drops the collection of that name and returns its uid.
func dropIn(r *record, name string) (uid uint32, err error) {
	info, ok := r.changes.Collection(name)
	if !ok {
		return 0, fmt.Errorf("collection %q %w", name, ErrNotFound)
	}
	return info.UID, r.emit(storage.DropCollection{UID: info.UID})
}

// forget releases a dropped collection and removes its index. The caller holds db.rebuilds, so
// nothing is published in the folder meanwhile, not even for a new collection of that name.
func (db *DB) forget(uid uint32, name string) {
	db.mu.Lock()
	c := db.collections[uid]
	delete(db.collections, uid)
	db.mu.Unlock()
	if c != nil {
		c.close()
	}
	db.closeStaged(func(k stagedKey) bool { return k.uid == uid })
	failpoint.DropRemove.Reach()
	db.removeFolder(name)
}

// Name returns the collection's name.
func (c *Collection) Name() string { return c.name }

// Schema returns what was fixed when the collection was created.
func (c *Collection) Schema() Schema { return c.schema }

// Upsert stores nodes. It inserts nodes with new keys. Of nodes that exist it replaces embedding,
// tags, attributes and payload, and keeps the known links. All nodes are one atomic write: after a
// crash all are there or none. Upsert keeps no reference to the nodes.
func (c *Collection) Upsert(ctx context.Context, nodes ...Node) error {
	_, err := c.write(ctx, write{kind: writeUpsert, nodes: nodes})
	return err
}

// puts checks nodes and returns them as they are stored, without ids.
func (c *Collection) puts(nodes []Node) (storage.PutNodes, error) {
	puts := make(storage.PutNodes, len(nodes))
	for i, n := range nodes {
		row, err := c.schema.row(n)
		if err != nil {
			return nil, err
		}
		puts[i] = storage.PutNode{UID: c.uid, Key: n.Key, Row: row, Tags: n.Tags, Payload: n.Payload}
		if puts[i].Attributes, _, err = attributesOf(n.Key, n.Attributes); err != nil {
			return nil, err
		}
	}
	return puts, nil
}

// SetTags replaces the tags of the node under key, or returns ErrNotFound. Without tags it removes
// those the node has. Embedding, payload, links and the row in the index stay as they are, so no
// rebuild is needed.
func (c *Collection) SetTags(ctx context.Context, key string, tags []string) error {
	_, err := c.write(ctx, write{kind: writeTags, keys: []string{key}, tags: tags})
	return err
}

func (c *Collection) setTags(r *record, key string, tags []string) error {
	id, ok := r.changes.ID(c.uid, key)
	if !ok {
		return fmt.Errorf("node %q %w", key, ErrNotFound)
	}
	return r.emit(storage.SetTags{UID: c.uid, ID: id, Tags: tags})
}

// SetPayload replaces the payload of the node under key, or returns ErrNotFound. The rest of the
// node stays as it is.
func (c *Collection) SetPayload(ctx context.Context, key string, payload []byte) error {
	_, err := c.write(ctx, write{kind: writePayload, keys: []string{key}, payload: payload})
	return err
}

func (c *Collection) setPayload(r *record, key string, payload []byte) error {
	id, ok := r.changes.ID(c.uid, key)
	if !ok {
		return fmt.Errorf("node %q %w", key, ErrNotFound)
	}
	return r.emit(storage.SetPayload{UID: c.uid, ID: id, Payload: payload})
}

// row checks a node and returns its row as it is stored.
func (s Schema) row(n Node) ([]float32, error) {
	if err := n.validate(s.Dim); err != nil {
		return nil, err
	}
	if !s.Normalize {
		return n.Embedding, nil
	}
	row, err := unit(n.Embedding)
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", n.Key, err)
	}
	return row, nil
}

// ValidateNodes returns the error of the first node that Upsert into a collection of this schema
// would refuse. An import can check all of its input with it before it writes.
func (s Schema) ValidateNodes(nodes ...Node) error {
	for _, n := range nodes {
		if _, err := s.row(n); err != nil {
			return err
		}
	}
	return nil
}

// commit runs resolve as one write on this collection.
func (c *Collection) commit(ctx context.Context, verb string, resolve func(r *record, info storage.Info) error) error {
	err := c.db.commit(ctx, func(r *record) error {
		info, ok := r.changes.Collection(c.name)
		if !ok || info.UID != c.uid {
			return fmt.Errorf("it was dropped: %w", ErrNotFound)
		}
		return resolve(r, info)
	})
	if err != nil {
		return fmt.Errorf("%s %q: %w", verb, c.name, err)
	}
	return nil
}

// Get returns the node stored under key, or ErrNotFound.
func (c *Collection) Get(ctx context.Context, key string) (n Node, err error) {
	err = c.viewed(ctx, func(v *storage.View) error {
		id, ok := v.ID(c.uid, key)
		if !ok {
			return c.noNode(key)
		}
		n, err = c.node(v, id, key)
		return err
	})
	return n, err
}

// node reads a live node.
func (c *Collection) node(v *storage.View, id uint32, key string) (Node, error) {
	stored, _ := v.Node(c.uid, id)
	n := Node{Key: key, Tags: stored.Tags, Payload: stored.Payload, Embedding: make([]float32, c.schema.Dim)}
	n.Attributes = anyOf(v.NodeAttributes(c.uid, id))
	if !v.Row(n.Embedding, c.uid, id) {
		if !hasNoRow(v, c.uid, id) {
			return Node{}, c.db.noRowIn(v, c.itself(), id, key)
		}
		n.Embedding = nil
	}
	return n, nil
}

// liveIDs returns the ids of the nodes of a collection.
func liveIDs(v *storage.View, info storage.Info) *roaring.Bitmap {
	ids := roaring.New()
	ids.AddRange(0, uint64(info.NextID))
	if tombs := v.Tombs(info.UID); tombs != nil {
		ids.AndNot(tombs)
	}
	return ids
}

// hasNoRow reports whether the release that v sees has no row of a live node.
func hasNoRow(v *storage.View, uid, id uint32) bool {
	held := v.RowIDs(uid)
	return held != nil && !held.Contains(id)
}

func (c *Collection) noNode(key string) error {
	return noNodeIn(c.name, key)
}

// noRowIn is the error for a node without a row. The release may have none of it.
func (db *DB) noRowIn(v *storage.View, in storage.Info, id uint32, key string) error {
	if hasNoRow(v, in.UID, id) {
		return fmt.Errorf("embedding of node %q of collection %q %w: the release has none, and upsert stores one", key, in.Name, ErrNotFound)
	}
	return format.Corrupt(db.path(db.storeName), fmt.Sprintf("rows of collection %q", in.Name), 0, "node %q has none", key)
}

// Delete removes nodes with their tags, attributes, payload and links, and returns how many it
// removed. It ignores keys that do not exist.
func (c *Collection) Delete(ctx context.Context, keys ...string) (deleted int, err error) {
	return c.write(ctx, write{kind: writeDelete, keys: keys})
}

func (c *Collection) deleteNodes(r *record, keys []string) (deleted int, err error) {
	for _, key := range keys {
		id, ok := r.changes.ID(c.uid, key)
		if !ok {
			continue
		}
		if err := r.emit(storage.DeleteNode{UID: c.uid, ID: id}); err != nil {
			return 0, err
		}
		deleted++
	}
	return deleted, nil
}

// KeysWithPrefix returns the first keys that begin with prefix, in the order of their bytes, at
// most limit of them. Its cost depends on how many it returns, not on the size of the collection.
func (c *Collection) KeysWithPrefix(ctx context.Context, prefix string, limit int) (keys []string, err error) {
	err = c.viewed(ctx, func(v *storage.View) error {
		keys = v.KeysWithPrefix(c.uid, prefix, limit)
		return nil
	})
	return keys, err
}

// SetMeta stores a string of the caller's own with the collection. Names that begin with "flashdb."
// are reserved for flashdb and its command.
func (c *Collection) SetMeta(ctx context.Context, name, value string) error {
	_, err := c.write(ctx, write{kind: writeMeta, name: name, value: value})
	return err
}

// Meta returns the string that SetMeta stored under name, and whether there is one.
func (c *Collection) Meta(ctx context.Context, name string) (value string, ok bool, err error) {
	err = c.viewed(ctx, func(v *storage.View) error {
		value, ok = v.Meta(c.uid, name)
		return nil
	})
	return value, ok, err
}

// apply applies one durable batch to what the collection holds in memory. It runs under the commit
// leader, in log order. Decoders come first: a query that pins the delta as of a batch must not
// find a decoder from before that batch.
func (c *Collection) apply(ops []storage.Op, lsn uint64) {
	for _, op := range ops {
		switch op := op.(type) {
		case storage.PutDecoder:
			c.forgetDecoder(op.Name)
		case storage.DropDecoder:
			c.forgetDecoder(op.Name)
		case storage.SetPlans:
			c.forgetDecoder(op.Name)
		}
	}
	c.served.update(lsn, func(t *delta.Table) {
		for _, op := range ops {
			switch op := op.(type) {
			case storage.PutNodes:
				for i := range op {
					t.Put(op[i].ID, op[i].Row, lsn)
				}
			case storage.DeleteNode:
				t.Delete(op.ID, lsn)
			}
		}
	})
	for _, op := range ops {
		if op, ok := op.(storage.PutNodes); ok {
			c.wrote(len(op))
		}
	}
}

// close releases the served generation.
func (c *Collection) close() {
	if err := c.served.close(); err != nil && !errors.Is(err, ErrClosed) {
		c.db.slog.Warn("release index", "collection", c.name, "err", err)
	}
}
