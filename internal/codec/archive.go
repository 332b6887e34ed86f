package codec

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"strings"
)

// archive is a zip file: the container of .npz and of PyTorch files.
type archive struct {
	in      *blob
	names   []string // in the order of the directory, folders left out
	entries map[string]*blob
}

// openArchive reads the directory of in, holding in first: a zip is read from its end.
func openArchive(in *blob) (*archive, error) {
	if err := in.hold(); err != nil {
		return nil, err
	}
	meter := &metered{at: in.at, mem: &in.mem.parts, cost: directoryCost}
	directory, err := zip.NewReader(meter, in.size)
	if meter.err != nil {
		return nil, in.fault(0, "zip archive: %w", meter.err)
	}
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are never used as paths
		return nil, in.fault(0, "zip archive, truncated or damaged: %w", err)
	}
	meter.cost = 0
	stored := int64(0) // sizes of entries; those that overlap are more than the file
	a := &archive{in: in, entries: make(map[string]*blob, len(directory.File))}
	for _, f := range directory.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		if a.entries[f.Name] != nil {
			return nil, in.fault(0, "zip archive: entry %s is there twice", quote(f.Name))
		}
		entry, err := a.entry(f)
		if err != nil {
			return nil, in.fault(0, "zip archive: entry %s: %w", quote(f.Name), err)
		}
		if stored += int64(f.CompressedSize64); stored > in.size {
			return nil, in.fault(0, "zip archive: entry %s: the entries overlap, or reach past the end of the file", quote(f.Name))
		}
		a.names = append(a.names, f.Name)
		a.entries[f.Name] = entry
	}
	return a, nil
}

// directoryCost is what a byte of a zip directory may take in memory.
const directoryCost = 24

// metered charges cost bytes of the allowance for each byte read.
type metered struct {
	at   io.ReaderAt
	mem  *bound
	cost int64
	err  error // that the allowance is spent
}

func (m *metered) ReadAt(p []byte, off int64) (int, error) {
	n, err := m.at.ReadAt(p, off)
	if m.err = cmp.Or(m.err, m.mem.spend(m.cost*int64(n))); m.err != nil {
		return n, m.err
	}
	return n, err
}

func (a *archive) entry(f *zip.File) (*blob, error) {
	b := &blob{file: a.in.file, section: "entry " + quote(f.Name), mem: a.in.mem}
	if f.UncompressedSize64 > maxOffset || f.CompressedSize64 > maxOffset {
		return nil, errors.New("impossible size")
	}
	b.size = int64(f.UncompressedSize64)
	switch {
	case f.Flags&1 != 0:
		return nil, errors.New("encrypted")
	case f.Method == zip.Deflate:
		if err := b.mem.passes(b.size); err != nil {
			return nil, err
		}
		b.stream = func() (io.ReadCloser, error) { return f.Open() } // gives out what is declared, or fails
		b.fetch = b.load
		return b, nil
	case f.Method != zip.Store:
		return nil, fmt.Errorf("compression method %d is not supported: store or deflate it", f.Method)
	case f.CompressedSize64 != f.UncompressedSize64:
		return nil, errors.New("stored, but its two sizes differ")
	}
	start, err := f.DataOffset()
	if err != nil {
		return nil, err
	}
	if start < 0 || b.size > a.in.size-start {
		return nil, errors.New("truncated: it reaches past the end of the file")
	}
	section := io.NewSectionReader(a.in.at, start, b.size)
	b.stream = func() (io.ReadCloser, error) {
		return io.NopCloser(&checked{r: io.NewSectionReader(section, 0, b.size), sum: crc32.NewIEEE(), want: f.CRC32}), nil
	}
	b.fetch = func() (io.ReaderAt, int64, error) {
		verified, err := b.stream()
		if err == nil {
			_, err = io.Copy(io.Discard, verified)
		}
		return section, b.size, err
	}
	return b, nil
}

// checked verifies the checksum of a stored entry at its end. PyTorch can be told to leave
// checksums out; it then writes 0.
type checked struct {
	r    io.Reader
	sum  hash.Hash32
	want uint32
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.sum.Write(p[:n])
	if errors.Is(err, io.EOF) && c.want != 0 && c.sum.Sum32() != c.want {
		return n, fmt.Errorf("the checksum is %08x, the archive says %08x", c.sum.Sum32(), c.want)
	}
	return n, err
}

// listArchive tells the two kinds apart by their content.
func listArchive(in *blob) ([]*view, error) {
	a, err := openArchive(in)
	if err != nil {
		return nil, err
	}
	for _, name := range a.names {
		if prefix, ok := strings.CutSuffix(name, "data.pkl"); ok && (prefix == "" || strings.IndexByte(prefix, '/') == len(prefix)-1) {
			return listTorch(a, prefix)
		}
	}
	return listNPZ(a)
}

// listNPZ views every .npy entry; other entries hold no tensors.
func listNPZ(a *archive) ([]*view, error) {
	var views []*view
	for _, entry := range a.names {
		name, ok := strings.CutSuffix(entry, ".npy")
		if !ok {
			continue
		}
		v, err := viewNPY(a.entries[entry], name)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}
