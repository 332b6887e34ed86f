package flashdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/internal/vfs"
)

// A generation is one file in the index directory of its collection. It is built there, opened and
// checked. Then a transaction of the store publishes it. A generation that was never published is
// removed at the next open. Files with other names are left alone.
const (
	generationPrefix = "gen-"
	generationSuffix = ".ivf"
)

// ownGeneration matches the names of generation files and of the temporary files of a rebuild.
var ownGeneration = regexp.MustCompile(`^` + generationPrefix + `[0-9]{6,20}` + regexp.QuoteMeta(generationSuffix) + `(\.tmp|\.tmp\.rows\.tmp)?$`)

// generationFile returns the name of a generation's file inside its collection's index directory.
func generationFile(generation uint64) string {
	return fmt.Sprintf("%s%06d%s", generationPrefix, generation, generationSuffix)
}

// generationName returns the name of a generation's file in the directory of the database.
func generationName(collection string, number uint64) string {
	return filepath.Join(indexDir, collection, generationFile(number))
}

// buildGeneration builds generation in dir from the rows of src, and returns it opened and checked.
// On an error, also that of ctx, it leaves no file behind.
func buildGeneration(ctx context.Context, fsys vfs.FS, dir string, generation uint64, src ivf.RowSource, opt ivf.BuildOptions) (*ivf.Index, error) {
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("make index directory: %w", err)
	}
	// The store will name this generation, so a crash must not lose its directory. The directory of
	// the database is durable already; the two below it may be new.
	for _, parent := range []string{filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))} {
		if err := fsys.SyncDir(parent); err != nil {
			return nil, fmt.Errorf("make index directory: %w", err)
		}
	}
	path := filepath.Join(dir, generationFile(generation))
	if err := ivf.Build(ctx, fsys, path, src, opt); err != nil {
		return nil, fmt.Errorf("build generation %d: %w", generation, err)
	}
	gen, err := openBuilt(fsys, path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("verify generation %d: %w", generation, err), fsys.Remove(path))
	}
	return gen, nil
}

func openBuilt(fsys vfs.FS, path string) (*ivf.Index, error) {
	gen, err := ivf.Open(fsys, path)
	if err != nil {
		return nil, err
	}
	if err := gen.Check(); err != nil {
		gen.Release()
		return nil, err
	}
	return gen, nil
}

// checkIndexFolder returns an error if dir is not a directory. A symbolic link to one is an error
// too, because it would lead elsewhere. A missing dir is not.
func checkIndexFolder(fsys vfs.FS, dir string) error {
	kind, err := fsys.Type(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case kind != fs.ModeDir:
		return fmt.Errorf("%s is %s where a directory of index files belongs: move it away", fsys.Path(dir), describeType(kind))
	}
	return nil
}

// generationFiles returns the names in dir of files that rebuilds make, and one error for each
// other entry. A missing dir counts as empty.
func generationFiles(fsys vfs.FS, dir string) (own []string, strays []error) {
	if err := checkIndexFolder(fsys, dir); err != nil {
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
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			strays = append(strays, err)
		case !ownGeneration.MatchString(name):
			strays = append(strays, fmt.Errorf("%s is %s that flashdb has not made", fsys.Path(path), describeType(kind)))
		case kind != 0:
			strays = append(strays, fmt.Errorf("%s is %s where an index file belongs: move it away", fsys.Path(path), describeType(kind)))
		default:
			own = append(own, name)
		}
	}
	return own, strays
}

// sweepGenerations removes from dir every generation file but the kept ones, and the temporary
// files of rebuilds that were killed. The number 0 is no generation. It removes only regular files
// with names that rebuilds give. It returns the names it removed, and one error for each other
// entry that it left.
func sweepGenerations(fsys vfs.FS, dir string, kept ...uint64) (removed []string, left []error) {
	own, left := generationFiles(fsys, dir)
	for _, name := range own {
		if slices.ContainsFunc(kept, func(n uint64) bool { return n != 0 && name == generationFile(n) }) {
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

// removeGenerationFile removes the file of a generation from dir. It leaves anything of that name
// that is not a regular file, because no rebuild made it.
func removeGenerationFile(fsys vfs.FS, dir string, generation uint64) error {
	path := filepath.Join(dir, generationFile(generation))
	if kind, err := fsys.Type(path); err != nil || kind != 0 {
		return err
	}
	return fsys.Remove(path)
}

// freeGeneration returns the first number from generation on whose files can be written. A build
// replaces regular files of these names. Anything else, such as a directory, is in the way.
func freeGeneration(fsys vfs.FS, dir string, generation uint64) uint64 {
	taken := func(suffix string) bool {
		kind, err := fsys.Type(filepath.Join(dir, generationFile(generation)+suffix))
		return err == nil && kind != 0
	}
	for taken("") || taken(".tmp") || taken(".tmp.rows.tmp") {
		generation++
	}
	return generation
}
