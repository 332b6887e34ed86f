package pq

import (
	"bytes"
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/simd"
)

// normal returns n rows (row-major, n x d) whose dimensions differ in spread.
func normal(seed uint64, n, d int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	rows := make([]float32, n*d)
	for i := range rows {
		rows[i] = float32(rng.NormFloat64() * float64(1+i%d%5))
	}
	return rows
}

func mustTrain(t testing.TB, rows []float32, d int, opt Options) *Quantizer {
	t.Helper()
	q, err := Train(t.Context(), rows, d, opt)
	require.NoError(t, err)
	return q
}

// decode is the row that a code stands for.
func decode(q *Quantizer, code []byte) []float32 {
	row := make([]float32, q.shape.Dim)
	q.decode(row, code)
	return row
}

func TestShape(t *testing.T) {
	tests := []struct {
		name           string
		shape          Shape
		subDim         int // after WithDefaults
		code, list     int // CodeBytes, ListBytes(33)
		table, marshal int // TableLen, MarshalBytes
	}{
		{"default", Shape{Dim: 128}, 2, 32, 64 * 32, 64 * 16, 12 + 4*128*16},
		{"odd dimension", Shape{Dim: 5}, 2, 2, 64 * 2, 4 * 16, 12 + 4*6*16},
		{"one dimension", Shape{Dim: 1}, 2, 1, 64, 2 * 16, 12 + 4*2*16},
		{"as wide as two dimensions allow", Shape{Dim: 512}, 2, 128, 64 * 128, 256 * 16, 12 + 4*512*16},
		{"wider", Shape{Dim: 513}, 4, 65, 64 * 65, 130 * 16, 12 + 4*516*16},
		{"widest", Shape{Dim: MaxDim}, 256, 128, 64 * 128, 256 * 16, 12 + 4*MaxDim*16},
		{"8 bits", Shape{Dim: 128, Bits: 8}, 4, 32, 33 * 32, 32 * 256, 12 + 4*128*256},
		{"by hand", Shape{Dim: 12, SubDim: 3}, 3, 2, 64 * 2, 4 * 16, 12 + 4*12*16},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.shape.WithDefaults()
			require.NoError(t, s.Validate())
			assert.Equal(t, tt.subDim, s.SubDim)
			assert.Equal(t, tt.code, s.CodeBytes())
			assert.Equal(t, tt.list, s.ListBytes(33))
			assert.Equal(t, tt.table, s.TableLen())
			assert.Equal(t, tt.marshal, s.MarshalBytes())
		})
	}
}

func TestShapeFaults(t *testing.T) {
	tests := []struct {
		shape Shape
		err   string
	}{
		{Shape{}, "dimension 0: want 1 to 65536"},
		{Shape{Dim: MaxDim + 1}, "dimension 65537: want 1 to 65536"},
		{Shape{Dim: 8, Bits: 5}, "5 bits a sub-vector: want 4 or 8"},
		{Shape{Dim: 8, Bits: 1}, "1 bits a sub-vector: want 4 or 8"},
		{Shape{Dim: 8, SubDim: -2}, "sub-vectors of -2 dimensions: want 1 to 256"},
		{Shape{Dim: 514, SubDim: 2}, "257 sub-vectors of 2 dimensions: want at most 256, make them wider"},
	}
	for _, tt := range tests {
		require.EqualError(t, tt.shape.WithDefaults().Validate(), tt.err)
	}
	_, err := Train(t.Context(), make([]float32, 8), 8, Options{Bits: 5})
	require.EqualError(t, err, "train product quantizer: 5 bits a sub-vector: want 4 or 8")
}

// TestTableEstimatesTheInnerProduct checks the whole chain: the table of a query, summed by the
// kernel over packed codes, equals the inner product with the decoded rows up to the rounding of
// the table.
func TestTableEstimatesTheInnerProduct(t *testing.T) {
	for _, d := range []int{1, 2, 3, 7, 64, 512, 700} {
		const n = 70
		rows, queries := normal(1, n, d), normal(2, 3, d)
		q := mustTrain(t, rows, d, Options{Seed: 3})
		size := q.Shape().CodeBytes()
		codes := make([]byte, n*size)
		for i := range n {
			q.Encode(codes[i*size:(i+1)*size], rows[i*d:(i+1)*d])
		}
		packed := make([]byte, q.Shape().ListBytes(n))
		Pack(packed, codes, size)
		lut := make([]byte, q.Shape().TableLen())
		pos, sums := make([]uint32, 96), make([]uint16, 96)
		for k := range 3 {
			query := queries[k*d : (k+1)*d]
			scale, bias := q.Table(lut, query)
			require.Equal(t, 96, simd.Scan4(pos, sums, packed, lut, size, 0))
			worst := scale/2*float32(q.shape.subs()) + 1e-3*scale
			for i := range n {
				want := simd.Dot(query, decode(q, codes[i*size:(i+1)*size]))
				require.InDelta(t, want, scale*float32(sums[i])+bias, float64(worst), "dim %d, row %d", d, i)
			}
		}
	}
}

