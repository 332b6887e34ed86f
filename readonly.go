package flashdb

import (
	"errors"
	"fmt"

	"github.com/flashdb/flashdb/wal"
)

// openReadOnly opens the log without changing anything on disk: no directory or owner file is made,
// and nothing is swept, flushed or cut off. The shared lock of bbolt keeps writers out and lets
// other readers in.
func (db *DB) openReadOnly() (err error) {
	if db.log, err = wal.Open(db.fs, walDir, &wal.Options{ReadOnly: true}); err != nil {
		return err
	}
	if err := db.replay(); err != nil {
		return errors.Join(err, db.log.Close())
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

// settle moves the overlay into bbolt, so that its streams show everything published, and returns
// the last LSN they show. Those of a database opened read-only do so without.
func (db *DB) settle() (lsn uint64, err error) {
	if db.opts.ReadOnly {
		return uint64(db.log.Durable()), nil
	}
	return db.store.Flush()
}
