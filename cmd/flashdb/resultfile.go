package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A resultFile is written in pieces and can be gone on with after a crash.
// Until it is whole, NAME.part holds the pieces and NAME.state says how many
// bytes of it count, and for whom:
//
//	append: write to .part, sync, then replace .state
//	publish: rename .part to NAME, remove .state
//
// What lies in .part beyond the bytes of .state is cut off. The pieces of a name
// that ends in .zst or .gz are compressed each for itself: both formats allow
// files to be put one behind the other.
type resultFile struct {
	name  string
	part  *os.File
	state resultState
	next  uint32 // position that comes next
}

// resultState is the content of NAME.state.
type resultState struct {
	Request string `json:"request"` // what the pieces answer
	Next    uint32 `json:"next"`
	Bytes   int64  `json:"bytes"` // of .part
}

// openResultFile goes on with the file of an earlier run of the same request,
// or begins one.
func openResultFile(name, request string, restart bool) (*resultFile, error) {
	f := &resultFile{name: name, state: resultState{Request: request}}
	switch text, err := os.ReadFile(f.stateName()); {
	case restart || errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		var earlier resultState
		if err := json.Unmarshal(text, &earlier); err != nil || earlier.Request != request {
			return nil, fmt.Errorf("%s is left from another request: finish that one, or say --restart to begin anew", f.stateName())
		}
		f.state, f.next = earlier, earlier.Next
	}
	part, err := os.OpenFile(name+".part", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	f.part = part
	size, err := part.Seek(0, io.SeekEnd)
	if err == nil && size < f.state.Bytes {
		err = fmt.Errorf("%s.part holds %d bytes, %s counts %d: say --restart to begin anew", name, size, f.stateName(), f.state.Bytes)
	}
	if err == nil {
		err = part.Truncate(f.state.Bytes)
	}
	if err == nil {
		_, err = part.Seek(f.state.Bytes, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, part.Close())
	}
	return f, nil
}

func (f *resultFile) stateName() string { return f.name + ".state" }

// append makes a piece durable, and that next comes after it.
func (f *resultFile) append(text []byte, next uint32) error {
	piece, err := compressed(f.name, text)
	if err != nil {
		return err
	}
	if _, err := f.part.Write(piece); err != nil {
		return err
	}
	if err := f.part.Sync(); err != nil {
		return err
	}
	f.state.Bytes += int64(len(piece))
	f.state.Next = next
	state, err := json.Marshal(f.state)
	if err != nil {
		return err
	}
	return replaceFile(f.stateName(), state)
}

// publish gives the file its name.
func (f *resultFile) publish() error {
	if err := f.close(); err != nil {
		return err
	}
	if err := os.Rename(f.name+".part", f.name); err != nil {
		return err
	}
	if err := os.Remove(f.stateName()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// close leaves what there is for another run. It may be called twice.
func (f *resultFile) close() error {
	if f.part == nil {
		return nil
	}
	part := f.part
	f.part = nil
	return part.Close()
}

// replaceFile writes a small file so that it is there whole or as it was.
func replaceFile(name string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(content)
	if err == nil {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// compressed returns text as the extension of name asks for it.
func compressed(name string, text []byte) ([]byte, error) {
	switch lower := strings.ToLower(name); {
	case strings.HasSuffix(lower, ".zst"):
		z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return z.EncodeAll(text, nil), nil
	case strings.HasSuffix(lower, ".gz"):
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(text); err != nil {
			return nil, err
		}
		err := z.Close()
		return b.Bytes(), err
	}
	return text, nil
}
