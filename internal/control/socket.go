package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// SocketName is the name of the socket inside a database directory.
const SocketName = "control.sock"

// maxSocketPath is how long a socket's path may be on every system: the least
// of their sun_path fields is 104 bytes with the final zero, on macOS and the BSDs.
const maxSocketPath = 103

// Listen makes the socket of dir, which only this user may connect to. A
// socket that is there already is taken for a dead owner's and replaced, so the
// caller must own dir.
func Listen(dir *os.Root) (net.Listener, error) {
	if err := Sweep(dir); err != nil {
		return nil, err
	}
	path, release, err := heldPath(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	config := net.ListenConfig{Control: restrict}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", filepath.Join(dir.Name(), SocketName), err)
	}
	// The path bound may be short for this moment only: the owner removes the
	// socket by its real one, with Sweep.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := dir.Chmod(SocketName, 0o600); err != nil {
		return nil, errors.Join(err, l.Close(), Sweep(dir))
	}
	return l, nil
}

// Sweep removes the socket of dir. The caller must own dir: nobody else can be
// listening.
func Sweep(dir *os.Root) error {
	info, err := dir.Lstat(SocketName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s is not a socket: move it out of the database directory", filepath.Join(dir.Name(), SocketName))
	}
	return dir.Remove(SocketName)
}

// dial connects to the socket of dir.
func dial(ctx context.Context, dir string) (net.Conn, error) {
	path, release, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}
