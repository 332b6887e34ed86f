package flashdb

import "context"

// RestoreOn is Restore on another file system.
var RestoreOn = restoreOn

// Closing returns the context that ends when Close is called.
func Closing(db *DB) context.Context { return db.closing }
