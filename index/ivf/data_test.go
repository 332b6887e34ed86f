package ivf

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/simd"
	"github.com/flashdb/flashdb/internal/vfs"
)

// table is rows in memory: a RowSource.
type table struct {
	dim  int
	ids  []uint32
	rows []float32 // row-major
	cut  int       // rows handed out at a time
}

func (t *table) Rows(_ context.Context, fn func([]uint32, []float32) error) error {
	cut := max(1, t.cut)
	for i := 0; i < len(t.ids); i += cut {
		end := min(len(t.ids), i+cut)
		if err := fn(t.ids[i:end], t.rows[i*t.dim:end*t.dim]); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) row(i int) []float32 { return t.rows[i*t.dim : (i+1)*t.dim] }

// clustered returns n rows around centres of their own, with gaps between the ids.
func clustered(seed uint64, n, dim int) *table {
	rng := rand.New(rand.NewPCG(seed, 77))
	centres := make([]float64, (1+n/50)*dim)
	for i := range centres {
		centres[i] = 2 * rng.NormFloat64()
	}
	t := &table{dim: dim, cut: 100, rows: make([]float32, 0, n*dim)}
	id := uint32(0)
	for range n {
		id += 1 + uint32(rng.IntN(3))
		t.ids = append(t.ids, id)
		c := rng.IntN(len(centres) / dim)
		for j := range dim {
			t.rows = append(t.rows, float32(centres[c*dim+j]+rng.NormFloat64()))
		}
	}
	return t
}

// queries returns random queries: products of two rows with random signs, as a decoder makes them.
func (t *table) queries(seed uint64, n int) [][]float32 {
	rng := rand.New(rand.NewPCG(seed, 78))
	out := make([][]float32, n)
	for i := range out {
		q := make([]float32, t.dim)
		simd.Mul(q, t.row(rng.IntN(len(t.ids))), t.row(rng.IntN(len(t.ids))))
		for j := range q {
			if rng.IntN(2) == 0 {
				q[j] = -q[j]
			}
		}
		out[i] = q
	}
	return out
}

// exact returns the n rows of highest inner product that the filter keeps.
func (t *table) exact(q []float32, n int, filter index.Filter) []index.Hit {
	top := index.NewTopK(n)
	for i, id := range t.ids {
		if filter.Keep(id) {
			top.Offer(id, simd.Dot(q, t.row(i)))
		}
	}
	return top.Sorted(nil)
}

// recall is the share of the exact answer that was found, by score, so that ties are no misses.
func recall(exact []index.Hit, found []index.Candidate) float64 {
	worst := exact[len(exact)-1].Score
	if worst-worst == 0 { // not an infinity
		worst -= 1e-5 * float32(math.Abs(float64(worst)))
	}
	hits := 0
	for _, c := range found {
		if c.Score >= worst {
			hits++
		}
	}
	return min(1, float64(hits)/float64(len(exact)))
}

const testPath = "gen-000001.ivf"

// buildBytes builds an index in memory and returns the file.
func buildBytes(t testing.TB, src RowSource, opt BuildOptions) []byte {
	t.Helper()
	fs := vfs.NewMem()
	require.NoError(t, Build(t.Context(), fs, testPath, src, opt))
	names, err := fs.ReadDir(".")
	require.NoError(t, err)
	require.Equal(t, []string{testPath}, names, "nothing else is left")
	m, err := fs.Map(testPath)
	require.NoError(t, err)
	return m.Bytes()
}

// build returns an open index; the test's cleanup checks it.
func build(t testing.TB, src RowSource, opt BuildOptions) *Index {
	t.Helper()
	ix, err := Load(buildBytes(t, src, opt), testPath)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, ix.Check())
		require.NoError(t, ix.Release())
	})
	return ix
}

// search runs one query on a fresh Search.
func search(t testing.TB, ix *Index, q []float32, n int, probes index.Probes, filter index.Filter) []index.Candidate {
	t.Helper()
	dst := make([][]index.Candidate, 1)
	require.NoError(t, ix.NewSearch().Search(t.Context(), [][]float32{q}, n, probes, filter, dst))
	return dst[0]
}

// graph returns the embeddings of one of the graphs in FLASHDB_DATA, from row first on.
func graph(t testing.TB, name string, first int) *table {
	t.Helper()
	dir := os.Getenv("FLASHDB_DATA")
	if dir == "" {
		t.Skip("FLASHDB_DATA is not set: recall on the " + name + " graph is not measured")
	}
	data, err := os.ReadFile(filepath.Join(dir, name, "embeddings.npy"))
	require.NoError(t, err)
	header, values, ok := bytes.Cut(data, []byte("\n"))
	require.True(t, ok && bytes.Contains(header, []byte("'<f2'")), "an .npy file of float16")
	_, shape, _ := bytes.Cut(header, []byte("'shape': ("))
	var n, dim int
	for part := range bytes.SplitSeq(shape, []byte(",")) {
		n, dim = dim, 0
		for _, c := range bytes.TrimSpace(part) {
			if c < '0' || c > '9' {
				break
			}
			dim = 10*dim + int(c-'0')
		}
		if n > 0 {
			break
		}
	}
	require.Len(t, values, 2*n*dim)
	out := &table{dim: dim, cut: 2048}
	for i := first; i < n; i++ {
		out.ids = append(out.ids, uint32(i))
		for j := range dim {
			out.rows = append(out.rows, half(binary.LittleEndian.Uint16(values[2*(i*dim+j):])))
		}
	}
	return out
}

// half widens a finite IEEE 754 half-precision number.
func half(h uint16) float32 {
	exponent, fraction := int(h>>10)&31, float64(h&1023)
	value := math.Ldexp(1024+fraction, exponent-25)
	if exponent == 0 {
		value = math.Ldexp(fraction, -24)
	}
	if h>>15 != 0 {
		value = -value
	}
	return float32(value)
}
