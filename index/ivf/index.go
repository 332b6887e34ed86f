package ivf

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/flashdb/flashdb/index/pq"
	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/vfs"
)

// ErrNoRows is returned by calls that read rows of an index that was built without them.
var ErrNoRows = errors.New("the index holds no rows")

// Index is one open generation: a file, or a file and segments with newer rows (see Join).
type Index struct {
	name     string
	header   header
	sections []section
	data     []byte // the whole file

	// On the heap, because every query reads all of it:
	centroids []float32 // row-major, lists x dim
	spread    []float32 // divisor of the residuals of each list: see spreads
	rounded   rounded   // the centroids in 8 bits; empty if there are few lists
	groups    groups    // groups of lists; empty if there are few lists
	breadth   []float32 // spread times sqrt(2 ln n_l) of every list, the expected maximum of n_l standard Gaussians
	profile   []float32 // variance of a residual in each dimension, of residuals with a spread of 1: see profile
	reach     float64   // see reachOf
	begin     []uint32  // list l holds the positions begin[l] to begin[l+1]
	codeBytes int       // bytes of one code
	maxID     uint32    // the highest id
	quantizer *pq.Quantizer
	loss      float32 // standard deviation of the error of a code, in standard deviations of what it codes

	parts []part // what is searched: the file itself, and behind it its segments
	refs  atomic.Int64
	// Of a file, and zero where files are joined. All but codeBegin are views of data:
	codeBegin []int64   // list l has the codes codes[codeBegin[l]:codeBegin[l+1]]
	variances []float32 // row-major, lists x dim
	ids       []uint32  // by position
	codes     []byte    // see the package comment
	rows      []float32 // row-major, rows x dim, by position; nil when left out
	keys      keyTable  // of the ids; empty when left out

	mapping vfs.Mapping // nil when loaded from bytes
	retire  func()
}

// Info describes an index.
type Info struct {
	Dim        int
	Rows       int
	Lists      int
	Bits       int // bits per sub-vector of the codes
	SubDim     int // dimensions per sub-vector
	Collection uint32
	BuildLSN   uint64
	Seed       uint64
	Settings   uint64 // hash of the build options that shape the file
	Bytes      int64  // length of the file
	HasRows    bool
}

