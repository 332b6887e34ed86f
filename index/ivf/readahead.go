package ivf

import "github.com/flashdb/flashdb/internal/vfs"

// Queries read candidates' rows in no order, a page or two at each place. Where the file is not in
// memory, a system that reads megabytes around each place is several times slower than one that is
// told so when the file is opened. What reads rows in order then has to ask for them ahead of
// itself.

// aheadBytes is how much is asked for at a time by what reads in order; it is never less than this
// ahead.
const aheadBytes = 1 << 20

// advise passes advice on, if the file is mapped. It only ever matters to speed.
func (ix *Index) advise(a vfs.Advice, offset, length int64) {
	if ix.mapping != nil {
		_ = ix.mapping.Advise(a, offset, length)
	}
}

// readAhead is the reading of a section in order.
type readAhead struct {
	ix    *Index
	s     *section
	asked int64 // bytes of the section asked for
}

func (ix *Index) readAhead(s *section) readAhead { return readAhead{ix: ix, s: s} }

// reach says that the section has been read up to a number of bytes.
func (r *readAhead) reach(read int64) {
	for r.asked < min(r.s.length, read+2*aheadBytes) {
		n := min(aheadBytes, r.s.length-r.asked)
		r.ix.advise(vfs.WillNeed, r.s.offset+r.asked, n)
		r.asked += n
	}
}

// section returns the section of kind k, or nil.
func (ix *Index) section(k kind) *section {
	for i := range ix.sections {
		if ix.sections[i].kind == k {
			return &ix.sections[i]
		}
	}
	return nil
}
