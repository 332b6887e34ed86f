//go:build unix

package mmap

import (
	"os"

	"golang.org/x/sys/unix"
)

func (r *Region) mapFile(f *os.File, size int) (err error) {
	r.data, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	return err
}

func (r *Region) unmap() error { return unix.Munmap(r.data) }

func (r *Region) advise(a Advice, part []byte) error {
	return unix.Madvise(part, [...]int{
		Random:     unix.MADV_RANDOM,
		Sequential: unix.MADV_SEQUENTIAL,
		WillNeed:   unix.MADV_WILLNEED,
	}[a])
}
