package control

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// socketPath returns a path of dir's socket that fits a socket address, valid until release. A
// longer one is reached through a descriptor of dir.
func socketPath(dir string) (path string, release func(), err error) {
	path = filepath.Join(dir, SocketName)
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), SocketName), func() { d.Close() }, nil
}

// heldPath returns a path of dir's socket that is valid until release, even if dir is moved.
func heldPath(dir *os.Root) (path string, release func(), err error) {
	d, err := dir.Open(".")
	if err != nil {
		return "", nil, err
	}
	own := fmt.Sprintf("/proc/self/fd/%d", d.Fd())
	if _, err := os.Stat(own); err != nil { // there is no /proc
		d.Close()
		return socketPath(dir.Name())
	}
	return own + "/" + SocketName, func() { d.Close() }, nil
}

// restrict sets the mode of the socket before it has a name, so that other users can never connect.
func restrict(_, _ string, conn syscall.RawConn) error {
	var err error
	if cerr := conn.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), 0o600) }); cerr != nil {
		return cerr
	}
	return err
}
