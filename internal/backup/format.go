package backup

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/flashdb/flashdb/internal/format"
)

const (
	magic   = "flashbak"
	version = 1

	headerSize  = 36
	entrySize   = 12 // before the name
	crcSize     = 4
	chunkBytes  = 256 << 10
	trailerSize = 20

	maxName = 1024
)

// Names of the parts of a stream in errors.
const (
	sectionFrame   = "compressed stream"
	sectionHeader  = "header"
	sectionEntry   = "entry"
	sectionChunk   = "chunk"
	sectionTrailer = "trailer"
)

// Kind says what an entry is.
type Kind uint8

// The kinds of entry. Their numbers are the format's.
const (
	kindEnd    Kind = iota
	Store           // the bbolt file
	Segment         // a segment of the log
	Generation      // the file of an index generation
)

// Header is what a stream says about itself before anything else.
type Header struct {
	Entries uint32
	Bytes   uint64 // sum of the entries' sizes
	LSN     uint64 // of the last change in them
}

// Entry is one file of a stream.
type Entry struct {
	Kind Kind
	Name string // relative, with slashes
	Size uint64
}

func appendHeader(dst []byte, h Header) []byte {
	w := format.NewWriter(dst)
	start := w.Len()
	w.Bytes([]byte(magic))
	w.Uint32(version)
	w.Uint32(h.Entries)
	w.Uint64(h.Bytes)
	w.Uint64(h.LSN)
	w.CRC(start)
	return w.Data()
}

func appendEntry(dst []byte, e Entry) []byte {
	w := format.NewWriter(dst)
	start := w.Len()
	w.Uint8(uint8(e.Kind))
	w.Uint8(0)
	w.Uint16(uint16(len(e.Name)))
	w.Uint64(e.Size)
	w.Bytes([]byte(e.Name))
	w.CRC(start)
	return w.Data()
}

// appendTrailer appends the trailer of a stream of which crc covers everything before.
func appendTrailer(dst []byte, h Header, crc uint32) []byte {
	w := format.NewWriter(dst)
	start := w.Len()
	w.Uint32(0)
	w.Uint32(h.Entries)
	w.Uint64(h.Bytes)
	w.Uint32(format.CRCUpdate(crc, w.Data()[start:]))
	return w.Data()
}

// parseHeader reads a header. The version is judged before the checksum: a newer header may be
// longer.
func parseHeader(file string, b []byte) (h Header, err error) {
	r := format.NewReader(file, sectionHeader, 0, b)
	if got := string(r.Bytes(len(magic))); got != magic {
		return h, format.Corrupt(file, sectionHeader, 0, "not a flashdb backup: it begins with %q, want %q", got, magic)
	}
	if err := format.CheckVersion(named(file), r.Uint32(), version); err != nil {
		return h, err
	}
	h = Header{Entries: r.Uint32(), Bytes: r.Uint64(), LSN: r.Uint64()}
	if sum, stored := format.CRC(b[:headerSize-crcSize]), r.Uint32(); sum != stored {
		return h, format.Corrupt(file, sectionHeader, headerSize-crcSize, "checksum is %08x, stored is %08x", sum, stored)
	}
	return h, r.End()
}

func named(file string) string {
	if file == "" {
		return "backup stream"
	}
	return file
}

// checkName accepts relative names that lead to a place below the directory they are resolved in,
// on every system.
func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("a name of %d bytes, at most %d are allowed", len(name), maxName)
	}
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\:\x00") || !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("name %q is not a relative path inside the database", name)
	}
	return nil
}
