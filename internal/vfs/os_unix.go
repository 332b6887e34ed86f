//go:build unix

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	oNoFollow  = unix.O_NOFOLLOW  // opening a symbolic link is an error
	oNonBlock  = unix.O_NONBLOCK  // opening a named pipe does not wait; it changes nothing for regular files
	oDirectory = unix.O_DIRECTORY // opening anything but a directory is an error
)

func syncDir(c calls, dir string) error {
	d, err := c.OpenFile(dir, os.O_RDONLY|oDirectory|oNonBlock, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Sync()
	// Some network and FUSE file systems have no such operation. There is nothing more to be had
	// from them, and failing would only make them unusable.
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}
