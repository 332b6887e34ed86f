//go:build !linux

package control

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// socketPath returns a path of dir's socket that fits a socket address.
func socketPath(dir string) (path string, release func(), err error) {
	path = filepath.Join(dir, SocketName)
	if len(path) > maxSocketPath {
		return "", nil, fmt.Errorf("the path of the control socket, %s, has %d bytes, and this system takes %d: open the database by a shorter path",
			path, len(path), maxSocketPath)
	}
	return path, func() {}, nil
}

// heldPath returns a path of dir's socket. It does not lead there if dir was moved, which the
// caller must check before.
func heldPath(dir *os.Root) (path string, release func(), err error) {
	return socketPath(dir.Name())
}

// restrict does nothing: listen restricts the socket once it has a name.
func restrict(string, string, syscall.RawConn) error { return nil }
