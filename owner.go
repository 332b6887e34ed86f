package flashdb

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ownerFile names the process that has the directory open, for the message of
// ErrLocked. bbolt's lock is what excludes; this file only tells.
const ownerFile = "owner.pid"

func writeOwner(dir string) error {
	return os.WriteFile(filepath.Join(dir, ownerFile), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
}

func removeOwner(dir string) error {
	return os.Remove(filepath.Join(dir, ownerFile))
}

// lockedBy adds the owner's pid to cause.
func lockedBy(dir string, cause error) error {
	who := "another process"
	if b, err := os.ReadFile(filepath.Join(dir, ownerFile)); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			who = fmt.Sprintf("process %d", pid)
		}
	}
	return fmt.Errorf("%w: %s has it open; close it there first", cause, who)
}
