package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writeNPY writes float32 values under a header of that shape, "(1, 3)".
func writeNPY(t *testing.T, shape string, values ...float32) string {
	t.Helper()
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", shape)
	header += strings.Repeat(" ", 117-len(header)) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	b = append(b, header...)
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	path := filepath.Join(t.TempDir(), "row.npy")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

func TestReadEmbedding(t *testing.T) {
	a := &app{in: strings.NewReader("[1, 2\n3]")}
	row, err := a.readEmbedding("-")
	require.NoError(t, err)
	assert.Equal(t, []float32{1, 2, 3}, row)

	for _, shape := range []string{"(3,)", "(1, 3)"} {
		row, err = a.readEmbedding("@" + writeNPY(t, shape, 1, 2, 3))
		require.NoError(t, err, shape)
		assert.Equal(t, []float32{1, 2, 3}, row)
	}
	_, err = a.readEmbedding("@" + writeNPY(t, "(3, 1)", 1, 2, 3))
	assert.ErrorContains(t, err, "want one row")
	_, err = a.readEmbedding("@" + writeNPY(t, "(2, 2)", 1, 2, 3, 4))
	assert.ErrorContains(t, err, "shape [2 2], want one row")
	_, err = a.readEmbedding("@" + writeNPY(t, "(1, 3)", 1, 2))
	assert.Error(t, err, "truncated")
	_, err = a.readEmbedding("@" + filepath.Join("demodata", "decoder.safetensors"))
	assert.ErrorContains(t, err, "holds 6 arrays, want one row")
}

func TestReadEmbeddingBoundsItsInput(t *testing.T) {
	a := &app{in: strings.NewReader(strings.Repeat("1 ", maxTypedEmbedding))}
	_, err := a.readEmbedding("-")
	assert.ErrorContains(t, err, "holds more than 1.05 MB")
}
