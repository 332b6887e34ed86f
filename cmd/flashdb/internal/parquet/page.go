package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// page is a data page whose values are decoded one at a time: the levels and the values are readers
// over its bytes.
type page struct {
	left   int64 // values not yet read, nulls included
	reps   *runs // nil where the level is always 0
	defs   *runs // nil where no value is null
	values source
}

// readPage reads the page at an offset of the file, of which end is the end of its chunk. It
// returns the data page, or nil after a dictionary, and where the next one begins.
func (c *cursor) readPage(at, end int64) (*page, int64, error) {
	h, err := pageAt(c.file.at, c.head, at, end)
	if err != nil {
		return nil, 0, err
	}
	if err := h.possible(); err != nil {
		return nil, 0, err
	}
	room := end - at - int64(h.header)
	switch {
	case h.compressed > room:
		return nil, 0, fmt.Errorf("damaged: %d bytes where %d are left", h.compressed, room)
	case h.uncompressed > pageBase+pageRatio*h.compressed:
		return nil, 0, fmt.Errorf("%d bytes expand to %d, %d values: refused as a decompression bomb", h.compressed, h.uncompressed, h.values)
	}
	if err := c.file.spend(max(h.uncompressed, 4*h.values)); err != nil {
		return nil, 0, err
	}
	body := make([]byte, h.compressed)
	if _, err := c.file.at.ReadAt(body, at+int64(h.header)); err != nil {
		return nil, 0, fmt.Errorf("read: %w", err)
	}
	if sum := crc32.ChecksumIEEE(body); h.hasCRC && sum != h.crc {
		return nil, 0, fmt.Errorf("damaged: the checksum is %08x, the header says %08x", sum, h.crc)
	}
	next := at + int64(h.header) + h.compressed
	switch h.typ {
	case pageDictionary:
		return nil, next, c.readDictionary(h, body)
	case pageData, pageDataV2:
		p, err := c.dataPage(h, body)
		return p, next, err
	case pageIndex:
		return nil, next, nil
	}
	return nil, 0, fmt.Errorf("damaged: a page of type %d", h.typ)
}

// dataPage takes a data page apart:
//
//	version 1  compressed: levels, each with its length before it, and values
//	version 2  levels, and compressed: values
func (c *cursor) dataPage(h pageHeader, body []byte) (*page, error) {
	p := &page{left: h.values}
	var err error
	if h.typ == pageData {
		if body, err = c.decompress(body, h.uncompressed, true); err != nil {
			return nil, err
		}
		if p.reps, body, err = levelsV1(body, c.leaf.MaxRepetitionLevel(), h.repEncoding); err == nil {
			p.defs, body, err = levelsV1(body, c.leaf.MaxDefinitionLevel(), h.defEncoding)
		}
	} else {
		levels := h.repBytes + h.defBytes
		if levels > int64(len(body)) || levels > h.uncompressed {
			return nil, errors.New("damaged: levels longer than the page")
		}
		p.reps = newLevels(body[:h.repBytes], c.leaf.MaxRepetitionLevel())
		p.defs = newLevels(body[h.repBytes:levels], c.leaf.MaxDefinitionLevel())
		body, err = c.decompress(body[levels:], h.uncompressed-levels, h.isCompressed)
	}
	if err == nil {
		p.values, err = c.source(h.encoding, body, h.values)
	}
	return p, err
}

// levelsV1 reads the length of levels and returns them and what follows. Those of a level that is
// always 0 are not stored.
func levelsV1(body []byte, most int, enc format.Encoding) (*runs, []byte, error) {
	if most == 0 {
		return nil, body, nil
	}
	if enc != format.RLE {
		return nil, nil, fmt.Errorf("levels encoded as %s are not supported", enc)
	}
	if len(body) < 4 {
		return nil, nil, errEnds
	}
	n := int64(le.Uint32(body))
	if n > int64(len(body))-4 {
		return nil, nil, errEnds
	}
	return newLevels(body[4:4+n], most), body[4+n:], nil
}

func newLevels(b []byte, most int) *runs {
	if most == 0 {
		return nil
	}
	return &runs{b: b, width: bits.Len(uint(most))}
}

// level reads the next of levels that are at most so high.
func level(r *runs, most int) (int, error) {
	if r == nil {
		return 0, nil
	}
	v, err := r.next()
	if err == nil && int(v) > most {
		err = fmt.Errorf("damaged: level %d, of at most %d", v, most)
	}
	return int(v), err
}

// decompress returns the n bytes that a page declares, no more and no fewer. Memory for them has
// been allowed.
func (c *cursor) decompress(src []byte, n int64, compressed bool) ([]byte, error) {
	codec := c.codec
	if !compressed || (len(src) == 0 && n == 0) {
		codec = format.Uncompressed
	}
	var r io.Reader
	var err error
	switch codec {
	case format.Uncompressed:
		if int64(len(src)) != n {
			return nil, errDeclared
		}
		return src, nil
	case format.Snappy:
		if have, err := snappy.DecodedLen(src); err != nil || int64(have) != n {
			return nil, errDeclared
		}
		return snappy.Decode(make([]byte, n), src)
	case format.Lz4Raw:
		dst := make([]byte, n)
		if have, err := lz4.UncompressBlock(src, dst); err != nil || int64(have) != n {
			return nil, errDeclared
		}
		return dst, nil
	case format.Gzip:
		r, err = gzip.NewReader(bytes.NewReader(src))
	case format.Brotli:
		r = brotli.NewReader(bytes.NewReader(src))
	case format.Zstd:
		if c.zstd == nil {
			c.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(uint64(min(pageBase+pageRatio*c.file.size, maxWindow))))
		}
		if err == nil {
			err = c.zstd.Reset(bytes.NewReader(src))
		}
		r = c.zstd
	default:
		return nil, fmt.Errorf("compression %s is not supported: use snappy, gzip, zstd, brotli or lz4_raw", codec)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", codec, err)
	}
	dst := make([]byte, n)
	_, err = io.ReadFull(r, dst)
	switch {
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return nil, errWindow
	case err != nil:
		return nil, fmt.Errorf("%s: %w", codec, err)
	}
	if more, err := io.ReadFull(r, make([]byte, 1)); more > 0 || !errors.Is(err, io.EOF) {
		return nil, errDeclared
	}
	return dst, nil
}

// maxWindow is the largest window of a zstd frame accepted, of a large file. The decoder takes the
// memory of a window at once.
const maxWindow = 128 << 20

var errWindow = errors.New("zstd: the window is too large for a file of this size: write it again without a long window")

var errDeclared = errors.New("damaged: the page does not expand to what its header declares")
