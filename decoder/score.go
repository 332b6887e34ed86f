package decoder

import "github.com/flashdb/flashdb/internal/simd"

// tileRows is how many rows go through the network at once: enough to use a packed weight well each
// time it is read, few enough for the activations to stay in the cache.
const tileRows = 64

// Scratch is the working memory of Score and Gradient. The zero value is ready; it grows to what
// the largest call needs and serves any decoder, one call at a time.
type Scratch struct {
	frames []frame
	parts  [3][]frame // of the networks of a mixture
	floats []float32
	used   int // of floats
	wanted int // floats asked for since begin
}

// begin makes all of the memory free again. What the call before wanted beyond what there was is
// there now.
func (s *Scratch) begin() {
	if s.wanted > len(s.floats) {
		s.floats = make([]float32, s.wanted)
	}
	s.used, s.wanted = 0, 0
}

// take returns n floats of unspecified value, valid until the next begin.
func (s *Scratch) take(n int) []float32 {
	s.wanted += n
	if s.used+n > len(s.floats) {
		return make([]float32, n)
	}
	f := s.floats[s.used : s.used+n : s.used+n]
	s.used += n
	return f
}

func (b *mlpBound) Score(s *Scratch, dst, rows []float32) {
	dim := len(b.source)
	for len(dst) > 0 {
		n := min(tileRows, len(dst))
		simd.Prefetch(rows[n*dim : min(2*n*dim, len(rows))])
		b.scoreTile(s, dst[:n], rows[:n*dim])
		dst, rows = dst[n:], rows[n*dim:]
	}
}

func (b *mlpBound) scoreTile(s *Scratch, dst, rows []float32) {
	s.begin()
	n, in := len(dst), rows
	if b.explicit {
		in = s.take(n * b.net.width)
		b.fillZ(in, rows, n)
		b.net.input.apply(in, in, n)
	}
	s.frames = b.net.scoreFrames(s, s.frames, in, n)
	frames := s.frames
	b.net.run(frames, &b.first, in, n)
	out := frames[len(frames)-1].out
	width := len(out) / n
	for i := range dst {
		dst[i] = out[i*width+b.net.column]
	}
}
