package storage

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/flashdb/flashdb/internal/format"
)

// Parts of a bbolt file that bbolt has no function for; numbers are in the byte order of the
// machine that made it.
//
//	page:    id uint64 | flags, count uint16 | overflow uint32 | what it holds
//	header:  magic, version, page size, flags uint32 | the bucket that holds all others | pages of the list of free pages,
//	         and of the file, transaction uint64 | FNV-64a of all of this
//	branch:  count x (offset, key length uint32 | page uint64), and the keys
//	leaf:    count x (flags, offset, key length, value length uint32), and the keys, each with its value
//	bucket:  page uint64 | sequence uint64, and a leaf inside the value if the page is 0
//
// An offset counts from its own element. Keys ascend, and lie behind each other in the order of
// their elements. The key that leads from a branch to a page is the first key of that page. A page
// with an overflow of n goes on over the n pages that follow. The first two pages hold a header
// each. A transaction writes one and leaves the other, so that one is always whole. The list of
// free pages holds as many uint64s as its count says, or, if that is 0xffff, as its first uint64
// says.
const (
	pageFlags    = 8
	pageCount    = 10
	pageOverflow = 12
	pageHeader   = 16
	headerSum    = pageHeader + 56
	headerEnd    = headerSum + 8
	headerMagic  = 0xED0CDAED
	headerFormat = 2
	branchFlag   = 0x01
	leafFlag     = 0x02
	freelistFlag = 0x10
	noFreelist   = 1<<64 - 1

	branchElement = 16
	leafElement   = 16
	bucketFlag    = 0x01
	bucketHeader  = 16

	maxKey    = 32 << 10                              // bytes
	maxHeight = 64                                    // of a tree: two children a branch would fill any disk
	maxBranch = pageHeader + 4*(branchElement+maxKey) // bytes: bbolt splits a branch of more than 4 elements and a page
	readBytes = 1 << 20                               // of a page with its overflow are held in memory at most; a table of elements is never longer
	maxTxid   = 1 << 62                               // beyond it the numbers of transactions may run out, and the next one would look old
)

// A level says what a bucket holds.
type level uint8

const (
	levelRoot        level = iota // meta, names, c, sets and releases
	levelCollections              // c or sets: the collections, or sets of what releases have of them
	levelCollection               // one collection or set: info, index, tombs, and its buckets
	levelTable                    // no buckets
)

// below returns the level of the bucket of that name in a bucket.
func (l level) below(name []byte) level {
	switch {
	case l == levelRoot && (bytes.Equal(name, bucketOfCollections) || bytes.Equal(name, bucketOfSets)):
		return levelCollections
	case l == levelCollections:
		return levelCollection
	}
	return levelTable
}

// A pageWalker verifies that bbolt can walk a file without looping, leaving the file, or
// overwriting pages in use. bbolt trusts its pages: one flipped bit that makes a branch point to
// itself overflows the stack of the next lookup, which ends the process.
//
// Its memory use is in proportion to the data in the file, not to the lengths that the file states.
// A file may have holes, so large lengths cost an attacker nothing: those of the file, of a page,
// of the list of free pages, or of a value.
type pageWalker struct {
	f        *os.File
	pageSize int64
	pages    uint64
	deep     bool              // read the pages that hold only values too, and look at each of their elements
	used     *roaring64.Bitmap // pages that are free, or have been visited
}

// walkPages verifies a file of size bytes as the transaction txid sees it. If deep is false, it
// reads only the pages that lead to others, about one in a hundred. It then assumes that the
// children of a branch are all leaves if the first is, and does not verify leaves. If deep is true,
// it returns how many pages are neither in use nor free. These do no harm.
func walkPages(f *os.File, pageSize, size int64, txid uint64, deep bool) (lost uint64, err error) {
	h, err := readHeader(f, pageSize)
	if err != nil {
		return 0, err
	}
	corrupt := func(text string, args ...any) (uint64, error) {
		return 0, format.Corrupt(f.Name(), "header", 0, text, args...)
	}
	switch {
	case h.txid != txid:
		return corrupt("it is of transaction %d, and bbolt sees %d", h.txid, txid)
	case h.txid >= maxTxid:
		return corrupt("transaction %d, at most %d is possible", h.txid, uint64(maxTxid))
	case int64(h.pageSize) != pageSize:
		return corrupt("page size is %d, in the other header %d", h.pageSize, pageSize)
	case h.pages > uint64(size/pageSize):
		return corrupt("the file ends early: it has %d bytes, want %d pages of %d", size, h.pages, pageSize)
	}
	w := &pageWalker{f: f, pageSize: pageSize, pages: h.pages, deep: deep, used: roaring64.New()}
	if err := w.freelist(h.list); err != nil {
		return 0, err
	}
	if _, err := w.page(h.root, levelRoot, bounds{}, 0); err != nil || !deep {
		return 0, err
	}
	return w.pages - 2 - w.used.GetCardinality(), nil
}

