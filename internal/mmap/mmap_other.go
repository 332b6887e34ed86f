//go:build !unix && !windows

package mmap

import (
	"io"
	"os"
)

func (r *Region) mapFile(f *os.File, size int) error {
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, int64(size)), data); err != nil {
		return err
	}
	r.data = data
	return nil
}

func (r *Region) unmap() error { return nil }

func (r *Region) advise(Advice, []byte) error { return nil }
