//go:build !linux

package mmap

import (
	"errors"
	"os"
	"unsafe"
)

// StandIn is not there on this system.
func StandIn(*os.File, int) (*os.File, error) { return nil, errors.ErrUnsupported }

// Over is not there on this system.
func Over(unsafe.Pointer, *os.File, int64) error { return errors.ErrUnsupported }
