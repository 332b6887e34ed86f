package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/vfs"
)

// Sentinels matched by the errors of this package, beside those of internal/format.
var (
	// ErrLocked is returned by Open when another process, or another Store, has the file open.
	ErrLocked = errors.New("database is locked")

	// ErrNotFound is matched by errors about a collection, node or decoder that does not exist.
	ErrNotFound = errors.New("not found")

	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("store is closed")

	// ErrReadOnly is returned by Flush and PublishGeneration on a store opened with
	// Options.ReadOnly.
	ErrReadOnly = errors.New("store is open read-only")
)

// Names in the bbolt file, see the package comment.
var (
	bucketOfMeta        = []byte("meta")
	bucketOfNames       = []byte("names")
	bucketOfCollections = []byte("c")
	bucketOfSets        = []byte("sets")
	bucketOfReleases    = []byte("releases")

	metaFormat  = []byte("format")
	metaApplied = []byte("applied")
	metaNext    = []byte("next")

	keyInfo  = []byte("info")
	keyIndex = []byte("index")
	keyTombs = []byte("tombs")
	keySet   = []byte("set")
	keyHeld  = []byte("held")

	keyEmbedded = []byte("embedded")
)

// A bucket is one of the buckets that each collection has.
type bucket uint8

const (
	idsBucket bucket = iota
	keysBucket
	rowsBucket
	dirtyBucket
	linksBucket
	acrossBucket
	typedBucket
	tagsBucket
	attributesBucket
	decodersBucket
	metaBucket
	plansBucket
	recentBucket
	encoderBucket // of the same name as metaBucket: the values of it that belong to a release
	bucketCount
)

var bucketNames = [bucketCount][]byte{
	idsBucket:        []byte("ids"),
	keysBucket:       []byte("keys"),
	rowsBucket:       []byte("rows"),
	dirtyBucket:      []byte("dirty"),
	linksBucket:      []byte("links"),
	acrossBucket:     []byte("across"),
	typedBucket:      []byte("typed"),
	tagsBucket:       []byte("tags"),
	attributesBucket: []byte("attributes"),
	decodersBucket:   []byte("decoders"),
	metaBucket:       []byte("meta"),
	plansBucket:      []byte("plans"),
	recentBucket:     []byte("recent"),
	encoderBucket:    []byte("meta"),
}

func (b bucket) String() string { return string(bucketNames[b]) }

// Options configure Open. The zero value, or nil, means the defaults.
type Options struct {
	// ReadOnly opens an existing file that other read-only processes may have open too. Changes can
	// be published to readers, so that a log can be replayed, but not flushed.
	ReadOnly bool
	// Unlocked, with ReadOnly, takes no lock. It is for a file that nobody ever writes to. Where
	// the system has no way around the lock, it is taken all the same.
	Unlocked bool
	// Timeout is how long to wait for another process to close the file. Zero means not at all.
	Timeout time.Duration
	// PageSize is bbolt's, for a file that is created: a power of two from 1 KiB to 64 KiB. Default
	// 8 KiB.
	PageSize int
	// Verify makes Open read every page before anything is looked up or written. It is for a file
	// from elsewhere. Without it Open does so only for files of up to 64 MiB, and not if ReadOnly
	// is set, so that the rest of a damaged file can be read. Otherwise Open reads only the pages
	// that lead to others. That finds most accidental damage, but not all that can be made on
	// purpose.
	Verify bool
	// NoSync leaves out every sync, for tests that do not need to survive a crash.
	NoSync bool

	// For tests: the layout of a file that is created, how many new nodes of one change make a run,
	// where fewer are entries of maps, and how much address space to reserve: see mmapBytes.
	layout    layout
	minRun    int
	mmapBytes int
}

const (
	minPageSize = 1 << 10
	maxPageSize = 64 << 10
)

// defaultPageSize is a compromise. With 4 KiB a row of 512 dimensions takes a page of its own and
// leaves half of it empty. With larger pages a small change rewrites more.
const defaultPageSize = 8 << 10

