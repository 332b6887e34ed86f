package storage_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

// What files hold depends on these numbers: they must never change.
func TestRowsPerBlock(t *testing.T) {
	for dim, want := range map[int]int{
		1: 64, 2: 59, 3: 49, 8: 55, 16: 59, 32: 30, 64: 15, 100: 10, 128: 5, 200: 5, 256: 1, 300: 3, 384: 1, 400: 2, 512: 1, 768: 1,
		1024: 1, 8192: 1, 1 << 20: 1,
	} {
		assert.Equal(t, want, storage.RowsPerBlock(dim), "dim %d", dim)
	}
}

// A blockTest is a store of one collection, of which each row is dim times the same number, and
// these numbers.
type blockTest struct {
	t    *testing.T
	path string
	opts *storage.Options
	s    *storage.Store
	dim  int
	lsn  uint64

	rows  map[uint32]float32
	dirty map[uint32]uint64
	next  uint32
}

// change applies one change: puts of ids, new ones by their key, and deletes.
func (b *blockTest) change(puts, deletes []uint32) {
	b.t.Helper()
	b.lsn++
	var nodes storage.PutNodes
	for _, id := range puts {
		row := make([]float32, b.dim)
		for i := range row {
			row[i] = float32(b.lsn)
		}
		nodes = append(nodes, storage.PutNode{UID: 1, Key: fmt.Sprint("key", id), Row: row})
		b.rows[id], b.dirty[id] = float32(b.lsn), b.lsn
		b.next = max(b.next, id+1)
	}
	c := b.s.Begin()
	if len(nodes) > 0 {
		require.NoError(b.t, c.Resolve(1, nodes))
		for i, id := range puts {
			require.Equal(b.t, id, nodes[i].ID)
		}
		require.NoError(b.t, c.Apply(nodes, b.lsn))
	}
	for _, id := range deletes {
		require.NoError(b.t, c.Apply(storage.DeleteNode{UID: 1, ID: id}, b.lsn))
		delete(b.rows, id)
		delete(b.dirty, id)
	}
	b.s.Stage(c)
	b.s.Publish()
	b.readRows()
}

func (b *blockTest) readRows() {
	b.t.Helper()
	require.NoError(b.t, b.s.View(func(v *storage.View) error {
		row := make([]float32, b.dim)
		for id := range b.next + 2 {
			want, live := b.rows[id]
			require.Equal(b.t, live, v.Row(row, 1, id), "row of id %d", id)
			if live {
				require.Equal(b.t, []float32{want, want}, []float32{row[0], row[b.dim-1]}, "row of id %d", id)
			}
		}
		return nil
	}))
}

// flush flushes, compares what is in the file, and checks it.
func (b *blockTest) flush() {
	b.t.Helper()
	flush(b.t, b.s)
	assertClean(b.t, b.s)
	b.readRows()
	for _, from := range []uint32{0, 1, b.next / 2, b.next - 1, b.next} {
		var ids []uint32
		require.NoError(b.t, b.s.Rows(b.t.Context(), 1, from, func(some []uint32, rows []float32) error {
			require.Len(b.t, rows, len(some)*b.dim)
			for i, id := range some {
				require.Equal(b.t, b.rows[id], rows[i*b.dim], "row of id %d", id)
			}
			ids = append(ids, some...)
			return nil
		}))
		want := slices.DeleteFunc(slices.Sorted(maps.Keys(b.rows)), func(id uint32) bool { return id < from })
		require.True(b.t, slices.Equal(want, ids), "ids from %d on: want %d, got %d", from, want, ids)
	}
	dirty := map[uint32]uint64{}
	last := -1
	require.NoError(b.t, b.s.Dirty(1, func(id uint32, lsn uint64) error {
		require.Greater(b.t, int(id), last)
		last = int(id)
		dirty[id] = lsn
		return nil
	}))
	require.Equal(b.t, b.dirty, dirty)
}

func (b *blockTest) publishGeneration(upTo uint64) {
	b.t.Helper()
	require.NoError(b.t, b.s.PublishGeneration(1, upTo, upTo))
	maps.DeleteFunc(b.dirty, func(_ uint32, lsn uint64) bool { return lsn <= upTo })
	b.flush()
}

func idsFrom(from, to uint32) []uint32 {
	var ids []uint32
	for id := from; id < to; id++ {
		ids = append(ids, id)
	}
	return ids
}

// TestBlockBorders changes rows on both sides of the borders of blocks, alone and together, in
// files of every layout.
func TestBlockBorders(t *testing.T) {
	for _, layout := range storage.Layouts {
		for _, dim := range []int{1, 64, 300, 8192} {
			t.Run(fmt.Sprintf("version %d/dim %d", layout, dim), func(t *testing.T) {
				b := &blockTest{
					t: t, path: newPath(t), opts: storage.OptionsFor(layout, 4), dim: dim, lsn: 1,
					rows: map[uint32]float32{}, dirty: map[uint32]uint64{},
				}
				b.s = openWith(t, b.path, b.opts)
				commit(t, b.s, 1, storage.CreateCollection{UID: 1, Name: "c", Schema: storage.Schema{Dim: dim}})
				b.borders(uint32(storage.RowsPerBlock(dim)))
			})
		}
	}
}

