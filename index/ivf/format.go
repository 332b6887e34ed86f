package ivf

import (
	"fmt"
	"math"

	"github.com/flashdb/flashdb/index/pq"
	"github.com/flashdb/flashdb/internal/format"
)

const (
	magic       = "flashivf"
	version     = 1
	headerBytes = 96
	crcOffset   = headerBytes - 4
	entryBytes  = 32
	alignment   = 64

	flagRequired = 1
)

// kind is what a section holds.
type kind uint32

const (
	kindCentroids kind = 1 + iota
	kindVariances
	kindLists
	kindIDs
	kindCodebooks
	kindCodes
	kindRows
	kindReserved // unused; older programs skip it
	kindExponents
	kindKeys
	kindGroups
	kindEnd // first unknown kind
)

var kindNames = [...]string{"", "centroids", "variances", "lists", "ids", "codebooks", "codes", "rows", "", "exponents", "keys", "groups"}

func (k kind) String() string {
	if k.known() {
		return kindNames[k]
	}
	return fmt.Sprintf("section of kind %d", uint32(k))
}

// known reports whether this version reads sections of the kind.
func (k kind) known() bool { return k >= 1 && k < kindEnd && k != kindReserved }

// verifiedAtLoad reports whether Load verifies the checksum of sections of the kind: of all that
// are small.
func (k kind) verifiedAtLoad() bool {
	return k >= kindCentroids && k <= kindCodebooks || k == kindExponents || k == kindGroups
}

// required reports whether a file without a section of the kind is broken.
func (k kind) required() bool {
	return k.known() && k != kindRows && k != kindExponents && k != kindKeys && k != kindGroups
}

// flags returns the flags of sections of the kind. The exponents are required: a program that does
// not know them would misread the variances.
func (k kind) flags() uint32 {
	if k.required() || k == kindExponents {
		return flagRequired
	}
	return 0
}

// header is the fixed part of the file.
type header struct {
	sections   int
	dim, lists int
	rows       int
	bits       int
	subDim     int
	collection uint32
	buildLSN   uint64
	seed       uint64
	settings   uint64
	length     int64
}

func (h *header) shape() pq.Shape { return pq.Shape{Dim: h.dim, Bits: h.bits, SubDim: h.subDim} }

// section is an entry of the section table.
type section struct {
	kind           kind
	flags          uint32
	offset, length int64
	crc            uint32
}

func (s *section) end() int64 { return s.offset + s.length }

func align(offset int64) int64 { return (offset + alignment - 1) / alignment * alignment }

// marshalHeader returns the header and the section table.
func marshalHeader(h header, sections []section) []byte {
	w := format.NewWriter(make([]byte, 0, headerBytes+entryBytes*len(sections)))
	w.Bytes([]byte(magic))
	w.Uint32(version)
	w.Uint32(uint32(len(sections)))
	w.Uint32(uint32(h.dim))
	w.Uint32(uint32(h.lists))
	w.Uint64(uint64(h.rows))
	w.Uint16(uint16(h.bits))
	w.Uint16(uint16(h.subDim))
	w.Uint32(h.collection)
	w.Uint64(h.buildLSN)
	w.Uint64(h.seed)
	w.Uint64(h.settings)
	w.Uint64(uint64(h.length))
	w.Bytes(make([]byte, crcOffset-w.Len()))
	first := w.Data()

	table := format.NewWriter(make([]byte, 0, entryBytes*len(sections)))
	for _, s := range sections {
		table.Uint32(uint32(s.kind))
		table.Uint32(s.flags)
		table.Uint64(uint64(s.offset))
		table.Uint64(uint64(s.length))
		table.Uint32(s.crc)
		table.Uint32(0)
	}
	w.Uint32(format.CRCUpdate(format.CRC(first), table.Data()))
	w.Bytes(table.Data())
	return w.Data()
}

// parseHeader reads the header and the section table of a file. After it, every section lies inside
// data, on its alignment and after the one before it.
func parseHeader(data []byte, file string) (header, []section, error) {
	r := format.NewReader(file, "header", 0, data)
	if m := r.Bytes(len(magic)); r.Err() == nil && string(m) != magic {
		return header{}, nil, format.Corrupt(file, "header", 0, "not an index: it begins with %q, want %q", m, magic)
	}
	if v := r.Uint32(); r.Err() == nil {
		if err := format.CheckVersion(file, v, version); err != nil {
			return header{}, nil, err
		}
	}
	var h header
	h.sections = int(r.Uint32())
	h.dim, h.lists = int(r.Uint32()), int(r.Uint32())
	rows := r.Uint64()
	h.bits, h.subDim = int(r.Uint16()), int(r.Uint16())
	h.collection = r.Uint32()
	h.buildLSN, h.seed, h.settings = r.Uint64(), r.Uint64(), r.Uint64()
	h.length = int64(r.Uint64())
	r.Bytes(crcOffset - int(r.Offset()))
	crc := r.Uint32()
	r.Section("section table")
	if r.Err() == nil && h.sections > r.Len()/entryBytes {
		r.Fail("%d sections stated, room for %d", h.sections, r.Len()/entryBytes)
	}
	table := r.Bytes(h.sections * entryBytes)
	if err := r.Err(); err != nil {
		return header{}, nil, err
	}
	if got := format.CRCUpdate(format.CRC(data[:crcOffset]), table); got != crc {
		return header{}, nil, format.Corrupt(file, "header", crcOffset, "checksum is %08x, want %08x", crc, got)
	}
	// The checksum holds, so what follows guards against a hostile file rather than a damaged one.
	h.rows = int(min(rows, math.MaxUint32))
	if err := h.validate(rows); err != nil {
		return header{}, nil, format.Corrupt(file, "header", 0, "%w", err)
	}
	sections, err := parseTable(table, &h, data, file)
	return h, sections, err
}

func (h *header) validate(rows uint64) error {
	switch {
	case rows < 1 || rows > math.MaxUint32:
		return fmt.Errorf("%d rows: want 1 to %d", rows, uint32(math.MaxUint32))
	case h.lists < 1 || h.lists > h.rows:
		return fmt.Errorf("%d lists of %d rows: want 1 to the number of rows", h.lists, h.rows)
	}
	return h.shape().Validate()
}

func parseTable(table []byte, h *header, data []byte, file string) ([]section, error) {
	r := format.NewReader(file, "section table", headerBytes, table)
	end := int64(headerBytes + len(table))
	sections := make([]section, h.sections)
	for i := range sections {
		s := &sections[i]
		at := r.Offset()
		s.kind, s.flags = kind(r.Uint32()), r.Uint32()
		offset, length := r.Uint64(), r.Uint64()
		s.crc = r.Uint32()
		r.Uint32()
		switch size := uint64(len(data)); {
		case offset%alignment != 0 || offset < uint64(end):
			return nil, format.Corrupt(file, "section table", at, "%v begins at %d: want a multiple of %d from %d on", s.kind, offset, alignment, end)
		case offset > size || length > size-offset:
			return nil, format.Corrupt(file, s.kind.String(), int64(min(offset, size)), "%d bytes from %d on, the file ends at %d", length, offset, size)
		}
		s.offset, s.length = int64(offset), int64(length)
		end = s.end()
	}
	if h.length != int64(len(data)) {
		return nil, format.Corrupt(file, "header", 64, "file length is %d, want %d", len(data), h.length)
	}
	return sections, nil
}
