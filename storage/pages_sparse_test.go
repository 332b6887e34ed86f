package storage_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

// A file may have holes, so that a long one costs nothing. Memory is taken for what a file has, not
// for what it claims.
func TestSparseFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows fills the holes of a file")
	}
	const (
		pages  = 1 << 30 // 1 TiB
		beyond = 1 << 20 // 1 GiB
		most   = 16 << 20
	)
	whole := craftedFile(t)
	list := int(le.Uint64(whole.page(whole.header())[48:]))
	moved := func(c crafted, to int) { // the list of free pages, to the end of what the file has
		copy(c.page(to), c.page(list))
		le.PutUint64(c.page(to), uint64(to))
		le.PutUint64(c.page(c.header())[48:], uint64(to))
	}
	tests := []struct {
		name  string
		craft func(c crafted, last int)
		want  string // "" for a file that can be used
	}{
		{"long", func(crafted, int) {}, ""},
		{"list of free pages", func(c crafted, last int) {
			moved(c, last)
			le.PutUint32(c.page(last)[12:], beyond)
		}, "it goes on over 1048576 pages, and"},
		{"list of free pages that are not there", func(c crafted, last int) {
			moved(c, last)
			le.PutUint32(c.page(last)[12:], beyond)
			le.PutUint16(c.page(last)[10:], 0xffff)
			le.PutUint64(c.page(last)[16:], beyond*craftedPage/8-8)
		}, "is listed after page"},
		{"leaf", func(c crafted, last int) {
			rootOf(c, last)
			le.PutUint32(c.page(last)[12:], beyond)
		}, "it goes on over 1048576 pages, and its elements take"},
		{"leaf whose last value is long", func(c crafted, last int) {
			rootOf(c, last)
			le.PutUint32(c.page(last)[12:], beyond)
			le.PutUint32(c.element(last, c.count(last)-1)[12:], beyond*craftedPage)
		}, "is a bucket of 1073741824 bytes"},
		{"branch", func(c crafted, last int) {
			rootOf(c, last)
			le.PutUint16(c.page(last)[8:], 1)
			le.PutUint32(c.page(last)[12:], beyond)
		}, "it is a branch and goes on over 1048576 pages"},
		{"value of a table", func(c crafted, _ int) {
			leaf := c.find(2, 8)[0]
			le.PutUint32(c.element(leaf, c.count(leaf)-1)[12:], beyond*craftedPage)
		}, "lies outside of it"},
		{"value of a table that is there, and a hole", func(c crafted, last int) {
			e, leaf := lastLeaf(c)
			copy(c.page(last), c.page(leaf))
			le.PutUint64(c.page(last), uint64(last))
			le.PutUint64(e[8:], uint64(last))
			le.PutUint32(c.page(last)[12:], beyond)
			i := c.count(last) - 1
			value := c.element(last, i)
			from := 16 + 16*uint32(i) + le.Uint32(value[4:]) + le.Uint32(value[8:])
			le.PutUint32(value[12:], (1+beyond)*craftedPage-from)
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			last := whole.pages()
			c := append(crafted(bytes.Clone(whole)), make([]byte, craftedPage)...)
			le.PutUint64(c.page(c.header())[56:], pages)
			tt.craft(c, last)
			c.seal()
			path := filepath.Join(t.TempDir(), "flash.db")
			require.NoError(t, os.WriteFile(path, c, 0o600))
			if err := os.Truncate(path, pages*craftedPage); err != nil {
				t.Skipf("no file of 1 TiB here: %v", err)
			}
			for _, opts := range []*storage.Options{{NoSync: true, Verify: true}, {ReadOnly: true, Verify: true}} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				s, err := storage.Open(path, opts)
				runtime.ReadMemStats(&after)
				if tt.want == "" {
					require.NoError(t, err)
					require.NoError(t, s.Close())
				} else {
					require.ErrorIs(t, err, format.ErrCorrupt)
					require.ErrorContains(t, err, tt.want)
				}
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most))
			}
		})
	}
}

// rootOf makes the page to the root of all buckets, which is a leaf.
func rootOf(c crafted, to int) {
	header := c.page(c.header())
	copy(c.page(to), c.page(int(le.Uint64(header[32:]))))
	le.PutUint64(c.page(to), uint64(to))
	le.PutUint64(header[32:], uint64(to))
}

// lastLeaf returns the last element of a branch that leads to a leaf of one page, and that leaf.
func lastLeaf(c crafted) (element []byte, leaf int) {
	for _, branch := range c.find(1, 3) {
		e := c.element(branch, c.count(branch)-1)
		if leaf := int(le.Uint64(e[8:])); c.flags(leaf) == 2 && le.Uint32(c.page(leaf)[12:]) == 0 {
			return e, leaf
		}
	}
	panic("no branch ends with a leaf of one page")
}
