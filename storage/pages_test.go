package storage_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

const craftedPage = 1024

// A crafted is a bbolt file in memory, changed as somebody would who knows the format.
type crafted []byte

var le = binary.NativeEndian // as bbolt

func (c crafted) pages() int { return len(c) / craftedPage }

func (c crafted) page(p int) []byte { return c[p*craftedPage:][:craftedPage] }

func (c crafted) flags(p int) uint16 { return le.Uint16(c.page(p)[8:]) }

func (c crafted) count(p int) int { return int(le.Uint16(c.page(p)[10:])) }

// element returns the entry of an element in the table of its page.
func (c crafted) element(p, i int) []byte { return c.page(p)[16+16*i:][:16] }

// find returns the pages in use that have these flags and at least so many elements.
func (c crafted) find(flags uint16, least int) []int {
	used := map[int]bool{}
	c.walk(int(le.Uint64(c.page(c.header())[32:])), used)
	var found []int
	for p := range c.pages() {
		if used[p] && c.flags(p) == flags && c.count(p) >= least {
			found = append(found, p)
		}
	}
	return found
}

// walk notes a page of a tree and what it leads to. Of a page with overflow it notes the first.
func (c crafted) walk(page int, used map[int]bool) {
	used[page] = true
	for i := range c.count(page) {
		e := c.element(page, i)
		if c.flags(page) == 1 {
			c.walk(int(le.Uint64(e[8:])), used)
			continue
		}
		at := page*craftedPage + 16 + 16*i + int(le.Uint32(e[4:])) + int(le.Uint32(e[8:]))
		if root := int(le.Uint64(c[at:])); le.Uint32(e) == 1 && root != 0 { // a bucket that is not inside its value
			c.walk(root, used)
		}
	}
}

// header returns the page of the header that counts.
func (c crafted) header() int {
	if le.Uint64(c.page(1)[64:]) > le.Uint64(c.page(0)[64:]) {
		return 1
	}
	return 0
}

// seal makes the checksums of both headers right.
func (c crafted) seal() {
	for p := range min(2, c.pages()) {
		sum := fnv.New64a()
		sum.Write(c.page(p)[16:72])
		le.PutUint64(c.page(p)[72:], sum.Sum64())
	}
}

// craftedFile returns a store with branches, overflow pages, free pages, buckets inside of values
// and several collections.
func craftedFile(t testing.TB) crafted {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flash.db")
	s, err := storage.Open(path, &storage.Options{PageSize: craftedPage, NoSync: true})
	require.NoError(t, err)
	lsn := uint64(0)
	change := func(ops ...storage.Op) {
		lsn++
		commit(t, s, lsn, ops...)
		_, err := s.Flush()
		require.NoError(t, err)
	}
	for uid := range uint32(3) {
		change(storage.CreateCollection{UID: uid + 1, Name: fmt.Sprint("c", uid), Schema: storage.Schema{Dim: 2}})
	}
	var nodes []storage.Op
	for id := range uint32(400) {
		put := storage.PutNode{UID: 1, ID: id, Key: fmt.Sprintf("key%05d", id), Row: []float32{float32(id), 1}, Tags: []string{fmt.Sprint("t", id%5)}}
		if id%100 == 0 {
			put.Payload = bytes.Repeat([]byte{7}, 3000)
		}
		nodes = append(nodes, put)
	}
	change(nodes...)
	change(storage.PutDecoder{UID: 1, Name: "d", Blob: []byte("blob")}, storage.SetMeta{UID: 2, Name: "m", Value: "v"})
	for id := range uint32(40) {
		change(storage.DeleteNode{UID: 1, ID: 200 + id})
	}
	change(storage.Link{UID: 1, Source: 1, Targets: []uint32{2, 3}})
	require.NoError(t, s.Close())
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return crafted(b)
}

// contents reads everything there is, and writes it down.
func contents(s *storage.Store) (string, error) {
	var b strings.Builder
	err := s.View(func(v *storage.View) error {
		for _, info := range v.Collections() {
			fmt.Fprintln(&b, info.Name, info.Count, info.NextID)
			for id := range min(info.NextID, 1000) {
				n, ok := v.Node(info.UID, id)
				row := make([]float32, info.Schema.Dim)
				found := v.Row(row, info.UID, id)
				fmt.Fprintln(&b, id, n, ok, row, found, v.Links(info.UID, id, info.UID))
				if ok {
					again, ok := v.ID(info.UID, n.Key)
					fmt.Fprintln(&b, again, ok)
				}
			}
			fmt.Fprintln(&b, v.KeysWithPrefix(info.UID, "key", 1000), v.Tags(info.UID), v.Decoders(info.UID))
			value, _ := v.Meta(info.UID, "m")
			fmt.Fprintln(&b, value)
		}
		return nil
	})
	return b.String(), err
}

