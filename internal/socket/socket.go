// Package socket knows the name of the control socket of a database directory, and removes the
// socket of an owner that died. It opens no connection: package control does that, and the database
// itself needs no network.
package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Name is the name of the socket inside a database directory.
const Name = "control.sock"

// Sweep removes the socket of dir. The caller must own dir: nobody else can be listening.
func Sweep(dir *os.Root) error {
	info, err := dir.Lstat(Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s is not a socket: move it out of the database directory", filepath.Join(dir.Name(), Name))
	}
	return dir.Remove(Name)
}
