package flashdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/flashdb/flashdb/internal/vfs"
	"github.com/flashdb/flashdb/storage"
)

// Stats describe an open database at one moment.
type Stats struct {
	Dir  string // absolute
	Disk DiskUse
	// DurableLSN is the number of the last acknowledged batch, AppliedLSN that of the last batch in
	// bbolt.
	DurableLSN, AppliedLSN uint64
	// Release is the name of the live release, and empty if none was ever staged. Staged is how
	// many are.
	Release     string
	Staged      int
	Collections []CollectionStats
}

// DiskUse is the size in bytes of the bbolt file, of the log segments, and of the files of all
// indexes.
type DiskUse struct {
	Store, WAL, Index int64
}

// Total returns the sum of the parts.
func (u DiskUse) Total() int64 { return u.Store + u.WAL + u.Index }

// CollectionStats describe one collection.
type CollectionStats struct {
	Name       string
	Schema     Schema
	Nodes      uint64
	WithoutRow uint64 // nodes that have no embedding in the live release, and are never predicted
	Tombstones uint64 // deleted ids; ids are never reused
	Links      uint64 // known links to its nodes, from nodes of any collection
	Decoders   []string
	Tags       map[string]uint64 // number of nodes with each tag
	Attributes []AttributeStats  // by name

	// Generation is the number of the served generation, or 0 without one. The next six fields are
	// about it.
	Generation  uint64
	IndexedRows uint64
	Lists       int
	LargestList int // its number of rows
	IndexBytes  int64
	// BuildLSN is the number of the last batch that the generation holds. Later batches may be
	// writes to other collections only.
	BuildLSN uint64
	// Written is the modification time of the generation's file. For a copied or restored database
	// it may be the time of the copy.
	Written time.Time
	// Segments counts the segments of the generation: files with newer rows. SegmentRows counts
	// their rows, which IndexedRows, Lists and IndexBytes include: see Options.SegmentRows.
	Segments    int
	SegmentRows uint64
	// DeltaRows counts the rows newer than the generation and its segments. Without a generation,
	// it counts all rows.
	DeltaRows uint64
	// Drift says how far the rows have moved from the generation. It is zero without one.
	Drift Drift
	// IndexDamaged says that the generation cannot be served because its file is damaged or
	// missing. Queries then scan every node until the next Rebuild, and the fields above are those
	// of a collection without an index. Damage in a file of more than 64 MiB is noticed by the
	// first query only.
	IndexDamaged bool
}

// Stats describes the database and its collections.
func (db *DB) Stats(ctx context.Context) (Stats, error) {
	leave, err := db.enter()
	if err != nil {
		return Stats{}, err
	}
	defer leave()
	// Sizes and dirty rows are read from bbolt.
	if err := db.flush(); err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	s := Stats{Dir: db.dir, DurableLSN: uint64(db.log.Durable()), AppliedLSN: db.store.Applied()}
	if s.Disk, err = db.diskUse(); err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	var infos []storage.Info
	err = db.store.View(func(v *storage.View) error {
		infos = v.Collections()
		for _, r := range v.Releases() {
			switch r.State {
			case storage.Live:
				if !r.Created.IsZero() {
					s.Release = r.Name
				}
			case storage.Staged:
				s.Staged++
			}
		}
		for _, info := range infos {
			s.Collections = append(s.Collections, CollectionStats{
				Name:       info.Name,
				Schema:     Schema(info.Schema),
				Nodes:      uint64(info.Count),
				WithoutRow: uint64(info.Count - info.Rows),
				Tombstones: cardinality(v.Tombs(info.UID)),
				Links:      v.LinkCount(info.UID),
				Decoders:   v.Decoders(info.UID),
				Tags:       v.Tags(info.UID),
				Attributes: attributeStats(v, info.UID),
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
				err = nil // dropped meanwhile; the other stats hold
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
		s.DeltaRows = uint64(info.Rows)
		return nil
	}
	gen, info, err := c.checkedGeneration(info)
	if err != nil { // the queries report it
		s.DeltaRows, s.IndexDamaged = uint64(info.Rows), true
		return nil
	}
	defer gen.Release()
	built := gen.Info()
	s.Generation = info.Generation
	for _, segment := range gen.Files()[1:] {
		s.Segments++
		s.SegmentRows += uint64(segment.Info().Rows)
	}
	s.LargestList = slices.Max(gen.ListSizes())
	s.IndexedRows, s.Lists, s.IndexBytes, s.BuildLSN = uint64(built.Rows), built.Lists, built.Bytes, info.BuildLSN
	if file, err := db.home.Lstat(generationName(info.Name, info.Generation)); err == nil {
		s.Written = file.ModTime()
	}
	s.Drift, s.DeltaRows, err = c.drift(info, gen)
	return err
}

// diskUse adds up the sizes of the database's files.
func (db *DB) diskUse() (u DiskUse, err error) {
	if info, err := db.home.Lstat(db.storeName); err == nil {
		u.Store = info.Size()
	}
	if u.WAL, err = dirBytes(db.fs, walDir); err != nil {
		return u, err
	}
	// The index directory may hold entries that flashdb has not made. They do not count.
	dirs, _ := db.fs.ReadDir(indexDir)
	for _, name := range dirs {
		dir := filepath.Join(indexDir, name)
		if n, err := dirBytes(db.fs, dir); err == nil && checkIndexFolder(db.fs, dir) == nil {
			u.Index += n
		}
	}
	return u, nil
}

// dirBytes returns the total size of the regular files in dir, or 0 if there is no dir.
func dirBytes(fsys vfs.FS, dir string) (sum int64, err error) {
	names, err := fsys.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		kind, err := fsys.Type(path)
		if kind != 0 || errors.Is(err, fs.ErrNotExist) {
			continue // or removed meanwhile
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
