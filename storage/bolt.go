package storage

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"

	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
)

// A boltFile is an open bbolt file that survives faults and panics in bbolt.
//
// bbolt reads the file through a mapping, while it holds locks. If a page cannot be read, because
// the file was truncated under this process or its disk fails, the system raises a fault. The fault
// is turned into a panic and recovered. But bbolt would still hold its locks, and later calls would
// wait for ever. Therefore:
//
//  1. every transaction begins and every write happens through a boltFile, which releases the locks
//     that a panic left held. A copy that nobody else has open is written by its copier, which does
//     the same;
//  2. after a fault, or a panic that left a transaction for writing open, bbolt is not entered
//     again: every call fails with the first cause. Only ending a transaction for reading and
//     closing go on, which read nothing of the file.
//
// A panic over a damaged page that can be read, met by a lookup in a transaction for reading, is an
// error of that lookup alone: bbolt holds no lock there, and other pages may be whole.
type boltFile struct {
	bolt   *bolt.DB
	file   *os.File // bbolt's, or the one that is mapped over it
	path   string
	broken atomic.Pointer[error] // why bbolt is no longer called
	stuck  atomic.Bool           // a lock of bbolt's could not be released
	last   atomic.Int64          // number of the last transaction, as found by seen or committed since

	pins struct {
		sync.Mutex
		n       int
		retired bool // closed once n is 0
	}
}

// cause returns why bbolt is no longer called, or nil.
func (b *boltFile) cause() error {
	if err := b.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// fail keeps the first reason for which bbolt is no longer called.
func (b *boltFile) fail(cause error) {
	err := fmt.Errorf("the file is not used any more, open the database again: %w", cause)
	b.broken.CompareAndSwap(nil, &err)
}

// guard, deferred, turns a panic of bbolt's into an error that matches format.ErrCorrupt. With
// faults(true) in effect that covers addresses that cannot be read.
func (b *boltFile) guard(err *error) {
	if p := recover(); p != nil {
		*err = b.recovered(p)
	}
}

// recovered returns the error for a recovered panic of bbolt's.
func (b *boltFile) recovered(p any) error {
	if err := b.fault(p); err != nil {
		b.fail(err)
		return err
	}
	return format.Corrupt(b.path, "bbolt pages", 0, "%v", p)
}

// fault returns the error for a recovered panic that is a fault in the mapping of the file, or nil.
// It must be called where nobody maps the file anew: in a transaction, or while writes are locked
// out. It does not use bbolt's own Info, which reads the first page, and faults as well if that is
// gone.
func (b *boltFile) fault(p any) error {
	fields := reflect.ValueOf(b.bolt).Elem()
	data, size := fields.FieldByName("data"), fields.FieldByName("datasz")
	base, n := uintptr(0), int64(math.MaxInt64) // of a bbolt that has them otherwise: any address
	if data.Kind() == reflect.Pointer && size.CanInt() {
		base, n = data.Pointer(), size.Int()
	}
	return format.Fault(b.path, base, n, p)
}

// pageSize returns the size of a page. The caller keeps writes out.
func (b *boltFile) pageSize() (n int, err error) {
	defer b.guard(&err)
	defer faults(faults(true))
	return b.bolt.Info().PageSize, nil // which reads the first page
}

// begin begins a transaction. One for writing waits for the end of the one before.
func (b *boltFile) begin(writable bool) (tx *bolt.Tx, err error) {
	if err := b.cause(); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = b.recovered(p)
			b.unlock(writable)
			b.fail(err)
		}
	}()
	defer faults(faults(true))
	last := b.last.Load()
	if tx, err = b.bolt.Begin(writable); err != nil {
		return nil, err
	}
	if err := b.current(tx, last); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx, nil
}

// current refuses a transaction that sees the file as it was before the last commit: bbolt goes
// back to the other of its two headers when one is damaged, and the pages that it leads to may have
// been used again since.
func (b *boltFile) current(tx *bolt.Tx, last int64) error {
	seen := int64(tx.ID())
	if tx.Writable() {
		seen--
	}
	if seen >= last {
		return nil
	}
	err := format.Corrupt(b.path, "header", 0, "transaction %d is the last, want %d: it was changed under this process", seen, last)
	b.fail(err)
	return err
}

// seen records the last transaction of a file that was just opened. The file is locked, so no other
// process adds one.
func (b *boltFile) seen() error {
	tx, err := b.begin(false)
	if err != nil {
		return err
	}
	b.last.Store(int64(tx.ID()))
	return tx.Rollback()
}

// view runs fn in a transaction for reading.
func (b *boltFile) view(fn func(tx *bolt.Tx) error) (err error) {
	tx, err := b.begin(false)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // it fails only on a transaction that has ended
	defer b.guard(&err)
	defer faults(faults(true))
	return fn(tx)
}

