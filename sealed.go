package flashdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/snapshot"
	"github.com/flashdb/flashdb/internal/vfs"
)

// A snapshot is the directory of a database that was sealed: its log is empty and left out, its
// bbolt file has another name, and snapshot.files lists each file with length and checksum. Nobody
// writes to it, so nobody locks it: any number of processes have it open, also where the file
// system is read-only or has no locks.

// errSealed is why a snapshot takes no writes.
var errSealed = fmt.Errorf("%w: it is a snapshot, which is never written to: `flashdb backup` and `flashdb restore` make a database of it", ErrReadOnly)

// maxSealBytes bounds the list of files that is read.
const maxSealBytes = 64 << 20

// seal makes a snapshot of the database in temp, which is closed, and returns its list.
func (r *restoring) seal(ctx context.Context, lsn uint64) (*snapshot.List, error) {
	in := func(name string) string { return filepath.Join(r.temp, filepath.FromSlash(name)) }
	if err := r.parent.RemoveAll(in(walDir)); err != nil {
		return nil, err
	}
	if err := r.parent.Rename(in(storeFile), in(snapshot.Store)); err != nil {
		return nil, err
	}
	names, err := r.generations()
	if err != nil {
		return nil, err
	}
	list := &snapshot.List{LSN: lsn}
	names = append(names, snapshot.Store)
	slices.Sort(names)
	for _, name := range names {
		f := snapshot.File{Name: name}
		if f.Size, f.CRC, err = checksumOf(ctx, r.parent, in(name)); err != nil {
			return nil, err
		}
		list.Files = append(list.Files, f)
	}
	f, err := r.parent.Create(in(snapshot.Name))
	if err != nil {
		return nil, err
	}
	_, err = f.Write(snapshot.Marshal(list))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if err := r.parent.SyncDir(r.temp); err != nil {
		return nil, err
	}
	db, err := Open(r.parent.Path(r.temp), &Options{disk: disk{system: r.system}})
	if err != nil {
		return nil, err
	}
	return list, db.Close()
}

// generations lists the generation files in temp, as names of the database.
func (r *restoring) generations() (names []string, err error) {
	folders, err := r.parent.ReadDir(filepath.Join(r.temp, indexDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, folder := range folders {
		files, err := r.parent.ReadDir(filepath.Join(r.temp, indexDir, folder))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			names = append(names, path.Join(indexDir, folder, file))
		}
	}
	return names, err
}

// checksumOf reads a file and returns its length and CRC32C.
func checksumOf(ctx context.Context, fsys vfs.FS, name string) (size uint64, crc uint32, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := make([]byte, 1<<20)
	for {
		if ctx.Err() != nil {
			return 0, 0, context.Cause(ctx)
		}
		n, err := f.Read(buf)
		crc, size = format.CRCUpdate(crc, buf[:n]), size+uint64(n)
		if errors.Is(err, io.EOF) {
			return size, crc, nil
		}
		if err != nil {
			return 0, 0, err
		}
	}
}

// recognize reads the list of files if the directory is a snapshot, and makes the database
// read-only. The files must be there with their lengths: a copy of the directory may lack some.
// DB.Check reads them.
func (db *DB) recognize() error {
	db.storeName = storeFile
	if _, err := db.home.Lstat(storeFile); err == nil || !isSnapshot(db.home) {
		return nil
	}
	text, err := readSeal(db.fs)
	if errors.Is(err, fs.ErrNotExist) {
		return format.Corrupt(db.path(snapshot.Name), "file", 0, "it is missing: the snapshot was copied in part")
	}
	if err != nil {
		return err
	}
	if db.sealed, err = snapshot.Unmarshal(db.path(snapshot.Name), text); err != nil {
		return err
	}
	db.storeName, db.opts.ReadOnly = snapshot.Store, true
	for _, f := range db.sealed.Files {
		size, err := db.fs.Size(filepath.FromSlash(f.Name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return format.Corrupt(db.path(filepath.FromSlash(f.Name)), "file", 0, "it is missing: the snapshot was copied in part")
		case err != nil:
			return err
		case uint64(size) != f.Size:
			return format.Corrupt(db.path(filepath.FromSlash(f.Name)), "file", min(size, int64(f.Size)), "it has %d bytes, the snapshot had %d: it was copied in part, or changed", size, f.Size)
		}
	}
	if kind, err := db.fs.Type(walDir); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, format.Corrupt(db.path(walDir), "file", 0, "a snapshot has no log, and there is %s", describeType(kind)))
	}
	return nil
}

// isSnapshot tells whether a directory has a file of a snapshot.
func isSnapshot(dir *vfs.Dir) bool {
	for _, name := range []string{snapshot.Name, snapshot.Store} {
		if _, err := dir.Lstat(name); err == nil {
			return true
		}
	}
	return false
}

// readSeal reads the list of files.
func readSeal(fsys vfs.FS) ([]byte, error) {
	f, err := fsys.Open(snapshot.Name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSealBytes)) // a longer one has no trailer there
	return text, errors.Join(err, f.Close())
}

// checkSeal compares the files with their checksums.
func (db *DB) checkSeal(ctx context.Context, found func(string, ...any)) error {
	for _, f := range db.sealed.Files {
		_, crc, err := checksumOf(ctx, db.fs, filepath.FromSlash(f.Name))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			found("snapshot: %v", err)
		case crc != f.CRC:
			found("snapshot: %s: the checksum is %08x, want %08x", db.path(filepath.FromSlash(f.Name)), crc, f.CRC)
		}
	}
	return nil
}
