package vfs

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

var (
	errIsDir    = errors.New("is a directory")
	errNotDir   = errors.New("not a directory")
	errNotEmpty = errors.New("directory not empty")
	errEscapes  = errors.New("path escapes from parent") // the text of os.Root
	errInUse    = errors.New("the file is open")
)

// Mem is an FS in memory for tests. Relative and absolute names mean the same: there is one root,
// which always exists. What its OpenRoot returns is a Mem as well.
type Mem struct {
	mu   *sync.Mutex // guards everything below, through all nodes and handles
	root *memDir
	fold bool // names that differ only in case are one
	keep bool // names of files that are open stay

	path   string // of a Root
	closed bool   // a Root
}

// NewMem returns an empty FS.
func NewMem() *Mem { return &Mem{mu: new(sync.Mutex), root: newMemDir()} }

// NewFoldingMem returns an empty FS for which names that differ only in case are the same, as on
// Windows and macOS. A file keeps the name that it was made with.
func NewFoldingMem() *Mem {
	m := NewMem()
	m.fold = true
	return m
}

// NewWindowsMem returns what NewFoldingMem does, where a file that is open or mapped keeps its
// name, too: it can be neither removed nor renamed nor replaced.
func NewWindowsMem() *Mem {
	m := NewFoldingMem()
	m.keep = true
	return m
}

// OpenRoot implements FS.
func (m *Mem) OpenRoot(dir string) (Root, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.lookupDir("open", dir)
	if err != nil {
		return nil, err
	}
	return &Mem{mu: m.mu, root: d, fold: m.fold, keep: m.keep, path: m.Path(dir)}, nil
}

// Path implements FS.
func (m *Mem) Path(name string) string {
	if m.path == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(m.path, name)
}

// Close implements Root.
func (m *Mem) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fs.ErrClosed
	}
	m.closed = true
	return nil
}

// node is a *memDir or a *memFile.
type node any

// memDir remembers what a crash would find: the names at the last SyncDir, and each change of names
// since.
type memDir struct {
	names   map[string]node
	durable map[string]node
	pending []nameChange
}

// nameChange is one change of a directory that has not been synced: a node got a name, a name went,
// or both at once in a rename.
type nameChange struct {
	gone string // name removed, or empty
	name string // name given to node, or empty
	node node
}

func newMemDir() *memDir {
	return &memDir{names: make(map[string]node), durable: make(map[string]node)}
}

func (c nameChange) apply(names map[string]node) {
	if c.gone != "" {
		delete(names, c.gone)
	}
	if c.name != "" {
		names[c.name] = c.node
	}
}

func (d *memDir) change(c nameChange) {
	c.apply(d.names)
	d.pending = append(d.pending, c)
}

// split returns the elements of a name below the root.
func (m *Mem) split(op, name string) ([]string, error) {
	switch {
	case m.closed:
		return nil, pathError(op, m.Path(name), fs.ErrClosed)
	case m.path != "" && !filepath.IsLocal(name):
		return nil, pathError(op, name, errEscapes)
	}
	name = filepath.Clean(name)
	name = filepath.ToSlash(name[len(filepath.VolumeName(name)):])
	return slices.DeleteFunc(strings.Split(name, "/"), func(s string) bool { return s == "" || s == "." || s == ".." }), nil
}

// known returns the name that a directory has for what e leads to, or e if there is nothing.
func (m *Mem) known(d *memDir, e string) string {
	if m.fold {
		for name := range d.names {
			if strings.EqualFold(name, e) {
				return name
			}
		}
	}
	return e
}

// lookup returns the directory that holds, or would hold, the last element of name, that element,
// and what is there: nil for nothing. The root has no last element.
func (m *Mem) lookup(op, name string) (dir *memDir, last string, n node, err error) {
	elems, err := m.split(op, name)
	if err != nil {
		return nil, "", nil, err
	}
	if len(elems) == 0 {
		return nil, "", m.root, nil
	}
	dir = m.root
	for _, e := range elems[:len(elems)-1] {
		switch next := dir.names[m.known(dir, e)].(type) {
		case nil:
			return nil, "", nil, pathError(op, m.Path(name), fs.ErrNotExist)
		case *memDir:
			dir = next
		default:
			return nil, "", nil, pathError(op, m.Path(name), errNotDir)
		}
	}
	last = m.known(dir, elems[len(elems)-1])
	return dir, last, dir.names[last], nil
}

func (m *Mem) lookupDir(op, name string) (*memDir, error) {
	_, _, n, err := m.lookup(op, name)
	if err != nil {
		return nil, err
	}
	switch d := n.(type) {
	case nil:
		return nil, pathError(op, m.Path(name), fs.ErrNotExist)
	case *memDir:
		return d, nil
	default:
		return nil, pathError(op, m.Path(name), errNotDir)
	}
}

func (m *Mem) lookupFile(op, name string) (*memFile, error) {
	_, _, n, err := m.lookup(op, name)
	if err != nil {
		return nil, err
	}
	switch f := n.(type) {
	case nil:
		return nil, pathError(op, m.Path(name), fs.ErrNotExist)
	case *memFile:
		return f, nil
	default:
		return nil, pathError(op, m.Path(name), errIsDir)
	}
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, last, n, err := m.lookup("create", name)
	if err != nil {
		return nil, err
	}
	switch f := n.(type) {
	case *memDir:
		return nil, pathError("create", m.Path(name), errIsDir)
	case *memFile:
		f.write(fileChange{truncate: true})
		return m.handle(f, name, true), nil
	}
	f := new(memFile)
	dir.change(nameChange{name: last, node: f})
	return m.handle(f, name, true), nil
}

