package storage

import (
	"errors"
	"os"
	"reflect"

	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/mmap"
)

// bbolt locks every file that it opens, and has no option against it. A snapshot needs no lock,
// since nobody writes to it, and it may lie on a file system that has none. So on Linux bbolt opens
// and locks a file in memory that only begins like the real one: with its two headers, which is all
// that bbolt reads before the first transaction. Then the real file is mapped over the mapping that
// bbolt has made, and every page comes from there. Elsewhere bbolt takes its shared lock, which
// admits all readers.

// headerBytes is more than the two headers take, of whatever page size.
const headerBytes = 2 * maxPageSize

// standIn returns the file in memory that bbolt is given in the place of file, or nil where there
// is none.
func standIn(file *os.File) *os.File {
	stub, err := mmap.StandIn(file, headerBytes)
	if err != nil {
		return nil
	}
	return stub
}

// remap maps the real file in the place of the one in memory.
func remap(db *bolt.DB, file *os.File) error {
	fields := reflect.ValueOf(db).Elem()
	data, mapped := fields.FieldByName("data"), fields.FieldByName("datasz")
	if data.Kind() != reflect.Pointer || !mapped.CanInt() {
		return errors.New("this version of bbolt keeps its mapping elsewhere")
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > mapped.Int() {
		return errors.New("the file has grown while it was opened")
	}
	return mmap.Over(data.UnsafePointer(), file, info.Size())
}
