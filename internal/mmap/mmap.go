// Package mmap maps whole files read-only into memory.
//
// On Unix and Windows the bytes are the page cache's own; elsewhere the file is read into memory,
// so that callers need no second code path. The file may be closed, renamed or (not on Windows)
// removed while a Region lives. It must not be truncated: reading a mapped page beyond the new end
// is a fault the operating system raises against the process.
//
// Bytes and Advise are safe for concurrent use. Close must come after the last use of the bytes: a
// reader that is still in them faults. The package counts no references; who shares a Region does.
package mmap

import (
	"fmt"
	"math"
	"os"
)

// Advice tells the operating system how a Region will be read.
type Advice uint8

// Advice the system may act on. It never changes what is read.
const (
	Random     Advice = iota // in no order: read nothing ahead
	Sequential               // from start to end: read ahead
	WillNeed                 // soon and all of it: begin reading now
)

// Region is a mapped file.
type Region struct {
	data []byte // nil for an empty file and after Close
}

// Map maps the named file.
func Map(path string) (*Region, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping outlives the descriptor
	return File(f)
}

// File maps an open regular file, which the caller still has to close.
func File(f *os.File) (*Region, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("map %s: not a regular file", f.Name())
	}
	size := info.Size()
	if size > math.MaxInt {
		return nil, fmt.Errorf("map %s: %d bytes exceed the address space", f.Name(), size)
	}
	r := new(Region)
	if size == 0 {
		return r, nil // no system maps zero bytes
	}
	if err := r.mapFile(f, int(size)); err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	return r, nil
}

// Bytes returns the file's content. It must not be written to, and not be read after Close.
func (r *Region) Bytes() []byte { return r.data }

// Advise passes a hint to the operating system, where it takes one, about length bytes from offset
// on. What lies outside the file is left out, and the system acts on whole pages.
func (r *Region) Advise(a Advice, offset, length int64) error {
	size := int64(len(r.data))
	if offset < 0 || offset >= size || length <= 0 {
		return nil
	}
	from := offset - offset%int64(os.Getpagesize())
	if err := r.advise(a, r.data[from:offset+min(length, size-offset)]); err != nil {
		return fmt.Errorf("advise mapping: %w", err)
	}
	return nil
}

// Close ends the mapping. Further calls do nothing.
func (r *Region) Close() error {
	if len(r.data) == 0 {
		return nil
	}
	err := r.unmap()
	r.data = nil
	if err != nil {
		return fmt.Errorf("unmap: %w", err)
	}
	return nil
}