func (m *Mem) handle(f *memFile, name string, writable bool) *memHandle {
	f.users++
	return &memHandle{fs: m, file: f, name: name, writable: writable}
}

// inUse returns an error if n must keep its name.
func (m *Mem) inUse(op, name string, n node) error {
	switch n := n.(type) {
	case *memFile:
		if m.keep && n.users > 0 {
			return pathError(op, m.Path(name), errInUse)
		}
	case *memDir:
		for e, below := range n.names {
			if err := m.inUse(op, filepath.Join(name, e), below); err != nil {
				return err
			}
		}
	}
	return nil
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) { return m.open(name, false) }

// OpenRW implements FS.
func (m *Mem) OpenRW(name string) (File, error) { return m.open(name, true) }

func (m *Mem) open(name string, writable bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.lookupFile("open", name)
	if err != nil {
		return nil, err
	}
	return m.handle(f, name, writable), nil
}

// Rename implements FS.
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	fromDir, fromLast, n, err := m.lookup("rename", from)
	if err != nil {
		return err
	}
	if n == nil || fromDir == nil {
		return pathError("rename", m.Path(from), fs.ErrNotExist)
	}
	toDir, toLast, old, err := m.lookup("rename", to)
	if err != nil {
		return err
	}
	if _, isDir := old.(*memDir); isDir {
		return pathError("rename", m.Path(to), errIsDir)
	}
	if n == old {
		return nil
	}
	if err := errors.Join(m.inUse("rename", from, n), m.inUse("rename", to, old)); err != nil {
		return err
	}
	if fromDir == toDir {
		fromDir.change(nameChange{gone: fromLast, name: toLast, node: n})
		return nil
	}
	toDir.change(nameChange{name: toLast, node: n})
	fromDir.change(nameChange{gone: fromLast})
	return nil
}

// Remove implements FS. Open handles keep working, as on Unix, unless the rules are those of
// Windows.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, last, n, err := m.lookup("remove", name)
	if err != nil {
		return err
	}
	if n == nil {
		return pathError("remove", m.Path(name), fs.ErrNotExist)
	}
	if d, isDir := n.(*memDir); isDir && (dir == nil || len(d.names) > 0) {
		return pathError("remove", m.Path(name), errNotEmpty)
	}
	if err := m.inUse("remove", name, n); err != nil {
		return err
	}
	dir.change(nameChange{gone: last})
	return nil
}

// RemoveAll implements FS.
func (m *Mem) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, last, n, err := m.lookup("remove", name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && n == nil {
		return nil
	}
	if err != nil {
		return err
	}
	if dir == nil {
		return pathError("remove", m.Path(name), errNotEmpty) // the root stays
	}
	if err := m.inUse("remove", name, n); err != nil {
		return err
	}
	dir.change(nameChange{gone: last})
	return nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	elems, err := m.split("mkdir", name)
	if err != nil {
		return err
	}
	dir := m.root
	for _, e := range elems {
		switch next := dir.names[m.known(dir, e)].(type) {
		case nil:
			d := newMemDir()
			dir.change(nameChange{name: e, node: d})
			dir = d
		case *memDir:
			dir = next
		default:
			return pathError("mkdir", m.Path(name), errNotDir)
		}
	}
	return nil
}

// ReadDir implements FS.
func (m *Mem) ReadDir(name string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.lookupDir("readdir", name)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(d.names)), nil
}

// Size implements FS.
func (m *Mem) Size(name string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.lookupFile("stat", name)
	if err != nil {
		return 0, err
	}
	return int64(len(f.data)), nil
}

// Type implements FS.
func (m *Mem) Type(name string) (fs.FileMode, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, n, err := m.lookup("stat", name)
	if err != nil {
		return 0, err
	}
	switch n.(type) {
	case nil:
		return 0, pathError("stat", name, fs.ErrNotExist)
	case *memDir:
		return fs.ModeDir, nil
	}
	return 0, nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.lookupDir("sync", name)
	if err != nil {
		return err
	}
	d.durable, d.pending = maps.Clone(d.names), nil
	return nil
}

// Map implements FS. The bytes are a copy, so that later writes to the file are no data race with
// its readers.
func (m *Mem) Map(name string) (Mapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.lookupFile("map", name)
	if err != nil {
		return nil, err
	}
	f.users++
	return &memMapping{fs: m, file: f, data: slices.Clone(f.data)}, nil
}

type memMapping struct {
	fs   *Mem
	file *memFile // nil once closed
	data []byte
}

func (m *memMapping) Bytes() []byte { return m.data }

func (m *memMapping) Advise(Advice, int64, int64) error { return nil }

func (m *memMapping) Close() error {
	m.fs.mu.Lock()
	defer m.fs.mu.Unlock()
	if m.file != nil {
		m.file.users--
	}
	m.file, m.data = nil, nil
	return nil
}
