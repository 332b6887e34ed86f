package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A resultFile is written in pieces and can be gone on with after a crash. Until it is whole,
// NAME.part holds the pieces and NAME.state says how many bytes of it count, and for whom:
//
//	append: write to .part, sync, then replace .state
//	publish: rename .part to NAME, remove .state
//
// What lies in .part beyond the bytes of .state is cut off. The pieces of a name that ends in .zst
// or .gz are compressed each for itself: both formats allow files to be put one behind the other.
//
// A file of a format that cannot be put together so is made of the pieces, which are compressed
// with zstd then, when all are there:
//
//	publish: write NAME.joined, sync, rename it to NAME, remove .part and .state
type resultFile struct {
	name  string
	join  func(pieces io.ReadSeeker, w io.Writer) error // nil: the pieces are the file
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

// openResultFile goes on with the file of an earlier run of the same request, or begins one.
func openResultFile(name, request string, restart bool, join func(pieces io.ReadSeeker, w io.Writer) error) (*resultFile, error) {
	f := &resultFile{name: name, join: join, state: resultState{Request: request}}
	if err := f.checkNames(); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(f.partName()); errors.Is(err, fs.ErrNotExist) {
		restart = true // the run that wrote the state was killed behind its end
	}
	switch text, err := os.ReadFile(f.stateName()); {
	case restart || errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		var earlier resultState
		if err := json.Unmarshal(text, &earlier); err != nil || earlier.Request != request {
			return nil, fmt.Errorf("%s is left from another request: finish that one, or add --restart to start over", f.stateName())
		}
		f.state, f.next = earlier, earlier.Next
	}
	part, err := os.OpenFile(f.partName(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	f.part = part
	size, err := part.Seek(0, io.SeekEnd)
	if err == nil && (f.state.Bytes < 0 || size < f.state.Bytes) {
		err = fmt.Errorf("%s holds %d bytes, %s counts %d: add --restart to start over", f.partName(), size, f.stateName(), f.state.Bytes)
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

// checkNames makes sure that the files beside the result are its own: a link would lead a write
// elsewhere, and a pipe would wait for its other end.
func (f *resultFile) checkNames() error {
	for _, name := range []string{f.partName(), f.stateName(), f.newState(), f.joinedName()} {
		if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file: move it away, or write to another file", name)
		}
	}
	return nil
}

func (f *resultFile) newState() string   { return f.stateName() + newSuffix }
func (f *resultFile) joinedName() string { return f.name + ".joined" }
func (f *resultFile) partName() string   { return f.name + ".part" }
func (f *resultFile) stateName() string  { return f.name + ".state" }

// append makes a piece durable, and that next comes after it.
func (f *resultFile) append(text []byte, next uint32) error {
	packing := f.name
	if f.join != nil {
		packing = ".zst"
	}
	piece, err := compressed(packing, text)
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
	if f.join != nil {
		if err := f.publishJoined(); err != nil {
			return err
		}
	} else {
		if err := f.close(); err != nil {
			return err
		}
		if err := os.Rename(f.partName(), f.name); err != nil {
			return err
		}
	}
	if err := os.Remove(f.stateName()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// publishJoined makes the file of its pieces. A run that is killed here leaves them, and the next
// one joins them again.
func (f *resultFile) publishJoined() error {
	joined, err := os.OpenFile(f.joinedName(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = pack(joined, f.name, func(w io.Writer) error { return f.join(f.part, w) })
	if errors.Is(err, errPieces) {
		err = fmt.Errorf("%s is damaged: %w: add --restart to start over", f.partName(), err)
	}
	if err == nil {
		err = joined.Sync()
	}
	if err = errors.Join(err, joined.Close(), f.close()); err != nil {
		return errors.Join(err, os.Remove(joined.Name()))
	}
	if err := os.Rename(joined.Name(), f.name); err != nil {
		return err
	}
	return os.Remove(f.partName())
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

// newSuffix is added to the name of a file that is about to be replaced.
const newSuffix = ".new"

// replaceFile writes a small file so that it is there whole or as it was. What a killed run leaves
// beside it, the next one overwrites.
func replaceFile(name string, content []byte) error {
	tmp, err := os.OpenFile(name+newSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
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
