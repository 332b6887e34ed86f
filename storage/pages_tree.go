package storage

import (
	"bytes"
	"encoding/binary"
)

// bounds are the keys that a page may hold: from low on, which is its first one, and below high. Nil is no bound.
type bounds struct{ low, high []byte }

// page visits a page of the tree of a bucket, and what it leads to. It returns how many branches are between it and its
// leaves, which is the same on every way: bbolt's trees are balanced.
func (w *pageWalker) page(page uint64, l level, in bounds, depth int) (height int, err error) {
	if depth > maxHeight {
		return 0, w.corrupt(page, 0, "more than %d branches lead to it", maxHeight)
	}
	b, err := w.read(page)
	if err != nil {
		return 0, err
	}
	switch flags := binary.NativeEndian.Uint16(b[pageFlags:]); flags {
	case branchFlag:
		return w.branch(page, b, l, in, depth)
	case leafFlag:
		if depth > 0 && binary.NativeEndian.Uint16(b[pageCount:]) == 0 {
			return 0, w.corrupt(page, pageCount, "a branch leads to it, and it is empty")
		}
		return 0, w.leaf(page, b, 0, l, in)
	default:
		return 0, w.corrupt(page, pageFlags, "page flags are %#x, want %#x or %#x", flags, branchFlag, leafFlag)
	}
}

// branch visits the pages that a branch leads to. They are all leaves or all branches, so that one of them tells whether
// there is anything to see there; that no page is met twice, and none that is free, rules out loops in any case.
func (w *pageWalker) branch(page uint64, b []byte, l level, in bounds, depth int) (height int, err error) {
	n := int(binary.NativeEndian.Uint16(b[pageCount:]))
	if n == 0 || n > (len(b)-pageHeader)/branchElement {
		return 0, w.corrupt(page, pageCount, "it has %d elements", n)
	}
	keys := elements{w: w, page: page, data: b, end: pageHeader + n*branchElement, in: in}
	children := make([]uint64, n)
	first := make([][]byte, n+1) // key of each child, and behind the last
	for i := range n {
		at := pageHeader + i*branchElement
		first[i], _, err = keys.next(i, at, binary.NativeEndian.Uint32(b[at:]), binary.NativeEndian.Uint32(b[at+4:]), 0)
		if err != nil {
			return 0, err
		}
		children[i] = binary.NativeEndian.Uint64(b[at+8:])
	}
	first[n] = in.high
	shallow := false
	if !w.deep && l == levelTable {
		head, err := w.first(children[0])
		if err != nil {
			return 0, err
		}
		shallow = binary.NativeEndian.Uint16(head[pageFlags:]) == leafFlag
	}
	for i, child := range children {
		below := 0
		if shallow {
			err = w.use(child, 0)
		} else {
			below, err = w.page(child, l, bounds{first[i], first[i+1]}, depth+1)
		}
		if err != nil {
			return 0, err
		}
		if i > 0 && below+1 != height {
			return 0, w.corrupt(child, 0, "%d branches are below it, and %d below the page before it", below, height-1)
		}
		height = below + 1
	}
	return height, nil
}

// leaf looks at the elements of a leaf, which begins at an offset of a page, and visits the buckets among them.
func (w *pageWalker) leaf(page uint64, b []byte, base int, l level, in bounds) error {
	n := int(binary.NativeEndian.Uint16(b[pageCount:]))
	if n > (len(b)-pageHeader)/leafElement {
		return w.corrupt(page, base+pageCount, "it has %d elements", n)
	}
	if l == levelTable && !w.deep {
		return nil
	}
	items := elements{w: w, page: page, base: base, data: b, end: pageHeader + n*leafElement, in: in}
	for i := range n {
		at := pageHeader + i*leafElement
		flags, offset := binary.NativeEndian.Uint32(b[at:]), binary.NativeEndian.Uint32(b[at+4:])
		name, content, err := items.next(i, at, offset, binary.NativeEndian.Uint32(b[at+8:]), binary.NativeEndian.Uint32(b[at+12:]))
		if err != nil {
			return err
		}
		switch {
		case flags == 0 && (l == levelCollection || l == levelTable):
		case flags != bucketFlag || l == levelTable || len(content) < bucketHeader:
			return w.corrupt(page, base+at, "element %d has the flags %#x", i, flags)
		default:
			if err := w.bucket(page, content, base+items.end-len(content), l.below(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket visits the tree of a bucket, or the leaf inside its value.
func (w *pageWalker) bucket(page uint64, value []byte, base int, l level) error {
	inline := value[bucketHeader:]
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		if len(inline) > 0 {
			return w.corrupt(page, base+bucketHeader, "the bucket is on page %d, and %d bytes are inside it", root, len(inline))
		}
		_, err := w.page(root, l, bounds{}, 0)
		return err
	}
	if len(inline) < pageHeader || binary.NativeEndian.Uint16(inline[pageFlags:]) != leafFlag {
		return w.corrupt(page, base+bucketHeader, "the bucket inside it is no leaf")
	}
	// bbolt would free the pages that a leaf inside a value says it is.
	if id, n := binary.NativeEndian.Uint64(inline), binary.NativeEndian.Uint32(inline[pageOverflow:]); id != 0 || n != 0 {
		return w.corrupt(page, base+bucketHeader, "the bucket inside it says that it is page %d and %d more", id, n)
	}
	return w.leaf(page, inline, base+bucketHeader, l, bounds{})
}

// elements goes through the keys and values of a page, which lie behind each other, in the order of the keys.
type elements struct {
	w    *pageWalker
	page uint64
	base int    // where in the page data begins
	data []byte // of the page, or of the leaf inside a value
	end  int    // of the element before, in data; at first, of the table of elements
	in   bounds
	last []byte // key of the element before
}

// next returns key and value of the i-th element, whose entry in the table is at an offset.
func (e *elements) next(i, at int, offset, keyLen, valueLen uint32) (key, value []byte, err error) {
	corrupt := func(text string, args ...any) ([]byte, []byte, error) {
		return nil, nil, e.w.corrupt(e.page, e.base+at, "element %d "+text, append([]any{i}, args...)...)
	}
	from := uint64(at) + uint64(offset)
	mid := from + uint64(keyLen)
	end := mid + uint64(valueLen)
	switch {
	case from < uint64(e.end) || end > uint64(len(e.data)):
		return corrupt("lies outside of it, or over another: %d bytes from %d on", end-from, from)
	case keyLen == 0 || keyLen > maxKey:
		return corrupt("has a key of %d bytes", keyLen)
	}
	key, value = e.data[from:mid:mid], e.data[mid:end:end]
	switch {
	case i > 0 && bytes.Compare(key, e.last) <= 0:
		return corrupt("has the key %.40q, and the one before %.40q", key, e.last)
	case i == 0 && e.in.low != nil && !bytes.Equal(key, e.in.low):
		return corrupt("has the key %.40q, and the branch above says %.40q", key, e.in.low)
	case e.in.high != nil && bytes.Compare(key, e.in.high) >= 0:
		return corrupt("has the key %.40q, and the next page begins with %.40q", key, e.in.high)
	}
	e.last, e.end = key, int(end)
	return key, value, nil
}
