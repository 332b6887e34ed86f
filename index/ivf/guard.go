package ivf

import (
	"unsafe"

	"github.com/flashdb/flashdb/internal/format"
)

// Guard calls fn, which uses the index, while the file may change under this process. If the file
// was truncated, a read of the mapping faults, which would end the process. If its bytes have
// changed since Load verified them, fn may panic. Guard turns both into an error that matches
// format.ErrCorrupt. It passes on every other panic.
//
// Only the calling goroutine is guarded, so fn must not pass parts of the mapping to others.
func (ix *Index) Guard(fn func() error) error {
	for i := 1; i < len(ix.parts); i++ {
		of, inner := ix.parts[i].of, fn
		fn = func() error { return of.guardFile(inner) }
	}
	return ix.parts[0].of.guardFile(fn)
}

// guardFile is Guard for the mapping of one file.
func (ix *Index) guardFile(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if err = catchFaults(ix.name, ix.data, ix.verifyAll); err == nil {
				panic(p)
			}
		}
	}()
	return catchFaults(ix.name, ix.data, fn)
}

// catchFaults calls fn, and returns a fault in data, the mapping of the named file, as an error.
func catchFaults(name string, data []byte, fn func() error) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		base := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
		if err = format.Fault(name, base, int64(len(data)), p); err == nil {
			panic(p)
		}
	}()
	defer format.PanicOnFaults(format.PanicOnFaults(true))
	return fn()
}
