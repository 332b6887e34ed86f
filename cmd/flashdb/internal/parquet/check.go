package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	maxFooter     = 64 << 20
	maxPageHeader = 1 << 20

	// What a page may expand to: a base, and so many times its compressed bytes.
	pageBase  = 16 << 20
	pageRatio = 100

	// What an element of a list in the footer may take in the memory of parquet-go, and a struct
	// down to the depth where chunks of columns lie; and what all of the footer may: a base, and so
	// many times the file.
	elementCost = 64
	structCost  = 1024
	chunkDepth  = 3
	footerBase  = 16 << 20
	footerRatio = 8

	// How deep columns may lie, and how many there may be.
	maxDepth   = 64
	maxColumns = 1 << 15
)

// checkFooter checks the end of a file before parquet-go reads it:
//
//	"PAR1" ... footer, footer length uint32, "PAR1"
func checkFooter(r io.ReaderAt, size int64) error {
	const tail = 8
	var end [tail]byte
	if size < tail+4 {
		return errors.New("no Parquet file: too short")
	}
	if _, err := r.ReadAt(end[:], size-tail); err != nil {
		return fmt.Errorf("read the footer: %w", err)
	}
	if string(end[4:]) != "PAR1" {
		return errors.New("no Parquet file, or one that is truncated: it does not end with PAR1")
	}
	n := int64(binary.LittleEndian.Uint32(end[:]))
	if n > size-tail-4 || n > maxFooter {
		return fmt.Errorf("damaged: a footer of %d bytes in a file of %d (at most %d are read)", n, size, maxFooter)
	}
	footer := make([]byte, n)
	if _, err := r.ReadAt(footer, size-tail-n); err != nil {
		return fmt.Errorf("read the footer: %w", err)
	}
	w := walker{b: footer}
	schema := shape{open: []int64{1}}
	w.fields(0, fields{list: func(id int64) func(id, value int64) {
		if id != footerSchema {
			return nil
		}
		return schema.field
	}, element: func(id int64) {
		if id == footerSchema {
			schema.close()
		}
	}})
	err := w.err
	switch {
	case err != nil:
	case schema.err != nil:
		err = schema.err
	case w.memory > footerBase+footerRatio*size:
		err = fmt.Errorf("damaged: its lists take %d bytes of memory, more than 16 MiB + 8 x the file's size", w.memory)
	default:
		return nil
	}
	return fmt.Errorf("footer: %w", err)
}

// shape checks the tree of columns, which the footer holds as a list in depth-first order:
// parquet-go takes memory for each column times its depth.
type shape struct {
	columns  int
	children int64   // of the element being read
	open     []int64 // children that each group above still waits for
	err      error
}

// field is given the fields of a schema element.
func (s *shape) field(id, value int64) {
	if id == schemaChildren {
		s.children = value
	}
}

// close ends a schema element.
func (s *shape) close() {
	n := s.children
	s.children = 0
	s.columns++
	switch {
	case s.err != nil:
		return
	case len(s.open) == 0:
		s.err = errors.New("damaged: a column that belongs to no group")
	case n < 0 || n > maxColumns || s.columns > maxColumns:
		s.err = fmt.Errorf("%d columns in a group, or more than %d in all", n, maxColumns)
	case n > 0:
		s.open[len(s.open)-1]--
		if s.open = append(s.open, n); len(s.open) > maxDepth {
			s.err = fmt.Errorf("columns nested more than %d deep", maxDepth)
		}
		return
	default:
		s.open[len(s.open)-1]--
	}
	for len(s.open) > 0 && s.open[len(s.open)-1] == 0 {
		s.open = s.open[:len(s.open)-1]
	}
}

// pageAt reads a page header, most of which are small; with statistics of long values they are not.
func pageAt(r io.ReaderAt, buf []byte, at, end int64) (p pageHeader, err error) {
	for n := int64(cap(buf)); ; n *= 8 {
		n = min(n, end-at, maxPageHeader)
		if int64(cap(buf)) < n {
			buf = make([]byte, n)
		}
		buf = buf[:n]
		if _, err := r.ReadAt(buf, at); err != nil {
			return p, err
		}
		if p, err = readPageHeader(buf); err == nil || n == end-at || n == maxPageHeader {
			return p, err
		}
	}
}
