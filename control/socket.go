package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/flashdb/flashdb/internal/socket"
)

// maxSocketPath is how long a socket's path may be on every system: the least of their sun_path
// fields is 104 bytes with the final zero, on macOS and the BSDs.
const maxSocketPath = 103

// listen makes the socket of dir, which only this user may connect to. It replaces a socket that is
// there already, because a killed process must have left it. So the caller must own dir.
func listen(dir *os.Root) (net.Listener, error) {
	if err := socket.Sweep(dir); err != nil {
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
	// The path bound may be short for this moment only: the owner removes the socket by its real
	// one, with socket.Sweep.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := dir.Chmod(SocketName, 0o600); err != nil {
		return nil, errors.Join(err, l.Close(), socket.Sweep(dir))
	}
	return l, nil
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