// try opens a crafted file, and demands that it is refused, or works: what can be read is there
// still after writes.
func (c crafted) try(t *testing.T) (refused error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flash.db")
	require.NoError(t, os.WriteFile(path, c, 0o600))
	opts := &storage.Options{NoSync: true}
	s, err := storage.Open(path, opts)
	if err != nil {
		require.True(t, errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrVersion), "%v", err)
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "\n")
		return err
	}
	findings := 0
	s.Check(func(string) { findings++ })
	before, err := contents(s)
	require.True(t, err == nil || errors.Is(err, format.ErrCorrupt), "%v", err)
	require.True(t, err == nil || findings > 0, "not found by Check: %v", err)

	written := rewrite(t, s)
	if findings == 0 {
		require.NoError(t, written)
	}
	if written == nil && err == nil {
		after, err := contents(s)
		require.NoError(t, err)
		require.Equal(t, before, after)
		if findings == 0 {
			s.Check(func(finding string) { require.Fail(t, "damage by writing", finding) })
		}
	}
	require.NoError(t, s.Close())
	if written == nil {
		s, err = storage.Open(path, opts)
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	return nil
}

// rewrite puts some nodes again as they are, which changes pages of every kind.
func rewrite(t *testing.T, s *storage.Store) error {
	t.Helper()
	for i := range uint32(6) {
		change := s.Begin()
		node, found := change.Node(1, i*70)
		row := make([]float32, 2)
		if ok := change.Row(row, 1, i*70); !ok || !found {
			if change.Err() != nil {
				return change.Err()
			}
			continue
		}
		put := storage.PutNode{UID: 1, ID: i * 70, Key: node.Key, Row: row, Tags: node.Tags, Payload: node.Payload}
		if err := change.Apply(put, s.Applied()+1); err != nil {
			return err
		}
		s.Stage(change)
		s.Publish()
		if _, err := s.Flush(); err != nil {
			require.ErrorIs(t, err, format.ErrCorrupt)
			return err
		}
	}
	return nil
}

