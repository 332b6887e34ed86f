package ivf

import "github.com/flashdb/flashdb/internal/vfs"

// Queries read rows in random order, a page or two at each place. By default the system may read
// megabytes around each place, which is several times slower if the file is not in memory. So Open
// advises random access. Code that reads rows in order must then prefetch them itself.

// aheadBytes is how much a sequential reader prefetches at a time. The prefetched part ends at
// least that far ahead of the reads.
const aheadBytes = 1 << 20

// advise passes advice to the system if the file is mapped. It affects only speed.
func (ix *Index) advise(a vfs.Advice, offset, length int64) {
	if ix.mapping != nil {
		_ = ix.mapping.Advise(a, offset, length)
	}
}

// readAhead is the state of reading a section in order.
type readAhead struct {
	ix    *Index
	s     *section
	asked int64 // bytes of the section that were prefetched
}

func (ix *Index) readAhead(s *section) readAhead { return readAhead{ix: ix, s: s} }

// reach records that the section has been read up to a number of bytes, and prefetches beyond it.
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
