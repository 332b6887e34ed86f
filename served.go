package flashdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/internal/delta"
	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
	"github.com/flashdb/flashdb/wal"
)

// served is what the queries of one collection search: the served generation with its segments, and
// the delta with the rows newer than them. Without a generation the delta holds every row. The
// first query opens both, so a program that only writes pays for neither.
//
// mu keeps the two consistent. Publishing a generation and removing its rows from the delta is one
// step under mu, and so is pinning both for a query.
type served struct {
	mu        sync.RWMutex
	table     *delta.Table              // nil until opened
	gen       *ivf.Index                // nil when none is served
	number    uint64                    // of gen
	lsn       uint64                    // of the last batch that Collection.apply has applied
	stamp     uint64                    // of the release: see storage.Info.Stamp
	positions atomic.Pointer[positions] // of the generation that a filter last needed them for
	closed    bool

	unusable atomic.Uint64 // number of the generation that was found damaged while it was served, or 0
	damaged  atomic.Uint64 // number of the generation last found damaged or missing, served or not, or 0
	verified atomic.Uint64 // number of the generation last found undamaged
}

// pinned is what one query searches. It stays valid until release.
type pinned struct {
	gen    *ivf.Index
	number uint64
	at     moment
	delta  *delta.Snapshot
}

// A moment says as of which batch, and of which release, something was read of a collection.
type moment struct {
	lsn   uint64 // of the last batch: see storage.View.LSN
	stamp uint64 // see storage.Info.Stamp
}

func (p *pinned) release() {
	if p.gen != nil {
		p.gen.Release()
	}
	*p = pinned{}
}

// again pins the same once more.
func (p *pinned) again() pinned {
	if p.gen != nil {
		p.gen.Retain()
	}
	return *p
}

// pin returns what is served now. It opens it if that was not done yet.
func (c *Collection) pin(ctx context.Context) (pinned, error) {
	if c.frozen != nil {
		return c.frozen.pin()
	}
	s := &c.served
	for {
		s.mu.RLock()
		if s.closed {
			s.mu.RUnlock()
			return pinned{}, c.gone()
		}
		if s.table != nil {
			p := pinned{gen: s.gen, number: s.number, at: moment{s.lsn, s.stamp}, delta: s.table.Snapshot()}
			if p.gen != nil {
				p.gen.Retain()
			}
			s.mu.RUnlock()
			return p, nil
		}
		s.mu.RUnlock()
		if err := c.openServed(ctx); err != nil {
			return pinned{}, fmt.Errorf("open collection %q: %w", c.name, err)
		}
	}
}

// update changes the delta if it is open. Otherwise opening it will read the change from the store.
// No query can pin meanwhile, so a query sees all of a batch or nothing of it.
func (s *served) update(lsn uint64, fn func(*delta.Table)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lsn = lsn
	if s.table != nil {
		fn(s.table)
	}
}

// applied returns the moment of the last batch on the collection that was applied.
// It returns false if the handle is closed.
func (s *served) applied() (at moment, open bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return moment{s.lsn, s.stamp}, !s.closed
}

// gone is the error for a collection, or a release of it, that is there no more.
func (c *Collection) gone() error {
	if c.release != "" {
		return fmt.Errorf("release %q of collection %q %w: it was published or dropped", c.release, c.name, ErrNotFound)
	}
	return fmt.Errorf("collection %q %w: it was dropped", c.name, ErrNotFound)
}

// openServed maps the served generation and fills the delta. No batch is published meanwhile, so
// none is missed. If the generation cannot be opened, that is logged, and the delta holds every row
// until the next rebuild.
func (c *Collection) openServed(ctx context.Context) error {
	return c.db.log.Locked(func(durable wal.LSN) error {
		s := &c.served
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.table != nil || s.closed {
			return nil
		}
		applied, unflushed := c.db.settle()
		var info storage.Info
		err := c.view(func(v *storage.View) error {
			var ok bool
			if info, ok = v.Collection(c.name); !ok || info.UID != c.uid {
				return ErrNotFound
			}
			s.lsn, s.stamp = v.LSN(c.uid), info.Stamp
			return nil
		})
		if err != nil {
			return err
		}
		table := delta.New(c.schema.Dim)
		if unflushed != nil {
			if err := c.loadVisible(ctx, table, uint64(durable), info.NextID); err != nil {
				return errors.Join(unflushed, err)
			}
			s.table = table
			return nil
		}
		gen := c.openGeneration(info)
		if gen == nil {
			err = c.loadRows(ctx, table, applied, info.Rows)
		} else {
			err = c.loadDirty(ctx, table, applied)
		}
		if err != nil {
			if gen != nil {
				gen.Release()
			}
			return err
		}
		s.gen, s.number, s.table = gen, info.Generation, table
		if gen == nil {
			s.number = 0
		}
		return nil
	})
}

