package storage

// A slab allocates small pieces of memory from large ones. A layer has very many small values,
// which are freed together.
type slab struct {
	bytes  block[byte]
	floats block[float32]
}

// alloc returns an empty slice with capacity n.
func (s *slab) alloc(n int) []byte { return s.bytes.carve(n) }

// row returns a copy of v.
func (s *slab) row(v []float32) []float32 { return append(s.floats.carve(len(v)), v...) }

// maxBlock is how many elements a block has at most. A piece that would waste more than an eighth
// of one stands alone.
const maxBlock = 64 << 10

// A block is what pieces are carved from. The first is as large as the first piece and each further
// one twice the last: a piece keeps the whole of its block in memory, and a change of one node
// should keep no more.
type block[T any] struct {
	free []T
	size int // of the newest
}

func (b *block[T]) carve(n int) []T {
	if n > maxBlock/8 {
		return make([]T, 0, n)
	}
	if n > len(b.free) {
		b.size = min(max(2*b.size, n), maxBlock)
		b.free = make([]T, b.size)
	}
	piece := b.free[:0:n]
	b.free = b.free[n:]
	return piece
}
