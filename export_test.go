package flashdb

import (
	"reflect"
	"sync/atomic"
	"unsafe"

	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/vfs"
)

// Sentinels are the errors that keep their identity over the control socket.
var Sentinels = sentinels

// OpenOn is Open with the log and the index on another file system, and without
// syncs of the bbolt file: for tests whose process does not die.
func OpenOn(fsys vfs.FS, dir string, opts *Options) (*DB, error) {
	return openOn(disk{fs: fsys, noSync: true}, dir, opts)
}

// HookStoreWrites has before called before each write to the bbolt file. If it
// returns an error the write fails, after its first half. bbolt has a hook for
// this, but no name for it.
func HookStoreWrites(db *DB, before func(off int64, b []byte) error) {
	bdb := field[atomic.Pointer[bolt.DB]](reflect.ValueOf(db.store).Elem().FieldByName("db")).Load()
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
