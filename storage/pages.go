package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/flashdb/flashdb/internal/format"
)

// Parts of a bbolt file that bbolt has no function for; numbers are in the byte order of the machine that made it.
//
//	page:    id uint64 | flags, count uint16 | overflow uint32 | what it holds
//	branch:  count x (offset, key length uint32 | page uint64), and the keys
//	leaf:    count x (flags, offset, key length, value length uint32), and the keys, each with its value
//	bucket:  page uint64 | sequence uint64, and a leaf inside the value if the page is 0
//
// An offset counts from its own element. A page with an overflow of n goes on over the n pages that follow. The first two
// pages hold a header each. A transaction writes one and leaves the other, so that one is always whole. The list of free
// pages holds as many uint64s as its count says, or, if that is 0xffff, as its first uint64 says.
const (
	pageFlags    = 8
	pageCount    = 10
	pageOverflow = 12
	pageHeader   = 16
	headerRoot   = pageHeader + 16 // page of the bucket that holds all others
	headerList   = pageHeader + 32 // page of the list of free pages
	headerTxid   = pageHeader + 48 // number of the transaction that wrote it
	headerEnd    = pageHeader + 64
	branchFlag   = 0x01
	leafFlag     = 0x02
	freelistFlag = 0x10
	noFreelist   = 1<<64 - 1

	branchElement = 16
	leafElement   = 16
	bucketFlag    = 0x01
	bucketHeader  = 16
)

// A level says what a bucket holds.
type level uint8

const (
	levelRoot        level = iota // meta, names and c
	levelCollections              // c: the collections
	levelCollection               // one collection: info, index, tombs, and its buckets
	levelTable                    // no buckets
)

// below returns the level of the bucket of that name in a bucket.
func (l level) below(name []byte) level {
	switch {
	case l == levelRoot && bytes.Equal(name, bucketOfCollections):
		return levelCollections
	case l == levelCollections:
		return levelCollection
	}
	return levelTable
}

// A pageWalker makes sure that bbolt can find its way through a file without looping, running out of it, or overwriting
// what is in use. bbolt trusts its pages: one bit that makes a branch lead back to itself overflows the stack of whoever
// looks up a key, which ends the process.
type pageWalker struct {
	f        *os.File
	pageSize int64
	pages    uint64
	deep     bool     // read the pages that hold only values too, and look at each of their elements
	used     []uint64 // bit p%64 of word p/64: page p is free, or has been visited
}

// walkPages verifies the tree of the header that transaction txid wrote. If deep is false, it reads only the pages that
// lead to others, about one in a hundred.
func walkPages(f *os.File, pageSize int64, txid uint64, pages int64, deep bool) error {
	header, err := readHeader(f, pageSize, txid)
	if err != nil {
		return err
	}
	w := &pageWalker{f: f, pageSize: pageSize, pages: uint64(pages), deep: deep, used: make([]uint64, pages/64+1)}
	if err := w.freelist(binary.NativeEndian.Uint64(header[headerList:])); err != nil {
		return err
	}
	return w.page(binary.NativeEndian.Uint64(header[headerRoot:]), levelRoot)
}

// readHeader returns the header that a transaction wrote.
func readHeader(f *os.File, pageSize int64, txid uint64) (b [headerEnd]byte, err error) {
	for page := range int64(2) {
		if _, err := f.ReadAt(b[:], page*pageSize); err != nil {
			return b, err
		}
		if binary.NativeEndian.Uint64(b[headerTxid:]) == txid {
			break
		}
	}
	return b, nil
}

func (w *pageWalker) corrupt(page uint64, at int, text string, args ...any) error {
	return format.Corrupt(w.f.Name(), fmt.Sprintf("bbolt pages: page %d", page), int64(page)*w.pageSize+int64(at), text, args...)
}

// use notes that a page and n more are in use, and refuses those that were before.
func (w *pageWalker) use(page uint64, n uint32) error {
	if page < 2 || page >= w.pages || uint64(n) >= w.pages-page {
		return w.corrupt(page, 0, "it and the %d after it are not among the %d of the file", n, w.pages)
	}
	for p := page; p <= page+uint64(n); p++ {
		if w.used[p/64]>>(p%64)&1 != 0 {
			return w.corrupt(p, 0, "it is free, or part of something else")
		}
		w.used[p/64] |= 1 << (p % 64)
	}
	return nil
}

