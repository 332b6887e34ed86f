package postgres

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/remote"
)

func TestVector(t *testing.T) {
	assert.Equal(t, []byte{0, 2, 0, 0, 0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0}, appendVector(nil, []float32{1, -2}))
	for _, wrong := range [][]byte{nil, {0, 1}, {0, 1, 0, 0}, {0, 0, 0, 1}, {0, 1, 0, 0, 1, 2, 3, 4, 5}, {0, 2, 0, 0, 1, 2, 3, 4}} {
		_, err := parseVector(wrong)
		require.ErrorIs(t, err, remote.ErrForeign)
	}
}

// FuzzVector parses any bytes. What it takes, it would write alike.
func FuzzVector(f *testing.F) {
	f.Add(appendVector(nil, []float32{1, -0.1, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Copysign(0, -1))}))
	f.Add([]byte{0, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := parseVector(b)
		if err == nil {
			assert.Equal(t, b, appendVector(nil, v))
		}
	})
}
