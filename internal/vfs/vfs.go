// Package vfs is the small part of a file system that flashdb's own files need, with three
// implementations:
//
//   - [OS] is the real one. It makes files that only their owner can read, and refuses to open
//     symbolic links and whatever else is not a regular file.
//   - [Mem] lives in memory and knows what has been synced: [Mem.CrashClone] returns what a power
//     failure could leave.
//   - [Faulty] wraps another and fails the operations a test picks.
//
// The files of a database are reached through a [Root]: an open directory, below which all names
// are looked up, and out of which none leads. The system's is a [Dir].
//
// Durability has the meaning POSIX gives it, and no more: what was written to a file survives a
// crash after the file's Sync; that a file was created, renamed or removed survives after SyncDir
// of its directory.
//
// An FS is safe for concurrent use. A File is too, except for Read and Write, which share one
// position.
package vfs

import (
	"io"
	"io/fs"

	"github.com/flashdb/flashdb/internal/mmap"
)

// FS is a file system. Names are paths as in package filepath. A name that does not exist gives an
// error that matches fs.ErrNotExist.
type FS interface {
	// Create makes an empty file, or empties the one that is there, and opens it for reading and
	// writing.
	Create(name string) (File, error)
	// Open opens an existing file for reading.
	Open(name string) (File, error)
	// OpenRW opens an existing file for reading and writing, positioned at its start.
	OpenRW(name string) (File, error)
	// Rename gives a file a new name, replacing the file that has it.
	Rename(from, to string) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// RemoveAll removes a file or a directory with all that is in it. It is no error if there is
	// nothing.
	RemoveAll(name string) error
	// MkdirAll makes a directory and its missing parents.
	MkdirAll(dir string) error
	// ReadDir returns the names in a directory, sorted.
	ReadDir(dir string) ([]string, error)
	// Size returns the length of a file in bytes.
	Size(name string) (int64, error)
	// Type returns the type bits of what has the name: 0 for a regular file. A symbolic link is not
	// followed.
	Type(name string) (fs.FileMode, error)
	// SyncDir makes durable which names the directory holds.
	SyncDir(dir string) error
	// Map returns the content of a file.
	Map(name string) (Mapping, error)
	// OpenRoot holds a directory.
	OpenRoot(dir string) (Root, error)
	// Path returns what messages call a name: a whole path.
	Path(name string) string
}

// Root is the part of a file system below one directory. Names are relative to it, and one that
// would lead out of it, or passes through a symbolic link, is an error. Remove, RemoveAll and
// Rename are of a link itself. It stays the same directory when that gets another name, or when its
// path leads to another one. Close lets go of the directory; files that are open stay open.
type Root interface {
	FS
	io.Closer
}

// File is an open file.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.WriterAt
	// Truncate changes the length of the file; new bytes are zero.
	Truncate(size int64) error
	// Sync makes the content and the length of the file durable.
	Sync() error
	// Size returns the length of the file in bytes.
	Size() (int64, error)
	// Named tells whether the name that the file was opened by still leads to it. It takes no more
	// than looking the name up.
	Named() (bool, error)
	Close() error
}

// Advice says how part of a Mapping will be read.
type Advice = mmap.Advice

// Kinds of Advice.
const (
	Random   = mmap.Random   // in no order: read nothing ahead
	WillNeed = mmap.WillNeed // soon and all of it: begin reading now
)

// Mapping is the content of a file as of the call of Map.
type Mapping interface {
	// Bytes is valid until Close and must not be written to.
	Bytes() []byte
	// Advise says how length bytes from offset on will be read. It never changes what is read, and
	// its errors can be ignored.
	Advise(a Advice, offset, length int64) error
	Close() error
}