// openGeneration returns the served generation, or nil if there is none that can be used. It
// verifies all checksums unless Options.LazyChecksums is set.
func (c *Collection) openGeneration(info storage.Info) *ivf.Index {
	if info.Generation == 0 || info.Generation == c.served.unusable.Load() {
		return nil
	}
	gen, err := c.db.mapGeneration(c.release, info)
	if err == nil && !c.db.opts.LazyChecksums {
		if err = gen.Verify(); err != nil {
			gen.Release()
		}
	}
	if err != nil {
		c.served.damaged.Store(info.Generation)
		c.db.events.indexUnusable(c.name, info.Generation, err)
		return nil
	}
	c.served.verified.Store(info.Generation)
	return gen
}

// verifiedAtOnce is the size up to which Stats reads an index file in full to verify it. The first
// query does so at any size.
const verifiedAtOnce = 64 << 20

// checkedGeneration opens the served generation, whose number is not 0. It verifies the checksums,
// once for each generation, unless Options.LazyChecksums is set or the files are larger than
// verifiedAtOnce. It also returns what the store says of the collection at that moment.
func (c *Collection) checkedGeneration(info storage.Info) (*ivf.Index, storage.Info, error) {
	for {
		gen, err := c.checkedFiles(info)
		if !errors.Is(err, fs.ErrNotExist) {
			return gen, info, err
		}
		// A rebuild or a merge of segments may have replaced and removed the file meanwhile.
		now, gone := c.info()
		if gone != nil || now.Generation == 0 || slices.Equal(filesOf(now), filesOf(info)) {
			return nil, info, errors.Join(err, gone)
		}
		info = now
	}
}

func (c *Collection) checkedFiles(info storage.Info) (*ivf.Index, error) {
	s := &c.served
	if info.Generation == s.damaged.Load() {
		return nil, format.Corrupt(c.db.path(generationName(info.Name, info.Generation)), "index", 0, "it was found damaged before")
	}
	gen, err := c.db.mapGeneration(c.release, info)
	if err == nil && !c.db.opts.LazyChecksums && info.Generation != s.verified.Load() && gen.Info().Bytes <= verifiedAtOnce {
		if err = gen.Verify(); err == nil {
			s.verified.Store(info.Generation)
		} else {
			s.damaged.Store(info.Generation) // so that the next Stats does not read it again
			gen.Release()
		}
	}
	return gen, err
}

// mapGeneration opens the served generation of a collection with its segments.
func (db *DB) mapGeneration(release string, info storage.Info) (*ivf.Index, error) {
	files, err := db.mapFiles(info)
	if err != nil {
		return nil, err
	}
	if len(files) == 1 {
		return files[0], nil
	}
	defer releaseFiles(files)
	return db.join(release, info.UID, files)
}

// mapFile opens an index file of a collection, and checks that it is the one that the store
// published.
func (db *DB) mapFile(info storage.Info, number, buildLSN uint64) (*ivf.Index, error) {
	of, err := ivf.Open(db.fs, generationName(info.Name, number))
	if err != nil {
		return nil, err
	}
	got := of.Info()
	if got.Dim != info.Schema.Dim || got.Collection != info.UID || got.BuildLSN != buildLSN {
		of.Release()
		path := db.path(generationName(info.Name, number))
		return nil, format.Corrupt(path, "header", 0, "it was built for collection %d at LSN %d, want %d at %d", got.Collection, got.BuildLSN, info.UID, buildLSN)
	}
	return of, nil
}

// giveUp stops serving a generation that was found damaged. cause is logged. Queries scan exactly
// until the next rebuild.
func (c *Collection) giveUp(number uint64, cause error) {
	if c.frozen != nil {
		c.frozen.giveUp(c, number, cause)
		return
	}
	s := &c.served
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gen == nil || s.number != number {
		return // another query or a rebuild has replaced it already
	}
	s.unusable.Store(number)
	s.damaged.Store(number)
	gen := s.gen
	s.gen, s.number, s.table = nil, 0, nil
	c.db.events.indexUnusable(c.name, number, cause)
	if err := gen.Release(); err != nil {
		c.db.slog.Warn("release index", "collection", c.name, "err", err)
	}
}

