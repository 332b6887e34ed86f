package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/internal/mmap"
)

const (
	fileMode = 0o600 // the owner's alone: embeddings and payloads are nobody else's
	dirMode  = 0o700
)

// ErrNotRegular matches the error for what stands in the place of a file and is none: a directory,
// a named pipe, a device.
var ErrNotRegular = errors.New("not a regular file")

// OS returns the operating system's file system.
func OS() FS { return osFS{calls: paths{}} }

// calls are the system's functions on files, those of an *os.Root.
type calls interface {
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	Lstat(name string) (fs.FileInfo, error)
	Rename(from, to string) error
	Remove(name string) error
	RemoveAll(name string) error
	MkdirAll(name string, perm fs.FileMode) error
}

// paths are the calls of the whole file system.
type paths struct{}

func (paths) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}
func (paths) Lstat(name string) (fs.FileInfo, error)       { return os.Lstat(name) }
func (paths) Rename(from, to string) error                 { return os.Rename(from, to) }
func (paths) Remove(name string) error                     { return os.Remove(name) }
func (paths) RemoveAll(name string) error                  { return os.RemoveAll(name) }
func (paths) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(name, perm) }

// osFS is an FS of system calls. With a dir, its names are those below that directory.
type osFS struct {
	calls calls
	dir   string
}

// osFile adds to an *os.File what File asks for beyond it.
type osFile struct {
	*os.File
	fs   osFS
	name string
	info fs.FileInfo
}

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *osFile) Named() (bool, error) { return f.fs.leadsTo(f.name, f.info) }

// leadsTo tells whether name is one of the file that info describes.
func (s osFS) leadsTo(name string, info fs.FileInfo) (bool, error) {
	now, err := s.calls.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, s.located(err)
	}
	return os.SameFile(info, now), nil
}

func (s osFS) Create(name string) (File, error) {
	return s.open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (s osFS) Open(name string) (File, error) { return s.open(name, os.O_RDONLY) }

func (s osFS) OpenRW(name string) (File, error) { return s.open(name, os.O_RDWR) }

func (s osFS) open(name string, flag int) (File, error) {
	f, info, err := s.openRegular(name, flag, fileMode)
	if err != nil {
		return nil, err
	}
	return &osFile{File: f, fs: s, name: name, info: info}, nil
}

// openTries is how often openRegular opens what was replaced meanwhile.
const openTries = 100

// errReplaced is why a file must be opened again.
var errReplaced = errors.New("it is replaced again and again")

// openRegular opens a regular file. A symbolic link could lead a write to another file, opening a
// named pipe would wait for its other end, and opening a device may do anything. All are refused
// before the open. As they may come between that and the open, it does not wait, and what was
// opened is looked at again: it must be a regular file, and the one that has the name. os.Root
// follows a link that stays within it, whatever flags it is given; so nothing is created where
// something is, nor emptied before that look.
func (s osFS) openRegular(name string, flag int, perm fs.FileMode) (*os.File, fs.FileInfo, error) {
	if err := s.within(name); err != nil {
		return nil, nil, err
	}
	err := errReplaced
	for try := 0; try < openTries && errors.Is(err, errReplaced); try++ {
		var f *os.File
		var info fs.FileInfo
		if f, info, err = s.openNamed(name, flag, perm); err == nil {
			return f, info, nil
		}
	}
	return nil, nil, err
}

// openNamed is one try of openRegular. Its error is errReplaced if another file has the name by the
// time it is open.
func (s osFS) openNamed(name string, flag int, perm fs.FileMode) (*os.File, fs.FileInfo, error) {
	replaced := fmt.Errorf("open %s: %w", s.Path(name), errReplaced)
	info, err := s.calls.Lstat(name)
	exists := err == nil
	switch {
	case exists:
		err = s.checkRegular(name, info)
	case flag&os.O_CREATE != 0 && errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return nil, nil, s.located(err)
	}
	how := flag&^(os.O_CREATE|os.O_TRUNC) | oNoFollow | oNonBlock
	if !exists {
		how |= os.O_CREATE | os.O_EXCL
	}
	f, err := s.calls.OpenFile(name, how, perm)
	if exists && errors.Is(err, fs.ErrNotExist) || !exists && errors.Is(err, fs.ErrExist) {
		return nil, nil, replaced
	}
	if err != nil {
		return nil, nil, s.located(err)
	}
	if info, err = f.Stat(); err == nil {
		err = s.checkRegular(name, info)
	}
	if err == nil {
		err = s.checkNamed(name, info, replaced)
	}
	if err == nil && flag&os.O_TRUNC != 0 && info.Size() > 0 {
		err = f.Truncate(0)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// checkNamed returns replaced unless name is that of the file that info describes, or why it may
// not be opened.
func (s osFS) checkNamed(name string, info fs.FileInfo, replaced error) error {
	now, err := s.calls.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return replaced
	case err != nil:
		return s.located(err)
	case os.SameFile(info, now):
		return nil
	}
	if err := s.checkRegular(name, now); err != nil {
		return err
	}
	return replaced
}

func (s osFS) checkRegular(name string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode&fs.ModeSymlink != 0:
		return fmt.Errorf("open %s: a symbolic link, which is not followed: put the file itself there", s.Path(name))
	default:
		return fmt.Errorf("open %s: %w", s.Path(name), ErrNotRegular)
	}
}

// within refuses a name below a directory that passes through a symbolic link. That no name leads
// out of the directory, whatever comes between, is the work of os.Root; this keeps one part of the
// directory from passing for another.
func (s osFS) within(name string) error {
	if s.dir == "" {
		return nil
	}
	name = filepath.Clean(name)
	for i := range len(name) {
		if i == 0 || !os.IsPathSeparator(name[i]) {
			continue
		}
		info, err := s.calls.Lstat(name[:i])
		if err != nil {
			return s.located(err)
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("open %s: %s is a symbolic link, which is not followed", s.Path(name), s.Path(name[:i]))
		}
	}
	return nil
}

// throughout is within for a name that must not be a link itself either.
func (s osFS) throughout(name string) error {
	if err := s.within(name); err != nil || s.dir == "" {
		return err
	}
	info, err := s.calls.Lstat(name)
	if err != nil {
		return s.located(err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return s.checkRegular(name, info)
	}
	return nil
}

// located gives an error of a name below a directory the whole path.
func (s osFS) located(err error) error {
	if s.dir == "" || err == nil {
		return err
	}
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return &fs.PathError{Op: strings.TrimSuffix(path.Op, "at"), Path: s.Path(path.Path), Err: path.Err}
	case errors.As(err, &link):
		return &os.LinkError{Op: strings.TrimSuffix(link.Op, "at"), Old: s.Path(link.Old), New: s.Path(link.New), Err: link.Err}
	}
	return err
}

func (s osFS) Path(name string) string {
	if s.dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.dir, name)
}

