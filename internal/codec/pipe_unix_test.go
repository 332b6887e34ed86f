//go:build unix

package codec

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPipe: a named pipe without a writer is refused and not waited for.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.npy")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, err := OpenRows(path, nil)
	require.ErrorContains(t, err, "not a regular file")
	_, err = ReadTensors(path)
	require.ErrorContains(t, err, "not a regular file")
	_, err = ReadSmall(path, 10)
	require.ErrorContains(t, err, "not a regular file")
}