// What bbolt trusts in its pages is refused before bbolt sees it, with the place.
func TestCraftedPages(t *testing.T) {
	whole := craftedFile(t)
	require.NoError(t, whole.try(t))
	branch := func(c crafted) int { return c.find(1, 3)[0] }
	leaf := func(c crafted) int { return c.find(2, 8)[0] }
	overflow := func(c crafted) int {
		for _, p := range c.find(2, 1) {
			if le.Uint32(c.page(p)[12:]) > 0 {
				return p
			}
		}
		panic("no page has an overflow")
	}
	list := func(c crafted) int { return int(le.Uint64(c.page(c.header())[48:])) }
	header := func(at int, value uint64) func(crafted) {
		return func(c crafted) { le.PutUint64(c.page(c.header())[at:], value) }
	}
	tests := []struct {
		name  string
		craft func(c crafted)
		want  string
	}{
		{"page size 0", func(c crafted) { le.PutUint32(c.page(0)[24:], 0); le.PutUint32(c.page(1)[24:], 0) }, ""},
		{"page size of the other header", func(c crafted) {
			copy(c.page(1)[16:80], c.page(0)[16:80])
			le.PutUint64(c.page(1)[64:], le.Uint64(c.page(0)[64:])+1)
			le.PutUint32(c.page(1)[24:], 4096)
		}, "in the other header"},
		{"page size huge", func(c crafted) { le.PutUint32(c.page(0)[24:], 1<<31); le.PutUint32(c.page(1)[24:], 1<<31) }, ""},
		{"root is a header", header(32, 0), "not among"},
		{"root is the list of free pages", func(c crafted) { header(32, uint64(list(c)))(c) }, "it is free, or part of something else"},
		{"root beyond the file", header(32, 1<<40), "not among"},
		{"root beyond all files", header(32, 1<<63), "not among"},
		{"root is a leaf of rows", func(c crafted) { header(32, uint64(leaf(c)))(c) }, "bbolt pages"},
		{"free pages on the root", func(c crafted) { header(48, le.Uint64(c.page(c.header())[32:]))(c) }, "page flags are 0x2"},
		{"free pages beyond the file", header(48, 1<<50), "the free pages are listed on page"},
		{"pages of a file of 2^63 bytes", header(56, 1<<53), "the file ends early"},
		{"pages that wrap around", func(c crafted) { header(56, 1<<54+uint64(c.pages()))(c) }, "the file ends early"},
		{"no pages", header(56, 0), "the free pages are listed"},
		{"last transaction", header(64, 1<<64-1), "transaction"},
		{"transaction beyond int64", header(64, 1<<63), "transaction"},
		{"two headers of one transaction", func(c crafted) {
			le.PutUint64(c.page(0)[64:], 1000)
			le.PutUint64(c.page(1)[64:], 1000)
			le.PutUint64(c.page(0)[32:], le.Uint64(c.page(0)[48:])) // bbolt takes this one; the other is whole
		}, "it is free, or part of something else"},
		{"a free page twice", func(c crafted) { copy(c.page(list(c))[24:32], c.page(list(c))[16:24]) }, "is listed after page"},
		{"a free page that is a leaf", func(c crafted) {
			le.PutUint16(c.page(list(c))[10:], 1)
			le.PutUint64(c.page(list(c))[16:], uint64(leaf(c)))
		}, "it is free, or part of something else"},
		{"a free page that is an overflow", func(c crafted) {
			le.PutUint16(c.page(list(c))[10:], 1)
			le.PutUint64(c.page(list(c))[16:], uint64(overflow(c))+1)
		}, "it is free, or part of something else"},
		{"a free page beyond the file", func(c crafted) { le.PutUint64(c.page(list(c))[16:], 1<<60); le.PutUint16(c.page(list(c))[10:], 1) }, "not among"},
		{"free pages without end", func(c crafted) {
			le.PutUint16(c.page(list(c))[10:], 0xffff)
			le.PutUint64(c.page(list(c))[16:], 1<<62)
		}, "there is room for"},
		{"list of free pages without end", func(c crafted) { le.PutUint32(c.page(list(c))[12:], 1<<32-1) }, "not among"},
		{"a branch without elements", func(c crafted) { le.PutUint16(c.page(branch(c))[10:], 0) }, "it has 0 elements"},
		{"a branch of many elements", func(c crafted) { le.PutUint16(c.page(branch(c))[10:], 0xffff) }, "it has 65535 elements"},
		{"a branch to itself", func(c crafted) { le.PutUint64(c.element(branch(c), 1)[8:], uint64(branch(c))) }, "it is free, or part of something else"},
		{"a branch to one page twice", func(c crafted) { copy(c.element(branch(c), 1)[8:], c.element(branch(c), 0)[8:]) }, "it is free, or part of something else"},
		{"a branch to the list of free pages", func(c crafted) { le.PutUint64(c.element(branch(c), 1)[8:], uint64(list(c))) }, "it is free, or part of something else"},
		{"a branch out of order", func(c crafted) { swapBytes(c.element(branch(c), 0)[8:], c.element(branch(c), 1)[8:]) }, "the branch above says"},
		{"keys of a branch that overlap", func(c crafted) {
			e := c.element(branch(c), 1)
			le.PutUint32(e, le.Uint32(e)-4)
		}, "over another"},
		{"a key of a branch over the table", func(c crafted) { le.PutUint32(c.element(branch(c), 0), 0) }, "over another"},
		{"a leaf of many elements", func(c crafted) { le.PutUint16(c.page(leaf(c))[10:], 0xffff) }, "it has 65535 elements"},
		{"a leaf of elements in its values", func(c crafted) { le.PutUint16(c.page(leaf(c))[10:], uint16(c.count(leaf(c))+1)) }, "element"},
		{"a leaf out of order", func(c crafted) { c.swapKeys(leaf(c)) }, "the one before"},
		{"a key twice", func(c crafted) {
			e, before := c.element(leaf(c), 2), c.element(leaf(c), 1)
			p := c.page(leaf(c))
			copy(p[16+32+int(le.Uint32(e[4:])):][:le.Uint32(e[8:])], p[16+16+int(le.Uint32(before[4:])):][:le.Uint32(before[8:])])
		}, "the one before"},
		{"a value of 2 GiB", func(c crafted) { le.PutUint32(c.element(leaf(c), 3)[12:], 1<<31) }, "lies outside of it"},
		{"a key of 4 GiB", func(c crafted) { le.PutUint32(c.element(leaf(c), 3)[8:], 1<<32-1) }, "lies outside of it"},
		{"a key of nothing", func(c crafted) { le.PutUint32(c.element(leaf(c), 3)[8:], 0) }, "a key of 0 bytes"},
		{"a value that overlaps the next", func(c crafted) {
			e := c.element(leaf(c), 3)
			le.PutUint32(e[12:], le.Uint32(e[12:])+1)
		}, "over another"},
		{"an element with unknown flags", func(c crafted) { le.PutUint32(c.element(leaf(c), 3), 2) }, "has the flags 0x2"},
		{"a value that is a bucket", func(c crafted) { le.PutUint32(c.element(leaf(c), 3), 1) }, "has the flags 0x1"},
		{"an empty leaf below a branch", func(c crafted) { le.PutUint16(c.page(int(le.Uint64(c.element(branch(c), 1)[8:])))[10:], 0) }, "it is empty"},
		{"an overflow over live pages", func(c crafted) { le.PutUint32(c.page(leaf(c))[12:], 2) }, "bbolt pages"}, // in use already, or more than it needs
		{"an overflow without end", func(c crafted) { le.PutUint32(c.page(leaf(c))[12:], 1<<32-1) }, "not among"},
		{"an overflow that is lost", func(c crafted) { le.PutUint32(c.page(overflow(c))[12:], 0) }, "lies outside of it"},
		{"a leaf that is a branch", func(c crafted) { le.PutUint16(c.page(leaf(c))[8:], 1) }, ""},
		{"a page of two kinds", func(c crafted) { le.PutUint16(c.page(leaf(c))[8:], 3) }, "page flags are 0x3"},
		{"a page with another number", func(c crafted) { le.PutUint64(c.page(leaf(c)), 5) }, "it says that it is page 5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			attempts.Count(t, 1, "files crafted")
			c := crafted(bytes.Clone(whole))
			tt.craft(c)
			c.seal()
			err := c.try(t)
			require.Error(t, err, "it was not refused")
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

// Of a file of more than 64 MiB, Open reads the leaves only if it is told to.
func TestCraftedLeafOfALargeFile(t *testing.T) {
	c := craftedFile(t)
	leaf := 0 // of a table, which leads to no other page
	for _, branch := range c.find(1, 3) {
		if below := int(le.Uint64(c.element(branch, 1)[8:])); c.flags(below) == 2 {
			leaf = below
		}
	}
	le.PutUint32(c.element(leaf, 0)[12:], 1<<31) // the length of a value
	path := filepath.Join(t.TempDir(), "flash.db")
	require.NoError(t, os.WriteFile(path, c, 0o600))
	_, err := storage.Open(path, nil)
	require.ErrorIs(t, err, format.ErrCorrupt)
	s, err := storage.Open(path, &storage.Options{ReadOnly: true})
	require.NoError(t, err, "what is left of it can be read")
	require.NoError(t, s.View(func(v *storage.View) error {
		_, ok := v.Collection("c0")
		assert.True(t, ok)
		return nil
	}))
	require.NoError(t, s.Close())

	require.NoError(t, os.Truncate(path, 64<<20+craftedPage))
	for _, readOnly := range []bool{true, false} {
		_, err = storage.Open(path, &storage.Options{Verify: true, ReadOnly: readOnly})
		require.ErrorIs(t, err, format.ErrCorrupt)
		require.ErrorContains(t, err, "lies outside of it")
	}
	s, err = storage.Open(path, nil)
	require.NoError(t, err)
	var findings []string
	s.Check(func(finding string) { findings = append(findings, finding) })
	require.Contains(t, strings.Join(findings, "\n"), "lies outside of it")
	require.NoError(t, s.Close())
}

func swapBytes(a, b []byte) {
	for i := range min(len(a), len(b)) {
		a[i], b[i] = b[i], a[i]
	}
}

// swapKeys swaps two keys of the same length in a leaf.
func (c crafted) swapKeys(p int) {
	a, b := c.element(p, 1), c.element(p, 2)
	page := c.page(p)
	swapBytes(page[16+16+int(le.Uint32(a[4:])):][:le.Uint32(a[8:])], page[16+32+int(le.Uint32(b[4:])):][:le.Uint32(b[8:])])
}
