package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/flashdb/flashdb/internal/mmap"
)

const (
	fileMode = 0o600 // the owner's alone: embeddings and payloads are nobody else's
	dirMode  = 0o700
)

// OS returns the operating system's file system.
func OS() FS { return osFS{} }

type osFS struct{}

// osFile adds to an *os.File what File asks for beyond it.
type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (osFS) Create(name string) (File, error) {
	return open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (osFS) Open(name string) (File, error) { return open(name, os.O_RDONLY) }

func (osFS) OpenRW(name string) (File, error) { return open(name, os.O_RDWR) }

func open(name string, flag int) (File, error) {
	f, err := openRegular(name, flag)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// openRegular opens a regular file. A symbolic link could lead a write out of the database directory, and opening a named
// pipe would wait for its other end, so both are refused before the open; oNoFollow closes the gap between the two calls.
func openRegular(name string, flag int) (*os.File, error) {
	info, err := os.Lstat(name)
	switch {
	case err == nil:
		err = checkRegular(name, info)
	case flag&os.O_CREATE != 0 && errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return os.OpenFile(name, flag|oNoFollow, fileMode)
}

func checkRegular(name string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode&fs.ModeSymlink != 0:
		return fmt.Errorf("open %s: a symbolic link, which is not followed: put the file itself there", name)
	default:
		return fmt.Errorf("open %s: not a regular file", name)
	}
}

func (osFS) Rename(from, to string) error { return os.Rename(from, to) }

func (osFS) Remove(name string) error { return os.Remove(name) }

func (osFS) RemoveAll(name string) error { return os.RemoveAll(name) }

func (osFS) MkdirAll(dir string) error { return os.MkdirAll(dir, dirMode) }

func (osFS) ReadDir(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (osFS) Size(name string) (int64, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), checkRegular(name, info)
}

func (osFS) Type(name string) (fs.FileMode, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return 0, err
	}
	return info.Mode().Type(), nil
}

func (osFS) SyncDir(dir string) error { return syncDir(dir) }

func (osFS) Map(name string) (Mapping, error) {
	f, err := openRegular(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	region, err := mmap.File(f)
	if err != nil {
		return nil, err
	}
	return region, nil
}
