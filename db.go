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

// A DB is an open database directory. It is safe for concurrent use. One process has a directory
// open at a time.
type DB struct {
	dir  string // absolute
	opts Options
	disk
	home  *vfs.Dir // the directory
	fs    vfs.Root // the same on the disk: of the log and the index
	log   *wal.Log
	store *storage.Store
	slog  *slog.Logger

	events  events
	metrics metrics
	failed  sync.Once // tells that writes are refused from now on
	// unflushed is why a flush failed, or cannot be. Every further one will, so that writes would
	// fill the memory: they are refused.
	unflushed atomic.Pointer[error]

	// Close waits for the calls in life; closing ends the long ones early.
	life     *life
	closed   bool       // by a Close
	closer   sync.Mutex // held by Close
	closing  context.Context
	shutdown context.CancelFunc
	leaving  closingList

	mu          sync.Mutex // guards collections
	collections map[uint32]*Collection

	rebuilds  turn // of the one that rebuilds, compacts or drops a collection
	flusher   flusher
	scheduler scheduler
}

// Open opens the database in dir, and creates it when dir does not exist or is empty. It replays
// what the log holds beyond the last flush.
//
// It returns ErrLocked when another process has dir open, ErrInvalid when dir holds something else,
// ErrNotFound when Options.MustExist is set and there is no database, and ErrCorrupt or ErrVersion
// for a file it must not believe.
func Open(dir string, opts *Options) (*DB, error) {
	o := opts.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	abs, err := filepath.Abs(dir) // whatever becomes of the working directory
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", dir, err)
	}
	db := &DB{
		dir:         abs,
		opts:        o,
		rebuilds:    make(turn, 1),
		collections: map[uint32]*Collection{},
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
	db.store, err = storage.OpenIn(db.home, storeFile, &storage.Options{
		ReadOnly: db.opts.ReadOnly, Timeout: db.opts.LockTimeout, NoSync: db.noSync, Verify: db.foreign,
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

// begin makes an opened database ready: what died with an earlier owner is replayed or swept, and
// the goroutines are started.
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
	if err := socket.Sweep(db.home.Handle()); err != nil { // a dead owner's
		db.leftAlone(err) // only who listens needs the name
	}
	db.flusher.start(db)
	db.scheduler.start(db)
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
			// On a full disk, say, what the log holds stays in memory, to be read.
			if _, err := db.store.Flush(); err != nil {
				db.cannotFlush(err)
			}
		}
		return nil
	})
}

// A turn is taken by one at a time. Unlike with a mutex, who waits for it may stop waiting.
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

// enter begins a call. Every public call holds it until leave.
func (db *DB) enter() (leave func(), err error) {
	if !db.life.enter() {
		return nil, ErrClosed
	}
	return db.life.leave, nil
}

// Dir returns the directory the database was opened in, as an absolute path.
func (db *DB) Dir() string { return db.dir }

// Close ends a rebuild that is under way, calls what BeforeClose was given, waits for the other
// calls, moves what the log holds into bbolt and releases the directory. Calls that begin later
// return ErrClosed, and so does a second Close. A callback of a call must not close: Close would
// wait for that call.
//
// If the directory was moved or replaced meanwhile, Close changes nothing, and says so with an
// error that matches ErrReadOnly: what the log holds stays in it, wherever it is now.
func (db *DB) Close() error {
	db.shutdown()
	left := db.leaving.run()
	db.scheduler.wait()
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

// settleAndClose writes what is left to write, if the directory is still ours, and lets go of it.
func (db *DB) settleAndClose() (err error) {
	if !db.opts.ReadOnly {
		db.flusher.stop()
		if err = db.owned(); err == nil {
			if err = db.flush(); errors.Is(err, ErrReadOnly) {
				err = nil // reported when it happened; the log has what was acknowledged
			}
			err = errors.Join(err, removeOwner(db.home)) // while the lock is held: the next owner's must stay
		}
	}
	db.releaseAll()
	return errors.Join(err, db.log.Close(), db.store.Close(), db.letGo())
}

// releaseAll lets go of the served generations.
func (db *DB) releaseAll() {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, c := range db.collections {
		c.release()
	}
}

// Checkpoint moves what the log holds into the bbolt file and drops the log segments that are no
// longer needed. It happens by itself as the log grows, and at Close. Reads and writes go on
// meanwhile.
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

// Collections returns the names of the collections, sorted. It fails like any reader: when ctx
// ends, with ErrClosed, and with ErrCorrupt.
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
