package flashdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/encoder"
	"github.com/flashdb/flashdb/storage"
)

// The states of a release. One is live: its rows, decoders and encoders are what queries use. Any
// number are staged. At most one is the former one, which was live before.
const (
	ReleaseStaged = "staged"
	ReleaseLive   = "live"
	ReleaseFormer = "former"
)

// A Release names embeddings, decoders, encoders, indexes and calibrations of one or several
// collections that are published together. Keys, tags, payloads and links are of the node, and the
// same in every release.
//
// A staged release is filled with Put, PutDecoder and PutEncoder, indexed with Build, and published
// with DB.Publish, all beside a program that queries and writes. It is safe for concurrent use.
type Release struct {
	db   *DB
	name string
}

// A ReleaseInfo describes a release.
type ReleaseInfo struct {
	Name string
	// Number counts the releases of a database from 1. The first is what was there before another
	// was staged. Its name is "1".
	Number uint64
	State  string // staged, live or former
	// Created is when it was staged. Of the first it is when the second was, and zero before.
	Created time.Time
	// Cut is when the data was cut that it was trained on: see SetCut. Of the first it is Created.
	Cut time.Time
	// Published is when it last became live, and zero if it never was.
	Published time.Time
	// Collections are those that it has embeddings of its own for. Of the live release they are
	// all.
	Collections []ReleaseCollection
}

// A ReleaseCollection is what a release has of one collection.
type ReleaseCollection struct {
	Name string
	// Rows is the number of nodes that have an embedding in the release, WithoutRow that of the
	// others: they are never predicted.
	Rows, WithoutRow uint64
	Decoders         []string
	Encoder          bool   // it has one
	Generation       uint64 // of its index; 0 without one
}

