//go:build !unix

package vfs

import (
	"fmt"
	"io/fs"
)

// These are zero where open has no such flags: the checks before and after it have to do.
const (
	oNoFollow  = 0
	oNonBlock  = 0
	oDirectory = 0
)

// syncDir only checks that the directory is there: Windows writes directory changes through its own
// journal and gives no way to wait for them.
func syncDir(c calls, dir string) error {
	info, err := c.Lstat(dir)
	if err == nil && !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
		err = fmt.Errorf("sync %s: not a directory", dir)
	}
	return err
}
