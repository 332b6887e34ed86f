package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/vfs"
)

// faults is format.PanicOnFaults.
func faults(panics bool) (before bool) { return format.PanicOnFaults(panics) }

// A place is where a bbolt file is: a name in a directory that is held open.
type place struct {
	dir  *vfs.Dir
	name string
}

// path is what messages call the file.
func (p place) path() string { return p.dir.Path(p.name) }

// wholeBytes is the size up to which Open verifies all of a file: reading that much takes some
// hundredths of a second.
const wholeBytes = 64 << 20

// openBolt opens or creates the bbolt file.
//
// An existing file is opened twice. Opening it for writing, bbolt reads the list of free pages; if
// that is damaged it panics, and the lock stays until the process ends. So the file is opened for
// reading first, and what bbolt is going to rely on is verified under that lock.
func openBolt(p place, o Options) (*boltFile, fs.FileInfo, error) {
	size, err := p.dir.Size(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !o.ReadOnly:
		return openFile(p, o, false)
	case errors.Is(err, vfs.ErrNotRegular):
		return nil, nil, notOurs(p.path(), vfs.ErrNotRegular.Error())
	case err != nil:
		return nil, nil, err
	case size == 0 && !o.ReadOnly: // created, and then the process died
		return openFile(p, o, false)
	}
	db, info, err := openFile(p, o, true)
	if err != nil {
		return nil, nil, err
	}
	// A file opened for reading is not verified in full, so that the rest of a damaged file can be
	// read.
	if err := probe(p, db, o.Verify || size <= wholeBytes && !o.ReadOnly); err != nil {
		return nil, nil, errors.Join(err, db.close())
	}
	if o.ReadOnly {
		return db, info, nil
	}
	if err := db.close(); err != nil {
		return nil, nil, err
	}
	return openFile(p, o, false)
}

// openFile opens the file that now has the name. A process may wait for the lock while the owner
// compacts. It then gets the lock of a file that was replaced, and openFile tries again. It also
// returns the FileInfo, which identifies the file.
func openFile(p place, o Options, readOnly bool) (*boltFile, fs.FileInfo, error) {
	for {
		db, file, err := openOnce(p, o, readOnly)
		if err != nil {
			return nil, nil, err
		}
		b := &boltFile{bolt: db, file: file, path: p.path()}
		info, err := file.Stat()
		var named fs.FileInfo
		if err == nil {
			named, err = p.dir.Lstat(p.name)
		}
		if err == nil && os.SameFile(info, named) {
			if err := b.seen(); err != nil {
				return nil, nil, errors.Join(err, b.close())
			}
			return b, info, nil
		}
		if err := errors.Join(err, b.close()); err != nil {
			return nil, nil, err
		}
	}
}

// openOnce opens the file. NoFreelistSync is off: with it every Open would read the whole file to
// find the free pages, in a goroutine of bbolt's that damage would crash. It is meant for many
// small transactions; ours are few and large, and writing the list does not show in them.
func openOnce(p place, o Options, readOnly bool) (db *bolt.DB, file *os.File, err error) {
	defer func() {
		if e := recover(); e != nil { // the file was changed after probe: bbolt's mapping and lock stay until the process ends
			err = errors.Join(format.Corrupt(p.path(), "bbolt pages", 0, "%v", e), file.Close())
		}
	}()
	defer faults(faults(true))
	var stub *os.File
	db, err = bolt.Open(p.path(), 0o600, &bolt.Options{
		Timeout:         max(o.Timeout, 1), // 0 is for ever
		ReadOnly:        readOnly,
		PageSize:        o.PageSize,
		NoSync:          o.NoSync,
		NoGrowSync:      o.NoSync,
		NoStatistics:    true,
		FreelistType:    bolt.FreelistMapType,
		InitialMmapSize: cmp.Or(o.mmapBytes, mmapBytes(readOnly)),
		OpenFile: func(_ string, flag int, perm os.FileMode) (*os.File, error) {
			var err error
			if file, err = p.dir.OpenFile(p.name, flag, perm); err != nil || !o.Unlocked {
				return file, err
			}
			if stub = standIn(file); stub != nil {
				return stub, nil
			}
			return file, nil
		},
	})
	if stub != nil && err == nil {
		if err = remap(db, file); err != nil {
			err = errors.Join(err, db.Close())
		}
	}
	if err != nil {
		if stub != nil { // bbolt has closed that one
			file.Close()
		}
		return nil, nil, boltError(p.path(), err)
	}
	db.AllocSize = 1 << 20
	return db, file, nil
}

// mmapBytes returns how much address space to reserve. A file that outgrows it is mapped again, and
// for that bbolt waits until there is no reader. Nothing is reserved for a read-only file, which
// does not grow, on Windows, where the file itself would be made that large, and on 32-bit systems.
func mmapBytes(readOnly bool) int {
	if readOnly || runtime.GOOS == "windows" || strconv.IntSize == 32 {
		return 0
	}
	return 1 << 30
}

// boltError translates an error of bbolt into one of this package.
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

// probe refuses a file that bbolt would crash on: one that is shorter than its header says, whose
// pages do not form a tree, or that does not list its free pages. Files of flashdb always list
// them. bbolt would search for free pages in a goroutine of its own, where neither a panic nor a
// fault can be recovered.
func probe(p place, db *boltFile, deep bool) error {
	return db.view(func(tx *bolt.Tx) error {
		_, err := checkPages(p, tx, deep)
		return err
	})
}

// checkPages walks the pages that a transaction sees in the file at p, which bbolt itself may know
// by the name it had before Compact renamed it. See walkPages.
func checkPages(p place, tx *bolt.Tx, deep bool) (lost uint64, err error) {
	path := p.path()
	f, err := p.dir.OpenFile(p.name, os.O_RDONLY, 0)
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

func removeIfThere(p place) error {
	if err := p.dir.Remove(p.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