func (b *blockTest) borders(size uint32) {
	last := 3*size + 2
	for _, to := range []uint32{1, size - 1, size, size + 1, 2 * size, last} { // appended in pieces, flushed in between
		if to > b.next {
			b.change(idsFrom(b.next, to), nil)
			b.flush()
		}
	}
	for _, id := range []uint32{0, size - 1, size, size + 1, 2*size - 1, 2 * size, 31, 32, 33, 63, 64, 65} {
		if _, live := b.rows[id]; live {
			b.change([]uint32{id}, nil)
		}
	}
	b.flush()
	b.publishGeneration(b.lsn - 2)
	b.change([]uint32{size - 1, size}, nil) // replaced in two blocks by one batch
	b.flush()
	b.change(nil, []uint32{size - 1})
	b.change(nil, []uint32{2 * size})
	b.flush()
	b.publishGeneration(b.lsn)

	var block []uint32 // the second one whole
	for id := size; id < 2*size; id++ {
		if _, live := b.rows[id]; live {
			block = append(block, id)
		}
	}
	b.change(nil, block)
	b.flush()
	b.change(idsFrom(b.next, b.next+size+1), nil) // the block that was last grows
	b.change(nil, []uint32{b.next - 1})           // deleted before it was flushed
	b.flush()

	require.NoError(b.t, b.s.Close())
	b.s = openWith(b.t, b.path, b.opts)
	b.flush()
	b.change(nil, slices.Sorted(maps.Keys(b.rows)))
	b.flush()
	b.change([]uint32{b.next}, nil)
	b.flush()
}

// Random puts and deletes at every place of a few blocks.
func TestBlocksAtRandom(t *testing.T) {
	for _, dim := range []int{2, 64, 400} {
		rng := rand.New(rand.NewPCG(uint64(dim), 1))
		b := &blockTest{
			t: t, path: newPath(t), opts: storage.OptionsFor(0, 4), dim: dim, lsn: 1,
			rows: map[uint32]float32{}, dirty: map[uint32]uint64{},
		}
		b.s = openWith(t, b.path, b.opts)
		commit(t, b.s, 1, storage.CreateCollection{UID: 1, Name: "c", Schema: storage.Schema{Dim: dim}})
		for range 80 {
			live := slices.Sorted(maps.Keys(b.rows))
			switch n := rng.IntN(8); {
			case len(live) == 0 || n < 2:
				b.change(idsFrom(b.next, b.next+1+rng.Uint32N(20)), nil)
			case n < 4:
				b.change([]uint32{live[rng.IntN(len(live))]}, nil)
			case n < 5:
				rng.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
				b.change(nil, live[:1+rng.IntN(len(live)/3+1)])
			case n < 7:
				b.flush()
			default:
				b.flush()
				b.publishGeneration(rng.Uint64N(b.lsn + 1))
			}
		}
		b.flush()
	}
}

// Damage in a block is an error of every read of it, and says which block it is.
func TestDamagedBlocks(t *testing.T) {
	path := sampleFile(t)
	const block0 = "\x00\x00\x00\x00"
	edit(t, path, func(tx *bolt.Tx) error {
		c := tx.Bucket([]byte("c")).Bucket([]byte{0, 0, 0, 1})
		mask := storage.Seal(1, "rows", block0, []byte{3, 0, 0, 0, 0, 0, 0, 0})
		return errors.Join(plantRaw("rows", block0, append(mask, 9))(c), plantPut("dirty", block0, []byte{1})(c))
	})
	s, err := storage.Open(path, nil)
	require.NoError(t, err)
	defer s.Close()
	const want = `collection "papers": rows: block 0 at offset `
	err = s.View(func(v *storage.View) error {
		assert.False(t, v.Row(make([]float32, 2), 1, 0))
		return nil
	})
	require.ErrorIs(t, err, format.ErrCorrupt)
	require.ErrorContains(t, err, want)
	require.ErrorContains(t, s.Rows(t.Context(), 1, 0, nil), ": 1 bytes of rows, want 24")
	require.ErrorContains(t, s.Dirty(1, nil), "dirty: block 0 at offset 0")
	commit(t, s, 2, storage.PutNode{UID: 1, ID: 1, Key: "b", Row: []float32{1, 1}})
	_, err = s.Flush()
	require.ErrorIs(t, err, format.ErrCorrupt, "the other rows of the block must not be lost unseen")
	require.ErrorContains(t, err, "rows: block 0")
	require.ErrorIs(t, s.PublishGeneration(1, 1, 1), format.ErrCorrupt)
}

// A node's ids must be the next ones, and its key one.
func TestPutNodesRefuses(t *testing.T) {
	row := []float32{1, 2}
	put := func(id uint32, key string) storage.PutNode {
		return storage.PutNode{UID: 1, ID: id, Key: key, Row: row}
	}
	for _, tt := range []struct {
		nodes storage.PutNodes
		want  string
	}{
		{storage.PutNodes{put(3, "m"), put(4, "n"), put(6, "o")}, "id 6 is deleted, or not the next one, which is 5"},
		{storage.PutNodes{put(3, "m"), put(4, "n"), put(5, "m")}, "the key comes twice with a new id"},
		{storage.PutNodes{put(3, "m"), put(4, ""), put(5, "o")}, "key has 0 bytes"},
		{storage.PutNodes{put(3, "m"), {UID: 1, ID: 4, Key: "n", Row: row[:1]}}, "row has 1 values, want 2"},
		{storage.PutNodes{put(3, "m"), {UID: 2, ID: 4, Key: "n", Row: row}}, "collections with UIDs 1 and 2"},
		{storage.PutNodes{{UID: 9, Key: "n", Row: row}}, "collection with UID 9: not found"},
	} {
		s := openWith(t, newPath(t), storage.OptionsFor(0, 1))
		sample(t, s)
		require.ErrorContains(t, s.Begin().Apply(tt.nodes, 2), tt.want)
	}
}
