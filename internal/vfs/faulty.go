package vfs

import (
	"fmt"
	"io/fs"
	"sync/atomic"
)

// Kind is what an operation does.
type Kind uint8

// The kinds of operation, of an FS and of its files.
const (
	OpCreate Kind = iota
	OpOpen
	OpOpenRW
	OpRename
	OpRemove
	OpRemoveAll
	OpMkdirAll
	OpReadDir
	OpSize
	OpType
	OpSyncDir
	OpMap
	OpRead
	OpWrite
	OpTruncate
	OpSync
	OpNamed
	OpClose
)

var kindNames = [...]string{
	"create", "open", "open-rw", "rename", "remove", "remove-all", "mkdir-all", "read-dir", "size", "type", "sync-dir", "map",
	"read", "write", "truncate", "sync", "named", "close",
}

func (k Kind) String() string { return kindNames[k] }

// Changes tells whether operations of this kind change files, or make changes durable.
func (k Kind) Changes() bool {
	switch k {
	case OpCreate, OpRename, OpRemove, OpRemoveAll, OpMkdirAll, OpSyncDir, OpWrite, OpTruncate, OpSync:
		return true
	}
	return false
}

// Op is one operation about to happen.
type Op struct {
	Kind Kind
	Path string // the whole path; of a rename, that of the old name
}

func (o Op) String() string { return fmt.Sprintf("%s %s", o.Kind, o.Path) }

// FailNth returns a function for Faulty that fails, once, the n-th operation (from 1) for which
// match is true. A nil match counts every operation.
func FailNth(n int64, err error, match func(Op) bool) func(Op) error {
	var seen atomic.Int64
	return func(op Op) error {
		if match != nil && !match(op) {
			return nil
		}
		if seen.Add(1) == n {
			return err
		}
		return nil
	}
}

// Faulty returns an FS that calls inject before every operation on base and its files, but for
// OpenRoot and Path. If inject returns an error the operation is not done and returns that error;
// but a failed write writes the first half of its bytes, as a full disk does, and a failed close
// closes. Inject is called concurrently when the FS is.
func Faulty(base FS, inject func(Op) error) FS { return &faultyFS{base: base, inject: inject} }

type faultyFS struct {
	base   FS
	inject func(Op) error
}

type faultyRoot struct {
	faultyFS
	root Root
}

type faultyFile struct {
	File
	fs   *faultyFS
	path string
}

func (f *faultyFS) before(kind Kind, name string) error { return f.inject(Op{kind, f.base.Path(name)}) }

// OpenRoot and Path are no operations that could fail by themselves.
func (f *faultyFS) OpenRoot(dir string) (Root, error) {
	root, err := f.base.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &faultyRoot{faultyFS{base: root, inject: f.inject}, root}, nil
}

func (f *faultyFS) Path(name string) string { return f.base.Path(name) }

func (f *faultyRoot) Close() error { return f.root.Close() }

func (f *faultyFS) open(kind Kind, name string, open func(string) (File, error)) (File, error) {
	if err := f.before(kind, name); err != nil {
		return nil, err
	}
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f, name}, nil
}

func (f *faultyFS) Create(name string) (File, error) { return f.open(OpCreate, name, f.base.Create) }

func (f *faultyFS) Open(name string) (File, error) { return f.open(OpOpen, name, f.base.Open) }

func (f *faultyFS) OpenRW(name string) (File, error) { return f.open(OpOpenRW, name, f.base.OpenRW) }

func (f *faultyFS) Rename(from, to string) error {
	if err := f.before(OpRename, from); err != nil {
		return err
	}
	return f.base.Rename(from, to)
}

func (f *faultyFS) Remove(name string) error {
	if err := f.before(OpRemove, name); err != nil {
		return err
	}
	return f.base.Remove(name)
}

func (f *faultyFS) RemoveAll(name string) error {
	if err := f.before(OpRemoveAll, name); err != nil {
		return err
	}
	return f.base.RemoveAll(name)
}

func (f *faultyFS) MkdirAll(dir string) error {
	if err := f.before(OpMkdirAll, dir); err != nil {
		return err
	}
	return f.base.MkdirAll(dir)
}

func (f *faultyFS) ReadDir(dir string) ([]string, error) {
	if err := f.before(OpReadDir, dir); err != nil {
		return nil, err
	}
	return f.base.ReadDir(dir)
}

func (f *faultyFS) Size(name string) (int64, error) {
	if err := f.before(OpSize, name); err != nil {
		return 0, err
	}
	return f.base.Size(name)
}

func (f *faultyFS) Type(name string) (fs.FileMode, error) {
	if err := f.before(OpType, name); err != nil {
		return 0, err
	}
	return f.base.Type(name)
}

func (f *faultyFS) SyncDir(dir string) error {
	if err := f.before(OpSyncDir, dir); err != nil {
		return err
	}
	return f.base.SyncDir(dir)
}

func (f *faultyFS) Map(name string) (Mapping, error) {
	if err := f.before(OpMap, name); err != nil {
		return nil, err
	}
	return f.base.Map(name)
}

func (f *faultyFile) Read(b []byte) (int, error) {
	if err := f.fs.before(OpRead, f.path); err != nil {
		return 0, err
	}
	return f.File.Read(b)
}

func (f *faultyFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.fs.before(OpRead, f.path); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, off)
}

func (f *faultyFile) Write(b []byte) (int, error) {
	if err := f.fs.before(OpWrite, f.path); err != nil {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, err
	}
	return f.File.Write(b)
}

func (f *faultyFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.fs.before(OpWrite, f.path); err != nil {
		n, _ := f.File.WriteAt(b[:len(b)/2], off)
		return n, err
	}
	return f.File.WriteAt(b, off)
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.fs.before(OpTruncate, f.path); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultyFile) Sync() error {
	if err := f.fs.before(OpSync, f.path); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) Size() (int64, error) {
	if err := f.fs.before(OpSize, f.path); err != nil {
		return 0, err
	}
	return f.File.Size()
}

func (f *faultyFile) Named() (bool, error) {
	if err := f.fs.before(OpNamed, f.path); err != nil {
		return false, err
	}
	return f.File.Named()
}

func (f *faultyFile) Close() error {
	if err := f.fs.before(OpClose, f.path); err != nil {
		_ = f.File.Close()
		return err
	}
	return f.File.Close()
}
