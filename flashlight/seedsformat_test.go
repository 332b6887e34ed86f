package flashlight_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/internal/format"
)

// randomSeeds returns seeds of n random prototypes.
func randomSeeds(dim, n int) *flashlight.Seeds {
	rng := rand.New(rand.NewPCG(uint64(dim), uint64(n)))
	prototypes := make([]flashlight.Prototype, n)
	for i := range prototypes {
		prototypes[i] = flashlight.Prototype{ID: rng.Uint32(), Source: normal(rng, dim, 2), Gradient: normal(rng, dim, 3)}
	}
	return flashlight.NewSeeds(dim, prototypes)
}

func encoded(s *flashlight.Seeds) []byte {
	var w format.Writer
	s.Encode(&w)
	return w.Data()
}

func TestSeedsRoundTrip(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {3, 5}, {64, 512}, {64, 600}, {256, 512}, {1024, 300}, {4096, 80}} {
		dim, n := shape[0], shape[1]
		s := randomSeeds(dim, n)
		require.Equal(t, min(n, flashlight.MaxPrototypes(dim)), s.Len())
		b := encoded(s)
		assert.LessOrEqual(t, len(b), 2<<20, "dim %d", dim)
		r := format.NewReader("", "seeds", 0, append(b, 1, 2, 3))
		got := flashlight.DecodeSeeds(r, dim)
		require.NoError(t, r.Err())
		assert.Equal(t, s, got)
		assert.Equal(t, 3, r.Len(), "what follows is left")
		b[8]++ // the decoded ones are a copy
		assert.Equal(t, s, got)
	}
}

func TestNoSeedsRoundTrip(t *testing.T) {
	for _, s := range []*flashlight.Seeds{nil, flashlight.NewSeeds(7, nil)} {
		b := encoded(s)
		assert.Len(t, b, 8)
		r := format.NewReader("", "seeds", 0, b)
		assert.Nil(t, flashlight.DecodeSeeds(r, 7))
		assert.NoError(t, r.End())
	}
}

func TestDecodeSeedsRefuses(t *testing.T) {
	good := encoded(randomSeeds(3, 4))
	set := func(at int, values ...byte) []byte {
		b := append([]byte(nil), good...)
		copy(b[at:], values)
		return b
	}
	const sources, gradients = 8 + 4*4, 8 + 4*4 + 4*4*3
	zeros := make([]byte, 12)
	floats := func(values ...float32) []byte { return format.Float32Bytes(values) }
	tests := []struct {
		name string
		b    []byte
		dim  int
		want string
	}{
		{"another dim", good, 4, "seeds of dim 3 for a decoder of dim 4"},
		{"no prototypes", set(4, 0, 0, 0, 0), 3, "0 seed prototypes of dim 3: want 1 to 512"},
		{"too many", set(4, 1, 2), 3, "513 seed prototypes of dim 3: want 1 to 512"},
		{"more than there are bytes", set(4, 5), 3, "bytes wanted"},
		{"a source that is not a number", set(sources, 0, 0, 0xc0, 0x7f), 3, "seed prototype 0: source or gradient is zero or not finite"},
		{"an infinite gradient", set(gradients+24, 0, 0, 0x80, 0x7f), 3, "seed prototype 2: source or gradient"},
		{"a source of zeros", set(sources+12, zeros...), 3, "seed prototype 1: source or gradient"},
		{"a source that is too short", set(sources+24, floats(.9, 0, 0)...), 3, "seed prototype 2: source of length 0.9, want 1"},
		{"a source that is too long", set(sources+24, floats(3e38, 3e38, -3e38)...), 3, "seed prototype 2: source of length 5."},
		{"a gradient of zeros", set(gradients+36, zeros...), 3, "seed prototype 3: source or gradient"},
		{"cut", good[:len(good)-1], 3, "bytes wanted"},
		{"nothing", nil, 3, "bytes wanted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := format.NewReader("", "seeds", 0, tt.b)
			assert.Nil(t, flashlight.DecodeSeeds(r, tt.dim))
			require.ErrorContains(t, r.Err(), tt.want)
			assert.ErrorIs(t, r.Err(), format.ErrCorrupt)
		})
	}
}

// FuzzDecodeSeeds checks that no bytes cause a panic or allocate more than their length, and that
// Encode writes what was read.
func FuzzDecodeSeeds(f *testing.F) {
	f.Add(encoded(nil), 3)
	f.Add(encoded(randomSeeds(3, 4)), 3)
	f.Add(encoded(randomSeeds(1, 1)), 1)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3}, math.MaxInt)
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4}, 0)
	f.Fuzz(func(t *testing.T, b []byte, dim int) {
		r := format.NewReader("", "seeds", 0, b)
		s := flashlight.DecodeSeeds(r, dim)
		if s == nil {
			return
		}
		require.NoError(t, r.Err())
		require.LessOrEqual(t, s.Len()*dim*8, len(b))
		require.Equal(t, b[:len(b)-r.Len()], encoded(s))
	})
}
