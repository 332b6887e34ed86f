package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// growStep is how much memory is trusted to a declared length before the bytes themselves have been
// seen.
const growStep = 64 << 10

// blob is a run of bytes as they are after decompression: an input file, or one entry of a zip
// archive. Blobs of one input share its allowance.
type blob struct {
	file    string
	section string // "" for the whole file
	as      string // the format as an extension, where the name of the file does not say it
	mem     *allowance

	at   io.ReaderAt // nil until hold, where the bytes are compressed or not yet verified
	size int64       // -1 while only reading to the end can tell

	stream func() (io.ReadCloser, error)      // a fresh pass from the first byte
	fetch  func() (io.ReaderAt, int64, error) // random access to verified bytes
	close  func() error                       // releases the file; nil for entries and memory
}

// fault reports a defect at a byte offset of the blob.
func (b *blob) fault(offset int64, format string, args ...any) error {
	return &Error{File: b.file, Section: b.section, Offset: offset, Cause: fmt.Errorf(format, args...)}
}

// hold makes at and size usable, loading or verifying the bytes the first time.
func (b *blob) hold() error {
	if b.at != nil {
		return nil
	}
	at, size, err := b.fetch()
	if err != nil {
		return b.located(err, 0)
	}
	b.at, b.size = at, size
	return nil
}

// pass returns a reader over the blob for reads at ascending offsets: random access where it is
// there already, else a fresh decompressing pass.
func (b *blob) pass() (io.ReaderAt, func() error, error) {
	if b.at != nil {
		return b.at, func() error { return nil }, nil
	}
	r, err := b.stream()
	if err != nil {
		return nil, nil, b.located(err, 0)
	}
	return &forward{r: r}, r.Close, nil
}

// located gives err a place in the blob unless it has one.
func (b *blob) located(err error, offset int64) error {
	var located *Error
	if errors.As(err, &located) {
		return err
	}
	return b.fault(offset, "%w", err)
}

// readFull fills p from at, naming what it reads when the bytes end too early.
func (b *blob) readFull(at io.ReaderAt, p []byte, offset int64, what string) error {
	n, err := at.ReadAt(p, offset)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return b.fault(offset+int64(n), "truncated: %s needs %d bytes at byte %d, %d are there", what, len(p), offset, n)
	default:
		return b.fault(offset+int64(n), "read %s: %w", what, err)
	}
}