// header is the part of a header that bbolt uses.
type header struct {
	pageSize          uint32
	root, list, pages uint64
	txid              uint64
}

// readHeader returns the header that bbolt chooses: that of the higher transaction whose checksum
// is right, and the first of two alike.
func readHeader(f *os.File, pageSize int64) (best header, err error) {
	found := false
	for page := range int64(2) {
		var b [headerEnd]byte
		if _, err := f.ReadAt(b[:], page*pageSize); err != nil {
			return best, err
		}
		m := b[pageHeader:]
		sum := fnv.New64a()
		sum.Write(b[pageHeader:headerSum])
		if binary.NativeEndian.Uint32(m) != headerMagic || binary.NativeEndian.Uint32(m[4:]) != headerFormat || binary.NativeEndian.Uint64(b[headerSum:]) != sum.Sum64() {
			continue
		}
		h := header{
			pageSize: binary.NativeEndian.Uint32(m[8:]),
			root:     binary.NativeEndian.Uint64(m[16:]),
			list:     binary.NativeEndian.Uint64(m[32:]),
			pages:    binary.NativeEndian.Uint64(m[40:]),
			txid:     binary.NativeEndian.Uint64(m[48:]),
		}
		if !found || h.txid > best.txid {
			best, found = h, true
		}
	}
	if !found {
		return best, notOurs(f.Name(), "both headers are damaged")
	}
	return best, nil
}

func (w *pageWalker) corrupt(page uint64, at int, text string, args ...any) error {
	return format.Corrupt(w.f.Name(), fmt.Sprintf("bbolt pages: page %d", page), int64(page)*w.pageSize+int64(at), text, args...)
}

// among refuses a page and n more that are not all in the file. The headers are not among them.
func (w *pageWalker) among(page uint64, n uint32) error {
	if page < 2 || page >= w.pages || uint64(n) >= w.pages-page {
		return w.corrupt(min(page, math.MaxInt64/uint64(w.pageSize)), 0, "page %d and the %d after it are not among the %d of the file", page, n, w.pages)
	}
	return nil
}

// use marks a page and n more as in use. It returns an error if one of them was already.
func (w *pageWalker) use(page uint64, n uint32) error {
	if err := w.among(page, n); err != nil {
		return err
	}
	twice := func(p uint64) error { return w.corrupt(p, 0, "it is free, or part of something else") }
	if n == 0 {
		if !w.used.CheckedAdd(page) {
			return twice(page)
		}
		return nil
	}
	last := page + uint64(n)
	before := w.used.Iterator()
	if before.AdvanceIfNeeded(page); before.HasNext() && before.PeekNext() <= last {
		return twice(before.PeekNext())
	}
	w.used.AddRange(page, last+1)
	return nil
}

// first returns the head of a page.
func (w *pageWalker) first(page uint64) (b [pageHeader]byte, err error) {
	if err := w.among(page, 0); err != nil {
		return b, err
	}
	if _, err := w.f.ReadAt(b[:], int64(page)*w.pageSize); err != nil {
		return b, err
	}
	if id := binary.NativeEndian.Uint64(b[:]); id != page {
		return b, w.corrupt(page, 0, "it says that it is page %d", id)
	}
	return b, nil
}

// A pageBytes is a page with its overflow, or a leaf inside a value.
type pageBytes struct {
	w      *pageWalker
	page   uint64
	base   int    // where in the page it begins
	size   int    // in all
	begins []byte // with these bytes, among them the table of elements
}