// loadRows puts every row into the delta.
func (c *Collection) loadRows(ctx context.Context, table *delta.Table, applied uint64, count int) error {
	dim := c.schema.Dim
	loaded := 0
	err := c.db.store.RowsOf(ctx, c.release, c.uid, 0, func(ids []uint32, rows []float32) error {
		for i, id := range ids {
			table.Put(id, rows[i*dim:(i+1)*dim], applied)
		}
		loaded += len(ids)
		return nil
	})
	if err == nil && loaded != count {
		err = format.Corrupt(c.db.path(c.db.storeName), "rows of "+strconv.Quote(c.name), 0, "%d rows, want %d", loaded, count)
	}
	return err
}

// loadVisible puts every row into the delta, also the rows that can no longer be flushed. So a
// database whose disk fails still answers queries.
func (c *Collection) loadVisible(ctx context.Context, table *delta.Table, lsn uint64, next uint32) error {
	row := make([]float32, c.schema.Dim)
	const page = 4096 // ids read in one transaction
	for from := uint64(0); from < uint64(next); from += page {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := c.view(func(v *storage.View) error {
			for id := from; id < min(uint64(next), from+page); id++ {
				if v.Row(row, c.uid, uint32(id)) {
					table.Put(uint32(id), row, lsn)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// loadDirty puts the rows newer than the generation into the delta, and masks the deleted ids in
// the generation.
func (c *Collection) loadDirty(ctx context.Context, table *delta.Table, applied uint64) error {
	var dirty []uint32
	err := c.dirty(func(id uint32, _ uint64) error {
		dirty = append(dirty, id)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	c.newer.Store(0)
	c.wrote(len(dirty))
	row := make([]float32, c.schema.Dim)
	return c.view(func(v *storage.View) error {
		for _, id := range dirty {
			if v.Row(row, c.uid, id) {
				table.Put(id, row, applied)
			}
		}
		if tombs := v.Tombs(c.uid); tombs != nil {
			for it := tombs.Iterator(); it.HasNext(); {
				table.Delete(it.Next(), applied)
			}
		}
		return nil
	})
}

// replace serves what another handle has opened, and returns the generation that the caller must
// release. Without other nothing is open, and the first query opens it. It runs while no batch is
// published.
func (s *served) replace(other *served, stamp uint64) (retired *ivf.Index) {
	var gen *ivf.Index
	var number uint64
	var table *delta.Table
	if other != nil {
		other.mu.Lock()
		gen, number, table = other.gen, other.number, other.table
		other.gen, other.table = nil, nil
		other.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	retired = s.gen
	s.gen, s.number, s.table, s.stamp = gen, number, table, stamp
	for _, of := range []*atomic.Uint64{&s.unusable, &s.damaged, &s.verified} {
		of.Store(0) // what was found out is of other files, whose numbers may come again
	}
	return retired
}

// reset forgets what is open, so that the next query opens it again: with rows that were put since.
func (s *served) reset(stamp uint64) (retired *ivf.Index) {
	return s.replace(nil, stamp)
}

// publish makes gen the served generation and removes its rows from the delta. It runs while no
// batch is published. It returns the generation that the caller must release: the earlier one if a
// query had opened it, or gen itself if nothing was open, because the first query will open it.
func (s *served) publish(gen *ivf.Index, number, buildLSN uint64) (retired *ivf.Index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damaged.Store(0)
	if s.table == nil {
		return gen
	}
	retired, s.gen, s.number = s.gen, gen, number
	s.table.Retire(buildLSN)
	return retired
}

// extend serves joined, which has the rows up to an LSN in segments, in place of the index of the
// generation with that number. It runs while no batch is published. It returns the index that the
// caller must release: the earlier one, or joined if another one or none is open.
func (s *served) extend(joined *ivf.Index, number, upTo uint64) (retired *ivf.Index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table == nil || s.gen == nil || s.number != number {
		return joined
	}
	retired, s.gen = s.gen, joined
	s.table.Retire(upTo)
	return retired
}

// files returns the files that are open of a generation, or nil. The caller releases them.
func (s *served) files(number uint64) []*ivf.Index {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.gen == nil || s.number != number {
		return nil
	}
	files := s.gen.Files()
	for _, of := range files {
		of.Retain()
	}
	return files
}

// close releases the generation. Later pins fail.
func (s *served) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.closed = true
	gen := s.gen
	s.gen, s.table = nil, nil
	if gen != nil {
		return gen.Release()
	}
	return nil
}
