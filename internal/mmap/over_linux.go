package mmap

import (
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// StandIn returns a file in memory that has the length of f and its first bytes, as many as head.
// The rest of it is zero and takes no memory.
func StandIn(f *os.File, head int) (_ *os.File, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	begin := make([]byte, min(int64(head), info.Size()))
	if _, err := f.ReadAt(begin, 0); err != nil && err != io.EOF {
		return nil, err
	}
	fd, err := unix.MemfdCreate("flashdb", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	m := os.NewFile(uintptr(fd), f.Name())
	defer func() {
		if err != nil {
			m.Close()
		}
	}()
	if err := m.Truncate(info.Size()); err != nil {
		return nil, err
	}
	_, err = m.WriteAt(begin, 0)
	return m, err
}

// Over maps the first size bytes of f read-only at base, in the place of another mapping of that
// size or more. They will be read in no order.
func Over(base unsafe.Pointer, f *os.File, size int64) error {
	at, err := unix.MmapPtr(int(f.Fd()), 0, base, uintptr(size), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	_ = unix.Madvise(unsafe.Slice((*byte)(at), size), unix.MADV_RANDOM) // only a hint
	return nil
}
