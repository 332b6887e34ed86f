package storage_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// mutate applies one change to the structure of a file, told by 8 bytes.
func (c crafted) mutate(op []byte) {
	kind, p, i := op[0]%9, 2+int(op[1])%(c.pages()-2), int(op[2])
	value := uint64(binary.LittleEndian.Uint32(op[4:]))
	switch op[3] % 8 { // numbers that are likely to be somewhere, or to break something
	case 0, 1:
		value %= uint64(c.pages())
	case 2:
		value %= 16
	case 3:
		value = 1<<32 - 1 - value%4
	case 4:
		value = 1<<63 + value
	case 5:
		value = 1<<64 - 1 - value%4
	}
	page := c.page(p)
	switch kind {
	case 0: // one field of the head of a page
		switch i % 4 {
		case 0:
			le.PutUint64(page, value)
		case 1:
			le.PutUint16(page[8:], uint16(value))
		case 2:
			le.PutUint16(page[10:], uint16(value))
		default:
			le.PutUint32(page[12:], uint32(value))
		}
	case 1: // one field of an element
		e := c.element(p, i%32)
		le.PutUint32(e[4*(int(op[3]>>4)%4):], uint32(value))
	case 2: // two elements change places
		swapBytes(c.element(p, i%32), c.element(p, int(value%32)))
	case 3: // a page instead of another
		to := int(value % uint64(c.pages()))
		copy(c.page(to), page)
		le.PutUint64(c.page(to), uint64(to))
	case 4: // one field of a header
		at := []int{24, 28, 32, 40, 48, 56, 64}[i%7]
		head := c.page(int(op[1]) % 2)
		if at < 32 {
			le.PutUint32(head[at:], uint32(value))
		} else {
			le.PutUint64(head[at:], value)
		}
	case 5: // a number of the list of free pages, or of a branch, or of a bucket
		if list := le.Uint64(c.page(c.header())[48:]); list < uint64(c.pages()) {
			le.PutUint64(c.page(int(list))[16+8*(i%16):], value)
		}
	case 6:
		le.PutUint64(c.element(p, i%32)[8:], value)
	case 7: // any 8 bytes
		le.PutUint64(page[i*4%(craftedPage-8):], value)
	default: // keys of two elements change places
		if c.count(p) > 3 && c.count(p) < 60 && (c.flags(p) == 2) {
			a := int(le.Uint32(c.element(p, 1)[4:])%craftedPage) + 32
			if a+16 < craftedPage {
				swapBytes(page[a:a+8], page[a+8:a+16])
			}
		}
	}
}

// FuzzCraftedPages changes a sound file in up to 16 places, makes the checksums of its headers
// right, and opens, reads, checks and writes it: it is refused, or nothing is lost.
func FuzzCraftedPages(f *testing.F) {
	whole := craftedFile(f)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		ops := make([]byte, 8*(1+rng.IntN(3)))
		for i := range ops {
			ops[i] = byte(rng.Uint32())
		}
		f.Add(ops)
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		c := crafted(bytes.Clone(whole))
		for n := 0; len(ops) >= 8 && n < 16; n, ops = n+1, ops[8:] {
			c.mutate(ops[:8])
		}
		c.seal()
		_ = c.try(t)
	})
}
