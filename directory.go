package flashdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/flashdb/flashdb/internal/output"
	"github.com/flashdb/flashdb/internal/vfs"
)

// A database lives in a directory that Open holds: every file of it is reached from there, by a
// name that cannot lead out. Its path serves for messages, and to notice when it leads elsewhere.
//
// A disk says by what file system that directory is reached. Tests have others than the operating
// system's.
type disk struct {
	system vfs.FS // of the log and the index, and of files outside of the directory
	// noSync leaves out the syncs of the bbolt file, which is always a real one: bbolt maps and
	// locks it itself.
	noSync bool
	// foreign says that the files come from elsewhere: every page of the bbolt file is verified
	// before anything is looked up or written.
	foreign bool
}

// hold opens the directory, which it makes unless it is there or must be, and makes sure that it is
// a database, or empty and may become one.
func (db *DB) hold(mustExist bool) (err error) {
	if err := db.ensureDir(mustExist); err != nil {
		return err
	}
	if db.home, err = vfs.OpenDir(db.dir); err != nil {
		return err
	}
	if db.fs, err = db.system.OpenRoot(db.dir); err != nil {
		return errors.Join(err, db.home.Close())
	}
	err = refuseForeign(db.home, mustExist)
	if err == nil {
		err = refuseSymlinks(db.home)
	}
	if err != nil {
		return errors.Join(err, db.letGo())
	}
	return nil
}

// letGo closes what hold opened.
func (db *DB) letGo() error {
	held.remove(db.home)
	return errors.Join(db.fs.Close(), db.home.Close())
}

// ensureDir makes the directory if need be, durably with its parents.
func (db *DB) ensureDir(mustExist bool) error {
	info, err := os.Stat(db.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if mustExist {
			return fmt.Errorf("%w: there is no such directory: `flashdb create` makes a database", ErrNotFound)
		}
		if err := output.Within(db.dir); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if err := vfs.MakeDir(db.system, db.dir); err != nil {
			return err
		}
		return os.MkdirAll(db.dir, 0o700) // another disk's has bbolt's file here all the same
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%w: it is a file, and a database is a directory", ErrInvalid)
	}
	return nil
}

// refuseForeign makes sure that dir is a database directory, or an empty one that may become one.
func refuseForeign(dir *vfs.Dir, mustExist bool) error {
	if _, err := dir.Lstat(storeFile); err == nil {
		return nil
	}
	names, err := dir.ReadDir(".")
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("%w: the directory holds other files and no %s: it is not a flashdb database", ErrInvalid, storeFile)
	}
	if mustExist {
		return fmt.Errorf("%w: the directory is empty: `flashdb create` makes a database", ErrNotFound)
	}
	if err := output.Within(dir.Path(".")); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// refuseSymlinks makes sure that nothing in the database directory leads elsewhere. Links that
// appear later lead nowhere, see vfs.Root; Open reports them. The directory itself may be a link;
// that is the caller's decision. Links below index are no reason to refuse: see strays.
func refuseSymlinks(dir *vfs.Dir) error {
	names, err := dir.ReadDir(".")
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := dir.Lstat(name)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%w: %s is a symbolic link, which is not followed: put what it leads to there", ErrInvalid, dir.Path(name))
		}
	}
	return nil
}

// path returns what messages call a file of the database.
func (db *DB) path(elem ...string) string {
	return filepath.Join(append([]string{db.dir}, elem...)...)
}

// owned returns ErrReadOnly for a database opened read-only, and for one whose path leads elsewhere
// by now: what was written here nobody would find. From then on all writes are refused.
func (db *DB) owned() error {
	if err := db.writable(); err != nil {
		return err
	}
	if err := db.store.Held(); err != nil {
		db.unflushed.CompareAndSwap(nil, &err)
		return db.refused(err)
	}
	return nil
}
