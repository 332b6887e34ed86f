package flashdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/flashdb/flashdb/internal/backup"
	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/output"
	"github.com/flashdb/flashdb/internal/vfs"
	"github.com/flashdb/flashdb/storage"
)

// RestoreOptions are the options of one Restore or VerifyBackup. The zero value, or nil, means the
// defaults.
type RestoreOptions struct {
	// Name is the name of the stream in errors, such as its path.
	Name string
	// MaxBytes bounds the size of the unpacked files. Default 64 MiB plus 1000 times the bytes that
	// were read of the stream. Only a stream that was made to fill a disk exceeds that.
	MaxBytes uint64
	// Snapshot makes dir a snapshot: a copy that is only ever read. Open recognizes it, opens it
	// read-only and takes no lock. So any number of processes have it open at a time, also on a
	// file system that is read-only or has no locks. It holds no free pages and no log, and a list
	// of its files with their checksums, which Open compares with their lengths and DB.Check with
	// their bytes. VerifyBackup ignores the option.
	Snapshot bool
	// Progress is called from time to time, with the stage "restore" and the bytes of the files
	// restored so far and in all.
	Progress func(stage string, done, total int64)
}

// Restore makes the database directory dir from a stream that Backup wrote. If dir exists and is
// not empty, Restore returns ErrExists.
//
// Restore does not trust the stream. It verifies every checksum. It accepts only file names that a
// database uses, and files of the announced size. It writes the files to a temporary directory
// beside dir, whose name is that of dir, ".restore-" and a number. It opens that as a database,
// which must pass DB.Check, and only then renames it to dir. So dir is never there in part. A
// Restore that fails removes the temporary directory. One that is killed leaves it, to be removed
// by hand. A damaged stream gives ErrCorrupt, and one of a newer format ErrVersion.
func Restore(ctx context.Context, r io.Reader, dir string, opts *RestoreOptions) (BackupResult, error) {
	return restoreOn(vfs.OS(), ctx, r, dir, opts)
}

// VerifyBackup does all that Restore does, but in a temporary directory (see os.TempDir) that it
// removes in the end. It needs as much disk space there. A stream that it accepts can be restored.
func VerifyBackup(ctx context.Context, r io.Reader, opts *RestoreOptions) (BackupResult, error) {
	res, err := verifyBackup(ctx, r, opts)
	if err != nil {
		return BackupResult{}, fmt.Errorf("verify backup: %w", err)
	}
	return res, nil
}

func verifyBackup(ctx context.Context, in io.Reader, opts *RestoreOptions) (res BackupResult, err error) {
	dir, err := os.MkdirTemp("", "flashdb-verify-")
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &restoring{system: vfs.OS(), temp: "database"}
	if r.parent, err = r.system.OpenRoot(dir); err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, r.parent.Close()) }()
	return r.run(ctx, in, opts)
}

func restoreOn(fsys vfs.FS, ctx context.Context, r io.Reader, dir string, opts *RestoreOptions) (BackupResult, error) {
	res, err := restoreTo(fsys, ctx, r, dir, opts)
	if err != nil {
		return BackupResult{}, fmt.Errorf("restore %s: %w", dir, err)
	}
	return res, nil
}

func restoreTo(fsys vfs.FS, ctx context.Context, in io.Reader, dir string, opts *RestoreOptions) (res BackupResult, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return res, err
	}
	if err := output.Within(abs); err != nil {
		return res, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	parent, name := filepath.Dir(abs), filepath.Base(abs)
	r := &restoring{system: fsys, temp: fmt.Sprintf("%s.restore-%08x", name, rand.Uint32())}
	r.parent, err = fsys.OpenRoot(parent)
	if errors.Is(err, fs.ErrNotExist) {
		if err = vfs.MakeDir(fsys, parent); err == nil {
			r.parent, err = fsys.OpenRoot(parent)
		}
	}
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, r.parent.Close()) }()
	there, err := r.vacant(name)
	if err != nil {
		return res, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.parent.RemoveAll(r.temp))
		}
	}()
	r.snapshot = opts != nil && opts.Snapshot
	if res, err = r.run(ctx, in, opts); err != nil {
		return res, err
	}
	if r.snapshot {
		list, err := r.seal(ctx, res.LSN)
		if err != nil {
			return res, err
		}
		res.Files, res.Bytes = len(list.Files), int64(list.Bytes())
	}
	return res, r.publish(name, there)
}

// A restoring is the state of one Restore or VerifyBackup.
type restoring struct {
	system vfs.FS
	parent vfs.Root // the directory in which temp is made
	temp   string   // in parent
	dirs   []string // directories made in parent, each after its own parent; the first is temp

	snapshot bool
}

// run makes the database in temp, and checks it.
func (r *restoring) run(ctx context.Context, in io.Reader, opts *RestoreOptions) (res BackupResult, err error) {
	if err := r.mkdir(r.temp); err != nil {
		return res, err
	}
	if res, err = readBackup(ctx, in, opts, r.receive); err != nil {
		return res, err
	}
	for _, d := range slices.Backward(r.dirs) {
		if err := r.parent.SyncDir(d); err != nil {
			return res, err
		}
	}
	return res, r.verify(ctx)
}

// vacant reports whether the directory exists. It returns an error if it is not empty.
func (r *restoring) vacant(name string) (there bool, err error) {
	names, err := r.parent.ReadDir(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case len(names) > 0:
		return false, fmt.Errorf("the directory %w and is not empty: restore to a new one, and rename it when you are content", ErrExists)
	}
	return true, nil
}

