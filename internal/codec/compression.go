package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

type compression uint8

const (
	plain compression = iota
	zstandard
	gzipped
)

// maxWindow is the largest zstd window accepted; the zstd tool's own limit for decompression. A
// decoder allocates the window a frame declares at once.
const maxWindow = 128 << 20

// compressionOf decides by the first bytes, or by the extension: a file named .zst that does not
// begin like one is to fail as a broken .zst.
func compressionOf(name string, r io.Reader) (compression, error) {
	var magic [4]byte
	n, err := io.ReadFull(r, magic[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return plain, err
	}
	name = strings.ToLower(name)
	switch {
	case bytes.Equal(magic[:n], []byte{0x28, 0xb5, 0x2f, 0xfd}), strings.HasSuffix(name, ".zst"), strings.HasSuffix(name, ".zstd"):
		return zstandard, nil
	case bytes.HasPrefix(magic[:n], []byte{0x1f, 0x8b, 8}), strings.HasSuffix(name, ".gz"):
		return gzipped, nil
	}
	return plain, nil
}

// reader decompresses r without starting goroutines, within what the input may make us hold and
// pass.
func (c compression) reader(r io.Reader, mem *allowance) (io.ReadCloser, error) {
	if c == gzipped {
		gz, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", noEOF(err))
		}
		return &named{ReadCloser: gz, kind: "gzip", mem: mem}, nil
	}
	zs, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(uint64(min(mem.limit, maxWindow))))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", noEOF(err))
	}
	return &named{ReadCloser: zs.IOReadCloser(), kind: "zstd", mem: mem}, nil
}

// named says which decompressor an error comes from, and ends one that gives out too much.
type named struct {
	io.ReadCloser
	kind string
	mem  *allowance
	out  int64 // bytes given out

	failed bool // Read told an error
}

func (d *named) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	d.out += int64(n)
	if spent := d.mem.passes(d.out); spent != nil {
		return n, spent
	}
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	d.failed = true
	switch {
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return n, errors.New("zstd: the window is too large for a file of this size: compress it again without --long or --ultra")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n, fmt.Errorf("%s: truncated: the compressed data ends too early", d.kind)
	}
	return n, fmt.Errorf("%s: %w", d.kind, err)
}

// Close implements io.Closer. A decompressor repeats its error, of which Read told already.
func (d *named) Close() error {
	err := d.ReadCloser.Close()
	if d.failed {
		return nil
	}
	return err
}

// noEOF keeps the end of a broken stream from being taken for a regular end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
