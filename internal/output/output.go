// Package output decides where a result that a caller asked for in a file may be written, and
// writes it so that the file is what it was before or whole.
//
// A file of a database must never be overwritten by a result, and nothing of a caller's belongs
// into the directory of one: Resolve refuses both, whatever path leads there. What is not a regular
// file, such as a device or a named pipe, is written to as it is.
//
// Functions keep no state and may be used from any goroutine.
package output

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// storeFiles are in the directories of databases and of snapshots: one in each.
var storeFiles = [...]string{"flash.db", "snapshot.db"}

// A Target is where one output goes.
type Target struct {
	// Path is the name given with symbolic links followed.
	Path string
	// Stream says that Path is not a regular file: it can be written from its beginning to its end,
	// and neither replaced nor gone on with.
	Stream bool
	// Exists says that there is a file.
	Exists bool
}

// Resolve returns the target of a file to write. The directory it is to be in must exist. An error
// is returned if it would be in the directory of a database, or if the file is one of databases,
// directories in which hard links are looked for too.
func Resolve(name string, databases ...string) (Target, error) {
	info, err := os.Stat(name)
	there := err == nil
	if there && info.IsDir() {
		return Target{}, fmt.Errorf("%s is a directory: name a file in it", name)
	}
	path := name
	for range 40 { // as many links as Linux follows
		dir, base := filepath.Split(path)
		// Not by text alone: after a link, .. leads elsewhere.
		dir, err := filepath.EvalSymlinks(cmp.Or(dir, "."))
		if err == nil {
			dir, err = filepath.Abs(dir)
		}
		if err != nil {
			return Target{}, fmt.Errorf("write %s: %w", name, err)
		}
		if db, in := Database(dir); in {
			return Target{}, refused(name, db)
		}
		if there && !info.Mode().IsRegular() {
			return Target{Path: name, Stream: true, Exists: true}, nil
		}
		path = filepath.Join(dir, base)
		link, err := os.Readlink(path)
		if err != nil { // no link: a file, or nothing yet
			return Target{Path: path, Exists: there}, notHeld(name, info, databases)
		}
		if path = link; !filepath.IsAbs(link) {
			path = dir + string(filepath.Separator) + link
		}
	}
	return Target{}, fmt.Errorf("%s: too many symbolic links", name)
}

// notHeld returns an error if a database has the file, nil for none, under some name of its own.
func notHeld(name string, file fs.FileInfo, databases []string) error {
	for _, db := range databases {
		if file != nil && holds(db, file) {
			return refused(name, db)
		}
	}
	return nil
}

func refused(name, db string) error {
	return fmt.Errorf("%s lies in the database %s: write to a file outside of it", name, db)
}

// Database returns the database that dir, an absolute path without symbolic links, is or lies in.
func Database(dir string) (db string, ok bool) {
	for {
		for _, name := range storeFiles {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				return dir, true
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

// Within returns an error if a new directory would lie in a database. Parents may be missing.
func Within(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	parent := filepath.Dir(abs)
	for {
		real, err := filepath.EvalSymlinks(parent)
		if err == nil {
			if db, in := Database(real); in {
				return fmt.Errorf("%s lies in the database %s: name a directory outside of it", dir, db)
			}
			return nil
		}
		if up := filepath.Dir(parent); errors.Is(err, fs.ErrNotExist) && up != parent {
			parent = up
			continue
		}
		return nil // whoever makes it says why not
	}
}

func holds(db string, file fs.FileInfo) bool {
	root, err := filepath.EvalSymlinks(db)
	if err != nil {
		return false
	}
	found := false
	_ = filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read cannot be compared
		}
		if info, err := d.Info(); err == nil && os.SameFile(info, file) {
			found = true
			return filepath.SkipAll
		}
		return nil
	})
	return found
}

// Write has fn write the file. A regular file is written under another name beside it, synced and
// renamed, and keeps its mode; a new one is its owner's alone. It is durable when Write returns
// nil.
func (t Target) Write(fn func(w io.Writer) error) (err error) {
	if t.Stream {
		return t.stream(fn)
	}
	f, err := os.CreateTemp(filepath.Dir(t.Path), "."+filepath.Base(t.Path)+".*.tmp")
	if err != nil {
		return err
	}
	if info, statErr := os.Stat(t.Path); statErr == nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = fn(f)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), t.Path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(t.Path))
}

// syncDir makes the names in a directory durable, where that can be had: not on Windows, which
// writes them through its own log, not on some network file systems, and not in a directory that
// may be written and not read.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// stream writes to a device or a pipe. The standard output of the process, which has names of its
// own on most systems, is written through the file that is open: opened anew it would have a
// position of its own.
func (t Target) stream(fn func(w io.Writer) error) error {
	if info, err := os.Stat(t.Path); err == nil {
		if out, err := os.Stdout.Stat(); err == nil && os.SameFile(info, out) {
			return fn(os.Stdout)
		}
	}
	f, err := os.OpenFile(t.Path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(fn(f), f.Close())
}
