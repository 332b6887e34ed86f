package format

import (
	"errors"
	"fmt"
)

// Sentinels matched by the errors of this package.
var (
	// ErrCorrupt matches every CorruptError.
	ErrCorrupt = errors.New("corrupt data")

	// ErrVersion matches every VersionError.
	ErrVersion = errors.New("unsupported format version")
)

// CorruptError says which bytes are not what the format demands.
type CorruptError struct {
	File    string // path, or another name the user can act on; empty when the bytes came from memory
	Section string // part of the format, as its description names it
	Offset  int64  // of the first byte found wrong, counted from the start of the file
	Cause   error  // what is wrong there
}

// Corrupt returns a CorruptError whose cause is formatted as by fmt.Errorf, %w included.
func Corrupt(file, section string, offset int64, format string, args ...any) error {
	return &CorruptError{File: file, Section: section, Offset: offset, Cause: fmt.Errorf(format, args...)}
}

func (e *CorruptError) Error() string {
	file := e.File
	if file == "" {
		file = "data"
	}
	return fmt.Sprintf("corrupt %s: %s at offset %d: %v", file, e.Section, e.Offset, e.Cause)
}

// Is makes every CorruptError match ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Cause }

// VersionError says that a file is of a format version this program does not know.
type VersionError struct {
	File   string
	Got    uint32 // version the file states
	Newest uint32 // newest version this program reads
}

// CheckVersion returns nil if got is a version from 1 to newest, and a VersionError naming file
// otherwise.
func CheckVersion(file string, got, newest uint32) error {
	if got >= 1 && got <= newest {
		return nil
	}
	return &VersionError{File: file, Got: got, Newest: newest}
}

func (e *VersionError) Error() string {
	file := e.File
	if file == "" {
		file = "data"
	}
	if e.Got > e.Newest {
		return fmt.Sprintf("%s has format version %d, this program reads up to version %d: use a newer program", file, e.Got, e.Newest)
	}
	return fmt.Sprintf("%s has format version %d, this program reads versions 1 to %d", file, e.Got, e.Newest)
}

// Is makes every VersionError match ErrVersion.
func (e *VersionError) Is(target error) bool { return target == ErrVersion }
