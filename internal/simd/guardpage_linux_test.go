package simd

import (
	"math/rand/v2"
	"os"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestNoAccessBeyondArguments runs the kernels on arguments that end where the mapped memory ends,
// then on arguments that begin where it begins. Guard words do not notice a stray read that is
// thrown away; this does.
func TestNoAccessBeyondArguments(t *testing.T) { eachClass(t, testNoAccessBeyondArguments) }

func testNoAccessBeyondArguments(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for _, atEnd := range []bool{true, false} {
		mem := [4]edge{newEdge(t, atEnd), newEdge(t, atEnd), newEdge(t, atEnd), newEdge(t, atEnd)}
		for n := range 140 {
			a, b, c := mem[0].floats(n), mem[1].floats(n), mem[2].floats(n)
			Dot(a, b)
			DotWide(view[float64](mem[2].bytes(8*n), n), b)
			SquaredL2(a, b)
			MulDot(a, b, c)
			Axpy(a, 0.5, b)
			Mul(a, b, c)
			ReLU(a)
			Gate(a, b)
			Prefetch(a)
			AtLeast(view[uint64](mem[2].bytes(8*((n+63)/64)), (n+63)/64), a, 0.5)
			for rows := range 10 {
				DotRows(mem[2].floats(rows), a, mem[3].floats(rows*n))
			}
		}
		edgeMatrix(&mem)
		edgeProduct(&mem)
		edgeScan(&mem)
		edgeBytes(&mem)
	}
}

func edgeBytes(mem *[4]edge) {
	for _, dim := range []int{1, 8, 9, 64} {
		for _, n := range []int{1, 15, 16, 17, 64} {
			m := PackBytes(make([]int8, n*dim), make([]float32, n), dim)
			values, factors := view[int8](mem[0].bytes(len(m.values)), len(m.values)), mem[1].floats(len(m.factors))
			copy(values, m.values)
			copy(factors, m.factors)
			m.values, m.factors = values, factors
			q := view[int8](mem[2].bytes(m.PaddedDim()), m.PaddedDim())
			m.Dot(mem[3].floats(n), q, 0, 0.5)
		}
	}
}

func edgeMatrix(mem *[4]edge) {
	for _, in := range []int{1, 2, 3, 4, 5, 63, 64, 65, 66} {
		for _, out := range []int{1, 2, 31, 32, 33, 64} {
			m := Pack(nil, mem[0].floats(out*in), out, in, mem[1].floats(in))
			weights := mem[0].floats(len(m.data))
			copy(weights, m.data)
			m.data = weights
			for n := range 14 {
				m.Mul(mem[2].floats(n*out), mem[3].floats(n*in), mem[1].floats(out), n)
			}
		}
	}
}

func edgeProduct(mem *[4]edge) {
	var p Product
	for _, rows := range []int{1, 2, 7, 33} {
		for _, cols := range []int{1, 2, 31, 32, 33} {
			for _, n := range []int{1, 4, 31, 33} {
				p.Add(mem[0].floats(rows*cols), mem[1].floats(n*rows), mem[2].floats(n*cols), n, rows, cols)
			}
		}
	}
}

func edgeScan(mem *[4]edge) {
	rng := rand.New(rand.NewPCG(5, 1))
	for _, pairs := range []int{1, 2, 3, 8, 9, 16} {
		for blocks := range 8 {
			n := blocks * blockCodes
			codes, lut := mem[0].bytes(n*pairs), mem[1].bytes(32*pairs)
			copy(codes, randomBytes(rng, len(codes)))
			copy(lut, randomTable(rng, pairs))
			for _, min := range []uint16{0, uint16(32 * pairs), 65535} {
				pos, sums := mem[2].bytes(4*n), mem[3].bytes(2*n)
				Scan4(view[uint32](pos, n), view[uint16](sums, n), codes, lut, pairs, min)
			}
		}
	}
}

// TestPrefetchDoesNotTouch asks for memory nobody may read, and for memory on both sides of the
// limit: a hint must not fault.
func TestPrefetchDoesNotTouch(t *testing.T) { eachClass(t, testPrefetchDoesNotTouch) }

func testPrefetchDoesNotTouch(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	page := os.Getpagesize()
	mem, err := syscall.Mmap(-1, 0, 3*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(mem)) })
	require.NoError(t, syscall.Mprotect(mem[:page], syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(mem[2*page:], syscall.PROT_NONE))
	for _, at := range []struct {
		name       string
		begin, end int
	}{
		{"unreadable", 0, page},
		{"into the page before", page - 100, page + 4},
		{"into the page behind", 2*page - 4, 2*page + 100},
		{"all of it", 0, 3 * page},
		{"one value at the end", 3*page - 4, 3 * page},
		{"nothing", page, page},
	} {
		b := mem[at.begin:at.end]
		require.NotPanics(t, func() { Prefetch(view[float32](b, len(b)/4)) }, at.name)
	}
}

// edge is readable memory with an inaccessible page at one side.
type edge struct {
	mem   []byte
	atEnd bool
}

func newEdge(t *testing.T, atEnd bool) edge {
	const usable = 64 << 10
	page := os.Getpagesize()
	mem, err := syscall.Mmap(-1, 0, usable+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(mem)) })
	require.NoError(t, syscall.Mprotect(mem[:page], syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(mem[page+usable:], syscall.PROT_NONE))
	return edge{mem[page : page+usable], atEnd}
}

// bytes returns n bytes that touch the inaccessible page.
func (e edge) bytes(n int) []byte {
	if e.atEnd {
		return e.mem[len(e.mem)-n:]
	}
	return e.mem[:n:n]
}

func (e edge) floats(n int) []float32 { return view[float32](e.bytes(4*n), n) }

func view[T any](b []byte, n int) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
}
