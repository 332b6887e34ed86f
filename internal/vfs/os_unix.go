//go:build unix

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// oNoFollow makes opening a symbolic link an error.
const oNoFollow = unix.O_NOFOLLOW

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Sync()
	// Some network and FUSE file systems have no such operation. There is nothing more to be had from them, and failing
	// would only make them unusable.
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}
