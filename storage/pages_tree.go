package storage

import (
	"bytes"
	"encoding/binary"
)

// bounds are the keys that a page may hold: from low on, which is its first one, and below high.
// Nil is no bound.
type bounds struct{ low, high []byte }

// page visits a page of the tree of a bucket, and what it leads to. It returns how many branches
// are between it and its leaves, which is the same on every way: bbolt's trees are balanced.
func (w *pageWalker) page(page uint64, l level, in bounds, depth int) (height int, err error) {
	if depth > maxHeight {
		return 0, w.corrupt(page, 0, "more than %d branches lead to it", maxHeight)
	}
	b, err := w.read(page)
	if err != nil {
		return 0, err
	}
	switch flags := binary.NativeEndian.Uint16(b.begins[pageFlags:]); flags {
	case branchFlag:
		return w.branch(b, l, in, depth)
	case leafFlag:
		if depth > 0 && b.count() == 0 {
			return 0, w.corrupt(page, pageCount, "a branch leads to it, and it is empty")
		}
		return 0, w.leaf(b, l, in)
	default:
		return 0, w.corrupt(b.page, pageFlags, "page flags are %#x, want %#x or %#x", flags, branchFlag, leafFlag)
	}
}

// branch visits the pages that a branch leads to. They are all leaves or all branches, so that one
// of them tells whether there is anything to see there; that no page is met twice, and none that is
// free, rules out loops in any case.
func (w *pageWalker) branch(b *pageBytes, l level, in bounds, depth int) (height int, err error) {
	n := b.count()
	if n == 0 || n > (b.size-pageHeader)/branchElement {
		return 0, w.corrupt(b.page, pageCount, "it has %d elements", n)
	}
	keys := elements{pageBytes: b, end: pageHeader + n*branchElement, in: in}
	children := make([]uint64, n)
	first := make([][]byte, n+1) // key of each child, and behind the last
	for i := range n {
		at := pageHeader + i*branchElement
		e := b.begins[at:]
		first[i], err = keys.next(i, at, binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:]), 0)
		if err != nil {
			return 0, err
		}
		children[i] = binary.NativeEndian.Uint64(e[8:])
	}
	if err := b.fits(keys.end); err != nil {
		return 0, err
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

// leaf looks at the elements of a leaf, and visits the buckets among them. What values there are is
// no matter here, and they are not read: they may be very long.
func (w *pageWalker) leaf(b *pageBytes, l level, in bounds) error {
	n := b.count()
	if n > (b.size-pageHeader)/leafElement {
		return w.corrupt(b.page, b.base+pageCount, "it has %d elements", n)
	}
	if l == levelTable && !w.deep {
		return nil
	}
	items := elements{pageBytes: b, end: pageHeader + n*leafElement, in: in}
	for i := range n {
		at := pageHeader + i*leafElement
		e := b.begins[at:]
		flags, length := binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[12:])
		name, err := items.next(i, at, binary.NativeEndian.Uint32(e[4:]), binary.NativeEndian.Uint32(e[8:]), length)
		if err != nil {
			return err
		}
		switch {
		case flags == 0 && (l == levelCollection || l == levelTable):
		case flags != bucketFlag || l == levelTable || length < bucketHeader:
			return w.corrupt(b.page, b.base+at, "element %d has the flags %#x", i, flags)
		case int64(length) > w.pageSize: // bbolt keeps a bucket inside a value while it takes a quarter of a page
			return w.corrupt(b.page, b.base+at, "element %d is a bucket of %d bytes", i, length)
		default:
			from := items.end - int(length)
			content, err := b.part(from, items.end)
			if err == nil {
				err = w.bucket(b.page, content, b.base+from, l.below(name))
			}
			if err != nil {
				return err
			}
		}
	}
	return b.fits(items.end)
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
	return w.leaf(&pageBytes{w: w, page: page, base: base + bucketHeader, size: len(inline), begins: inline}, l, bounds{})
}

// count returns how many elements there are.
func (b *pageBytes) count() int { return int(binary.NativeEndian.Uint16(b.begins[pageCount:])) }

// elements goes through the keys and values of a page, which lie behind each other, in the order of
// the keys.
type elements struct {
	*pageBytes
	end  int // of the element before; at first, of the table of elements
	in   bounds
	last []byte // key of the element before
}

// next returns the key of the i-th element, whose entry in the table is at an offset.
func (e *elements) next(i, at int, offset, keyLen, valueLen uint32) (key []byte, err error) {
	corrupt := func(text string, args ...any) ([]byte, error) {
		return nil, e.w.corrupt(e.page, e.base+at, "element %d "+text, append([]any{i}, args...)...)
	}
	from := uint64(at) + uint64(offset)
	mid := from + uint64(keyLen)
	end := mid + uint64(valueLen)
	switch {
	case from < uint64(e.end) || end > uint64(e.size):
		return corrupt("lies outside of it, or over another: %d bytes from %d on", end-from, from)
	case keyLen == 0 || keyLen > maxKey:
		return corrupt("has a key of %d bytes", keyLen)
	}
	if key, err = e.part(int(from), int(mid)); err != nil {
		return nil, err
	}
	switch {
	case i > 0 && bytes.Compare(key, e.last) <= 0:
		return corrupt("has the key %.40q, and the one before %.40q", key, e.last)
	case i == 0 && e.in.low != nil && !bytes.Equal(key, e.in.low):
		return corrupt("has the key %.40q, and the branch above says %.40q", key, e.in.low)
	case e.in.high != nil && bytes.Compare(key, e.in.high) >= 0:
		return corrupt("has the key %.40q, and the next page begins with %.40q", key, e.in.high)
	}
	e.last, e.end = key, int(end)
	return key, nil
}
