package flashdb

import (
	"errors"
	"fmt"

	"github.com/flashdb/flashdb/wal"
)

// openReadOnly opens the log without changing anything on disk. It makes no directory and no owner
// file, and it removes, flushes and truncates nothing. The shared lock of bbolt keeps writers out
// and admits other readers.
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
	if db.sealed != nil {
		return errSealed
	}
	if db.opts.ReadOnly {
		return fmt.Errorf("%w: it was opened so", ErrReadOnly)
	}
	return nil
}

// settle flushes, so that scans of the store include everything published, and returns the last LSN
// they include. A database that was opened read-only need not flush: its scans include the overlay.
func (db *DB) settle() (lsn uint64, err error) {
	if db.opts.ReadOnly {
		return uint64(db.log.Durable()), nil
	}
	return db.store.Flush()
}
