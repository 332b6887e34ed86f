package flashdb_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

// smallDisk mounts a file system with room for 8 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("flashdb-test", dir, "tmpfs", 0, "size=8m,mode=0700"); err != nil {
		t.Skipf("a full disk: a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, 0)) })
	return dir
}
