package ivf

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/vfs"
)

// keySource has keys by id. Like a store it streams those of nodes that live, whether they are
// indexed or not.
type keySource map[uint32]string

func (s keySource) Keys(_ context.Context, fn func([]uint32, [][]byte) error) error {
	const cut = 7
	var ids []uint32
	var keys [][]byte
	flush := func() error {
		err := fn(ids, keys)
		for _, k := range keys { // fn keeps nothing
			clear(k)
		}
		ids, keys = ids[:0], keys[:0]
		return err
	}
	for id := range uint32(1 << 16) {
		if key, ok := s[id]; ok {
			ids, keys = append(ids, id), append(keys, []byte(key))
		}
		if len(ids) == cut {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// named gives every row a key, some of them long, and ids beside them, which are nodes but no rows
// of the index, too.
func named(t *table) keySource {
	keys := keySource{}
	for _, id := range t.ids {
		keys[id+1] = "not a row"
	}
	for i, id := range t.ids {
		keys[id] = fmt.Sprintf("key %d", id) + strings.Repeat("x", i%50/49*1000)
	}
	return keys
}

func TestKeys(t *testing.T) {
	for _, n := range []int{1, 2, 31, 3000, 9000} { // ids to twice that: beyond two bases
		rows := clustered(1, n, 4)
		keys := named(rows)
		ix := build(t, rows, BuildOptions{Dim: 4, Keys: keys})
		require.NotNil(t, ix.section(kindKeys))
		indexed := map[uint32]bool{}
		for _, id := range rows.ids {
			indexed[id] = true
			key, ok := ix.Key(id)
			require.True(t, ok, id)
			require.Equal(t, keys[id], string(key), id)
		}
		for _, id := range []uint32{0, rows.ids[n-1] + 1, math.MaxUint32} {
			_, ok := ix.Key(id)
			assert.False(t, ok, id)
		}
		for id := range rows.ids[n-1] {
			if _, ok := ix.Key(id); ok {
				require.True(t, indexed[id], "id %d is no row", id)
			}
		}
	}
}

func TestKeysOfNodesDeletedMeanwhileAreMissing(t *testing.T) {
	rows := clustered(2, 500, 4)
	keys := keySource{}
	for _, id := range rows.ids[100:400] {
		keys[id] = fmt.Sprint(id)
	}
	ix := build(t, rows, BuildOptions{Dim: 4, Keys: keys})
	for i, id := range rows.ids {
		key, ok := ix.Key(id)
		require.Equal(t, i >= 100 && i < 400, ok)
		require.Equal(t, keys[id], string(key))
	}
}

func TestKeysOfSparseIdsAreLeftOut(t *testing.T) {
	rows := clustered(3, 100, 4)
	for i := range rows.ids {
		rows.ids[i] *= 5
	}
	ix := build(t, rows, BuildOptions{Dim: 4, Keys: named(rows)})
	assert.Nil(t, ix.section(kindKeys))
	_, ok := ix.Key(rows.ids[0])
	assert.False(t, ok)
}

func TestBadKeys(t *testing.T) {
	rows := clustered(4, 10, 4)
	for _, bad := range []string{"", strings.Repeat("x", maxKeyLength+1)} {
		keys := named(rows)
		keys[rows.ids[3]] = bad
		err := Build(t.Context(), vfs.NewMem(), testPath, rows, BuildOptions{Dim: 4, Keys: keys})
		assert.ErrorContains(t, err, fmt.Sprintf("id %d has a key of %d bytes, want 1 to 65536", rows.ids[3], len(bad)))
	}
}

// TestDamagedKeys changes numbers of the section under a checksum that holds.
func TestDamagedKeys(t *testing.T) {
	rows := clustered(5, 5000, 4)
	good := buildBytes(t, rows, BuildOptions{Dim: 4, Keys: named(rows)})
	ids := int64(rows.ids[len(rows.ids)-1]) + 1
	require.EqualValues(t, 1, ids%2, "there is padding behind the ends")
	gap := int64(0) // an id that is no row, before one that is
	for _, id := range rows.ids {
		if int64(id) > gap {
			break
		}
		gap++
	}
	// ends returns where the table of ends begins in the file.
	ends := func(s *[]section) int64 { return (*s)[len(*s)-1].end() - keysFooter - align8(4*ids) }
	number := func(back int, v uint64) func(*header, *[]section, []byte) {
		return func(_ *header, s *[]section, data []byte) {
			end := (*s)[len(*s)-1].end()
			copy(data[end-int64(back):], format.Uint64Bytes([]uint64{v}))
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*header, *[]section, []byte)
		load   string // what Load says; empty: what Check says
		check  string
	}{
		{"other ids", number(16, 7), "keys of 7 ids", ""},
		{"endless bytes", number(8, math.MaxUint64), "bytes of keys", ""},
		{"few bytes", number(8, 8), "bytes of keys", ""},
		{"short section", func(_ *header, s *[]section, _ []byte) { (*s)[len(*s)-1].length = 8 }, "8 bytes, want at least 16", ""},
		{"base elsewhere", func(_ *header, s *[]section, data []byte) {
			k := (*s)[len(*s)-1]
			footer := format.Uint64s(data[k.end()-keysFooter : k.end()])
			copy(data[k.offset+align8(int64(footer[1])):], format.Uint64Bytes([]uint64{1 << 60}))
		}, "", "the keys from id 0 on begin at"},
		{"end before its begin", func(_ *header, s *[]section, data []byte) {
			k := (*s)[len(*s)-1]
			copy(data[k.end()-keysFooter-1000:], []byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
		}, "", "ends at"},
		{"padding of the keys", func(_ *header, s *[]section, data []byte) {
			k := (*s)[len(*s)-1]
			footer := format.Uint64s(data[k.end()-keysFooter : k.end()])
			require.NotZero(t, footer[1]%8)
			data[k.offset+int64(footer[1])] = 3
		}, "", "byte 03 after the last key, want zero"},
		{"padding of the ends", func(_ *header, s *[]section, data []byte) {
			data[(*s)[len(*s)-1].end()-keysFooter-1] = 4
		}, "", "byte 04 after the last end, want zero"},
		{"key of no row", func(_ *header, s *[]section, data []byte) { // it gets the first byte of the next key
			data[ends(s)+4*gap]++
		}, "", fmt.Sprintf("id %d has a key and is not in the index", gap)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ix, err := Load(edit(t, good, tt.change), "gen.ivf")
			if tt.load != "" {
				require.ErrorIs(t, err, format.ErrCorrupt)
				require.ErrorContains(t, err, tt.load)
				return
			}
			require.NoError(t, err)
			for id := range uint32(20_000) { // no panic, whatever the table says
				ix.Key(id)
			}
			require.ErrorContains(t, ix.Check(), tt.check)
		})
	}
}

// TestKeysAreWrittenInPieces checks that no more of the tables, which take 4 bytes per id, is
// copied at a time than the buffer holds.
func TestKeysAreWrittenInPieces(t *testing.T) {
	f, err := vfs.NewMem().Create(testPath)
	require.NoError(t, err)
	k := keyWriter{writer: &writer{f: f}, s: &section{kind: kindKeys}, ids: keysBuffer + 1}
	require.NoError(t, k.add([]byte("key")))
	require.NoError(t, k.finish())
	assert.LessOrEqual(t, cap(k.buf), keysBuffer)
	assert.EqualValues(t, 8+8*len(k.bases)+4*keysBuffer+8+keysFooter, k.s.length)
}

// someKeys are for ids up to 30; 11 and 17 have none.
func someKeys() keySource {
	keys := keySource{}
	for id := range uint32(30) {
		if id != 11 && id != 17 {
			keys[id] = fmt.Sprintf("node %d", id)
		}
	}
	return keys
}

func TestKeysGolden(t *testing.T) {
	rows, opt := tiny()
	opt.Keys = someKeys()
	golden(t, "keys.hex", annotate(t, buildBytes(t, rows, opt)))
}

// annotateKeys prints the section, see annotate.
func annotateKeys(s []byte, field func(n int, text string, args ...any), u32, u64 func(name string)) {
	footer := format.Uint64s(s[len(s)-keysFooter:])
	ids, length := int(footer[0]), int(footer[1])
	bases := (ids + idsPerBase - 1) / idsPerBase
	ends := format.Uint32s(s[int(align8(int64(length)))+8*bases:])[:ids]
	last := 0
	for id, end := range ends { // of one base
		if n := int(end) - last; n > 0 {
			field(n, "key %q of id %d", s[last:end], id)
		}
		last = int(end)
	}
	zeros := func(n int) {
		if n > 0 {
			field(n, "zero")
		}
	}
	zeros(int(align8(int64(length))) - length)
	for range bases {
		u64("base")
	}
	for id := range ends {
		u32(fmt.Sprintf("id %d: end", id))
	}
	zeros(int(align8(int64(4*ids))) - 4*ids)
	u64("ids")
	u64("length")
}

// TestFrozenKeys is TestFrozenFile for a file with keys.
func TestFrozenKeys(t *testing.T) {
	data, err := os.ReadFile("testdata/v1-keys.ivf")
	require.NoError(t, err)
	ix, err := Load(data, "v1-keys.ivf")
	require.NoError(t, err)
	require.NoError(t, ix.Check())
	var out strings.Builder
	fmt.Fprintf(&out, "%+v\n", ix.Info())
	for id := range ix.maxID + 2 {
		if key, ok := ix.Key(id); ok {
			fmt.Fprintf(&out, "%d %s\n", id, key)
		} else {
			fmt.Fprintf(&out, "%d has no key\n", id)
		}
	}
	golden(t, "v1-keys.golden", out.String())
}