// read returns a page with its overflow, or, if headerOnly is set, its first bytes.
func (w *pageWalker) read(page uint64, headerOnly bool) ([]byte, error) {
	b := make([]byte, pageHeader)
	if _, err := w.f.ReadAt(b, int64(page)*w.pageSize); err != nil {
		return nil, err
	}
	if id := binary.NativeEndian.Uint64(b); id != page {
		return nil, w.corrupt(page, 0, "it says that it is page %d", id)
	}
	if headerOnly {
		return b, nil
	}
	n := uint64(binary.NativeEndian.Uint32(b[pageOverflow:]))
	if n >= w.pages-page {
		return nil, w.corrupt(page, pageOverflow, "%d more pages belong to it, the file has %d", n, w.pages)
	}
	b = make([]byte, int64(1+n)*w.pageSize)
	_, err := w.f.ReadAt(b, int64(page)*w.pageSize)
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
	located := func(err error) error {
		return fmt.Errorf("free pages: %w", err)
	}
	b, err := w.read(list, false)
	if err != nil {
		return located(err)
	}
	if flags := binary.NativeEndian.Uint16(b[pageFlags:]); flags != freelistFlag {
		return located(w.corrupt(list, pageFlags, "page flags are %#x, want %#x", flags, freelistFlag))
	}
	count, at := uint64(binary.NativeEndian.Uint16(b[pageCount:])), pageHeader
	if count == 0xffff {
		count, at = binary.NativeEndian.Uint64(b[at:]), at+8
	}
	if count > uint64(len(b)-at)/8 {
		return located(w.corrupt(list, pageCount, "%d pages are free, there is room for %d", count, (len(b)-at)/8))
	}
	if err := w.use(list, binary.NativeEndian.Uint32(b[pageOverflow:])); err != nil {
		return located(err)
	}
	for last := uint64(0); count > 0; count, at = count-1, at+8 {
		free := binary.NativeEndian.Uint64(b[at:])
		if free <= last {
			return located(w.corrupt(list, at, "page %d is listed after page %d", free, last))
		}
		if err := w.use(free, 0); err != nil {
			return located(err)
		}
		last = free
	}
	return nil
}

// page visits a page of the tree of a bucket, and what it leads to.
func (w *pageWalker) page(page uint64, l level) error {
	if page < 2 || page >= w.pages {
		return w.use(page, 0)
	}
	b, err := w.read(page, false)
	if err != nil {
		return err
	}
	if err := w.use(page, binary.NativeEndian.Uint32(b[pageOverflow:])); err != nil {
		return err
	}
	switch flags := binary.NativeEndian.Uint16(b[pageFlags:]); flags {
	case branchFlag:
		return w.branch(page, b, l)
	case leafFlag:
		return w.leaf(page, b, 0, l)
	default:
		return w.corrupt(page, pageFlags, "page flags are %#x, want %#x or %#x", flags, branchFlag, leafFlag)
	}
}

// branch visits the pages that a branch leads to. They are all leaves or all branches, so that one of them tells whether
// there is anything to see there; that no page is met twice, and none that is free, rules out loops in any case.
func (w *pageWalker) branch(page uint64, b []byte, l level) error {
	n := int(binary.NativeEndian.Uint16(b[pageCount:]))
	if n == 0 || n > (len(b)-pageHeader)/branchElement {
		return w.corrupt(page, pageCount, "it has %d elements", n)
	}
	shallow := !w.deep && l == levelTable
	for i := range n {
		at := pageHeader + i*branchElement
		offset, key := binary.NativeEndian.Uint32(b[at:]), binary.NativeEndian.Uint32(b[at+4:])
		child := binary.NativeEndian.Uint64(b[at+8:])
		if key == 0 || uint64(at)+uint64(offset)+uint64(key) > uint64(len(b)) {
			return w.corrupt(page, at, "the key of element %d lies outside of it", i)
		}
		if i == 0 && shallow && child >= 2 && child < w.pages {
			first, err := w.read(child, true)
			if err != nil {
				return err
			}
			shallow = binary.NativeEndian.Uint16(first[pageFlags:]) == leafFlag
		}
		var err error
		if shallow {
			err = w.use(child, 0)
		} else {
			err = w.page(child, l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leaf looks at the elements of a leaf, which begins at an offset of a page, and visits the buckets among them.
func (w *pageWalker) leaf(page uint64, b []byte, base int, l level) error {
	n := int(binary.NativeEndian.Uint16(b[pageCount:]))
	if n > (len(b)-pageHeader)/leafElement {
		return w.corrupt(page, base+pageCount, "it has %d elements", n)
	}
	if l == levelTable && !w.deep {
		return nil
	}
	for i := range n {
		at := pageHeader + i*leafElement
		flags, offset := binary.NativeEndian.Uint32(b[at:]), binary.NativeEndian.Uint32(b[at+4:])
		key, value := binary.NativeEndian.Uint32(b[at+8:]), binary.NativeEndian.Uint32(b[at+12:])
		from := uint64(at) + uint64(offset)
		end := from + uint64(key) + uint64(value)
		if key == 0 || end > uint64(len(b)) {
			return w.corrupt(page, base+at, "element %d lies outside of it", i)
		}
		name, content := b[from:from+uint64(key)], b[from+uint64(key):end]
		switch {
		case flags == 0:
		case flags != bucketFlag || l == levelTable || len(content) < bucketHeader:
			return w.corrupt(page, base+at, "element %d has the flags %#x", i, flags)
		default:
			if err := w.bucket(page, content, base+int(from)+int(key), l.below(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket visits the tree of a bucket.
func (w *pageWalker) bucket(page uint64, value []byte, base int, l level) error {
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return w.page(root, l)
	}
	inline := value[bucketHeader:]
	if len(inline) < pageHeader || binary.NativeEndian.Uint16(inline[pageFlags:]) != leafFlag {
		return w.corrupt(page, base+bucketHeader, "the bucket inside it is no leaf")
	}
	return w.leaf(page, inline, base+bucketHeader, l)
}