// readHeader reads n bytes whose number the file declares. The buffer grows as bytes arrive, so a
// false n costs no memory.
func (b *blob) readHeader(at io.ReaderAt, offset, n int64, what string) ([]byte, error) {
	if b.size >= 0 && n > b.size-offset {
		return nil, b.fault(offset, "truncated: %s needs %d bytes, %d are left", what, n, max(b.size-offset, 0))
	}
	if err := b.mem.spend(n); err != nil {
		return nil, b.fault(offset, "%s of %d bytes: %w", what, n, err)
	}
	var p []byte
	for int64(len(p)) < n {
		step := min(n-int64(len(p)), int64(max(len(p), growStep)))
		have := len(p)
		p = append(p, make([]byte, step)...)
		if err := b.readFull(at, p[have:], offset+int64(have), what); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// load reads a compressed blob into memory, within the allowance.
func (b *blob) load() (io.ReaderAt, int64, error) {
	r, err := b.stream()
	if err != nil {
		return nil, 0, err
	}
	defer r.Close() //nolint:errcheck // nothing was written
	p := make([]byte, 0, growStep)
	for {
		if len(p) == cap(p) {
			p = append(make([]byte, 0, 2*cap(p)), p...)
		}
		n, err := r.Read(p[len(p):cap(p)])
		p = p[:len(p)+n]
		if spent := b.mem.spend(int64(n)); spent != nil {
			return nil, 0, b.fault(int64(len(p)), "%w", spent)
		}
		if errors.Is(err, io.EOF) {
			return bytes.NewReader(p), int64(len(p)), nil
		}
		if err != nil {
			return nil, 0, b.fault(int64(len(p)), "%w", err)
		}
	}
}

// forward serves reads at ascending offsets from a stream.
type forward struct {
	r   io.Reader
	pos int64
}

func (f *forward) ReadAt(p []byte, off int64) (int, error) {
	if off < f.pos {
		return 0, fmt.Errorf("codec: read at %d of a stream that is at %d", off, f.pos)
	}
	skipped, err := io.CopyN(io.Discard, f.r, off-f.pos)
	f.pos += skipped
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(f.r, p)
	f.pos += int64(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// notRegular says what a path leads to that is not a regular file.
func notRegular(info fs.FileInfo) error {
	if info.IsDir() {
		return errors.New("is a directory: name a file")
	}
	return errors.New("not a regular file")
}

// OpenRegular opens a regular file to read and returns its size. Anything else is an error without
// opening it: to open a pipe waits for its writer.
func OpenRegular(path string) (f *os.File, size int64, err error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: notRegular(info)}
	}
	if err != nil {
		return nil, 0, err
	}
	if f, err = os.Open(path); err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// ReadSmall reads a regular file of at most so many bytes whole.
func ReadSmall(path string, most int64) ([]byte, error) {
	f, size, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if size > most {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%d bytes, at most %d are read", size, most)}
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// openInput opens a regular file. The caller calls close.
func openInput(path string) (*blob, error) {
	f, size, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	in, err := newInput(path, f, size)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	in.close = f.Close
	return in, nil
}

// newInput wraps size bytes of at, recognising their compression.
func newInput(name string, at io.ReaderAt, size int64) (*blob, error) {
	in := &blob{file: name, mem: allow(size), size: size}
	raw := func() *io.SectionReader { return io.NewSectionReader(at, 0, size) }
	kind, err := compressionOf(name, raw())
	if err != nil {
		return nil, in.fault(0, "read: %w", err)
	}
	if kind == plain {
		in.at = at
		in.stream = func() (io.ReadCloser, error) { return io.NopCloser(raw()), nil }
		return in, nil
	}
	in.size = -1
	in.stream = func() (io.ReadCloser, error) { return kind.reader(raw(), in.mem) }
	in.fetch = in.load
	return in, nil
}

// rename gives the input another name in messages, and a format that its name does not say; empty
// ones change nothing.
func (b *blob) rename(name, format string) {
	if name != "" {
		b.file = name
	}
	if format != "" {
		b.as = "." + strings.ToLower(format)
	}
}

// format is the extension of the input in lower case without that of its compression: ".npy" for
// "x.NPY.zst".
func (b *blob) format() string {
	if b.as != "" {
		return b.as
	}
	name := strings.ToLower(b.file)
	for _, suffix := range []string{".zst", ".zstd", ".gz"} {
		if stem, ok := strings.CutSuffix(name, suffix); ok {
			name = stem
			break
		}
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || strings.ContainsAny(name[dot:], `/\`) {
		return ""
	}
	return name[dot:]
}

// first returns up to n bytes from the start of the blob.
func (b *blob) first(n int) ([]byte, error) {
	at, done, err := b.pass()
	if err != nil {
		return nil, err
	}
	defer done() //nolint:errcheck // nothing was written
	p := make([]byte, n)
	n, err = at.ReadAt(p, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, b.fault(int64(n), "%w", err)
	}
	return p[:n], nil
}

// OpenStream opens a regular file as a stream of what it holds, decompressed if it is a .zst or .gz
// of something.
func OpenStream(path string) (io.ReadCloser, error) {
	in, err := openInput(path)
	if err != nil {
		return nil, err
	}
	stream, err := in.stream()
	if err != nil {
		return nil, errors.Join(in.located(err, 0), in.close())
	}
	return &fileStream{stream, in}, nil
}

// fileStream closes the file with the stream.
type fileStream struct {
	io.ReadCloser
	in *blob
}

func (s *fileStream) Close() error { return errors.Join(s.ReadCloser.Close(), s.in.close()) }
