package ivf

import (
	"unsafe"

	"github.com/flashdb/flashdb/internal/format"
)

// Guard calls fn, which uses the index, and turns what a file that changes under this process does
// to it into an error matching format.ErrCorrupt: a fault where the file was cut short, which would
// end the process, and a panic over numbers that are no longer those that Load has verified. Every
// other panic is fn's own and passes.
//
// Only the calling goroutine is guarded: fn must not hand parts of the mapping to others.
func (ix *Index) Guard(fn func() error) (err error) {
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
