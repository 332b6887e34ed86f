package rebuild

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"

	"github.com/flashdb/flashdb/internal/vfs"
)

// ownName matches the names of generation files and of what an unfinished
// rebuild leaves.
var ownName = regexp.MustCompile(`^` + filePrefix + `[0-9]{6,20}` + regexp.QuoteMeta(fileSuffix) + `(\.tmp|\.tmp\.rows\.tmp)?$`)

// CheckFolder returns an error if dir is something other than a directory, such
// as a symbolic link to one, which would lead elsewhere. A missing dir is fine.
func CheckFolder(fsys vfs.FS, dir string) error {
	kind, err := fsys.Type(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case kind != fs.ModeDir:
		return fmt.Errorf("%s is %s where a directory of index files belongs: move it away", fsys.Path(dir), Describe(kind))
	}
	return nil
}

// Describe names a type of file.
func Describe(kind fs.FileMode) string {
	switch {
	case kind == 0:
		return "a regular file"
	case kind&fs.ModeDir != 0:
		return "a directory"
	case kind&fs.ModeSymlink != 0:
		return "a symbolic link"
	case kind&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case kind&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// Files returns the names in dir that a rebuild gives, and one error for each
// entry that no rebuild has made. A missing dir is an empty one.
func Files(fsys vfs.FS, dir string) (own []string, strays []error) {
	if err := CheckFolder(fsys, dir); err != nil {
		return nil, []error{err}
	}
	names, err := fsys.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []error{err}
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		kind, err := fsys.Type(path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed since
		case err != nil:
			strays = append(strays, err)
		case !ownName.MatchString(name):
			strays = append(strays, fmt.Errorf("%s is %s that flashdb has not made", fsys.Path(path), Describe(kind)))
		case kind != 0:
			strays = append(strays, fmt.Errorf("%s is %s where an index file belongs: move it away", fsys.Path(path), Describe(kind)))
		default:
			own = append(own, name)
		}
	}
	return own, strays
}

// Sweep removes from dir every generation file but the one served (0 keeps
// none), and the unfinished files of rebuilds that died. It returns the names
// it removed, and one error for each entry that it left although it is not the
// served generation: nothing but regular files with names that a rebuild gives
// is removed.
func Sweep(fsys vfs.FS, dir string, served uint64) (removed []string, left []error) {
	own, left := Files(fsys, dir)
	for _, name := range own {
		if served != 0 && name == FileName(served) {
			continue
		}
		if err := fsys.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			left = append(left, err)
			continue
		}
		removed = append(removed, name)
	}
	return removed, left
}

// Remove removes the file of a generation from dir. What has its name without
// being a regular file was not made by a rebuild, and stays.
func Remove(fsys vfs.FS, dir string, generation uint64) error {
	path := filepath.Join(dir, FileName(generation))
	if kind, err := fsys.Type(path); err != nil || kind != 0 {
		return err
	}
	return fsys.Remove(path)
}

// Free returns the first number from generation on whose file Run can write:
// one that is not taken by something other than a regular file, which Run could
// not replace.
func Free(fsys vfs.FS, dir string, generation uint64) uint64 {
	taken := func(suffix string) bool {
		kind, err := fsys.Type(filepath.Join(dir, FileName(generation)+suffix))
		return err == nil && kind != 0
	}
	for taken("") || taken(".tmp") || taken(".tmp.rows.tmp") {
		generation++
	}
	return generation
}
