package snapshot

import (
	"io/fs"

	"github.com/flashdb/flashdb/internal/format"
)

const (
	magic   = "flashsnp"
	version = 1

	headerSize = 32
	entrySize  = 14 // without the name
	crcSize    = 4
	maxName    = 1024
)

// Names of the parts of a list in errors.
const (
	sectionHeader = "header"
	sectionEntry  = "entry"
)

// Names in the directory of a snapshot. The bbolt file is not called as in a database, so that no
// program takes part of a snapshot for one.
const (
	Name  = "snapshot.files" // the list
	Store = "snapshot.db"    // the bbolt file
)

// A List names the files of a snapshot.
type List struct {
	LSN   uint64 // of the last change in them
	Files []File // ascending by name
}

// A File is one of them.
type File struct {
	Name string // relative to the directory, with slashes
	Size uint64
	CRC  uint32 // CRC32C of its bytes
}

// Bytes returns the sum of the sizes.
func (l *List) Bytes() (sum uint64) {
	for _, f := range l.Files {
		sum += f.Size
	}
	return sum
}

// Marshal returns the bytes of a list.
func Marshal(l *List) []byte {
	w := format.NewWriter(nil)
	w.Bytes([]byte(magic))
	w.Uint32(version)
	w.Uint32(uint32(len(l.Files)))
	w.Uint64(l.Bytes())
	w.Uint64(l.LSN)
	for _, f := range l.Files {
		w.Uint16(uint16(len(f.Name)))
		w.Bytes([]byte(f.Name))
		w.Uint64(f.Size)
		w.Uint32(f.CRC)
	}
	w.CRC(0)
	return w.Data()
}

// Unmarshal reads what Marshal wrote. Errors call it file.
func Unmarshal(file string, b []byte) (*List, error) {
	r := format.NewReader(file, sectionHeader, 0, b)
	if string(r.Bytes(len(magic))) != magic {
		return nil, format.Corrupt(file, sectionHeader, 0, "it does not begin with %q", magic)
	}
	if v := r.Uint32(); r.Err() == nil {
		if err := format.CheckVersion(file, v, version); err != nil {
			return nil, err
		}
	}
	count, sum := r.Uint32(), r.Uint64()
	l := &List{LSN: r.Uint64()}
	if r.Err() == nil && (len(b) < headerSize+crcSize || format.CRC(b[:len(b)-crcSize]) != trailer(file, b)) {
		return nil, format.Corrupt(file, "trailer", int64(len(b)-crcSize), "the checksum is wrong")
	}
	r.Section(sectionEntry)
	if int64(count) > int64(r.Len()/entrySize) {
		r.Fail("%d entries in %d bytes", count, r.Len())
	}
	last := ""
	for range count {
		f := File{Name: string(r.Bytes(int(r.Uint16()))), Size: r.Uint64(), CRC: r.Uint32()}
		if r.Err() != nil {
			return nil, r.Err()
		}
		if !fs.ValidPath(f.Name) || len(f.Name) > maxName || f.Name <= last {
			r.Fail("%q is no name of a file, or not in its place", f.Name)
			return nil, r.Err()
		}
		last = f.Name
		l.Files = append(l.Files, f)
	}
	r.Bytes(crcSize)
	if err := r.End(); err != nil {
		return nil, err
	}
	if l.Bytes() != sum {
		return nil, format.Corrupt(file, sectionHeader, 16, "the entries have %d bytes, want %d", l.Bytes(), sum)
	}
	return l, nil
}

// trailer returns the checksum at the end.
func trailer(file string, b []byte) uint32 {
	return format.NewReader(file, "trailer", int64(len(b)-crcSize), b[len(b)-crcSize:]).Uint32()
}
