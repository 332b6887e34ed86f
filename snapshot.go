package flashdb

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/flashdb/flashdb/internal/delta"
	"github.com/flashdb/flashdb/storage"
)

// A Snapshot sees collections as they were at one moment, across any number of calls: for pages of
// results, and for jobs whose parts must agree. Whatever is written, deleted, rebuilt, compacted,
// published or dropped meanwhile, its answers stay those of the moment. That holds for embeddings,
// decoders, indexes and calibrations, so for the release that was live, and for keys, tags,
// attributes, payloads and links, of all collections at once. It is in memory only, and is not what
// `flashdb snapshot` makes. It is safe for concurrent use.
//
// It keeps what it sees, so close it soon: within minutes rather than days. Until then flash.db
// grows with what is written, because space that is freed is not used again. Rows that were
// newer than the index stay in memory, and an index that was replaced stays on disk. After a
// Compact the disk has the old flash.db, too; on Windows Compact fails while one is open. Nobody
// waits for a Snapshot. Its own calls read flash.db one at a time.
type Snapshot struct {
	db          *DB
	pin         *storage.Pin
	collections map[string]*Collection
}

// A frozen is what a handle of a Snapshot searches, in place of what is served.
type frozen struct {
	snapshot *Snapshot

	mu     sync.Mutex
	pinned pinned
	err    error // why it can no longer be searched
}

var errSnapshotClosed = fmt.Errorf("%w: the snapshot was closed", ErrClosed)

// errMoved is returned where the collections and the store were not seen at the same moment.
var errMoved = errors.New("not as of the same write")

// Snapshot returns a Snapshot of some collections, or of all where none is named. It must be
// closed. Sources may be nodes of other collections, too: see PredictOptions.SourceCollection.
//
// It makes the collections ready for queries, as the first query does, so it may take as long as
// that where none was asked. It returns ErrNotFound for a collection that does not exist.
func (db *DB) Snapshot(ctx context.Context, collections ...string) (*Snapshot, error) {
	leave, err := db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	s, err := db.snapshot(ctx, collections)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return s, nil
}

func (db *DB) snapshot(ctx context.Context, names []string) (*Snapshot, error) {
	if len(names) == 0 {
		var err error
		if names, err = db.collectionNames(); err != nil {
			return nil, err
		}
	}
	live := map[string]*Collection{}
	for _, name := range names {
		c, err := db.collection(name)
		if err != nil {
			return nil, err
		}
		live[name] = c
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s := &Snapshot{db: db, collections: map[string]*Collection{}}
		err := s.take(ctx, live)
		if err == nil {
			db.mu.Lock()
			db.snapshots[s] = true
			db.mu.Unlock()
			db.metrics.openSnapshots.Add(1)
			return s, nil
		}
		if ended := s.end(); !errors.Is(err, errMoved) || ended != nil {
			return nil, errors.Join(err, ended)
		}
		runtime.Gosched()
	}
}

// take pins what the collections serve, and then the store. If these are not as of the same write,
// which a write or a rebuild in between causes, it returns errMoved. See Collection.begin. If it
// fails, s must be ended.
func (s *Snapshot) take(ctx context.Context, live map[string]*Collection) error {
	for name, c := range live {
		h, err := s.db.handle(storage.Info{UID: c.uid, Name: name, Schema: storage.Schema(c.schema)}, "")
		if err != nil {
			return err
		}
		f := &frozen{snapshot: s}
		if f.pinned, err = c.pin(ctx); err != nil {
			return err
		}
		h.frozen, h.served.lsn, h.served.stamp = f, f.pinned.at.lsn, f.pinned.at.stamp
		h.served.damaged.Store(c.served.damaged.Load())
		s.collections[name] = h
	}
	var err error
	if s.pin, err = s.db.store.Pin(); err != nil {
		return err
	}
	return s.pin.View(func(v *storage.View) error {
		for name, h := range s.collections {
			info, ok := v.Collection(name)
			p := &h.frozen.pinned
			switch {
			case !ok || info.UID != h.uid:
				return fmt.Errorf("collection %q %w: it was dropped", name, ErrNotFound)
			case p.at != moment{v.LSN(h.uid), info.Stamp} || p.gen != nil && p.number != info.Generation:
				return errMoved
			}
		}
		return nil
	})
}