func (o *Options) withDefaults() (Options, error) {
	var v Options
	if o != nil {
		v = *o
	}
	if v.PageSize == 0 {
		v.PageSize = defaultPageSize
	}
	if v.layout == 0 {
		v.layout = versionBlocks
	}
	if v.minRun == 0 {
		v.minRun = 64
	}
	if v.PageSize < minPageSize || v.PageSize > maxPageSize || v.PageSize&(v.PageSize-1) != 0 {
		return v, fmt.Errorf("page size is %d, want a power of two from %d to %d", v.PageSize, minPageSize, maxPageSize)
	}
	return v, nil
}

// A Store is an open bbolt file and the overlay above it. The package comment says which of its
// methods may run beside which.
type Store struct {
	place  place
	path   string // of place
	ownDir bool   // place.dir is closed with the store
	opts   Options
	db     atomic.Pointer[boltFile] // Compact replaces it, holding file
	layout layout

	// named guards id, which describes the file that db has open, and the moment of Compact in
	// which the name leads to the next one already.
	named sync.Mutex
	id    fs.FileInfo

	// state is what readers see. Publish and Flush replace it, holding mu.
	state atomic.Pointer[state]
	mu    sync.Mutex // guards replacing state, and pinned
	// pinned is how many of state.layers, from the first, a flush is writing.
	pinned int

	// file orders those who write the bbolt file, or need it at rest. It guards the next two.
	file    sync.Mutex
	flushed *catalog // as in the file
	failed  error    // of the first write that failed, see update
	applied atomic.Uint64
	closed  atomic.Bool

	flushing atomic.Pointer[chan struct{}] // closed when the flush under way ends; nil: there is none

	staged *staged // the writer's

	stamps atomic.Uint64 // see Info.Stamp

	// lease guards the transaction of the open Changes, and the next two. While the file is written
	// that transaction lasts for one lookup: bbolt cannot make the file grow while it is open, and
	// nobody knows whether the writer will ever come back to its Changes.
	lease   sync.Mutex
	open    *Changes // the last one begun; nil once it has ended
	writing bool     // an update is under way
}

// A state is what a View sees above bbolt. It is immutable.
type state struct {
	layers  []*layer // oldest first
	catalog *catalog
	lsn     uint64 // of the last change in it
	epoch   uint64 // number of flushes begun
}

// Staged is what the changes of one commit group add to the state.
type staged struct {
	layer   *layer
	catalog *catalog
	lsn     uint64
}

// Open is OpenIn of the directory that path says the file is in.
func Open(path string, opt *Options) (*Store, error) {
	dir, err := vfs.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	s, err := OpenIn(dir, filepath.Base(path), opt)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	s.ownDir = true
	return s, nil
}

// OpenIn opens the file of that name in a directory, and creates it unless it exists or
// Options.ReadOnly is set. The directory must stay open for as long as the store.
//
// It returns an error that matches ErrLocked if another process, or another Store, has the file
// open, format.ErrCorrupt if it is damaged or no flashdb database, and format.ErrVersion if a newer
// program wrote it.
func OpenIn(dir *vfs.Dir, name string, opt *Options) (*Store, error) {
	o, err := opt.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir.Path(name), err)
	}
	p := place{dir, name}
	db, id, err := openBolt(p, o)
	if err != nil {
		return nil, err
	}
	s := &Store{place: p, path: p.path(), opts: o, id: id}
	s.db.Store(db)
	if !o.ReadOnly {
		removeCopy(p.copy())
	}
	if err := s.load(o); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return s, nil
}

// load fills a new Store from its file, after making it a database if it is empty.
func (s *Store) load(o Options) error {
	if !o.ReadOnly {
		if err := s.create(o); err != nil {
			return err
		}
	}
	return s.db.Load().view(func(tx *bolt.Tx) error {
		if tx.Bucket(bucketOfMeta) == nil {
			return notOurs(s.path, "it is a bbolt file of another program")
		}
		// Without a seal, so that programs which know of none can read it.
		version, err := decodeUint32(tx.Bucket(bucketOfMeta).Get(metaFormat))
		if err != nil {
			return located(err, s.path, "meta: format")
		}
		if err := format.CheckVersion(s.path, version, uint32(formatVersion)); err != nil {
			return err
		}
		s.layout = layout(version)
		applied, err := loadApplied(tx, s.path, s.layout)
		if err != nil {
			return err
		}
		if s.flushed, err = loadCatalog(tx, s.path, s.layout); err != nil {
			return err
		}
		s.applied.Store(applied)
		s.state.Store(&state{catalog: s.flushed, lsn: applied})
		return nil
	})
}

