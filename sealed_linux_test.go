package flashdb_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lockAgainstAll takes the exclusive lock of a file until the end of the test: whoever asks for
// any lock of it fails.
func lockAgainstAll(t *testing.T, name string) {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
}