// Collection returns a handle on a collection of the snapshot. Its methods that read work as on the
// collection itself. Those that write, Rebuild and Calibrate return ErrInvalid. After Close all
// return ErrClosed.
func (s *Snapshot) Collection(name string) (*Collection, error) {
	c := s.collections[name]
	if c == nil {
		return nil, fmt.Errorf("collection %q %w in the snapshot: name it when the snapshot is taken", name, ErrNotFound)
	}
	return c, nil
}

// Close releases what the snapshot keeps. Calls on its collections that are under way may fail with
// ErrClosed. DB.Close closes every snapshot. A second Close returns ErrClosed.
func (s *Snapshot) Close() error {
	leave, err := s.db.enter()
	if err != nil {
		return err
	}
	defer leave()
	s.db.mu.Lock()
	open := s.db.snapshots[s]
	delete(s.db.snapshots, s)
	s.db.mu.Unlock()
	if !open {
		return errSnapshotClosed
	}
	s.db.metrics.openSnapshots.Add(-1)
	if err := s.end(); err != nil {
		return fmt.Errorf("close snapshot: %w", err)
	}
	return nil
}

// end releases what s has pinned.
func (s *Snapshot) end() (err error) {
	for _, c := range s.collections {
		f := c.frozen
		f.mu.Lock()
		f.err = errSnapshotClosed
		f.pinned.release()
		f.mu.Unlock()
	}
	if s.pin != nil {
		err = s.pin.Close()
	}
	return err
}

// endSnapshots closes the snapshots that are open. No call is running.
func (db *DB) endSnapshots() (err error) {
	for s := range db.snapshots {
		err = errors.Join(err, s.end())
	}
	clear(db.snapshots)
	return err
}

// view calls fn with a view of the store as of the snapshot.
func (s *Snapshot) view(fn func(v *storage.View) error) error {
	err := s.pin.View(fn)
	if errors.Is(err, storage.ErrClosed) {
		return errSnapshotClosed
	}
	return err
}

// pin returns what the snapshot has pinned.
func (f *frozen) pin() (pinned, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return pinned{}, f.err
	}
	return f.pinned.again(), nil
}

// giveUp is Collection.giveUp of a handle of a snapshot. The rows of the moment are read from the
// store, and held in memory.
func (f *frozen) giveUp(c *Collection, number uint64, cause error) {
	if live := c.db.loaded(c.uid); live != nil {
		live.giveUp(number, cause)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pinned.gen == nil || f.pinned.number != number {
		return // another query has done it, or the snapshot was closed
	}
	c.served.damaged.Store(number)
	at := f.pinned.at
	f.pinned.release()
	table := delta.New(c.schema.Dim)
	info, err := c.info()
	if err == nil {
		err = c.loadVisible(c.db.closing, table, at.lsn, info.NextID)
	}
	if err != nil {
		f.err = fmt.Errorf("the index is damaged, and the rows cannot be read: %w", err)
		return
	}
	f.pinned = pinned{at: at, delta: table.Snapshot()}
}

// storedRows is Store.RowsOf as the handle sees the store.
func (c *Collection) storedRows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	if c.frozen == nil {
		return c.db.store.RowsOf(ctx, c.release, c.uid, 0, fn)
	}
	return c.frozen.snapshot.pin.Rows(ctx, c.uid, 0, fn)
}

// liveness says which ids belong to a node, as the handle sees the store.
func (c *Collection) liveness() storage.Liveness {
	if c.frozen == nil {
		return c.db.store.Liveness(c.uid)
	}
	return c.frozen.snapshot.pin.Liveness(c.uid)
}
