package flashdb

import (
	"context"

	"github.com/flashdb/flashdb/internal/vfs"
)

// RestoreOn is Restore on another file system.
var RestoreOn = restoreOn

// Closing returns the context that ends when Close is called.
func Closing(db *DB) context.Context { return db.closing }

// OpenFS is Open with the log, the index and backups on another file system.
func OpenFS(fsys vfs.FS, dir string, opts *Options) (*DB, error) {
	return openOn(disk{fs: fsys}, dir, opts)
}