func (s osFS) Rename(from, to string) error {
	if err := errors.Join(s.within(from), s.within(to)); err != nil {
		return err
	}
	return s.located(s.calls.Rename(from, to))
}

func (s osFS) Remove(name string) error {
	if err := s.within(name); err != nil {
		return err
	}
	return s.located(s.calls.Remove(name))
}

func (s osFS) RemoveAll(name string) error {
	if err := s.within(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.located(s.calls.RemoveAll(name))
}

func (s osFS) MkdirAll(dir string) error {
	if err := s.throughout(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.located(s.calls.MkdirAll(dir, dirMode))
}

func (s osFS) ReadDir(dir string) ([]string, error) {
	if err := s.throughout(dir); err != nil {
		return nil, err
	}
	d, err := s.calls.OpenFile(dir, os.O_RDONLY|oDirectory|oNonBlock, 0)
	if err != nil {
		return nil, s.located(err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func (s osFS) Size(name string) (int64, error) {
	if err := s.within(name); err != nil {
		return 0, err
	}
	info, err := s.calls.Lstat(name)
	if err != nil {
		return 0, s.located(err)
	}
	return info.Size(), s.checkRegular(name, info)
}

func (s osFS) Type(name string) (fs.FileMode, error) {
	if err := s.within(name); err != nil {
		return 0, err
	}
	info, err := s.calls.Lstat(name)
	if err != nil {
		return 0, s.located(err)
	}
	return info.Mode().Type(), nil
}

func (s osFS) SyncDir(dir string) error {
	if err := s.throughout(dir); err != nil {
		return err
	}
	return s.located(syncDir(s.calls, dir))
}

func (s osFS) Map(name string) (Mapping, error) {
	f, _, err := s.openRegular(name, os.O_RDONLY, 0)
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

func (osFS) OpenRoot(dir string) (Root, error) {
	d, err := OpenDir(dir)
	if err != nil {
		return nil, err
	}
	return d, nil
}
