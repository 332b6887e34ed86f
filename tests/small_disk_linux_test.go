package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// smallDisk mounts a file system with room for 8 MiB.
func smallDisk(t *testing.T) string { return tmpfs(t, "size=8m,mode=0700") }

// fewInodes mounts a file system with room for 30 files and directories.
func fewInodes(t *testing.T) string { return tmpfs(t, "size=64m,nr_inodes=31,mode=0700") }

func tmpfs(t *testing.T, opts string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("flashdb-test", dir, "tmpfs", 0, opts); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, 0)) })
	return dir
}

// failingDisk mounts a file system that becomes read-only under everyone who uses it, as ext4 does
// when its disk fails, once fail is called. Repair makes it writable again.
func failingDisk(t *testing.T) (dir string, fail, repair func()) {
	t.Helper()
	run := func(name string, args ...string) error {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Logf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
		}
		return err
	}
	dir = t.TempDir()
	image := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, 64<<20))
	mount := func() error { return run("mount", "-o", "loop,errors=remount-ro", image, dir) }
	if run("mkfs.ext4", "-q", image) != nil || mount() != nil {
		t.Skip("no file system of a file's can be mounted here")
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, 0)) })
	mounts, err := os.ReadFile("/proc/mounts")
	require.NoError(t, err)
	device := ""
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); f[1] == dir {
			device = filepath.Base(f[0])
		}
	}
	trigger := filepath.Join("/sys/fs/ext4", device, "trigger_fs_error")
	if _, err := os.Stat(trigger); err != nil {
		t.Skipf("this kernel cannot make ext4 fail: %v", err)
	}
	fail = func() { require.NoError(t, os.WriteFile(trigger, []byte("test"), 0o200)) }
	repair = func() {
		require.NoError(t, unix.Unmount(dir, 0))
		_ = run("fsck.ext4", "-p", image) // it has something to say
		require.NoError(t, mount())
	}
	return dir, fail, repair
}

// remount makes an idle file system read-only, or writable again.
func remount(t *testing.T, dir string, readOnly bool) {
	t.Helper()
	flags := uintptr(unix.MS_REMOUNT)
	if readOnly {
		flags |= unix.MS_RDONLY
	}
	require.NoError(t, unix.Mount("flashdb-test", dir, "tmpfs", flags, ""))
}