// StageRelease makes an empty release over some collections. Its name is like that of a collection.
// Nothing else changes: the live release is queried and written as before.
//
// It returns ErrExists if the name is in use, and ErrNotFound for a collection that does not exist.
// The first release raises the version of the bbolt file, so that older programs refuse the
// database. From then on Link keeps the time of new links, of the newest 20,000 to nodes of each
// collection.
func (db *DB) StageRelease(ctx context.Context, name string, collections ...string) (*Release, error) {
	err := db.releaseCall(ctx, "stage", name, func(ctx context.Context) error {
		if len(collections) == 0 {
			return fmt.Errorf("%w: name at least one collection", ErrInvalid)
		}
		if err := storage.CheckNewCollectionName(name); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		var uids []uint32
		err := db.store.View(func(v *storage.View) error {
			seen := map[uint32]bool{}
			for _, of := range collections {
				info, ok := v.Collection(of)
				if !ok {
					return fmt.Errorf("collection %q %w", of, ErrNotFound)
				}
				if !seen[info.UID] {
					uids = append(uids, info.UID)
				}
				seen[info.UID] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
		return db.reshape(func() error { return db.store.StageRelease(name, uids, db.opts.clock.now()) })
	})
	if err != nil {
		return nil, err
	}
	return &Release{db, name}, nil
}

// Release returns the release of that name, or ErrNotFound.
func (db *DB) Release(ctx context.Context, name string) (*Release, error) {
	all, err := db.Releases(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if r.Name == name {
			return &Release{db, name}, nil
		}
	}
	return nil, fmt.Errorf("release %q %w", name, ErrNotFound)
}

// Releases describes the releases by number. A database in which none was ever staged has the first
// one, which is live.
func (db *DB) Releases(ctx context.Context) (all []ReleaseInfo, err error) {
	leave, err := db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var stored []storage.Release
	if err := db.store.View(func(v *storage.View) error { stored = v.Releases(); return nil }); err != nil {
		return nil, err
	}
	for _, r := range stored {
		info := ReleaseInfo{Name: r.Name, Number: r.Number, State: r.State.String(), Created: r.Created, Cut: r.Cut, Published: r.Published}
		err := db.store.ViewOf(r.Name, func(v *storage.View) error {
			for _, of := range r.Collections {
				c := ReleaseCollection{
					Name: of.Name, Rows: uint64(of.Rows), WithoutRow: uint64(of.Count - of.Rows),
					Decoders: v.Decoders(of.UID), Generation: of.Generation,
				}
				_, c.Encoder = v.Meta(of.UID, metaEncoder)
				info.Collections = append(info.Collections, c)
			}
			return nil
		})
		if errors.Is(err, storage.ErrNotFound) {
			continue // dropped meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("release %q: %w", r.Name, err)
		}
		all = append(all, info)
	}
	return all, nil
}

// Name returns the name of the release.
func (r *Release) Name() string { return r.name }

// Put stores the embeddings of nodes of a collection in a staged release. All of them are one
// write, which is durable when Put returns: after a crash all are there or none. It does not go
// through the log. Of a node that exists, tags, attributes and payload stay as they are. A node
// with a new key is added with them, and has no embedding in the live release until Upsert stores
// one. Put returns how many nodes it added.
//
// It returns ErrNotFound for a collection that does not exist, and ErrInvalid for a release that is
// not staged or does not name the collection. Other embeddings are refused as by Upsert.
func (r *Release) Put(ctx context.Context, collection string, nodes ...Node) (added int, err error) {
	return r.Apply(ctx, &Batch{writes: []write{{kind: writeUpsert, collection: collection, nodes: nodes}}})
}

// PutDecoder stores a trained decoder in a staged release, in place of one of that name. Decoders
// of the live release are not in it: a release has all that it needs. Build calibrates it.
func (r *Release) PutDecoder(ctx context.Context, collection, name string, d decoder.Decoder) error {
	_, err := r.Apply(ctx, &Batch{writes: []write{{kind: writeDecoder, collection: collection, name: name, decoder: d}}})
	return err
}

// PutEncoder stores the encoder for nodes that come later in a staged release, in place of an
// earlier one. A nil encoder removes it. See Collection.PutEncoder.
func (r *Release) PutEncoder(ctx context.Context, collection string, e *encoder.Encoder, use EncoderUse) error {
	var b Batch
	b.PutEncoder(collection, e, use)
	_, err := r.Apply(ctx, &b)
	return err
}

// SetCut says when the data was cut that a staged release was trained on. Without it that is when
// it was staged. Links that Link stores later are new to the release, and CompareRelease ranks
// them. A time is kept in seconds. A first one raises the version of the bbolt file.
//
// It returns ErrInvalid for a time that is not over yet, and for a release that is not staged.
func (r *Release) SetCut(ctx context.Context, at time.Time) error {
	return r.db.releaseCall(ctx, "set the cut of", r.name, func(context.Context) error {
		if now := r.db.opts.clock.now(); at.After(now) || at.Unix() < 0 {
			return fmt.Errorf("%w: %s is not between 1970 and now, %s", ErrInvalid, at.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
		}
		return r.db.reshape(func() error { return r.db.store.SetCut(r.name, at) })
	})
}

// Apply stores what the Upsert, PutDecoder and PutEncoder calls of a batch say in a staged release,
// and returns how many nodes it added: see Put. Its Link calls store links that the release was
// trained on: they are known in every release, as those of DB.Apply, but CompareRelease does not
// take them for new ones. Other calls are refused. Each call is one write, in their order, and not
// all of them together. If one fails, those before it are stored, and the error says which one,
// counted from 1.
func (r *Release) Apply(ctx context.Context, b *Batch) (added int, err error) {
	err = r.db.releaseCall(ctx, "fill", r.name, func(ctx context.Context) error {
		if b == nil {
			return fmt.Errorf("%w: the batch is nil", ErrInvalid)
		}
		if err := b.fits(MaxBatchBytes); err != nil {
			return err
		}
		if _, err := r.collections(); err != nil { // it is not staged
			return err
		}
		for i := range b.writes {
			n, err := r.put(ctx, &b.writes[i])
			if err != nil {
				return b.failed(i, err)
			}
			added += n
		}
		return nil
	})
	return added, err
}

// put carries out one call of a batch.
func (r *Release) put(ctx context.Context, w *write) (added int, err error) {
	c, err := r.staged(w.collection)
	if err != nil {
		return 0, err
	}
	switch {
	case w.kind == writeUpsert:
		return r.putRows(ctx, c, w.nodes)
	case w.kind == writeLink:
		return 0, r.db.commit(ctx, func(rec *record) error { return c.link(rec, w.edges, true) })
	case w.kind == writeDecoder:
		blob, err := c.decoderBlob(w.name, w.decoder)
		if err != nil {
			return 0, err
		}
		return 0, c.putStaged(storage.PutDecoder{UID: c.uid, Name: w.name, Blob: blob})
	case w.kind == writeMeta && (w.name == metaEncoder || w.name == metaEncoderUse):
		if w.name == metaEncoder && w.value != "" {
			e := new(encoder.Encoder)
			if err := e.UnmarshalBinary([]byte(w.value)); err != nil {
				return 0, err
			}
			if e.Dim() != c.schema.Dim {
				return 0, wrongEncoder(e, c.schema)
			}
		}
		return 0, c.putStaged(storage.SetMeta{UID: c.uid, Name: w.name, Value: w.value})
	}
	return 0, fmt.Errorf("%w: it is of the node, and the same in every release", ErrInvalid)
}

func (r *Release) putRows(ctx context.Context, c *Collection, nodes []Node) (added int, err error) {
	puts, err := c.puts(nodes)
	if err != nil || len(puts) == 0 {
		return 0, err
	}
	rows, added, err := c.identify(ctx, puts, nodes)
	if err != nil {
		return 0, err
	}
	if err := r.db.store.PutStagedRows(r.name, c.uid, rows); err != nil {
		return added, err
	}
	return added, c.refresh(true)
}

// identify returns the rows with the ids of their nodes. It adds the nodes that do not exist.
func (c *Collection) identify(ctx context.Context, puts storage.PutNodes, nodes []Node) (rows []storage.IDRow, added int, err error) {
	rows = make([]storage.IDRow, len(puts))
	unknown := false
	err = c.db.store.View(func(v *storage.View) error {
		for i := range puts {
			id, ok := v.ID(c.uid, puts[i].Key)
			unknown = unknown || !ok
			rows[i] = storage.IDRow{ID: id, Row: puts[i].Row}
		}
		return nil
	})
	if err != nil || !unknown {
		return rows, 0, err
	}
	err = c.db.commit(ctx, func(r *record) error {
		added = 0
		for i := range puts {
			id, ok := r.changes.ID(c.uid, puts[i].Key)
			if !ok {
				info, exists := r.changes.Collection(c.name)
				if !exists || info.UID != c.uid {
					return fmt.Errorf("collection %q %w: it was dropped", c.name, ErrNotFound)
				}
				id = info.NextID
				if err := r.emit(storage.AddNode{UID: c.uid, ID: id, Key: puts[i].Key, Tags: nodes[i].Tags, Payload: nodes[i].Payload}); err != nil {
					return err
				}
				if set := puts[i].Attributes; len(set) > 0 {
					if err := r.emit(storage.SetAttributes{UID: c.uid, ID: id, Set: set}); err != nil {
						return err
					}
				}
				added++
			}
			rows[i].ID = id
		}
		return nil
	})
	return rows, added, err
}

// A ReleaseBuild says what Build did for one collection.
type ReleaseBuild struct {
	Collection string
	// Embedded is how many nodes without an embedding in the release were embedded from their
	// links.
	Embedded int
	RebuildResult
}

// Build builds the index of each collection of a staged release from the embeddings that were put,
// and calibrates its decoders, as Rebuild does for the live release. It may be called again after
// more was put: embeddings that are newer than the index are searched exactly.
//
// If a collection has an encoder in the release, Build first embeds the nodes that have no
// embedding there, such as those that came after the data was cut. It does so by their links to
// nodes that have one, as Collection.Embed does. Nodes without such links are left as they are.
func (r *Release) Build(ctx context.Context, opts *RebuildOptions) (all []ReleaseBuild, err error) {
	err = r.db.releaseCall(ctx, "build", r.name, func(ctx context.Context) error {
		if err := opts.Validate(); err != nil {
			return err
		}
		var o RebuildOptions
		if opts != nil {
			o = *opts
		}
		if o.NewerOnly {
			return fmt.Errorf("%w: NewerOnly is for the live release: Build trains", ErrInvalid)
		}
		names, err := r.collections()
		if err != nil {
			return err
		}
		if err := r.db.rebuilds.take(ctx); err != nil {
			return err
		}
		defer r.db.rebuilds.pass()
		for _, name := range names {
			c, err := r.staged(name)
			if err != nil {
				return err
			}
			embedded, err := c.embedMissing(ctx)
			if err != nil {
				return fmt.Errorf("collection %q: embed nodes: %w", name, err)
			}
			res, err := c.rebuildRetried(ctx, o)
			if err == nil && !res.Built && res.Generation != 0 {
				res.Calibrations = c.calibratePut(ctx, o)
			}
			if err != nil {
				return fmt.Errorf("collection %q: %w", name, err)
			}
			all = append(all, ReleaseBuild{name, embedded, res})
		}
		return nil
	})
	return all, err
}

// Collection returns a handle on a collection as the release has it, such as to Predict from a
// release before it is published. The handle is only read. Fill the release before: a query beside
// Put may see a part of what is put. The handle is valid until the release is published, rolled
// back or dropped. For the live release it is the handle that DB.Collection returns.
func (r *Release) Collection(name string) (*Collection, error) {
	leave, err := r.db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	return r.db.collectionOf(r.name, name)
}

// Drop removes a release that is not live, with all it has, and gives its space back to the bbolt
// file. Nodes that Put added stay. It returns ErrInvalid for the live release.
func (r *Release) Drop(ctx context.Context) error {
	return r.db.releaseCall(ctx, "drop", r.name, func(ctx context.Context) error {
		if err := r.db.rebuilds.take(ctx); err != nil {
			return err
		}
		defer r.db.rebuilds.pass()
		if err := r.db.reshape(func() error { return r.db.store.DropRelease(r.name) }); err != nil {
			return err
		}
		r.db.closeStaged(func(k stagedKey) bool { return k.release == r.name })
		return r.db.tidy()
	})
}