// TestTableFitsInBytes checks that the largest entries of the tables which simd.Scan4 adds up as
// bytes fit in one, and that they use most of it.
func TestTableFitsInBytes(t *testing.T) {
	for _, d := range []int{1, 7, 31, 64, 129, 700} {
		q := mustTrain(t, normal(1, 70, d), d, Options{Seed: 3})
		lut := make([]byte, q.Shape().TableLen())
		for k := range uint64(20) {
			q.Table(lut, normal(k, 1, d))
			groups := make(map[int]int)
			for s := range len(lut) / 16 {
				groups[simd.Scan4Group(s)] += int(slices.Max(lut[s*16 : (s+1)*16]))
			}
			widest := slices.Max(slices.Collect(maps.Values(groups)))
			assert.LessOrEqual(t, widest, math.MaxUint8, "dim %d, query %d", d, k)
			assert.GreaterOrEqual(t, widest, math.MaxUint8-8, "dim %d, query %d", d, k)
		}
	}
}

func TestTableOf8Bits(t *testing.T) {
	for _, d := range []int{1, 4, 9, 64} {
		const n = 40
		rows, query := normal(4, n, d), normal(5, 1, d)
		q := mustTrain(t, rows, d, Options{Bits: 8})
		size := q.Shape().CodeBytes()
		codes := make([]byte, n*size)
		for i := range n {
			q.Encode(codes[i*size:(i+1)*size], rows[i*d:(i+1)*d])
		}
		lut, sums := make([]float32, q.Shape().TableLen()), make([]float32, n)
		q.FloatTable(lut, query)
		simd.Scan8(sums, codes, lut, size)
		for i := range n {
			row := rows[i*d : (i+1)*d]
			assert.InDelta(t, simd.Dot(query, decode(q, codes[i*size:(i+1)*size])), sums[i], 1e-3)
			assert.InDelta(t, simd.Dot(query, row), sums[i], 1e-3, "with fewer rows than points every row has its own")
		}
	}
}

func TestTableOfZeroQuery(t *testing.T) {
	const d = 6
	q := mustTrain(t, normal(6, 50, d), d, Options{})
	lut := bytes.Repeat([]byte{9}, q.Shape().TableLen())
	scale, bias := q.Table(lut, make([]float32, d))
	assert.Zero(t, scale)
	assert.Zero(t, bias)
	assert.Equal(t, make([]byte, len(lut)), lut)
}

func TestTableSurvivesHugeQueries(t *testing.T) {
	const d = 6
	q := mustTrain(t, normal(6, 50, d), d, Options{})
	lut := make([]byte, q.Shape().TableLen())
	for _, x := range []float32{math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN()), 1e-45} {
		q.Table(lut, []float32{x, -x, x, 0, 1, x})
	}
}

func TestEncodeFindsTheNearestPoint(t *testing.T) {
	const d, n = 9, 200
	rows := normal(7, n, d)
	for _, opt := range []Options{{}, {SubDim: 3}, {SubDim: 1}, {Bits: 8}} {
		q := mustTrain(t, rows, d, opt)
		code := make([]byte, q.Shape().CodeBytes())
		for i := range n {
			row := rows[i*d : (i+1)*d]
			q.Encode(code, row)
			got := decode(q, code)
			for s := range q.shape.subs() {
				points, half := q.book(s)
				x := q.sub(row, s)
				for p := range half {
					require.LessOrEqual(t, simd.SquaredL2(x, q.sub(got, s)),
						simd.SquaredL2(x, points[p*q.shape.SubDim:])*1.001+1e-4)
				}
			}
		}
	}
}

func TestLoss(t *testing.T) {
	const d, n = 8, 3000
	rows := normal(8, n, d)
	loss := func(opt Options) float64 {
		q := mustTrain(t, rows, d, opt)
		code := make([]byte, q.Shape().CodeBytes())
		var sum, norm float64
		for i := range n {
			row := rows[i*d : (i+1)*d]
			q.Encode(code, row)
			sum += float64(simd.SquaredL2(row, decode(q, code)))
			norm += float64(simd.Dot(row, row))
		}
		assert.InDelta(t, sum/norm, q.Loss(), 1e-6)
		return sum / norm
	}
	four, eight := loss(Options{}), loss(Options{Bits: 8, SubDim: 2})
	assert.InDelta(t, 0.08, four, 0.02, "two bits per dimension of a Gaussian")
	assert.Less(t, eight, four/8, "more bits lose less")
	assert.Greater(t, loss(Options{SubDim: 4}), 2*four, "wider sub-vectors lose more")

	assert.Zero(t, mustTrain(t, make([]float32, 80), d, Options{}).Loss())
}

func TestTrainingIsDeterministic(t *testing.T) {
	const d = 10
	rows := normal(9, 3000, d)
	want := mustTrain(t, rows, d, Options{Seed: 5, Workers: 1})
	assert.Equal(t, want, mustTrain(t, rows, d, Options{Seed: 5, Workers: 3}))
	assert.NotEqual(t, want.books, mustTrain(t, rows, d, Options{Seed: 6}).books)
}

func TestTrainCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Train(ctx, normal(1, 100, 4), 4, Options{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestPackPadsTheLastBlock(t *testing.T) {
	codes := make([]byte, 33*2)
	for i := range 33 {
		codes[2*i], codes[2*i+1] = byte(i+1), byte(i+101)
	}
	dst := bytes.Repeat([]byte{0xee}, 128)
	Pack(dst, codes, 2)
	for i := range 64 {
		first, second := dst[i/32*64+i%32], dst[i/32*64+32+i%32]
		if i < 33 {
			assert.Equal(t, []byte{byte(i + 1), byte(i + 101)}, []byte{first, second}, "code %d", i)
		} else {
			assert.Equal(t, []byte{0, 0}, []byte{first, second}, "code %d", i)
		}
	}
}

func TestMarshal(t *testing.T) {
	for _, opt := range []Options{{}, {Bits: 8}, {SubDim: 3}} {
		q := mustTrain(t, normal(10, 300, 7), 7, opt)
		w := format.NewWriter(nil)
		q.Marshal(w)
		require.Equal(t, q.Shape().MarshalBytes(), w.Len())
		got, err := Unmarshal(format.NewReader("f", "codebooks", 0, w.Data()))
		require.NoError(t, err)
		assert.Equal(t, q, got)
	}
}

func TestUnmarshalFaults(t *testing.T) {
	header := func(dim uint32, bits, subDim uint16, values int) []byte {
		w := format.NewWriter(nil)
		w.Uint32(dim)
		w.Uint16(bits)
		w.Uint16(subDim)
		w.Float32(0.25)
		w.Bytes(make([]byte, 4*values))
		return w.Data()
	}
	tests := []struct {
		name string
		data []byte
		err  string
	}{
		{"empty", nil, "corrupt gen.ivf: codebooks at offset 640: data ends early: 4 bytes wanted, 0 left"},
		{"no dimension", header(0, 4, 2, 0), "corrupt gen.ivf: codebooks at offset 652: codebooks: dimension 0: want 1 to 65536"},
		{"hostile dimension", header(1<<31, 4, 1, 9), "corrupt gen.ivf: codebooks at offset 652: codebooks: dimension 2147483648: want 1 to 65536"},
		{"negative loss", append([]byte{2, 0, 0, 0, 4, 0, 2, 0, 0, 0, 128, 191}, make([]byte, 128)...), "corrupt gen.ivf: codebooks at offset 652: codebooks: loss -1: want 0 to 1"},
		{"bits", header(2, 3, 2, 16), "corrupt gen.ivf: codebooks at offset 652: codebooks: 3 bits a sub-vector: want 4 or 8"},
		{"too short", header(4, 4, 2, 63), "corrupt gen.ivf: codebooks at offset 652: codebooks of 252 bytes, want 256"},
		{"too long", header(4, 4, 2, 65), "corrupt gen.ivf: codebooks at offset 652: codebooks of 260 bytes, want 256"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Unmarshal(format.NewReader("gen.ivf", "codebooks", 640, tt.data))
			require.EqualError(t, err, tt.err)
			require.ErrorIs(t, err, format.ErrCorrupt)
		})
	}
}

func TestTableDoesNotAllocate(t *testing.T) {
	const d = 128
	rows := normal(11, 100, d)
	q := mustTrain(t, rows, d, Options{})
	lut, code := make([]byte, q.Shape().TableLen()), make([]byte, q.Shape().CodeBytes())
	assert.Zero(t, testing.AllocsPerRun(20, func() {
		q.Table(lut, rows[:d])
		q.Encode(code, rows[:d])
	}))
}

func FuzzUnmarshal(f *testing.F) {
	for _, opt := range []Options{{}, {Bits: 8}, {SubDim: 1}} {
		w := format.NewWriter(nil)
		mustTrain(f, normal(12, 20, 3), 3, opt).Marshal(w)
		f.Add(w.Data())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		q, err := Unmarshal(format.NewReader("fuzz", "codebooks", 0, data))
		if err != nil {
			require.ErrorIs(t, err, format.ErrCorrupt)
			return
		}
		w := format.NewWriter(nil)
		q.Marshal(w)
		require.Equal(t, data, w.Data())
		q.Encode(make([]byte, q.Shape().CodeBytes()), make([]float32, q.Shape().Dim))
	})
}

func BenchmarkEncode(b *testing.B) {
	const d = 128
	rows := normal(13, 1000, d)
	q := mustTrain(b, rows, d, Options{})
	code := make([]byte, q.Shape().CodeBytes())
	for i := 0; b.Loop(); i++ {
		q.Encode(code, rows[i%1000*d:(i%1000+1)*d])
	}
}

func BenchmarkTable(b *testing.B) {
	const d = 128
	rows := normal(14, 1000, d)
	q := mustTrain(b, rows, d, Options{})
	lut := make([]byte, q.Shape().TableLen())
	for i := 0; b.Loop(); i++ {
		q.Table(lut, rows[i%1000*d:(i%1000+1)*d])
	}
}