// part returns the bytes from an offset up to another.
func (b *pageBytes) part(from, to int) ([]byte, error) {
	if to <= len(b.begins) {
		return b.begins[from:to:to], nil
	}
	part := make([]byte, to-from)
	_, err := b.w.f.ReadAt(part, int64(b.page)*b.w.pageSize+int64(b.base+from))
	return part, err
}

// fits refuses a page that goes on over more pages than its elements need, the last of which ends
// at an offset. bbolt frees them all when it replaces the page.
func (b *pageBytes) fits(end int) error {
	if pages := b.size / int(b.w.pageSize); b.base == 0 && (end-1)/int(b.w.pageSize)+1 < pages {
		return b.w.corrupt(b.page, pageOverflow, "it goes on over %d pages, and its elements take %d bytes", pages-1, end)
	}
	return nil
}

// read returns a page with its overflow, and notes that they are in use. That comes first, so that
// no page is read twice, whatever a file says.
func (w *pageWalker) read(page uint64) (*pageBytes, error) {
	head, err := w.first(page)
	if err != nil {
		return nil, err
	}
	n := binary.NativeEndian.Uint32(head[pageOverflow:])
	if err := w.use(page, n); err != nil {
		return nil, err
	}
	if binary.NativeEndian.Uint16(head[pageFlags:]) == branchFlag && int64(n)*w.pageSize > maxBranch {
		return nil, w.corrupt(page, pageOverflow, "it is a branch and goes on over %d pages", n)
	}
	size := (1 + int64(n)) * w.pageSize
	b := &pageBytes{w: w, page: page, size: int(size), begins: make([]byte, min(size, readBytes))}
	_, err = w.f.ReadAt(b.begins, int64(page)*w.pageSize)
	return b, err
}

// freelist marks the free pages and the pages of their list.
func (w *pageWalker) freelist(list uint64) error {
	if list == noFreelist {
		return notOurs(w.f.Name(), "it does not list its free pages; write it anew with `bbolt compact`")
	}
	if list < 2 || list >= w.pages {
		return format.Corrupt(w.f.Name(), "header", 0, "the free pages are listed on page %d of %d", list, w.pages)
	}
	if err := w.listed(list); err != nil {
		return fmt.Errorf("free pages: %w", err)
	}
	return nil
}

// listed reads the list of free pages piece by piece. The pages of the list are marked last: only
// then is it known that each number of it is there. The first zero of a hole ends the walk, since
// numbers ascend.
func (w *pageWalker) listed(list uint64) error {
	head, err := w.first(list)
	if err != nil {
		return err
	}
	if flags := binary.NativeEndian.Uint16(head[pageFlags:]); flags != freelistFlag {
		return w.corrupt(list, pageFlags, "page flags are %#x, want %#x", flags, freelistFlag)
	}
	overflow := binary.NativeEndian.Uint32(head[pageOverflow:])
	if err := w.among(list, overflow); err != nil {
		return err
	}
	size := (1 + int64(overflow)) * w.pageSize
	in := bufio.NewReaderSize(io.NewSectionReader(w.f, int64(list)*w.pageSize+pageHeader, size-pageHeader), 64<<10)
	number := func() (uint64, error) {
		var b [8]byte
		_, err := io.ReadFull(in, b[:])
		return binary.NativeEndian.Uint64(b[:]), err
	}
	count, at := uint64(binary.NativeEndian.Uint16(head[pageCount:])), int64(pageHeader)
	if count == 0xffff {
		if count, err = number(); err != nil {
			return err
		}
		at += 8
	}
	if room := uint64(size-at) / 8; count > room {
		return w.corrupt(list, pageCount, "%d pages are free, there is room for %d", count, room)
	}
	// bbolt makes room for the pages that the list itself takes from those that are free, and for
	// the longer count.
	if need := uint64(pageHeader) + 8 + 8*(count+uint64(overflow)+1); uint64(overflow)*uint64(w.pageSize) > need {
		return w.corrupt(list, pageOverflow, "it goes on over %d pages, and %d pages are free", overflow, count)
	}
	for last := uint64(0); count > 0; count, at = count-1, at+8 {
		free, err := number()
		if err != nil {
			return err
		}
		if free <= last {
			return w.corrupt(list, int(at), "page %d is listed after page %d", free, last)
		}
		if err := w.use(free, 0); err != nil {
			return err
		}
		last = free
	}
	return w.use(list, overflow)
}
