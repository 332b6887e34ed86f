package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrMoved matches what [Dir.Check] returns once the path of a directory leads elsewhere.
var ErrMoved = errors.New("the directory was moved or replaced")

// A Dir is a directory of the system that is held open: a Root whose names are looked up from its
// descriptor. What becomes of its path, or of the process' working directory, makes no difference
// to it; Check tells what became of the path. No name leads out of it: see os.Root.
type Dir struct {
	osFS
	root *os.Root
	info fs.FileInfo
}

// OpenDir holds the directory at path. It is the caller's who may change the working directory to
// make the path absolute.
func OpenDir(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Dir{osFS: osFS{calls: root, dir: filepath.Clean(path)}, root: root, info: info}, nil
}

// Check returns an error that matches ErrMoved unless the path still leads to this directory.
func (d *Dir) Check() error {
	now, err := os.Stat(d.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is nothing at %s any more", ErrMoved, d.dir)
	case err != nil:
		return fmt.Errorf("%w, or cannot be reached: %w", ErrMoved, err)
	case !os.SameFile(d.info, now):
		return fmt.Errorf("%w: another one is at %s now", ErrMoved, d.dir)
	}
	return nil
}

// CheckFile returns an error that matches ErrMoved unless the path still leads to this directory,
// and name in it to the file that info describes.
func (d *Dir) CheckFile(name string, info fs.FileInfo) error {
	if err := d.Check(); err != nil {
		return err
	}
	same, err := d.leadsTo(name, info)
	if err != nil {
		return err
	}
	if !same {
		return fmt.Errorf("%w: %s is not the file that was opened", ErrMoved, d.Path(name))
	}
	return nil
}

// Same tells whether two Dirs hold the same directory.
func (d *Dir) Same(other *Dir) bool { return os.SameFile(d.info, other.info) }

// OpenFile is os.OpenFile of a regular file in the directory, without os.O_EXCL. It never waits, as
// it would for a named pipe.
func (d *Dir) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, _, err := d.openRegular(name, flag, perm)
	return f, err
}

// Lstat describes what has a name, without following a symbolic link.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) {
	info, err := d.root.Lstat(name)
	return info, d.located(err)
}

// Handle returns the directory as the standard library holds it. It is valid until Close.
func (d *Dir) Handle() *os.Root { return d.root }

// OpenRoot implements FS.
func (d *Dir) OpenRoot(name string) (Root, error) {
	if err := d.throughout(name); err != nil {
		return nil, err
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, d.located(err)
	}
	info, err := root.Stat(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Dir{osFS: osFS{calls: root, dir: d.Path(name)}, root: root, info: info}, nil
}

// Close lets go of the directory. Open files stay open.
func (d *Dir) Close() error { return d.root.Close() }

// MakeDir makes a directory with its missing parents, each of which is durable when it returns nil:
// that a directory was made survives a crash once the directory that holds it is synced.
func MakeDir(fsys FS, dir string) error {
	parent := filepath.Dir(dir)
	if parent != dir {
		err := fsys.SyncDir(parent)
		if errors.Is(err, fs.ErrNotExist) {
			err = MakeDir(fsys, parent)
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	// Who may write to a directory and not read it cannot sync it.
	if err := fsys.SyncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