// create makes an empty bbolt file a database.
func (s *Store) create(o Options) error {
	empty := true
	err := s.db.Load().view(func(tx *bolt.Tx) error {
		return tx.ForEach(func([]byte, *bolt.Bucket) error {
			empty = false
			return nil
		})
	})
	if err != nil || !empty {
		return err
	}
	err = s.db.Load().update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{bucketOfMeta, bucketOfNames, bucketOfCollections} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return errors.Join(o.layout.putFormat(tx), o.layout.putState(tx, 0, 1))
	})
	if err != nil || o.NoSync {
		return err
	}
	return s.place.dir.SyncDir(".")
}

// Close closes the file after the readers under way. It does not flush: what was not flushed must
// come from the log. It must not run beside other calls of the writer.
func (s *Store) Close() error {
	s.lend(nil)
	s.file.Lock()
	defer s.file.Unlock()
	s.closed.Store(true)
	err := s.db.Load().close()
	if s.ownDir {
		err = errors.Join(err, s.place.dir.Close())
	}
	return err
}

// Held returns an error that matches vfs.ErrMoved unless the path of the directory still leads to
// it, and the name in it to the file that the store has open. A store for which it does not holds
// the lock of nothing that others can see, and writes nothing more. It is safe for concurrent use,
// and takes some system calls.
func (s *Store) Held() error {
	s.named.Lock()
	defer s.named.Unlock()
	return s.place.dir.CheckFile(s.place.name, s.id)
}

// Applied returns the LSN of the last change in the bbolt file, 0 if there is none.
func (s *Store) Applied() uint64 { return s.applied.Load() }

// Flushing returns a channel that is closed when the flush that is writing now ends, nil if none
// is. A flush that waits for something else, such as Compact, is not writing yet.
func (s *Store) Flushing() <-chan struct{} {
	if done := s.flushing.Load(); done != nil {
		return *done
	}
	return nil
}

// Pending estimates the memory in bytes that published changes hold until the next Flush.
func (s *Store) Pending() int64 {
	var n int64
	for _, l := range s.state.Load().layers {
		n += l.bytes
	}
	return n
}

// snapshot returns a state and a bbolt transaction that fit together: what the transaction does not
// have yet is in the state's layers, and it has nothing that the state does not have too. The
// caller must roll the transaction back.
//
// The state is taken first, so that nothing can be missed: a flush drops its layers after it has
// committed.
func (s *Store) snapshot() (*state, reading, error) {
	for {
		st := s.state.Load()
		r, err := s.begin(st)
		if r.tx != nil || err != nil {
			return st, r, err
		}
	}
}

// begin returns a bbolt transaction for st, or nil if a flush has begun that st does not know of.
// That flush may hold changes that are newer than st, and it may have committed them already.
// Flushes are rare and long compared to what happens between loading a state and this call, so that
// a second attempt will do.
func (s *Store) begin(st *state) (reading, error) {
	r, err := s.read()
	if err != nil {
		return reading{}, err
	}
	if s.state.Load().epoch == st.epoch {
		return r, nil
	}
	return reading{}, r.tx.Rollback()
}

// A reading is a bbolt transaction for reading, and the file it reads.
type reading struct {
	db *boltFile
	tx *bolt.Tx
}

// read begins a bbolt transaction for reading.
func (s *Store) read() (reading, error) {
	for {
		db := s.db.Load()
		tx, err := db.begin(false)
		if err == nil {
			return reading{db, tx}, nil
		}
		if !errors.Is(err, bolterrors.ErrDatabaseNotOpen) || s.closed.Load() {
			return reading{}, boltError(s.path, err)
		}
		if db == s.db.Load() { // Compact has closed it and is about to put another in its place
			s.file.Lock()
			//lint:ignore SA2001 to wait is all there is to do
			s.file.Unlock()
		}
	}
}

// replace installs the state that change makes of the current one.
func (s *Store) replace(change func(st *state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := *s.state.Load()
	st.layers = slices.Clip(st.layers)
	change(&st)
	s.state.Store(&st)
}
