package flashdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/flashdb/flashdb/internal/control"
	"github.com/flashdb/flashdb/internal/failpoint"
	"github.com/flashdb/flashdb/internal/output"
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

// A DB is an open database directory. It is safe for concurrent use. One
// process has a directory open at a time.
type DB struct {
	dir  string
	opts Options
	disk
	log   *wal.Log
	store *storage.Store
	slog  *slog.Logger

	events  events
	metrics metrics
	failed  sync.Once // tells that writes are refused from now on
	// unflushed is why a flush failed. Every further one will, so that writes
	// would fill the memory: they are refused.
	unflushed atomic.Pointer[error]

	// Close waits for the calls in life; closing ends the long ones early.
	life     *life
	closed   bool       // by a Close
	closer   sync.Mutex // held by Close
	closing  context.Context
	shutdown context.CancelFunc

	mu          sync.Mutex // guards collections
	collections map[uint32]*Collection

	rebuilds turn // of the one that rebuilds, compacts or drops a collection
	flusher  flusher

	control     *control.Server // nil unless Options.Control
	controlStop sync.Once
	scheduler   scheduler
}

// Open opens the database in dir, and creates it when dir does not exist or is
// empty. It replays what the log holds beyond the last flush.
//
// It returns ErrLocked when another process has dir open, ErrInvalid when dir
// holds something else, ErrNotFound when Options.MustExist is set and there is
// no database, and ErrCorrupt or ErrVersion for a file it must not believe.
func Open(dir string, opts *Options) (*DB, error) { return openOn(disk{fs: vfs.OS()}, dir, opts) }

// A disk is what a database stands on. Tests have others than the operating
// system's.
type disk struct {
	fs vfs.FS // of the log and the index
	// noSync leaves out the syncs of the bbolt file, which is always a real
	// one: bbolt maps and locks it itself.
	noSync bool
}

func openOn(d disk, dir string, opts *Options) (*DB, error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db := &DB{
		dir:         dir,
		opts:        opts.withDefaults(),
		disk:        d,
		rebuilds:    make(turn, 1),
		collections: map[uint32]*Collection{},
	}
	db.slog = db.opts.Logger
	db.events = events{listener: db.opts.Events, log: db.slog, dir: dir, metrics: &db.metrics}
	db.life = newLife()
	db.closing, db.shutdown = context.WithCancel(context.Background())
	if err := db.open(); err != nil {
		return nil, fmt.Errorf("open database %s: %w", dir, err)
	}
	return db, nil
}

func (db *DB) open() (err error) {
	if db.opts.ReadOnly {
		return db.openReadOnly()
	}
	if err := prepareDir(db.dir, db.opts.MustExist); err != nil {
		return err
	}
	if err := refuseSymlinks(db.dir); err != nil {
		return err
	}
	db.store, err = storage.Open(db.path(storeFile), &storage.Options{Timeout: db.opts.LockTimeout, NoSync: db.noSync})
	if errors.Is(err, storage.ErrLocked) {
		return lockedBy(db.dir, err)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			db.store.Close()
			db.shutdown()
		}
	}()
	if err := writeOwner(db.dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			removeOwner(db.dir)
		}
	}()
	if db.log, err = wal.Open(db.fs, db.path(walDir), nil); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			db.log.Close()
		}
	}()
	if torn := db.log.Torn(); torn != nil {
		db.events.tornTail(TornTail{File: torn.File, Offset: torn.Offset, Bytes: torn.Bytes})
	}
	failpoint.OpenReplay.Reach()
	if err := db.replay(); err != nil {
		return err
	}
	failpoint.OpenSweep.Reach()
	if err := db.sweep(); err != nil {
		return err
	}
	if err := control.Sweep(db.dir); err != nil { // a dead owner's
		db.leftAlone(err) // only who listens needs the name
	}
	db.flusher.start(db)
	if db.opts.Control {
		if err := db.startControl(); err != nil {
			db.flusher.stop()
			return err
		}
	}
	db.scheduler.start(db)
	return nil
}

func (db *DB) path(elem ...string) string {
	return filepath.Join(append([]string{db.dir}, elem...)...)
}

// prepareDir makes sure that dir is a database directory, or an empty one that
// may become one.
func prepareDir(dir string, mustExist bool) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if mustExist {
			return fmt.Errorf("%w: there is no such directory; create a database with `flashdb create`, or Open without MustExist", ErrNotFound)
		}
		if err := output.Within(dir); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		return os.MkdirAll(dir, 0o700)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%w: it is a file, and a database is a directory", ErrInvalid)
	}
	if _, err := os.Stat(filepath.Join(dir, storeFile)); err == nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%w: the directory holds other files and no %s: it is not a flashdb database", ErrInvalid, storeFile)
	}
	if mustExist {
		return fmt.Errorf("%w: the directory is empty; create a database with `flashdb create`, or Open without MustExist", ErrNotFound)
	}
	if err := output.Within(dir); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// replay brings the acts that are in the log but not yet in bbolt back into the
// store's overlay.
func (db *DB) replay() error {
	applied := wal.LSN(db.store.Applied())
	db.log.SetNext(applied)
	return db.log.Replay(applied, func(lsn wal.LSN, payload []byte) error {
		ops, err := storage.DecodeOps(payload)
		if err != nil {
			return fmt.Errorf("replay act %d: %w", lsn, err)
		}
		c := db.store.Begin()
		for _, op := range ops {
			if err := c.Apply(op, uint64(lsn)); err != nil {
				return fmt.Errorf("replay act %d: %w", lsn, err)
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

// A turn is taken by one at a time. Unlike with a mutex, who waits for it may
// stop waiting.
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

// Dir returns the directory the database was opened in.
func (db *DB) Dir() string { return db.dir }

// Close ends a rebuild and the calls over the control socket that are under way, waits for the other calls, moves what the log
// holds into bbolt and releases the directory. Calls that begin later return ErrClosed, and so does a second Close.
// A callback of a call must not close: Close would wait for that call.
func (db *DB) Close() error {
	db.shutdown()
	stopped := db.stopControl()
	db.scheduler.wait()
	db.closer.Lock()
	defer db.closer.Unlock()
	if db.closed {
		return ErrClosed
	}
	db.closed = true
	db.life.end()
	if db.opts.ReadOnly {
		return db.closeReadOnly()
	}
	db.flusher.stop()
	errs := []error{db.flush(), stopped}
	if errors.Is(errs[0], ErrReadOnly) {
		errs[0] = nil // reported when it happened; the log has what was acknowledged
	}
	db.releaseAll()
	errs = append(errs, db.log.Close(), db.store.Close(), removeOwner(db.dir))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close database %s: %w", db.dir, err)
	}
	return nil
}

// releaseAll lets go of the served generations.
func (db *DB) releaseAll() {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, c := range db.collections {
		c.release()
	}
}

// Checkpoint moves what the log holds into the bbolt file and drops the log
// segments that are no longer needed. It happens by itself as the log grows, and
// at Close. Reads and writes go on meanwhile.
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
func (db *DB) Collections() []string {
	leave, err := db.enter()
	if err != nil {
		return nil
	}
	defer leave()
	var names []string
	_ = db.store.View(func(v *storage.View) error {
		for _, info := range v.Collections() {
			names = append(names, info.Name)
		}
		return nil
	})
	slices.Sort(names)
	return names
}
