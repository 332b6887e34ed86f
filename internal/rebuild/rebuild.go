// Package rebuild makes a new generation of a collection's index: it trains,
// streams the rows into a file, opens what it wrote and checks it. It owns the
// names of generation files, sweeps those nobody serves, and leaves files of
// other names alone. Publishing is the caller's: until its commit, a generation is a file that the next sweep
// removes.
//
// The functions keep no state and may run on any goroutine, one rebuild of a
// collection at a time.
package rebuild

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/internal/vfs"
)

const (
	filePrefix = "gen-"
	fileSuffix = ".ivf"
)

// FileName returns the name of a generation's file inside its collection's
// index directory.
func FileName(generation uint64) string {
	return fmt.Sprintf("%s%06d%s", filePrefix, generation, fileSuffix)
}

// Run builds generation from the rows of src in dir, and returns it opened and
// checked. On an error or a cancelled ctx nothing is left behind.
func Run(ctx context.Context, fsys vfs.FS, dir string, generation uint64, src ivf.RowSource, opt ivf.BuildOptions) (*ivf.Index, error) {
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("make index directory: %w", err)
	}
	// A generation is published as served: no crash may take its directory away.
	// The database directory, where the index has its own, was there before.
	for _, parent := range []string{filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))} {
		if err := fsys.SyncDir(parent); err != nil {
			return nil, fmt.Errorf("make index directory: %w", err)
		}
	}
	path := filepath.Join(dir, FileName(generation))
	if err := ivf.Build(ctx, fsys, path, src, opt); err != nil {
		return nil, fmt.Errorf("build generation %d: %w", generation, err)
	}
	gen, err := openChecked(fsys, path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("verify generation %d: %w", generation, err), fsys.Remove(path))
	}
	return gen, nil
}

func openChecked(fsys vfs.FS, path string) (*ivf.Index, error) {
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
