package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/flashdb/flashdb/internal/format"
)

// guard, deferred, turns a panic of bbolt into an error matching format.ErrCorrupt: bbolt believes its pages, so a
// damaged one makes it panic. With faults(true) in effect that covers addresses outside the mapped file as well.
func guard(file string, err *error) {
	if p := recover(); p != nil {
		*err = format.Corrupt(file, "bbolt pages", 0, "%v", p)
	}
}

// faults is format.PanicOnFaults.
func faults(panics bool) (before bool) { return format.PanicOnFaults(panics) }

// openBolt opens or creates the bbolt file.
//
// An existing file is opened twice. Opening it for writing, bbolt reads the list of free pages; if that is damaged it
// panics, and the lock stays until the process ends. So the file is opened for reading first, and what bbolt is going to
// rely on is verified under that lock.
func openBolt(path string, o Options) (*bolt.DB, error) {
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
	if err := probe(db); err != nil {
		db.Close()
		return nil, err
	}
	if o.ReadOnly {
		return db, nil
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return openFile(path, o, false)
}

// openFile opens the file once. NoFreelistSync is off: with it every Open would read the whole file to find the free
// pages, in a goroutine of bbolt's that damage would crash. It is meant for many small transactions; ours are few and
// large, and writing the list does not show in them.
func openFile(path string, o Options, readOnly bool) (db *bolt.DB, err error) {
	defer guard(path, &err)
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
	})
	if err != nil {
		return nil, boltError(path, err)
	}
	db.AllocSize = 1 << 20
	return db, nil
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
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
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

// Parts of a bbolt file that bbolt has no function for; numbers are in the byte order of the machine that made it.
//
//	page: id uint64 | flags, count uint16 | overflow uint32 | what it holds
//
// The first two pages hold a header each. A transaction writes one and leaves the other, so that one is always whole.
// The list of free pages holds as many uint64s as its count says, or, if that is 0xffff, as its first uint64 says.
const (
	pageFlags    = 8
	pageCount    = 10
	pageHeader   = 16
	headerList   = pageHeader + 32 // page of the list of free pages
	headerTxid   = pageHeader + 48 // number of the transaction that wrote it
	headerEnd    = pageHeader + 64
	freelistFlag = 0x10
	noFreelist   = 1<<64 - 1
)

// probe refuses a file that bbolt would crash on: one that is shorter than its header says, whose list of free pages is
// damaged, or that does not list them, as flashdb's files do. bbolt would look for them in a goroutine of its own, where
// neither a panic nor a fault can be caught.
func probe(db *bolt.DB) (err error) {
	path := db.Path()
	defer guard(path, &err)
	defer faults(faults(true))
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return db.View(func(tx *bolt.Tx) error {
		pageSize := int64(db.Info().PageSize)
		if pageSize < minPageSize || pageSize&(pageSize-1) != 0 {
			return format.Corrupt(path, "header", 0, "page size is %d", pageSize)
		}
		if tx.Size() < 0 || tx.Size() > info.Size() {
			return format.Corrupt(path, "header", 0, "the file ends early: it has %d bytes, want %d", info.Size(), tx.Size())
		}
		list, err := freelistPage(f, pageSize, uint64(tx.ID()))
		if err != nil {
			return err
		}
		if list == noFreelist {
			return notOurs(path, "it does not list its free pages; write it anew with `bbolt compact`")
		}
		return checkFreelist(f, list, pageSize, tx.Size()/pageSize)
	})
}

// freelistPage returns the number of the page that the header of a transaction names.
func freelistPage(f *os.File, pageSize int64, txid uint64) (uint64, error) {
	var b [headerEnd]byte
	for page := range int64(2) {
		if _, err := f.ReadAt(b[:], page*pageSize); err != nil {
			return 0, err
		}
		if binary.NativeEndian.Uint64(b[headerTxid:]) == txid {
			break
		}
	}
	return binary.NativeEndian.Uint64(b[headerList:]), nil
}

func checkFreelist(f *os.File, list uint64, pageSize, pages int64) error {
	if list >= uint64(pages) {
		return format.Corrupt(f.Name(), "header", 0, "the free pages are listed on page %d of %d", list, pages)
	}
	var b [pageHeader + 8]byte
	offset := int64(list) * pageSize
	if _, err := f.ReadAt(b[:], offset); err != nil {
		return err
	}
	if flags := binary.NativeEndian.Uint16(b[pageFlags:]); flags != freelistFlag {
		return format.Corrupt(f.Name(), "free pages", offset, "page flags are %#x, want %#x", flags, freelistFlag)
	}
	count := uint64(binary.NativeEndian.Uint16(b[pageCount:]))
	if count == 0xffff {
		count = binary.NativeEndian.Uint64(b[pageHeader:])
	}
	if count > uint64(pages) {
		return format.Corrupt(f.Name(), "free pages", offset, "%d of %d pages are free", count, pages)
	}
	return nil
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
