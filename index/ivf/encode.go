package ivf

import (
	"context"
	"runtime"
	"sync"

	"github.com/flashdb/flashdb/index/pq"
	"github.com/flashdb/flashdb/internal/format"
)

const (
	encodeBytes = 4 << 20 // of rows that are encoded at a time
	encodeRows  = 8192
)

// piece is a part of a list that is encoded at a time. It is whole blocks of codes, except at the
// end of the list.
type piece struct {
	list       int
	begin, end int // positions
}

// chunk is a run of pieces, so a run of positions and a run of the codes section.
type chunk struct {
	pieces []piece
	rows   []float32 // row-major
	raw    []byte    // the rows as they are in the file
	codes  []byte    // as stored
	err    error
}

// writeCodes encodes the rows in list order. The workers encode one chunk each, then the chunks are
// written and summed up in order, so that the file does not depend on how many workers there are.
func (w *writer) writeCodes(ctx context.Context) error {
	codes := w.section(kindCodes)
	rows := w.section(kindRows)
	at := codes.offset
	total := int64(len(w.layout.ids))
	done := int64(0)
	next := w.pieces()
	chunks := make([]chunk, w.opt.Workers)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := 0
		for n < len(chunks) && next(&chunks[n]) {
			n++
		}
		if n == 0 {
			return nil
		}
		var wg sync.WaitGroup
		for i := range chunks[:n] {
			wg.Go(func() { chunks[i].err = w.encode(&chunks[i]) })
		}
		wg.Wait()
		for i := range chunks[:n] {
			c := &chunks[i]
			if c.err != nil {
				return c.err
			}
			if _, err := w.f.WriteAt(c.codes, at); err != nil {
				return err
			}
			at += int64(len(c.codes))
			codes.crc = format.CRCUpdate(codes.crc, c.codes)
			if rows != nil {
				rows.crc = format.CRCUpdate(rows.crc, c.raw)
			}
			done += int64(len(c.rows) / w.opt.Dim)
		}
		w.opt.Progress(StageEncode, done, total)
	}
}

// pieces returns a function that fills a chunk with the next pieces, and reports whether there were
// any.
func (w *writer) pieces() func(*chunk) bool {
	begin := w.layout.begin
	size := max(1, w.encodeSize()/pq.BlockCodes) * pq.BlockCodes
	list, at := 0, 0
	return func(c *chunk) bool {
		c.pieces = c.pieces[:0]
		for room := size; room > 0 && list < w.layout.lists(); {
			p := piece{list: list, begin: at, end: int(begin[list+1])}
			if p.end-p.begin > room {
				p.end = p.begin + room/pq.BlockCodes*pq.BlockCodes
				if p.end == p.begin {
					break // no whole block fits
				}
			} else {
				list++
			}
			at = p.end
			room -= p.end - p.begin
			c.pieces = append(c.pieces, p)
		}
		return len(c.pieces) > 0
	}
}

// encode reads the rows of a chunk and encodes their residuals.
func (w *writer) encode(c *chunk) error {
	d, size := w.opt.Dim, w.shape.CodeBytes()
	first, end := c.pieces[0].begin, c.pieces[len(c.pieces)-1].end
	c.raw = resize(c.raw, 4*d*(end-first))
	if n, err := w.rowsFile.ReadAt(c.raw, w.rowsAt+4*int64(d)*int64(first)); n < len(c.raw) {
		return err
	}
	c.rows = append(c.rows[:0], format.Float32s(c.raw)...)
	c.codes = c.codes[:0]
	var plain []byte
	for i, p := range c.pieces {
		if i%64 == 0 {
			runtime.Gosched() // for queries beside the build
		}
		plain = resize(plain, size*(p.end-p.begin))
		for i := range p.end - p.begin {
			row := c.rows[(p.begin-first+i)*d : (p.begin-first+i+1)*d]
			w.layout.residual(row, p.list)
			w.quantizer.Encode(plain[i*size:(i+1)*size], row)
		}
		if w.shape.Bits == 8 {
			c.codes = append(c.codes, plain...)
			continue
		}
		n := len(c.codes)
		c.codes = append(c.codes, make([]byte, w.shape.ListBytes(p.end-p.begin))...)
		pq.Pack(c.codes[n:], plain, size)
	}
	return nil
}

// resize returns a slice of n elements, s itself when it is large enough; the contents are
// unspecified.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
