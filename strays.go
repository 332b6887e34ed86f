package flashdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"

	"github.com/flashdb/flashdb/internal/snapshot"
	"github.com/flashdb/flashdb/internal/socket"
	"github.com/flashdb/flashdb/storage"
)

// compactFile is the name of the copy that Compact makes of the bbolt file before it replaces it.
const compactFile = storeFile + ".compact"

// imageName matches the temporary copies of the bbolt file that killed backups leave.
var imageName = regexp.MustCompile(`^` + imagePrefix + `[0-9a-f]{8}` + regexp.QuoteMeta(imageSuffix) + `$`)

// sweep removes the temporary files of killed backups and rebuilds, and the index files of dropped
// collections. It runs at open, before any generation is mapped. It removes only regular files with
// names that flashdb gives, and folders that are then empty. It logs other entries and files that
// cannot be removed: they do not keep the database from being opened.
func (db *DB) sweep() error {
	if err := db.purge(); err != nil {
		return err
	}
	kept, err := db.keptGenerations()
	if err != nil {
		return err
	}
	for _, name := range db.images() {
		if err := db.fs.Remove(name); err != nil {
			db.leftAlone(err)
			continue
		}
		db.slog.Info("removed what a dead backup left", "dir", db.dir, "file", name)
	}
	folders, strays := db.indexFolders()
	for _, name := range folders {
		generations, live := kept[name]
		removed, left := sweepGenerations(db.fs, filepath.Join(indexDir, name), generations...)
		strays = append(strays, left...)
		if len(removed) > 0 {
			db.slog.Info("swept index files that nobody serves", "collection", name, "files", removed)
		}
		if !live && len(left) == 0 {
			if err := db.fs.Remove(filepath.Join(indexDir, name)); err != nil {
				strays = append(strays, err)
			}
		}
	}
	for _, err := range append(db.topStrays(), strays...) {
		db.leftAlone(err)
	}
	return nil
}

// leftAlone logs an entry that Strays lists.
func (db *DB) leftAlone(why error) {
	db.slog.Warn("left alone in the database directory", "dir", db.dir, "err", why)
}

// removeFolder removes the index of a dropped collection. The drop is already durable, so what
// cannot be removed is logged, and the next open tries again.
func (db *DB) removeFolder(name string) {
	dir := filepath.Join(indexDir, name)
	if _, err := db.fs.Type(dir); errors.Is(err, fs.ErrNotExist) {
		return
	}
	_, left := sweepGenerations(db.fs, dir)
	if len(left) == 0 {
		if err := db.fs.Remove(dir); err != nil {
			left = append(left, err)
		}
	}
	for _, err := range left {
		db.leftAlone(err)
	}
}

// checkFolder returns an error if something other than a directory is in the place of the index of
// a collection.
func (db *DB) checkFolder(collection string) error {
	if err := checkIndexFolder(db.fs, indexDir); err != nil {
		return err
	}
	return checkIndexFolder(db.fs, filepath.Join(indexDir, collection))
}

// Strays lists the entries of the directory that flashdb did not make, one line each. Among them
// are entries in the place of a directory or file of the index. Strays are no damage: the database
// opens, answers and accepts writes. But it may be impossible to build an index until they are
// moved away. No stray is ever read, replaced or removed.
func (db *DB) Strays(ctx context.Context) ([]string, error) {
	leave, err := db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	folders, strays := db.indexFolders()
	for _, name := range folders {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		_, left := generationFiles(db.fs, filepath.Join(indexDir, name))
		strays = append(strays, left...)
	}
	var lines []string
	for _, err := range append(db.topStrays(), strays...) {
		lines = append(lines, err.Error())
	}
	return lines, nil
}

// keptGenerations maps the name of each collection to its generations and segments: those of the
// live release and of the others.
func (db *DB) keptGenerations() (map[string][]uint64, error) {
	kept := map[string][]uint64{}
	err := db.store.View(func(v *storage.View) error {
		for _, info := range v.Collections() {
			kept[info.Name] = append(kept[info.Name], filesOf(info)...)
		}
		for _, r := range v.Releases() {
			for _, info := range r.Collections {
				kept[info.Name] = append(kept[info.Name], filesOf(info)...)
			}
		}
		return nil
	})
	return kept, err
}

// images lists the temporary copies that killed backups left.
func (db *DB) images() (names []string) {
	all, _ := db.fs.ReadDir(".") // topStrays reports the error
	for _, name := range all {
		if imageName.MatchString(name) {
			if kind, err := db.fs.Type(name); err == nil && kind == 0 {
				names = append(names, name)
			}
		}
	}
	return names
}

// indexFolders lists the folders of the index directory that may be those of collections, and one
// error for each other entry.
func (db *DB) indexFolders() (folders []string, strays []error) {
	if err := checkIndexFolder(db.fs, indexDir); err != nil {
		return nil, []error{err}
	}
	names, err := db.fs.ReadDir(indexDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []error{err}
	}
	for _, name := range names {
		path := db.path(indexDir, name)
		kind, err := db.fs.Type(filepath.Join(indexDir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			strays = append(strays, err)
		case kind == fs.ModeDir && storage.CheckCollectionName(name) == nil:
			folders = append(folders, name)
		default:
			strays = append(strays, fmt.Errorf("%s is %s that flashdb has not made", path, describeType(kind)))
		}
	}
	return folders, strays
}

// topStrays returns one error for each entry of the database directory that flashdb did not make,
// or that is of the wrong type. It does not look into wal: the log ignores files whose names are
// not segment numbers.
func (db *DB) topStrays() (strays []error) {
	names, err := db.fs.ReadDir(".")
	if err != nil {
		return []error{err}
	}
	for _, name := range names {
		var want fs.FileMode
		switch {
		case db.sealed != nil && (name == snapshot.Name || name == snapshot.Store || name == indexDir):
			continue
		case db.sealed != nil: // what a database may have, a snapshot has not
		case name == storeFile, name == walDir, name == indexDir, name == ownerFile:
			continue // checked by the code that reads it
		case name == socket.Name:
			want = fs.ModeSocket
		}
		path := db.path(name)
		kind, err := db.fs.Type(name)
		switch own := db.sealed == nil && (name == compactFile || name == socket.Name || imageName.MatchString(name)); {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			strays = append(strays, err)
		case !own:
			strays = append(strays, fmt.Errorf("%s is %s that flashdb has not made", path, describeType(kind)))
		case kind != want:
			strays = append(strays, fmt.Errorf("%s is %s, not %s: move it away", path, describeType(kind), describeType(want)))
		}
	}
	return strays
}

// describeType returns the type of a file in words.
func describeType(kind fs.FileMode) string {
	switch {
	case kind == 0:
		return "a regular file"
	case kind&fs.ModeDir != 0:
		return "a directory"
	case kind&fs.ModeSymlink != 0:
		return "a symbolic link"
	case kind&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case kind&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