func (r *restoring) mkdir(dir string) error {
	if slices.Contains(r.dirs, dir) {
		return nil
	}
	if err := r.parent.MkdirAll(dir); err != nil {
		return err
	}
	r.dirs = append(r.dirs, dir)
	return nil
}

// receive stores one file of the stream.
func (r *restoring) receive(e backup.Entry, data io.Reader) error {
	parent := r.temp
	for _, elem := range splitPath(path.Dir(e.Name)) {
		parent = filepath.Join(parent, elem)
		if err := r.mkdir(parent); err != nil {
			return err
		}
	}
	f, err := r.parent.Create(filepath.Join(r.temp, filepath.FromSlash(e.Name)))
	if err != nil {
		return err
	}
	// The struct hides that a file may be an io.ReaderFrom: its errors would mix those of the
	// stream with those of the file.
	_, err = io.Copy(struct{ io.Writer }{f}, data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// splitPath returns the elements of a clean relative path with slashes.
func splitPath(p string) []string {
	if p == "." {
		return nil
	}
	parent, last := path.Split(p)
	return append(splitPath(path.Clean(parent)), last)
}

// verify opens the received files as a database and checks it. Before that it drops the generations
// that the stream does not hold, and compacts what will be a snapshot.
func (r *restoring) verify(ctx context.Context) (err error) {
	db, err := Open(r.parent.Path(r.temp), &Options{MustExist: true, disk: disk{system: r.system, foreign: true}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.forgetMissingGenerations(); err != nil {
		return err
	}
	if r.snapshot {
		if _, err := db.Compact(ctx, nil); err != nil {
			return err
		}
	}
	findings, err := db.Check(ctx)
	if err != nil {
		return err
	}
	if len(findings) > 0 {
		return fmt.Errorf("%w: the backup holds a database with %d findings, the first: %s", ErrCorrupt, len(findings), findings[0])
	}
	return nil
}

// forgetMissingGenerations makes each collection of whose index a file is missing one without an
// index. It must run before any query.
func (db *DB) forgetMissingGenerations() error {
	of := map[string][]storage.Info{} // by release; "" is the live one
	err := db.store.View(func(v *storage.View) error {
		of[""] = v.Collections()
		for _, r := range v.Releases() {
			if r.State != storage.Live {
				of[r.Name] = r.Collections
			}
		}
		return nil
	})
	for release, infos := range of {
		for _, info := range infos {
			if err != nil {
				return err
			}
			if err = db.lacksFile(info); errors.Is(err, fs.ErrNotExist) {
				err = db.store.PublishGenerationOf(release, info.UID, 0, 0)
			}
		}
	}
	return err
}

// lacksFile returns the error of the first file of an index that cannot be found.
func (db *DB) lacksFile(info storage.Info) error {
	if info.Generation == 0 {
		return nil
	}
	for _, number := range filesOf(info) {
		if _, err := db.fs.Size(generationName(info.Name, number)); err != nil {
			return err
		}
	}
	return nil
}

// publish gives the finished directory its name.
func (r *restoring) publish(name string, there bool) error {
	if there {
		if err := r.parent.Remove(name); err != nil {
			return fmt.Errorf("replace the empty directory: %w", err)
		}
	}
	if err := r.parent.Rename(r.temp, name); err != nil {
		return err
	}
	if err := r.parent.SyncDir("."); err != nil {
		return errors.Join(err, r.parent.RemoveAll(name))
	}
	return nil
}

// placeOf holds the names that an entry of each kind may have.
var placeOf = map[backup.Kind]*regexp.Regexp{
	backup.Store:      regexp.MustCompile(`^` + regexp.QuoteMeta(storeFile) + `$`),
	backup.Segment:    regexp.MustCompile(`^` + walDir + `/[0-9a-f]{16}\.log$`),
	backup.Generation: regexp.MustCompile(`^` + indexDir + `/([^/]+)/gen-[0-9]{6,20}\.ivf$`),
}

// isPlace reports whether a database may have a file of that kind and name.
func isPlace(e backup.Entry) bool {
	place := placeOf[e.Kind]
	if place == nil {
		return false
	}
	found := place.FindStringSubmatch(e.Name)
	return found != nil && (len(found) == 1 || storage.CheckCollectionName(found[1]) == nil)
}

// readBackup reads a stream to its end and calls take with each of its files.
func readBackup(ctx context.Context, r io.Reader, opts *RestoreOptions, take func(backup.Entry, io.Reader) error) (res BackupResult, err error) {
	start := time.Now()
	var o RestoreOptions
	if opts != nil {
		o = *opts
	}
	br, err := backup.NewReader(&contextReader{ctx, r}, &backup.Options{File: o.Name, MaxBytes: o.MaxBytes})
	if err != nil {
		return res, err
	}
	defer br.Close()
	header := br.Header()
	data := &progressReader{ctx: ctx, r: br, stage: "restore", progress: o.Progress, total: int64(header.Bytes)}
	seen := map[string]bool{}
	for {
		e, err := br.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return res, err
		}
		if !isPlace(e) || seen[e.Name] {
			return res, format.Corrupt(o.Name, "entry", 0, "%q of kind %d is no file that a database has, or is there twice", e.Name, e.Kind)
		}
		seen[e.Name] = true
		if err := take(e, data); err != nil {
			return res, err
		}
	}
	if !seen[storeFile] {
		return res, format.Corrupt(o.Name, "entries", 0, "there is no %s", storeFile)
	}
	return BackupResult{
		LSN:     header.LSN,
		Files:   int(header.Entries),
		Bytes:   int64(header.Bytes),
		Packed:  int64(br.Packed()),
		Elapsed: time.Since(start),
	}, nil
}

// A contextReader fails once its context has ended.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(b []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(b)
}
