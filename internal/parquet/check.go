package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

const (
	maxFooter     = 64 << 20
	maxPageHeader = 1 << 20

	// What a page may expand to: a base, and so many times its compressed bytes.
	pageBase   = 16 << 20
	valuesBase = 1 << 20
	pageRatio  = 1024
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
	w.structure(0, nil, nil)
	if w.err != nil {
		return fmt.Errorf("footer: %w", w.err)
	}
	return nil
}

// checkPages checks the header of every page of a column in a row group.
func checkPages(r io.ReaderAt, size int64, f *parquet.File, group, column int) error {
	groups := f.Metadata().RowGroups
	if group >= len(groups) || column >= len(groups[group].Columns) {
		return errors.New("damaged: a row group without all its columns")
	}
	m := &groups[group].Columns[column].MetaData
	if groups[group].Columns[column].FilePath != "" {
		return errors.New("its data is in another file, which is not supported")
	}
	start := m.DataPageOffset
	if m.DictionaryPageOffset > 0 && m.DictionaryPageOffset < start {
		start = m.DictionaryPageOffset
	}
	if start < 4 || m.TotalCompressedSize < 0 || start > size || m.TotalCompressedSize > size-start {
		return fmt.Errorf("damaged: pages at bytes %d to %d of a file of %d", start, start+m.TotalCompressedSize, size)
	}
	buf := make([]byte, 0, 512)
	for at, end := start, start+m.TotalCompressedSize; at < end; {
		p, err := pageAt(r, buf, at, end)
		if err != nil {
			return fmt.Errorf("page at byte %d: %w", at, err)
		}
		room := end - at - int64(p.header)
		if p.compressed < 0 || p.compressed > room {
			return fmt.Errorf("page at byte %d: damaged: %d bytes where %d are left", at, p.compressed, room)
		}
		if p.uncompressed < 0 || p.uncompressed > pageBase+pageRatio*p.compressed || p.values < 0 || p.values > valuesBase+pageRatio*p.compressed {
			return fmt.Errorf("page at byte %d: %d bytes expand to %d, %d values: refused as a decompression bomb", at, p.compressed, p.uncompressed, p.values)
		}
		at += int64(p.header) + p.compressed
	}
	return nil
}

// pageAt reads a page header, most of which are small; with statistics of long values they are not.
func pageAt(r io.ReaderAt, buf []byte, at, end int64) (p pageSizes, err error) {
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
