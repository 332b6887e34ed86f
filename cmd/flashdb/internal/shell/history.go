package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/peterh/liner"
)

// maxHistory bounds the file of earlier lines: a longer one is begun anew with the lines that are
// still recalled.
const maxHistory = 1 << 20 // bytes

// A history keeps lines in a file as they are typed, so that a shell that is killed has lost none
// and two shells do not overwrite each other's.
type history struct {
	file *os.File // nil: nothing is kept
	last string
}

// openHistory recalls the lines of a file and returns the history that goes on in it. Only its
// owner may read it: lines hold keys and payloads.
func openHistory(name string, term *liner.State) (*history, error) {
	if name == "" {
		return &history{}, nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return &history{}, err
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return &history{}, err
	}
	if err := os.Chmod(name, 0o600); err != nil {
		return &history{}, errors.Join(err, f.Close())
	}
	h := &history{file: f}
	lines, size, err := recall(f)
	if err == nil && size > maxHistory {
		if err = f.Truncate(0); err == nil && len(lines) > 0 {
			_, err = fmt.Fprintln(f, strings.Join(lines, "\n"))
		}
	}
	for _, line := range lines {
		term.AppendHistory(line)
	}
	return h, err
}

// recall returns the last lines of r that an editor can show, and the size of r.
func recall(r io.Reader) (lines []string, size int64, err error) {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		size += int64(len(line))
		if line = strings.TrimSpace(line); line != "" && printable(line) {
			lines = append(lines, line)
		}
		if len(lines) > liner.HistoryLimit {
			lines = lines[1:]
		}
		if errors.Is(err, io.EOF) {
			return lines, size, nil
		}
		if err != nil {
			return lines, size, err
		}
	}
}

// add keeps a line and tells whether it is one to recall: a line that begins with a blank is not,
// as in other shells.
func (h *history) add(line string) bool {
	if strings.TrimSpace(line) == "" || line[0] == ' ' || !printable(line) {
		return false
	}
	if h.file != nil && line != h.last {
		_, _ = fmt.Fprintln(h.file, line) // a line that is not kept is no reason to stop
	}
	h.last = line
	return true
}

func (h *history) close() {
	if h.file != nil {
		h.file.Close()
	}
}
