package flashdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/flashdb/flashdb/internal/vfs"
	"github.com/flashdb/flashdb/storage"
)

// Stats describe an open database at one moment.
type Stats struct {
	Dir string // absolute
	// StoreBytes and WALBytes are file sizes: the bbolt file, and the log segments that hold what
	// is not yet in it.
	StoreBytes, WALBytes int64
	// DurableLSN numbers the last acknowledged batch, AppliedLSN the last one that is in bbolt.
	DurableLSN, AppliedLSN uint64
	Collections            []CollectionStats
}

// CollectionStats describe one collection.
type CollectionStats struct {
	Name       string
	Dim        int
	Normalize  bool
	Nodes      uint64
	Tombstones uint64 // deleted ids; ids are never reused
	Decoders   []string
	Tags       map[string]uint64 // nodes that carry each tag

	// Generation is the served index, 0 for none; the next five are its own.
	Generation  uint64
	IndexedRows uint64
	Lists       int
	IndexBytes  int64
	// BuildLSN numbers the last batch that the generation holds; later batches may be those of
	// other collections.
	BuildLSN uint64
	// Written is when the file of the generation was written, by its modification time: a copy or a
	// restored database dates from then.
	Written time.Time
	// DeltaRows are the rows newer than the generation: all without one.
	DeltaRows uint64
	// Drift says how far the rows have moved from the generation; zero without one.
	Drift Drift
	// IndexDamaged says that there is a generation which cannot be served, as its file is damaged
	// or missing: queries scan every node until the next Rebuild, and the fields above are those of
	// a collection without an index. Of a file of more than 64 MiB it is not known before the first
	// query.
	IndexDamaged bool
}

// Stats describes the database and its collections.
func (db *DB) Stats(ctx context.Context) (Stats, error) {
	leave, err := db.enter()
	if err != nil {
		return Stats{}, err
	}
	defer leave()
	// The sizes and the dirty rows are those of bbolt.
	if err := db.flush(); err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	s := Stats{Dir: db.dir, DurableLSN: uint64(db.log.Durable()), AppliedLSN: db.store.Applied()}
	if info, err := db.home.Lstat(storeFile); err == nil {
		s.StoreBytes = info.Size()
	}
	if s.WALBytes, err = dirBytes(db.fs, walDir); err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	var infos []storage.Info
	err = db.store.View(func(v *storage.View) error {
		infos = v.Collections()
		for _, info := range infos {
			s.Collections = append(s.Collections, CollectionStats{
				Name:       info.Name,
				Dim:        info.Schema.Dim,
				Normalize:  info.Schema.Normalize,
				Nodes:      uint64(info.Count),
				Tombstones: cardinality(v.Tombs(info.UID)),
				Decoders:   v.Decoders(info.UID),
				Tags:       v.Tags(info.UID),
			})
		}
		return nil
	})
	for i := range infos {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = db.indexStats(&s.Collections[i], infos[i])
			if errors.Is(err, ErrNotFound) {
				err = nil // dropped meanwhile: the rest is as it was
			}
		}
	}
	if err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	return s, nil
}

func (db *DB) indexStats(s *CollectionStats, info storage.Info) error {
	c, err := db.collection(info.Name)
	if err != nil {
		return err
	}
	if info.Generation == 0 {
		s.DeltaRows = s.Nodes
		return nil
	}
	gen, err := c.checkedGeneration(info)
	if err != nil { // the queries report it
		s.DeltaRows, s.IndexDamaged = s.Nodes, true
		return nil
	}
	defer gen.Release()
	built := gen.Info()
	s.Generation = info.Generation
	s.IndexedRows, s.Lists, s.IndexBytes, s.BuildLSN = uint64(built.Rows), built.Lists, built.Bytes, info.BuildLSN
	if file, err := db.home.Lstat(generationName(info.Name, info.Generation)); err == nil {
		s.Written = file.ModTime()
	}
	s.Drift, err = c.drift(info, gen)
	s.DeltaRows = s.Drift.DeltaRows
	return err
}

// dirBytes sums the sizes of the files in dir; a missing dir has none, and what is not a regular
// file counts nothing.
func dirBytes(fsys vfs.FS, dir string) (sum int64, err error) {
	names, err := fsys.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		kind, err := fsys.Type(path)
		if kind != 0 || errors.Is(err, fs.ErrNotExist) {
			continue // or removed since
		}
		var size int64
		if err == nil {
			size, err = fsys.Size(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		sum += size
	}
	return sum, nil
}

// ListSizes returns the number of rows in each inverted list of the served generation; nothing
// without one.
func (c *Collection) ListSizes(ctx context.Context) ([]int, error) {
	leave, err := c.db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	p, err := c.pin(ctx)
	if err != nil {
		return nil, fmt.Errorf("lists of %q: %w", c.name, err)
	}
	defer p.release()
	if p.gen == nil {
		return nil, nil
	}
	return p.gen.ListSizes(), nil
}