// update runs fn in a transaction for writing, and commits it.
func (b *boltFile) update(fn func(tx *bolt.Tx) error) (err error) {
	if err := b.cause(); err != nil {
		return err
	}
	var tx *bolt.Tx
	var id int64
	defer func() {
		if p := recover(); p != nil {
			err = b.recovered(p)
			if tx == nil || tx.DB() != nil { // bbolt ends a transaction after a panic, unless that panics too
				b.unlock(true)
				b.fail(err)
			}
		}
	}()
	defer faults(faults(true))
	err = b.bolt.Update(func(t *bolt.Tx) error {
		tx, id = t, int64(t.ID())
		if err := b.current(t, b.last.Load()); err != nil {
			return err
		}
		if err := b.whole(t); err != nil {
			return err
		}
		return fn(t)
	})
	if err == nil {
		b.last.Store(id)
		err = b.cause() // found by a reader meanwhile: the file that was written to has lost data
	}
	return err
}

// whole returns an error if the file is shorter than what was committed. Writing would extend it
// again, with a hole.
func (b *boltFile) whole(tx *bolt.Tx) error {
	info, err := b.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < tx.Size() {
		err := format.Corrupt(b.path, "file", info.Size(), "it ends here and had %d bytes: it was cut short under this process", tx.Size())
		b.fail(err)
		return err
	}
	return nil
}

// unlock releases the locks that a panic left held. They have no names outside of bbolt. If they
// are not where this program knows them, nobody may wait for them any more, see close.
//
// A Begin for reading reads the headers under metalock and mmaplock, and cannot panic anywhere
// else. A transaction for writing holds rwlock from its Begin to its end, and gives the others back
// in any case; there is one at a time.
func (b *boltFile) unlock(writable bool) {
	if writable {
		rw := boltLock[sync.Mutex](b.bolt, "rwlock")
		switch {
		case rw == nil:
			b.stuck.Store(true)
		default:
			rw.TryLock() // an unlocked one must not be unlocked
			rw.Unlock()
		}
		return
	}
	meta, mapping := boltLock[sync.Mutex](b.bolt, "metalock"), boltLock[sync.RWMutex](b.bolt, "mmaplock")
	if meta == nil || mapping == nil {
		b.stuck.Store(true)
		return
	}
	mapping.RUnlock()
	meta.Unlock()
}

// boltLock returns a lock of bbolt's, or nil if this version of bbolt has it otherwise.
func boltLock[T any](db *bolt.DB, name string) *T {
	v := reflect.ValueOf(db).Elem().FieldByName(name)
	if !v.IsValid() || v.Type() != reflect.TypeFor[T]() {
		return nil
	}
	return (*T)(unsafe.Pointer(v.UnsafeAddr()))
}

// freeMapping releases the lock on the mapping that a transaction for reading holds from its
// beginning to its end. A commit that needs a longer mapping waits for this lock, and every
// transaction that begins meanwhile waits too: one that lasts for minutes would stop the database.
// Its pages are kept all the same, as bbolt keeps these by the number of the transaction. Between
// freeMapping and holdMapping nothing may be read, and nothing found before is valid.
//
// In a bbolt that has the lock elsewhere it stays held, and such commits wait.
func (b *boltFile) freeMapping() {
	if mapping := boltLock[sync.RWMutex](b.bolt, "mmaplock"); mapping != nil {
		mapping.RUnlock()
	}
}

// holdMapping takes the lock again that freeMapping released.
func (b *boltFile) holdMapping() {
	if mapping := boltLock[sync.RWMutex](b.bolt, "mmaplock"); mapping != nil {
		mapping.RLock()
	}
}

// pin keeps retire from closing the file until unpin. It returns false if the file is retired.
func (b *boltFile) pin() bool {
	b.pins.Lock()
	defer b.pins.Unlock()
	if b.pins.retired {
		return false
	}
	b.pins.n++
	return true
}

func (b *boltFile) unpin() error {
	b.pins.Lock()
	defer b.pins.Unlock()
	b.pins.n--
	if b.pins.retired && b.pins.n == 0 {
		return b.close()
	}
	return nil
}

// pinned reports whether the file is pinned.
func (b *boltFile) pinned() bool {
	b.pins.Lock()
	defer b.pins.Unlock()
	return b.pins.n > 0
}

// retireUnpinned keeps the file from being pinned, for a caller that closes it. It returns false if
// it is pinned.
func (b *boltFile) retireUnpinned() bool {
	b.pins.Lock()
	defer b.pins.Unlock()
	b.pins.retired = b.pins.retired || b.pins.n == 0
	return b.pins.n == 0
}

// retire closes the file after the readers under way, or when the last pin ends.
func (b *boltFile) retire() error {
	b.pins.Lock()
	b.pins.retired = true
	n := b.pins.n
	b.pins.Unlock()
	if n > 0 {
		return nil
	}
	return b.close()
}

// close closes the file after the readers under way. If a lock of bbolt's could not be released,
// bbolt's Close is not called: the descriptor is closed, but the mapping stays until the process
// ends, and with it, on some systems, the lock on the file.
func (b *boltFile) close() error {
	if b.stuck.Load() {
		return b.file.Close()
	}
	err := b.bolt.Close()
	if closed := b.file.Close(); !errors.Is(closed, os.ErrClosed) { // not bbolt's: see remap
		err = errors.Join(err, closed)
	}
	return err
}
