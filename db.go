package flashdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/flashdb/flashdb/internal/failpoint"
	"github.com/flashdb/flashdb/internal/snapshot"
	"github.com/flashdb/flashdb/internal/socket"
	"github.com/flashdb/flashdb/internal/vfs"
	"github.com/flashdb/flashdb/storage"
	"github.com/flashdb/flashdb/wal"
)

// Names inside a database directory.
const (
	storeFile = "flash.db"
	walDir    = "wal"
	indexDir  = "index"
)

// A DB is an open database directory. It is safe for concurrent use. A directory is open for
// writing in one DB at a time.
type DB struct {
	dir  string // absolute
	opts Options
	disk
	home  *vfs.Dir // the directory
	fs    vfs.Root // the same directory, for the log and the index
	log   *wal.Log
	store *storage.Store
	// storeName is the name of the bbolt file. sealed is not nil if the directory is a snapshot.
	storeName string
	sealed    *snapshot.List
	slog      *slog.Logger

	events  events
	metrics metrics
	failed  sync.Once // reports once that writes are refused from now on
	// unflushed is why a flush failed, or why none can succeed. Later flushes would fail too, and
	// writes would fill the memory. So writes are refused once it is set.
	unflushed atomic.Pointer[error]

	// Close waits for the calls that life counts. Ending closing makes long calls stop early.
	life     *life
	closed   bool       // a Close has begun to end the calls
	closer   sync.Mutex // held by Close
	closing  context.Context
	shutdown context.CancelFunc
	leaving  closingList

	mu          sync.Mutex // guards the next three
	collections map[uint32]*Collection
	staged      map[stagedKey]*Collection // open handles on releases that are not live
	snapshots   map[*Snapshot]bool        // those that are open

	releasing turn   // held while a release is made, filled, built, published or dropped; taken before rebuilds
	rebuilds  builds // held while a collection is rebuilt or dropped, or the database compacted
	flusher   flusher
	scheduler scheduler
	grower    grower
}

// Open opens the database in dir. It creates one when dir does not exist or is empty. It replays
// what the log holds beyond the last flush. A snapshot (see RestoreOptions) is opened read-only,
// whatever the options say, and without a lock.
//
// It returns ErrLocked when another process, or another DB of this one, has dir open. It returns
// ErrInvalid when dir holds something else, and ErrNotFound when Options.MustExist or
// Options.ReadOnly is set and there is no database. It returns ErrCorrupt for a damaged file, and
// ErrVersion for one of a newer format.
func Open(dir string, opts *Options) (*DB, error) {
	o := opts.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	abs, err := filepath.Abs(dir) // the working directory may change later
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", dir, err)
	}
	db := &DB{
		dir:         abs,
		opts:        o,
		rebuilds:    newBuilds(),
		releasing:   make(turn, 1),
		collections: map[uint32]*Collection{},
		staged:      map[stagedKey]*Collection{},
		snapshots:   map[*Snapshot]bool{},
	}
	db.disk, db.slog = db.opts.disk, db.opts.Logger
	db.events = events{log: db.slog, dir: abs, metrics: &db.metrics}
	db.life = newLife()
	db.closing, db.shutdown = context.WithCancel(context.Background())
	if err := db.open(); err != nil {
		return nil, fmt.Errorf("open database %s: %w", dir, err)
	}
	return db, nil
}

func (db *DB) open() (err error) {
	if err := db.hold(db.opts.MustExist || db.opts.ReadOnly); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			db.shutdown()
			err = errors.Join(err, db.letGo())
		}
	}()
	if err := db.recognize(); err != nil {
		return err
	}
	db.store, err = storage.OpenIn(db.home, db.storeName, &storage.Options{
		ReadOnly: db.opts.ReadOnly, Unlocked: db.sealed != nil, Timeout: db.opts.LockTimeout, NoSync: db.noSync, Verify: db.foreign,
	})
	if errors.Is(err, storage.ErrLocked) {
		return lockedBy(db.home, err)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			db.store.Close()
		}
	}()
	held.add(db.home)
	if db.opts.ReadOnly {
		return db.openReadOnly()
	}
	if err := writeOwner(db.home); err != nil {
		db.slog.Warn("owner.pid not written; who finds the database locked is not told by whom", "dir", db.dir, "err", err)
	}
	defer func() {
		if err != nil {
			_ = removeOwner(db.home)
		}
	}()
	if db.log, err = wal.Open(db.fs, walDir, &wal.Options{Held: db.store.Held}); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			db.log.Close()
		}
	}()
	return db.begin()
}

