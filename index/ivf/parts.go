package ivf

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/index"
)

// A part is one file of an index. Lists and positions of all parts are numbered one after the
// other.
type part struct {
	of         *Index // the file
	first, end uint32 // positions
	firstList  int
	hidden     *roaring.Bitmap // ids whose rows in this part are no longer valid; nil means none
}

// hides reports whether the row of an id is no longer valid.
func (p *part) hides(id uint32) bool { return p.hidden != nil && p.hidden.Contains(id) }

// list returns the codes and the ids of a list, given by its number in the whole index.
func (p *part) list(l int) (codes []byte, ids []uint32) {
	f := p.of
	l -= p.firstList
	return f.codes[f.codeBegin[l]:f.codeBegin[l+1]], f.ids[f.begin[l]:f.begin[l+1]]
}

// A Segment is a file with rows that are newer than those of the files before it.
type Segment struct {
	Index *Index // one file
	// Hidden are the ids whose rows in this file are no longer valid: the node was deleted, or a
	// later file has its row. Nil means none. It must not change any more.
	Hidden *roaring.Bitmap
}

// Join returns an index of the rows of several files: a generation, and segments that were built
// with BuildOptions.Like. Their lists are searched as those of one file: a query chooses among all
// of them. The result has one reference, and retains the files. Positions are those of the first
// file, then those of the next ones. Groups and rounded centroids are computed again.
func Join(files []Segment) (*Index, error) {
	base := files[0].Index
	d := base.header.dim
	ix := &Index{
		name: base.name, header: base.header, sections: base.sections,
		profile: base.profile, quantizer: base.quantizer, loss: base.loss, codeBytes: base.codeBytes,
		begin: []uint32{0},
	}
	h := &ix.header
	h.rows, h.lists, h.length = 0, 0, 0
	grouped := []uint32{0}
	for _, s := range files {
		of := s.Index
		if err := base.fits(of); err != nil {
			return nil, err
		}
		first, firstList := h.rows, h.lists
		h.rows, h.lists, h.length = first+of.header.rows, firstList+of.header.lists, h.length+of.header.length
		if h.rows > math.MaxInt32 {
			return nil, fmt.Errorf("join %s: %d rows, want at most %d", of.name, h.rows, math.MaxInt32)
		}
		ix.parts = append(ix.parts, part{of: of, first: uint32(first), end: uint32(h.rows), firstList: firstList, hidden: nonEmpty(s.Hidden)})
		ix.centroids = append(ix.centroids, of.centroids...)
		ix.spread = append(ix.spread, of.spread...)
		ix.breadth = append(ix.breadth, of.breadth...)
		for _, b := range of.begin[1:] {
			ix.begin = append(ix.begin, uint32(first)+b)
		}
		for _, g := range of.groupBounds() {
			grouped = append(grouped, uint32(firstList)+g)
		}
		ix.reach, ix.maxID = max(ix.reach, of.reach), max(ix.maxID, of.maxID)
	}
	if h.lists >= roundedLists {
		ix.rounded = roundCentroids(ix.centroids, d)
	}
	if base.groups.len() > 0 {
		ix.groups = newGroups(grouped, ix.centroids, ix.breadth, d)
	}
	for i := range ix.parts {
		ix.parts[i].of.Retain()
	}
	ix.refs.Store(1)
	return ix, nil
}

// fits returns an error if the codes of another file are not those of this one's codebooks.
func (ix *Index) fits(other *Index) error {
	h, o := &ix.header, &other.header
	switch {
	case o.shape() != h.shape() || o.collection != h.collection:
		return fmt.Errorf("join %s: it has the shape %+v and is of collection %d, want %+v and %d", other.name, o.shape(), o.collection, h.shape(), h.collection)
	case other.hasRows() != ix.hasRows():
		return fmt.Errorf("join %s: one of the files has rows and the other has none", other.name)
	case !ix.quantizer.Equal(other.quantizer):
		return fmt.Errorf("join %s: it has other codebooks than %s", other.name, ix.name)
	}
	return nil
}

