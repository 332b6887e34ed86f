package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/flashdb/flashdb/internal/format"
)

// faults is format.PanicOnFaults.
func faults(panics bool) (before bool) { return format.PanicOnFaults(panics) }

// openBolt opens or creates the bbolt file.
//
// An existing file is opened twice. Opening it for writing, bbolt reads the list of free pages; if that is damaged it
// panics, and the lock stays until the process ends. So the file is opened for reading first, and what bbolt is going to
// rely on is verified under that lock.
func openBolt(path string, o Options) (*boltFile, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !o.ReadOnly:
		return openFile(path, o, false)
	case err != nil:
		return nil, err
	case info.Size() == 0 && !o.ReadOnly: // created, and then the process died
		return openFile(path, o, false)
	}
	db, err := openFile(path, o, true)
	if err != nil {
		return nil, err
	}
	if err := probe(db, o.Verify); err != nil {
		return nil, errors.Join(err, db.close())
	}
	if o.ReadOnly {
		return db, nil
	}
	if err := db.close(); err != nil {
		return nil, err
	}
	return openFile(path, o, false)
}

// openFile opens the file that has the name. A process that waited for the lock while the owner compacted holds, once it
// gets it, the lock of a file that has no name any more.
func openFile(path string, o Options, readOnly bool) (*boltFile, error) {
	for {
		db, file, err := openOnce(path, o, readOnly)
		if err != nil {
			return nil, err
		}
		same, err := hasName(file, path)
		if same {
			return &boltFile{bolt: db, file: file, path: path}, nil
		}
		if err := errors.Join(err, db.Close()); err != nil {
			return nil, err
		}
	}
}

// hasName tells whether path leads to an open file.
func hasName(file *os.File, path string) (bool, error) {
	mine, err := file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	return os.SameFile(mine, named), nil
}

// openOnce opens the file. NoFreelistSync is off: with it every Open would read the whole file to find the free pages, in
// a goroutine of bbolt's that damage would crash. It is meant for many small transactions; ours are few and large, and
// writing the list does not show in them.
func openOnce(path string, o Options, readOnly bool) (db *bolt.DB, file *os.File, err error) {
	defer func() {
		if p := recover(); p != nil { // the file was changed after probe: bbolt's mapping and lock stay until the process ends
			err = errors.Join(format.Corrupt(path, "bbolt pages", 0, "%v", p), file.Close())
		}
	}()
	defer faults(faults(true))
	db, err = bolt.Open(path, 0o600, &bolt.Options{
		Timeout:         max(o.Timeout, 1), // 0 is for ever
		ReadOnly:        readOnly,
		PageSize:        o.PageSize,
		NoSync:          o.NoSync,
		NoGrowSync:      o.NoSync,
		NoStatistics:    true,
		FreelistType:    bolt.FreelistMapType,
		InitialMmapSize: mmapBytes(readOnly),
		OpenFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
			var err error
			file, err = os.OpenFile(name, flag, perm)
			return file, err
		},
	})
	if err != nil {
		return nil, nil, boltError(path, err)
	}
	db.AllocSize = 1 << 20
	return db, file, nil
}

// mmapBytes returns how much address space to reserve. A file that outgrows it is mapped anew, and for that bbolt must
// wait until no reader is left. Windows would make the file that large.
func mmapBytes(readOnly bool) int {
	if readOnly || runtime.GOOS == "windows" || strconv.IntSize == 32 {
		return 0
	}
	return 1 << 30
}

// boltError gives an error of bbolt the meaning it has here.
func boltError(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("open %s: %w", path, ErrLocked)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum),
		strings.HasPrefix(err.Error(), "file size too small"): // it has no sentinel
		return notOurs(path, err.Error())
	case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return ErrClosed
	case errors.Is(err, bolterrors.ErrDatabaseReadOnly):
		return ErrReadOnly
	}
	return err
}

func notOurs(path, why string) error {
	return format.Corrupt(path, "header", 0, "not a flashdb database: %s", why)
}

// probe refuses a file that bbolt would crash on: one that is shorter than its header says, whose pages do not form a tree,
// or that does not list its free pages, as flashdb's files do. bbolt would look for those in a goroutine of its own, where
// neither a panic nor a fault can be caught.
func probe(db *boltFile, deep bool) error {
	return db.view(func(tx *bolt.Tx) error {
		_, err := checkPages(db.path, tx, deep)
		return err
	})
}

// checkPages walks the pages that a transaction sees in the file at path, which bbolt itself may know by the name it had
// before Compact renamed it. See walkPages.
func checkPages(path string, tx *bolt.Tx, deep bool) (lost uint64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	pageSize := int64(tx.DB().Info().PageSize)
	if pageSize < minPageSize || pageSize&(pageSize-1) != 0 {
		return 0, format.Corrupt(path, "header", 0, "page size is %d", pageSize)
	}
	return walkPages(f, pageSize, info.Size(), uint64(tx.ID()), deep)
}

// syncDir makes a file just created survive a crash. Windows has no such call and needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