// begin makes an opened database ready. It replays the log, removes what an earlier process left
// unfinished, and starts the goroutines.
func (db *DB) begin() error {
	if torn := db.log.Torn(); torn != nil {
		db.events.tornTail(torn)
	}
	failpoint.OpenReplay.Reach()
	if err := db.replay(); err != nil {
		return err
	}
	failpoint.OpenSweep.Reach()
	if err := db.sweep(); err != nil {
		return err
	}
	if err := socket.Sweep(db.home.Handle()); err != nil { // the socket of a process that died
		db.leftAlone(err) // only a server needs the name
	}
	db.flusher.start(db)
	db.scheduler.start(db)
	db.grower.start(db)
	return nil
}

// replay brings the batches that are in the log but not yet in bbolt back into the store's overlay.
func (db *DB) replay() error {
	applied := wal.LSN(db.store.Applied())
	db.log.SetNext(applied)
	return db.log.Replay(applied, func(lsn wal.LSN, payload []byte) error {
		ops, err := storage.DecodeOps(payload)
		if err != nil {
			return err
		}
		c := db.store.Begin()
		for _, op := range ops {
			if err := c.Apply(op, uint64(lsn)); err != nil {
				return err
			}
		}
		db.store.Stage(c)
		db.store.Publish()
		if db.store.Pending() > db.opts.FlushBytes && db.unflushed.Load() == nil && !db.opts.ReadOnly {
			// If the flush fails, as on a full disk, the batches stay in memory and can be read.
			if _, err := db.store.Flush(); err != nil {
				db.cannotFlush(err)
			}
		}
		return nil
	})
}

// A turn is a mutex whose waiters stop waiting when their context ends.
type turn chan struct{}

func (t turn) take(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) pass() { <-t }

// causeOf returns why ctx ended in place of err, if err says that it ended.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		return cause
	}
	return err
}

// enter begins a public call, which ends with leave.
func (db *DB) enter() (leave func(), err error) {
	if !db.life.enter() {
		return nil, ErrClosed
	}
	return db.life.leave, nil
}

// Dir returns the directory the database was opened in, as an absolute path.
func (db *DB) Dir() string { return db.dir }

// Close cancels running rebuilds, calibrations, compactions and backups. It calls the functions
// given to BeforeClose, waits for the other calls, moves what the log holds into bbolt, and
// releases the directory. Later calls return ErrClosed, and so does a second Close. A callback,
// such as Progress, must not call Close: Close would wait for the call that made the callback.
//
// If the directory was moved or replaced since Open, Close writes nothing and returns an error that
// matches ErrReadOnly. The log keeps what it holds, in the directory where it now is.
func (db *DB) Close() error {
	db.shutdown()
	left := db.leaving.run()
	db.scheduler.wait()
	db.grower.wait()
	db.closer.Lock()
	defer db.closer.Unlock()
	if db.closed {
		return ErrClosed
	}
	db.closed = true
	db.life.end()
	if err := errors.Join(left, db.settleAndClose()); err != nil {
		return fmt.Errorf("close database %s: %w", db.dir, err)
	}
	return nil
}

// settleAndClose flushes the log, if the path still leads to the directory, and releases the
// directory.
func (db *DB) settleAndClose() (err error) {
	if !db.opts.ReadOnly {
		db.flusher.stop()
		if err = db.owned(); err == nil {
			if err = db.flush(); errors.Is(err, ErrReadOnly) {
				err = nil // reported when it happened; the log holds what was acknowledged
			}
			err = errors.Join(err, removeOwner(db.home)) // before the lock is released: a later process writes its own
		}
	}
	err = errors.Join(err, db.releaseAll())
	return errors.Join(err, db.log.Close(), db.store.Close(), db.letGo())
}

// releaseAll closes the open snapshots, and releases the served generations.
func (db *DB) releaseAll() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, c := range db.collections {
		c.close()
	}
	for _, c := range db.staged {
		c.close()
	}
	return db.endSnapshots()
}

// Checkpoint moves what the log holds into the bbolt file and deletes the log segments that are no
// longer needed. The database does the same by itself as the log grows, and at Close. Reads and
// writes continue during it.
func (db *DB) Checkpoint(ctx context.Context) error {
	leave, err := db.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.flush(); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// Collections returns the names of the collections, sorted.
func (db *DB) Collections(ctx context.Context) ([]string, error) {
	leave, err := db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return db.collectionNames()
}

func (db *DB) collectionNames() (names []string, err error) {
	err = db.store.View(func(v *storage.View) error {
		for _, info := range v.Collections() {
			names = append(names, info.Name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}
