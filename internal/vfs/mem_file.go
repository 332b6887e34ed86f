package vfs

import (
	"errors"
	"io"
	"io/fs"
	"slices"
)

// memFile remembers what a crash would find: the content at the last Sync, and each change since.
type memFile struct {
	data    []byte
	durable []byte
	pending []fileChange
	users   int // handles and mappings that are open
}

// fileChange is one change of a file that has not been synced: bytes written at an offset, or a new
// length.
type fileChange struct {
	off      int64 // the new length if truncate
	bytes    []byte
	truncate bool
}

// apply returns data with the change made to it, possibly in place.
func (c fileChange) apply(data []byte) []byte {
	if c.truncate {
		return resize(data, c.off)
	}
	if end := c.off + int64(len(c.bytes)); end > int64(len(data)) && len(c.bytes) > 0 {
		data = resize(data, end)
	}
	if len(c.bytes) > 0 {
		copy(data[c.off:], c.bytes)
	}
	return data
}

// resize cuts data to size bytes, or grows it by zeros.
func resize(data []byte, size int64) []byte {
	if n := size - int64(len(data)); n > 0 {
		old := len(data)
		data = slices.Grow(data, int(n))[:size]
		clear(data[old:])
	}
	return data[:size]
}

func (f *memFile) write(c fileChange) {
	f.data = c.apply(f.data)
	f.pending = append(f.pending, c)
}

func (f *memFile) sync() {
	for _, c := range f.pending {
		f.durable = c.apply(f.durable)
	}
	f.pending = nil
}

// memHandle is an open file of a Mem. The mutex of its fs guards pos and closed.
type memHandle struct {
	fs       *Mem
	file     *memFile
	name     string // as given to fs
	writable bool
	pos      int64
	closed   bool
}

// lock locks the FS and returns what unlocks it, or the reason why the handle must not be used for
// op.
func (h *memHandle) lock(op string, write bool) (unlock func(), err error) {
	h.fs.mu.Lock()
	switch {
	case h.closed:
		err = fs.ErrClosed
	case write && !h.writable:
		err = errors.New("file is open for reading only")
	default:
		return h.fs.mu.Unlock, nil
	}
	h.fs.mu.Unlock()
	return nil, pathError(op, h.fs.Path(h.name), err)
}

func (h *memHandle) Read(b []byte) (int, error) {
	unlock, err := h.lock("read", false)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if len(b) == 0 {
		return 0, nil
	}
	if h.pos >= int64(len(h.file.data)) {
		return 0, io.EOF
	}
	n := copy(b, h.file.data[h.pos:])
	h.pos += int64(n)
	return n, nil
}

func (h *memHandle) ReadAt(b []byte, off int64) (int, error) {
	unlock, err := h.lock("read", false)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if off < 0 {
		return 0, pathError("read", h.fs.Path(h.name), errors.New("negative offset"))
	}
	n := copy(b, h.file.data[min(off, int64(len(h.file.data))):])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *memHandle) Write(b []byte) (int, error) {
	unlock, err := h.lock("write", true)
	if err != nil {
		return 0, err
	}
	defer unlock()
	h.file.write(fileChange{off: h.pos, bytes: slices.Clone(b)})
	h.pos += int64(len(b))
	return len(b), nil
}

func (h *memHandle) WriteAt(b []byte, off int64) (int, error) {
	unlock, err := h.lock("write", true)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if off < 0 {
		return 0, pathError("write", h.fs.Path(h.name), errors.New("negative offset"))
	}
	h.file.write(fileChange{off: off, bytes: slices.Clone(b)})
	return len(b), nil
}

func (h *memHandle) Truncate(size int64) error {
	unlock, err := h.lock("truncate", true)
	if err != nil {
		return err
	}
	defer unlock()
	if size < 0 {
		return pathError("truncate", h.fs.Path(h.name), errors.New("negative size"))
	}
	h.file.write(fileChange{off: size, truncate: true})
	return nil
}

func (h *memHandle) Sync() error {
	unlock, err := h.lock("sync", false)
	if err != nil {
		return err
	}
	defer unlock()
	h.file.sync()
	return nil
}

func (h *memHandle) Size() (int64, error) {
	unlock, err := h.lock("stat", false)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return int64(len(h.file.data)), nil
}

func (h *memHandle) Named() (bool, error) {
	unlock, err := h.lock("stat", false)
	if err != nil {
		return false, err
	}
	defer unlock()
	f, err := h.fs.lookupFile("stat", h.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return f == h.file, err
}

func (h *memHandle) Close() error {
	unlock, err := h.lock("close", false)
	if err != nil {
		return err
	}
	defer unlock()
	h.closed = true
	h.file.users--
	return nil
}
