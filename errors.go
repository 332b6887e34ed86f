package flashdb

import (
	"errors"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

// The sentinel errors. Every error of this package that a program may want to act on matches one of
// them under errors.Is. Its text says what was wrong, where, and what to do.
var (
	// ErrNotFound is returned for a collection, node or decoder that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists is returned when a collection of that name exists already.
	ErrExists = errors.New("already exists")
	// ErrClosed is returned by every call after DB.Close, and by those on the collections of a
	// Snapshot after Snapshot.Close.
	ErrClosed = errors.New("database is closed")
	// ErrDim is returned for an embedding or decoder of another width than the collection's.
	ErrDim = errors.New("wrong dimension")
	// ErrInvalid is returned for a bad argument: an empty key, a NaN, k < 1, a filter that does not
	// parse, a directory that is not a database.
	ErrInvalid = errors.New("invalid argument")
	// ErrReadOnly is returned for writes in three cases. The database was opened read-only, or is a
	// snapshot. A write or sync of the log or of the bbolt file has failed. Or the path of the
	// directory, its bbolt file or its log leads elsewhere by now, so that nobody would find what
	// is written. The database still answers queries. In the last two cases it accepts writes again
	// once it is reopened.
	ErrReadOnly = errors.New("database is read-only")

	// ErrCorrupt is matched by every *CorruptError.
	ErrCorrupt = format.ErrCorrupt
	// ErrVersion is returned for a file written by a newer format version.
	ErrVersion = format.ErrVersion
	// ErrQuality is returned by Rebuild when the new index has a lower recall than the served one,
	// which then stays served.
	ErrQuality = errors.New("refused by the quality gate")
	// ErrLocked is returned by Open when another process, or another DB of this one, has the
	// directory open. The error says which.
	ErrLocked = storage.ErrLocked
)

// A CorruptError says what is damaged and where. It matches ErrCorrupt.
//
//	type CorruptError struct {
//		File    string // its path; empty when the bytes came from memory
//		Section string // part of the file's format
//		Offset  int64  // of the first byte that is wrong, from the start of the file
//		Cause   error  // what is wrong there
//	}
type CorruptError = format.CorruptError
