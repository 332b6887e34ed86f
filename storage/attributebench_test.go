package storage

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	bsi "github.com/RoaringBitmap/roaring/v2/BitSliceIndexing"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attr"
)

// BenchmarkRange compares three ways to find the ids of a range of values, at the size of the
// genes' articles: the columns of this package, read from the file with their checksums; a
// bit-sliced index in memory; and blocks of ids in the order of their values, in memory. Some
// values are a number of their own for each id, others one of a thousand.
func BenchmarkRange(b *testing.B) {
	const ids = 754_859
	for _, distinct := range []int{ids, 1000} {
		rng := rand.New(rand.NewPCG(1, 1))
		values := make([]int64, ids)
		for id := range values {
			values[id] = rng.Int64N(int64(distinct))
		}
		s := columnsOf(b, values)
		sliced := bsi.NewDefaultBSI()
		for id, v := range values {
			sliced.SetValue(uint64(id), v)
		}
		sliced.RunOptimize()
		blocks := blocksOf(values)
		for _, share := range []float64{.5, .05, .005, .0005} {
			below := int64(share * float64(distinct))
			var want uint64
			b.Run(fmt.Sprintf("distinct=%d/share=%g/columns", distinct, share), func(b *testing.B) {
				high, err := attr.Of(below)
				require.NoError(b, err)
				for b.Loop() {
					require.NoError(b, s.View(func(v *View) error {
						want = v.Match(1, "x", []attr.Range{{To: attr.Cut{Value: high}}}).GetCardinality()
						return nil
					}))
				}
			})
			b.Run(fmt.Sprintf("distinct=%d/share=%g/sliced", distinct, share), func(b *testing.B) {
				var got uint64
				for b.Loop() {
					got = sliced.CompareValue(1, bsi.LT, below, 0, nil).GetCardinality()
				}
				require.Equal(b, want, got)
			})
			b.Run(fmt.Sprintf("distinct=%d/share=%g/sorted", distinct, share), func(b *testing.B) {
				var got uint64
				for b.Loop() {
					got = idsBelow(blocks, below).GetCardinality()
				}
				require.Equal(b, want, got)
			})
		}
		parts, err := sliced.MarshalBinary()
		require.NoError(b, err)
		slicedBytes := 0
		for _, part := range parts {
			slicedBytes += len(part)
		}
		b.Run(fmt.Sprintf("distinct=%d/size", distinct), func(b *testing.B) {
			for b.Loop() {
			}
			b.ReportMetric(float64(columnBytes(b, s))/ids, "columns-B/id")
			b.ReportMetric(float64(slicedBytes)/ids, "sliced-B/id")
			b.ReportMetric(12, "sorted-B/id")
		})
		b.Run(fmt.Sprintf("distinct=%d/set/columns", distinct), func(b *testing.B) { benchmarkSet(b, s) })
	}
}

// benchmarkSet changes one value and flushes it, without a sync.
func benchmarkSet(b *testing.B, s *Store) {
	lsn := s.Applied()
	rng := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		lsn++
		v, err := attr.Of(rng.IntN(1000))
		require.NoError(b, err)
		c := s.Begin()
		require.NoError(b, c.Apply(SetAttributes{UID: 1, ID: rng.Uint32N(700_000), Set: []attr.Named{{Name: "x", Value: v}}}, lsn))
		s.Stage(c)
		s.Publish()
		_, err = s.Flush()
		require.NoError(b, err)
	}
}

// columnsOf stores values as an attribute of nodes with one float each.
func columnsOf(b *testing.B, values []int64) *Store {
	b.Helper()
	s, err := Open(filepath.Join(b.TempDir(), "flash.db"), &Options{NoSync: true})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	c := s.Begin()
	require.NoError(b, c.Apply(CreateCollection{UID: 1, Name: "c", Schema: Schema{Dim: 1}}, 1))
	s.Stage(c)
	s.Publish()
	lsn, id := uint64(1), uint32(0)
	for part := range slices.Chunk(values, 10_000) {
		puts := make(PutNodes, len(part))
		for i, x := range part {
			v, err := attr.Of(x)
			require.NoError(b, err)
			puts[i] = PutNode{UID: 1, ID: id, Key: fmt.Sprint(id), Row: []float32{1}, Attributes: []attr.Named{{Name: "x", Value: v}}}
			id++
		}
		lsn++
		c := s.Begin()
		require.NoError(b, c.Apply(puts, lsn))
		s.Stage(c)
		s.Publish()
	}
	_, err = s.Flush()
	require.NoError(b, err)
	return s
}

// columnBytes is what the columns of collection 1 take in the file.
func columnBytes(b *testing.B, s *Store) (n int) {
	b.Helper()
	require.NoError(b, s.View(func(v *View) error {
		v.each(1, attributesBucket, func(key, value []byte) { n += len(key) + len(value) + sealBytes })
		return nil
	}))
	return n
}

// A sortedBlock is 4,096 ids with neighbouring values.
type sortedBlock struct {
	values []int64
	ids    []uint32
	all    *roaring.Bitmap
}

func blocksOf(values []int64) (blocks []sortedBlock) {
	ids := make([]uint32, len(values))
	for id := range ids {
		ids[id] = uint32(id)
	}
	slices.SortFunc(ids, func(a, b uint32) int { return cmp.Compare(values[a], values[b]) })
	for part := range slices.Chunk(ids, 4096) {
		block := sortedBlock{ids: part, all: roaring.BitmapOf(part...)}
		for _, id := range part {
			block.values = append(block.values, values[id])
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// idsBelow returns the ids of the values below one.
func idsBelow(blocks []sortedBlock, high int64) *roaring.Bitmap {
	var whole []*roaring.Bitmap
	for _, block := range blocks {
		if block.values[len(block.values)-1] < high {
			whole = append(whole, block.all)
			continue
		}
		n, _ := slices.BinarySearch(block.values, high)
		out := roaring.FastOr(whole...)
		out.AddMany(block.ids[:n])
		return out
	}
	return roaring.FastOr(whole...)
}
