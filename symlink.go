package flashdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// refuseSymlinks makes sure that nothing in the database directory leads out of
// it: whoever may put a symbolic link there could have the database write to
// any file of its user. The directory itself may be one; that is the caller's.
// Links below index are not followed, and no reason to refuse: see strays.
func refuseSymlinks(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%w: %s is a symbolic link, which is not followed: put what it leads to there", ErrInvalid, filepath.Join(dir, e.Name()))
		}
	}
	return nil
}
