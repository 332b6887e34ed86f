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

// Open keeps a handle of the database directory. Every file is opened relative to that handle, by a
// name that cannot lead out of it. The path of the directory is used only in messages, and to
// notice when it leads elsewhere.
//
// A disk is the file system that the database uses. Tests replace that of the operating system.
type disk struct {
	system vfs.FS // for the log and the index, and for files outside the directory
	// noSync leaves out the syncs of the bbolt file. That file is always a real one, because bbolt
	// maps and locks it itself.
	noSync bool
	// foreign says that the files come from elsewhere, such as a backup. Every page of the bbolt
	// file is then verified before anything is read or written.
	foreign bool
}

// hold opens the directory. It creates it where there is none, unless mustExist is set. It makes
// sure that the directory is a database, or is empty and may become one.
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

// ensureDir creates the directory and its parents durably, if there is none and mustExist is not
// set.
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
		return os.MkdirAll(db.dir, 0o700) // the bbolt file needs a real directory, whatever db.system is
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%w: it is a file, and a database is a directory", ErrInvalid)
	}
	return nil
}

// refuseForeign returns an error unless dir is a database, or is empty and mustExist is not set.
func refuseForeign(dir *vfs.Dir, mustExist bool) error {
	if _, err := dir.Lstat(storeFile); err == nil || isSnapshot(dir) {
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

// refuseSymlinks returns an error if an entry of the database directory is a symbolic link. The
// path of the directory itself may be a link: that is the caller's decision. Links that appear
// later are not followed (see vfs.Root), and the next Open refuses them. Links below the index
// directory are not refused but reported: see Strays.
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

// path returns the path of a file of the database, for messages.
func (db *DB) path(elem ...string) string {
	return filepath.Join(append([]string{db.dir}, elem...)...)
}

// owned returns ErrReadOnly for a database that was opened read-only, and for one whose path leads
// elsewhere by now, where nobody would find what is written. From then on all writes are refused.
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