// groupBounds returns where each group of the lists of a file ends. Lists that follow each other
// are a group where the file has none.
func (ix *Index) groupBounds() []uint32 {
	if ix.groups.len() > 0 {
		return ix.groups.begin[1:]
	}
	var ends []uint32
	for l := listsPerGroup; l < ix.header.lists; l += listsPerGroup {
		ends = append(ends, uint32(l))
	}
	return append(ends, uint32(ix.header.lists))
}

// Files returns the files of the index: the generation, and its segments from the oldest on. They
// are valid as long as the index is.
func (ix *Index) Files() []*Index {
	files := make([]*Index, len(ix.parts))
	for i := range ix.parts {
		files[i] = ix.parts[i].of
	}
	return files
}

// Has reports whether an error about a file is about one of the index.
func (ix *Index) Has(file string) bool {
	for i := range ix.parts {
		if ix.parts[i].of.name == file {
			return true
		}
	}
	return false
}

// hasRows reports whether the files hold full rows.
func (ix *Index) hasRows() bool { return ix.parts[0].of.rows != nil }

// partOf returns the part that has a list.
func (ix *Index) partOf(list int) *part {
	i := len(ix.parts) - 1
	for ix.parts[i].firstList > list {
		i--
	}
	return &ix.parts[i]
}

// partAt returns the part that has a position.
func (ix *Index) partAt(position uint32) *part {
	i := 0
	for position >= ix.parts[i].end {
		i++
	}
	return &ix.parts[i]
}

// row returns the row at a position.
func (ix *Index) row(at uint32) []float32 {
	p := ix.partAt(at)
	d := ix.header.dim
	from := int(at-p.first) * d
	return p.of.rows[from : from+d]
}

// rowsChunk is the number of rows in one call of fn: enough to make the call cheap, few enough to
// stay in cache.
const rowsChunk = 1024

// Rows calls fn for all rows in list order, in chunks. The slices are parts of the mapping, and fn
// must neither change nor keep them.
func (ix *Index) Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	for i := range ix.parts {
		if err := ix.parts[i].eachChunk(ctx, fn); err != nil {
			return err
		}
	}
	return nil
}

// eachChunk is Rows of one part.
func (p *part) eachChunk(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	ix := p.of
	if ix.rows == nil {
		return fmt.Errorf("%s: %w", ix.name, ErrNoRows)
	}
	d := ix.header.dim
	ahead := ix.readAhead(ix.section(kindRows))
	for first := 0; first < ix.header.rows; first += rowsChunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		ahead.reach(4 * int64(first*d))
		end := min(ix.header.rows, first+rowsChunk)
		for from, to := range p.valid(first, end) {
			if err := fn(ix.ids[from:to:to], ix.rows[from*d:to*d:to*d]); err != nil {
				return err
			}
		}
	}
	return nil
}

// valid returns the runs of positions of the file, between two of them, whose rows are valid.
func (p *part) valid(from, end int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		if p.hidden == nil {
			yield(from, end)
			return
		}
		for from < end {
			to := from
			for to < end && !p.hidden.Contains(p.of.ids[to]) {
				to++
			}
			if to > from && !yield(from, to) {
				return
			}
			from = to + 1
		}
	}
}

// Gather copies to dst the rows of candidates that a Search of this index returned: row-major,
// len(candidates) x dim.
func (ix *Index) Gather(dst []float32, candidates []index.Candidate) error {
	if !ix.hasRows() {
		return fmt.Errorf("%s: %w", ix.name, ErrNoRows)
	}
	d := ix.header.dim
	for i, c := range candidates {
		if int(c.Ref) >= ix.header.rows {
			return fmt.Errorf("%s: candidate %d is at position %d of %d", ix.name, c.ID, c.Ref, ix.header.rows)
		}
		copy(dst[i*d:(i+1)*d], ix.row(c.Ref))
	}
	return nil
}

// Positions yields the position and the id of every valid row, by position.
func (ix *Index) Positions() iter.Seq2[uint32, uint32] {
	return func(yield func(uint32, uint32) bool) {
		for i := range ix.parts {
			p := &ix.parts[i]
			for at, id := range p.of.ids {
				if !p.hides(id) && !yield(p.first+uint32(at), id) {
					return
				}
			}
		}
	}
}

// IDs returns the ids of the rows of a file by position. The slice lies in the mapping and must not
// be changed.
func (ix *Index) IDs() []uint32 { return ix.parts[0].of.ids }
