//go:build !unix

package vfs

import (
	"fmt"
	"os"
)

// oNoFollow is zero where open has no such flag: the check before it has to do.
const oNoFollow = 0

// syncDir only checks that the directory is there: Windows writes directory changes through its own journal and gives
// no way to wait for them.
func syncDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("sync %s: not a directory", dir)
	}
	return err
}
