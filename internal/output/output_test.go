package output

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A write that fails leaves the earlier file and nothing else.
func TestWriteIsWholeOrNothing(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	boom := errors.New("boom")
	for _, earlier := range []bool{false, true} {
		if earlier {
			require.NoError(t, os.WriteFile(name, []byte("earlier"), 0o640))
		}
		target, err := Resolve(name)
		require.NoError(t, err)
		require.Equal(t, earlier, target.Exists)
		err = target.Write(func(w io.Writer) error {
			_, err := w.Write([]byte("half"))
			return errors.Join(err, boom)
		})
		require.ErrorIs(t, err, boom)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		if !earlier {
			require.Empty(t, entries)
			continue
		}
		require.Len(t, entries, 1)
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, "earlier", string(content))
		require.NoError(t, target.Write(func(w io.Writer) error { _, err := w.Write([]byte("whole")); return err }))
		content, err = os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, "whole", string(content))
	}
}

func TestResolveNamesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	_, err := Resolve(filepath.Join(dir, "none", "out"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = Resolve(dir)
	assert.ErrorContains(t, err, "is a directory")
	loop := filepath.Join(dir, "loop")
	if os.Symlink(loop, loop) == nil {
		_, err = Resolve(loop)
		assert.ErrorContains(t, err, "too many symbolic links")
	}
}
