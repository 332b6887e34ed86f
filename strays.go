package flashdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"

	"github.com/flashdb/flashdb/internal/socket"
	"github.com/flashdb/flashdb/storage"
)

// compactFile is what Compact copies the bbolt file into, until it takes its place.
const compactFile = storeFile + ".compact"

// imageName matches the temporary copies of the bbolt file that dead backups leave.
var imageName = regexp.MustCompile(`^` + imagePrefix + `[0-9a-f]{8}` + regexp.QuoteMeta(imageSuffix) + `$`)

// sweep removes what dead backups left, and what dead rebuilds and dropped collections left in the
// index directory. It runs at open, before any generation is mapped. Only regular files with names
// that flashdb gives are removed, and folders that are empty then. The log is told of what else is
// there, and of what cannot be removed: none of it is needed to open.
func (db *DB) sweep() error {
	served, err := db.servedGenerations()
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
		generation, live := served[name]
		removed, left := sweepGenerations(db.fs, filepath.Join(indexDir, name), generation)
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

// leftAlone is for what Strays lists.
func (db *DB) leftAlone(why error) {
	db.slog.Warn("left alone in the database directory", "dir", db.dir, "err", why)
}

// removeFolder removes the index of a dropped collection. The drop is durable by now: what cannot
// be removed is told to the log, and the next open tries again.
func (db *DB) removeFolder(name string) {
	dir := filepath.Join(indexDir, name)
	if _, err := db.fs.Type(dir); errors.Is(err, fs.ErrNotExist) {
		return
	}
	_, left := sweepGenerations(db.fs, dir, 0)
	if len(left) == 0 {
		if err := db.fs.Remove(dir); err != nil {
			left = append(left, err)
		}
	}
	for _, err := range left {
		db.leftAlone(err)
	}
}

// checkFolder returns an error if the index of a collection cannot be where it belongs because
// something else is there.
func (db *DB) checkFolder(collection string) error {
	if err := checkIndexFolder(db.fs, indexDir); err != nil {
		return err
	}
	return checkIndexFolder(db.fs, filepath.Join(indexDir, collection))
}

// Strays lists entries of the directory that flashdb did not make, and entries in the place of a
// directory or file of the index, one line each. They are no damage: Open, queries and writes go on
// beside them, but an index may be impossible to build until they are moved away. None of them is
// ever read, replaced or removed.
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

// servedGenerations maps the collections to their generations, 0 for none.
func (db *DB) servedGenerations() (map[string]uint64, error) {
	served := map[string]uint64{}
	err := db.store.View(func(v *storage.View) error {
		for _, info := range v.Collections() {
			served[info.Name] = info.Generation
		}
		return nil
	})
	return served, err
}

// images lists the copies that dead backups left.
func (db *DB) images() (names []string) {
	all, _ := db.fs.ReadDir(".") // topStrays tells why not
	for _, name := range all {
		if imageName.MatchString(name) {
			if kind, err := db.fs.Type(name); err == nil && kind == 0 {
				names = append(names, name)
			}
		}
	}
	return names
}

// indexFolders lists the folders that are there for an index, and one error for each other entry of
// the index directory.
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
		case errors.Is(err, fs.ErrNotExist): // removed since
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

// topStrays returns one error for each entry of the directory itself that is not the database's, or
// of another kind than it should be. Names in wal are the log's, which passes over those that are
// not numbers.
func (db *DB) topStrays() (strays []error) {
	names, err := db.fs.ReadDir(".")
	if err != nil {
		return []error{err}
	}
	for _, name := range names {
		var want fs.FileMode
		switch {
		case name == storeFile, name == walDir, name == indexDir, name == ownerFile:
			continue // looked at by those who read it
		case name == socket.Name:
			want = fs.ModeSocket
		}
		path := db.path(name)
		kind, err := db.fs.Type(name)
		switch own := name == compactFile || name == socket.Name || imageName.MatchString(name); {
		case errors.Is(err, fs.ErrNotExist): // removed since
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

// describeType names a type of file.
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
