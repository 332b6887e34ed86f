//go:build !linux

package control

import (
	"fmt"
	"path/filepath"
	"syscall"
)

// socketPath returns a path of dir's socket that fits a socket address.
func socketPath(dir string) (path string, release func(), err error) {
	path = filepath.Join(dir, SocketName)
	if len(path) > maxSocketPath {
		return "", nil, fmt.Errorf("the path of the control socket, %s, has %d bytes, and this system takes %d: open the database by a shorter path, a relative one for instance",
			path, len(path), maxSocketPath)
	}
	return path, func() {}, nil
}

// restrict does nothing: Listen restricts the socket once it has a name.
func restrict(string, string, syscall.RawConn) error { return nil }
