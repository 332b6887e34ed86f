package flashdb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/flashdb/flashdb/internal/vfs"
)

// ownerFile names the process that has the directory open, for the message of ErrLocked. The lock
// of bbolt keeps others out. The file only informs, so a fault of it never keeps a database from
// being opened.
const ownerFile = "owner.pid"

// maxOwner is how many bytes of the file are read. It holds a number and a newline.
const maxOwner = 32

func writeOwner(dir *vfs.Dir) error {
	f, err := dir.Create(ownerFile)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, strconv.Itoa(os.Getpid())+"\n")
	return errors.Join(err, f.Close())
}

func removeOwner(dir *vfs.Dir) error {
	if err := dir.Remove(ownerFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readOwner returns the process that owner.pid names, or false if it names none.
func readOwner(dir *vfs.Dir) (pid int, ok bool) {
	f, err := dir.Open(ownerFile)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxOwner))
	if err != nil {
		return 0, false
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
	return pid, err == nil && pid > 0
}

// lockedBy adds to cause who has dir open. Whether this process does is not read from the file:
// where each container has its own process numbers, the same number may be another process.
func lockedBy(dir *vfs.Dir, cause error) error {
	if held.has(dir) {
		return fmt.Errorf("%w: this process has it open already; use that DB, or close it first", cause)
	}
	who := "another process"
	if pid, ok := readOwner(dir); ok {
		who = fmt.Sprintf("process %d", pid)
	}
	return fmt.Errorf("%w: %s has it open; close it there first", cause, who)
}

// held is the set of directories that this process has open.
var held directories

type directories struct {
	mu   sync.Mutex
	open map[*vfs.Dir]bool
}

func (d *directories) add(dir *vfs.Dir) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[*vfs.Dir]bool{}
	}
	d.open[dir] = true
}

func (d *directories) remove(dir *vfs.Dir) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, dir)
}

// has reports whether dir is open already.
func (d *directories) has(dir *vfs.Dir) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for open := range d.open {
		if open.Same(dir) {
			return true
		}
	}
	return false
}
