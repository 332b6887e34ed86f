package tests

import (
	"reflect"
	"unsafe"

	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/vfs"
)

// openOn is Open with the log and the index on another file system, and without syncs of the bbolt
// file: for tests whose process does not die. No program needs it, so the field of Options is not
// exported.
func openOn(fsys vfs.FS, dir string, opts *flashdb.Options) (*flashdb.DB, error) {
	var o flashdb.Options
	if opts != nil {
		o = *opts
	}
	disk := reflect.ValueOf(&o).Elem().FieldByName("disk")
	*field[vfs.FS](disk.FieldByName("system")) = fsys
	*field[bool](disk.FieldByName("noSync")) = true
	return flashdb.Open(dir, &o)
}

// hookStoreWrites has before called before each write to the bbolt file. If it returns an error the
// write fails, after its first half. bbolt has a hook for this, but no name for it.
func hookStoreWrites(db *flashdb.DB, before func(off int64, b []byte) error) {
	file := reflect.ValueOf(db).Elem().FieldByName("store").Elem().FieldByName("db").Addr() // an atomic.Pointer
	file = reflect.NewAt(file.Type().Elem(), file.UnsafePointer()).MethodByName("Load").Call(nil)[0]
	bdb := *field[*bolt.DB](file.Elem().FieldByName("bolt"))
	writeAt := field[func([]byte, int64) (int, error)](reflect.ValueOf(bdb).Elem().FieldByName("ops").FieldByName("writeAt"))
	write := *writeAt
	*writeAt = func(b []byte, off int64) (int, error) {
		if err := before(off, b); err != nil {
			n, _ := write(b[:len(b)/2], off)
			return n, err
		}
		return write(b, off)
	}
}

// field returns a pointer to an unexported field.
func field[T any](v reflect.Value) *T {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Interface().(*T)
}
