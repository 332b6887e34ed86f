package flashdb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/flashdb/flashdb/internal/failpoint"
	"github.com/flashdb/flashdb/storage"
	"github.com/flashdb/flashdb/wal"
)

// errNoChange is returned when a write has nothing to change. Then nothing is appended to the log.
var errNoChange = errors.New("no change")

// A record is one atomic write while it is prepared. It becomes one record of the log. The code
// that resolves keys into operations on ids reads the newest state from changes and emits the
// operations. Each operation is visible to the next.
type record struct {
	changes *storage.Changes
	lsn     uint64
	ops     []storage.Op
}

// emit applies op to the changes and keeps it for the log.
func (r *record) emit(op storage.Op) error {
	if err := r.changes.Apply(op, r.lsn); err != nil {
		return err
	}
	r.ops = append(r.ops, op)
	return nil
}

// commit makes one write durable and then visible. The invariants depend on this order:
//
//  1. resolve turns the caller's keys into operations on ids. It reads a state that includes every
//     earlier batch, also those of the same group.
//  2. The encoded operations are appended to the log, which is synced once for the whole group of
//     waiting batches.
//  3. Only then do readers see the write, in the store's overlay and in the collections' deltas. So
//     acknowledged implies durable, and nothing is visible that a crash could undo.
//  4. Later the flusher moves the overlay into bbolt. So applied <= durable.
func (db *DB) commit(ctx context.Context, resolve func(r *record) error) error {
	var r record
	start := time.Now()
	if err := db.admit(ctx); err != nil {
		db.metrics.write(time.Since(start), err)
		return err
	}
	_, err := db.log.Do(ctx, wal.Write{
		Prepare: func(lsn wal.LSN) ([]byte, error) {
			r = record{changes: db.store.Begin(), lsn: uint64(lsn)}
			err := resolve(&r)
			if damage := r.changes.Err(); damage != nil {
				err = invalidAttribute(damage) // resolve may have drawn a wrong conclusion from what it could not read
			}
			if err != nil {
				return nil, err
			}
			if len(r.ops) == 0 {
				return nil, errNoChange
			}
			payload := storage.EncodeOps(r.ops)
			if len(payload) > wal.MaxPayload {
				return nil, fmt.Errorf("%w: a batch of %d bytes is too large to be atomic, at most %d fit: split it", ErrInvalid, len(payload), wal.MaxPayload)
			}
			db.store.Stage(r.changes)
			return payload, nil
		},
		Publish: func(wal.LSN) {
			// The first batch of a group publishes what all batches of the group staged: one sync
			// made them durable together.
			db.store.Publish()
			db.apply(&r)
		},
	})
	if errors.Is(err, errNoChange) {
		return nil
	}
	db.metrics.write(time.Since(start), err)
	switch {
	case errors.Is(err, wal.ErrFailed):
		// No batch of the group is durable, so what they staged must never be seen.
		_ = db.log.Locked(func(wal.LSN) error { db.store.Discard(); return nil })
		return db.refused(err)
	case err != nil:
		return err
	}
	if db.store.Pending() > db.opts.FlushBytes {
		db.flusher.wake()
	}
	return nil
}

// admit returns an error for a write that is refused, and makes one wait that the flush cannot keep
// up with.
func (db *DB) admit(ctx context.Context) error {
	if err := db.writable(); err != nil {
		return err
	}
	if err := db.unflushed.Load(); err != nil {
		return db.refused(*err)
	}
	return db.holdBack(ctx)
}

// maxPending is how many times Options.FlushBytes are held in memory before a writer waits for the
// running flush: once for what that flush writes, and once for the next.
const maxPending = 2

// holdBack makes a writer wait for the running flush when too much is held in memory. A writer that
// is faster than the disk would otherwise fill the memory. It waits for one flush at most, and not
// for a Compact: the writer may be the callback of that Compact.
func (db *DB) holdBack(ctx context.Context) error {
	if db.store.Pending() < maxPending*db.opts.FlushBytes {
		return nil
	}
	db.flusher.wake()
	flushed := db.store.Flushing()
	if flushed == nil {
		return nil
	}
	select {
	case <-flushed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refused returns the error of a write after the log or a flush has failed.
func (db *DB) refused(cause error) error {
	db.failed.Do(func() { db.events.writesRefused(cause) })
	return fmt.Errorf("%w until it is reopened: %w", ErrReadOnly, cause)
}

// apply applies a durable record to the memory of those of its collections that are open. Readers
// of one collection see the batch once that collection has it: see Collection.begin and
// Collection.viewedWith. Links are only in the store, so they need nothing here.
func (db *DB) apply(r *record) {
	uids, ops := byCollection(r.ops)
	for _, uid := range uids {
		if c := db.loaded(uid); c != nil {
			c.apply(ops[uid], r.lsn)
		}
		for _, c := range db.loadedStaged(uid) {
			c.applyDeletes(ops[uid], r.lsn)
		}
	}
}

// byCollection groups operations by the collection that they change. Order is kept.
func byCollection(ops []storage.Op) (uids []uint32, of map[uint32][]storage.Op) {
	of = map[uint32][]storage.Op{}
	for _, op := range ops {
		uid := op.Collection()
		if of[uid] == nil {
			uids = append(uids, uid)
		}
		of[uid] = append(of[uid], op)
	}
	return uids, of
}

// flush moves the overlay into bbolt and deletes the log segments that are no longer needed. Reads
// and writes continue during it.
func (db *DB) flush() error {
	failpoint.FlushBefore.Reach()
	if db.opts.ReadOnly {
		return nil // the log keeps what it holds
	}
	if err := db.owned(); err != nil {
		return err
	}
	applied, err := db.store.Flush()
	if err != nil {
		return db.cannotFlush(err)
	}
	failpoint.FlushAfter.Reach()
	return db.log.Drop(wal.LSN(applied))
}

// cannotFlush makes the database refuse writes from now on.
func (db *DB) cannotFlush(cause error) error {
	err := fmt.Errorf("flush: %w", cause)
	db.unflushed.CompareAndSwap(nil, &err)
	return err
}

// A flusher is the background goroutine of a DB that flushes when woken.
type flusher struct {
	wakeC chan struct{}
	stopC chan struct{}
	done  sync.WaitGroup
}

func (f *flusher) start(db *DB) {
	f.wakeC = make(chan struct{}, 1)
	f.stopC = make(chan struct{})
	f.done.Go(func() {
		for {
			select {
			case <-f.stopC:
				return
			case <-f.wakeC:
				start := time.Now()
				err := db.flush()
				db.events.flushed(db.store.Applied(), time.Since(start), err)
			}
		}
	})
}

// wake asks for a flush; it never blocks.
func (f *flusher) wake() {
	select {
	case f.wakeC <- struct{}{}:
	default:
	}
}

// stop ends the goroutine and waits for it.
func (f *flusher) stop() {
	close(f.stopC)
	f.done.Wait()
}
