package format

import "runtime/debug"

// PanicOnFaults tells whether a fault on mapped memory is a panic of this goroutine, rather than
// the end of the process, and returns what was the case before. The system raises such a fault
// where a page of a file cannot be read, because the file was cut short or its disk failed. Use as
//
//	defer format.PanicOnFaults(format.PanicOnFaults(true))
func PanicOnFaults(panics bool) (before bool) { return debug.SetPanicOnFault(panics) }

// Fault returns the error for a recovered panic that is a fault in the mapping of a file, size
// bytes from base on, and nil for every other panic. The offset is where in the file the read
// failed.
func Fault(file string, base uintptr, size int64, panicked any) error {
	fault, ok := panicked.(interface{ Addr() uintptr })
	if !ok {
		return nil
	}
	at := fault.Addr()
	if at < base || at-base >= uintptr(size) {
		return nil
	}
	return Corrupt(file, "mapping", int64(at-base), "the page cannot be read: the file was cut short under this process, or its disk fails")
}
