package mmap

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

func (r *Region) mapFile(f *os.File, size int) error {
	h, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return os.NewSyscallError("CreateFileMapping", err)
	}
	defer windows.CloseHandle(h) // the view keeps the mapping object alive
	addr, err := windows.MapViewOfFile(h, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return os.NewSyscallError("MapViewOfFile", err)
	}
	// The address is no Go pointer, so the collector neither moves nor frees what it points to.
	p := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	r.data = unsafe.Slice((*byte)(p), size)
	return nil
}

func (r *Region) unmap() error {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(r.data)))
	return os.NewSyscallError("UnmapViewOfFile", windows.UnmapViewOfFile(addr))
}

// advise does nothing: Windows takes such hints when a file is opened, not for a view of it.
func (r *Region) advise(Advice, []byte) error { return nil }
