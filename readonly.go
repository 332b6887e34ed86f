package flashdb

import (
	"errors"
	"fmt"

	"github.com/flashdb/flashdb/storage"
	"github.com/flashdb/flashdb/wal"
)

// openReadOnly opens the database without changing anything on disk: no
// directory is made, no owner named, nothing swept, flushed or cut off. The
// shared lock of bbolt keeps writers out and lets other readers in.
func (db *DB) openReadOnly() (err error) {
	defer func() {
		if err != nil {
			db.shutdown()
		}
	}()
	if err := prepareDir(db.dir, true); err != nil {
		return err
	}
	if err := refuseSymlinks(db.dir); err != nil {
		return err
	}
	db.store, err = storage.Open(db.path(storeFile), &storage.Options{ReadOnly: true, Timeout: db.opts.LockTimeout})
	if errors.Is(err, storage.ErrLocked) {
		return lockedBy(db.dir, err)
	}
	if err != nil {
		return err
	}
	db.log, err = wal.Open(db.fs, db.path(walDir), &wal.Options{ReadOnly: true})
	if err != nil {
		return errors.Join(err, db.store.Close())
	}
	if err := db.replay(); err != nil {
		return errors.Join(err, db.log.Close(), db.store.Close())
	}
	return nil
}

func (db *DB) closeReadOnly() error {
	db.releaseAll()
	if err := errors.Join(db.log.Close(), db.store.Close()); err != nil {
		return fmt.Errorf("close database %s: %w", db.dir, err)
	}
	return nil
}

// writable returns ErrReadOnly for a database opened read-only.
func (db *DB) writable() error {
	if db.opts.ReadOnly {
		return fmt.Errorf("%w: it was opened so", ErrReadOnly)
	}
	return nil
}

// settle moves the overlay into bbolt, so that its streams show everything
// published, and returns the last LSN they show. Those of a database opened
// read-only do so without.
func (db *DB) settle() (lsn uint64, err error) {
	if db.opts.ReadOnly {
		return uint64(db.log.Durable()), nil
	}
	return db.store.Flush()
}