// Open maps the file at path. The index has one reference, which the caller releases.
func Open(fs vfs.FS, path string) (*Index, error) {
	m, err := fs.Map(path)
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	path = fs.Path(path)
	var ix *Index
	err = catchFaults(path, m.Bytes(), func() (err error) {
		ix, err = Load(m.Bytes(), path)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open index: %w", err), m.Close())
	}
	ix.mapping = m
	if s := ix.section(kindRows); s != nil {
		ix.advise(vfs.Random, s.offset, s.length)
	}
	return ix, nil
}

// Load opens the index in data, which must stay unchanged while the index is in use. Errors call it
// name.
func Load(data []byte, name string) (*Index, error) {
	h, sections, err := parseHeader(data, name)
	if err != nil {
		return nil, err
	}
	ix := &Index{name: name, header: h, sections: sections, data: data}
	ix.refs.Store(1)
	if err := ix.load(); err != nil {
		return nil, err
	}
	return ix, nil
}

// load reads the sections.
func (ix *Index) load() error {
	found, err := ix.find()
	if err != nil {
		return err
	}
	for _, s := range found {
		if s != nil && s.kind.verifiedAtLoad() {
			if err := ix.checkCRC(s); err != nil {
				return err
			}
		}
	}
	ix.centroids = append([]float32(nil), format.Float32s(ix.bytes(found[kindCentroids]))...)
	ix.variances = format.Float32s(ix.bytes(found[kindVariances]))
	ix.begin = append([]uint32(nil), format.Uint32s(ix.bytes(found[kindLists]))...)
	var exponents []int8
	if s := found[kindExponents]; s != nil {
		for _, e := range ix.bytes(s) {
			exponents = append(exponents, int8(e))
		}
	}
	ix.spread = spreads(ix.variances, exponents, ix.header.dim)
	ix.reach = reachOf(ix.centroids, ix.spread, ix.header.dim)
	ix.ids = format.Uint32s(ix.bytes(found[kindIDs]))
	ix.codes = ix.bytes(found[kindCodes])
	if s := found[kindRows]; s != nil {
		ix.rows = format.Float32s(ix.bytes(s))
	}
	if err := ix.loadLists(found); err != nil {
		return err
	}
	if ix.header.lists >= roundedLists {
		ix.rounded = roundCentroids(ix.centroids, ix.header.dim)
	}
	if s := found[kindGroups]; s != nil {
		if err := ix.loadGroups(s); err != nil {
			return err
		}
	}
	ix.profile = profile(ix.variances, ix.spread, ix.begin, ix.header.dim)
	s := found[kindCodebooks]
	ix.quantizer, err = pq.Unmarshal(format.NewReader(ix.name, s.kind.String(), s.offset, ix.bytes(s)))
	if err != nil {
		return err
	}
	if shape := ix.quantizer.Shape(); shape != ix.header.shape() {
		return ix.corrupt(s, 0, "codebooks of %+v, the header says %+v", shape, ix.header.shape())
	}
	if s := found[kindKeys]; s != nil {
		if err := ix.loadKeys(s); err != nil {
			return err
		}
	}
	ix.loss = float32(math.Sqrt(float64(ix.quantizer.Loss())))
	ix.parts = []part{{of: ix, end: uint32(ix.header.rows)}}
	return nil
}

// find returns the section of each known kind, or nil for optional ones that are missing. It
// verifies the lengths that the header implies. The readers of the other sections verify theirs.
func (ix *Index) find() (found [kindEnd]*section, err error) {
	for i := range ix.sections {
		s := &ix.sections[i]
		switch {
		case !s.kind.known() && s.flags&flagRequired != 0:
			return found, fmt.Errorf("%s: %v is required and unknown to this program, use a newer one: %w", ix.name, s.kind, format.ErrVersion)
		case !s.kind.known():
			continue
		case found[s.kind] != nil:
			return found, ix.corrupt(s, 0, "a second section of this kind")
		}
		found[s.kind] = s
	}
	h := &ix.header
	lists, rows, dim := int64(h.lists), int64(h.rows), int64(h.dim)
	want := [kindEnd]int64{
		kindCentroids: 4 * lists * dim,
		kindVariances: 4 * lists * dim,
		kindLists:     4 * (lists + 1),
		kindIDs:       4 * rows,
		kindCodebooks: int64(h.shape().MarshalBytes()),
		kindCodes:     -1, // depends on the sizes of the lists
		kindRows:      4 * rows * dim,
		kindExponents: lists,
		kindKeys:      -1, // says so itself
		kindGroups:    -1, // any number
	}
	for k := kind(1); k < kindEnd; k++ {
		switch s := found[k]; {
		case s == nil && k.required():
			return found, format.Corrupt(ix.name, "section table", headerBytes, "no section of %v", k)
		case s != nil && want[k] >= 0 && s.length != want[k]:
			return found, ix.corrupt(s, 0, "%d bytes, want %d for %d rows in %d lists of dimension %d", s.length, want[k], rows, lists, dim)
		}
	}
	return found, nil
}

// loadLists verifies the bounds of the lists and the order of the ids, and sets the fields that are
// computed from the bounds.
func (ix *Index) loadLists(found [kindEnd]*section) error {
	lists := ix.header.lists
	if ix.begin[0] != 0 || int64(ix.begin[lists]) != int64(ix.header.rows) {
		return ix.corrupt(found[kindLists], 0, "lists of the positions %d to %d, want 0 to %d", ix.begin[0], ix.begin[lists], ix.header.rows)
	}
	ix.breadth = make([]float32, lists)
	ix.codeBegin = make([]int64, lists+1)
	shape := ix.header.shape()
	ix.codeBytes = shape.CodeBytes()
	for l := range lists {
		begin, end := ix.begin[l], ix.begin[l+1]
		if end <= begin || int64(end) > int64(ix.header.rows) {
			return ix.corrupt(found[kindLists], 4*int64(l+1), "list %d has the positions %d to %d of %d", l, begin, end, ix.header.rows)
		}
		for p := begin + 1; p < end; p++ {
			if ix.ids[p] <= ix.ids[p-1] {
				return ix.corrupt(found[kindIDs], 4*int64(p), "id %d after %d in list %d", ix.ids[p], ix.ids[p-1], l)
			}
		}
		ix.maxID = max(ix.maxID, ix.ids[end-1])
		ix.breadth[l] = min(math.MaxFloat32, ix.spread[l]*float32(math.Sqrt(2*math.Log(float64(end-begin)))))
		ix.codeBegin[l+1] = ix.codeBegin[l] + int64(shape.ListBytes(int(end-begin)))
	}
	if want := ix.codeBegin[lists]; int64(len(ix.codes)) != want {
		return ix.corrupt(found[kindCodes], 0, "%d bytes, want %d", len(ix.codes), want)
	}
	return nil
}

func (ix *Index) bytes(s *section) []byte { return ix.data[s.offset:s.end():s.end()] }

// corrupt returns the error for what is wrong at an offset into a section.
func (ix *Index) corrupt(s *section, at int64, text string, args ...any) error {
	return format.Corrupt(ix.name, s.kind.String(), s.offset+at, text, args...)
}

// Info describes the index.
func (ix *Index) Info() Info {
	h := &ix.header
	return Info{
		Dim: h.dim, Rows: h.rows, Lists: h.lists, Bits: h.bits, SubDim: h.subDim, Collection: h.collection,
		BuildLSN: h.buildLSN, Seed: h.seed, Settings: h.settings, Bytes: h.length, HasRows: ix.hasRows(),
	}
}

// Dim returns the dimension of the rows.
func (ix *Index) Dim() int { return ix.header.dim }

// Retain adds a reference. Only a holder of a reference may call it.
func (ix *Index) Retain() {
	if ix.refs.Add(1) <= 1 {
		panic("ivf: Retain of a released index")
	}
}

// Release drops a reference. The last one unmaps the file, or releases the files that were joined,
// and then calls the function given to OnRetire.
func (ix *Index) Release() error {
	switch refs := ix.refs.Add(-1); {
	case refs > 0:
		return nil
	case refs < 0:
		panic("ivf: Release of a released index")
	}
	var errs []error
	if ix.mapping != nil {
		errs = append(errs, ix.mapping.Close())
	}
	for i := range ix.parts {
		if of := ix.parts[i].of; of != ix {
			errs = append(errs, of.Release())
		}
	}
	if ix.retire != nil {
		ix.retire()
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close index %s: %w", ix.name, err)
	}
	return nil
}

// OnRetire sets a function that the last Release calls once the file is unmapped, such as to remove
// it. Only one goroutine may call it, before it releases its own reference.
func (ix *Index) OnRetire(retire func()) { ix.retire = retire }

// centroid returns the centroid of a list.
func (ix *Index) centroid(l uint32) []float32 {
	d := ix.header.dim
	return ix.centroids[int(l)*d : (int(l)+1)*d]
}
