package flashdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"time"

	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/internal/backup"
	"github.com/flashdb/flashdb/internal/vfs"
	"github.com/flashdb/flashdb/storage"
)

// BackupOptions are the options of one Backup. The zero value, or nil, means the defaults.
type BackupOptions struct {
	// WithoutIndex leaves the generation files out. The restored database scans exactly until its
	// first Rebuild.
	WithoutIndex bool
	// AllReleases also takes the staged releases and the former one. By default the backup holds
	// the live release only. Of a database that was opened read-only it holds all.
	AllReleases bool
	// Progress is called from time to time, with the stage "back up" and the bytes of the files
	// written so far and in all.
	Progress func(stage string, done, total int64)
}

// A BackupResult says what a backup holds.
type BackupResult struct {
	// LSN is the number of the last write in the backup.
	LSN uint64
	// Files is the number of files, Bytes their size, and Packed the length of the compressed
	// stream.
	Files         int
	Bytes, Packed int64
	// LeftOut names the collections whose index Backup left out because it is damaged or missing.
	// Rebuild makes a new one.
	LeftOut []string
	Elapsed time.Duration
}

// Backup writes one state of the database to w. The state holds every write that was acknowledged
// before the call, and perhaps some later ones, each as a whole. Restore makes a database of it.
// The stream is compressed and checksummed: docs/format.md describes it. It is complete only if
// Backup returns nil. Memory use does not depend on the size of the database.
//
// Reads and writes continue during a Backup. The bbolt file is first copied to a temporary file in
// the directory, while flushes wait, and then streamed from there. The copy takes as much disk
// space as the bbolt file has pages in use. Streaming from the bbolt file itself would hold a read
// transaction for as long as w takes, which may be a slow network. Such a transaction keeps bbolt
// from reusing pages, and from growing its mapping, for which all readers would wait. Generation
// files are immutable, so they are only held open.
//
// A database that was opened read-only flushes nothing, so its bbolt file is streamed without a
// copy. ErrReadOnly is returned if the log holds writes that the bbolt file lacks.
//
// Close ends a running Backup with ErrClosed, and the end of ctx ends it with the error of ctx.
// Either waits for a Write to w that has begun.
func (db *DB) Backup(ctx context.Context, w io.Writer, opts *BackupOptions) (BackupResult, error) {
	leave, err := db.enter()
	if err != nil {
		return BackupResult{}, err
	}
	defer leave()
	var o BackupOptions
	if opts != nil {
		o = *opts
	}
	ctx, cancel := db.untilClose(ctx)
	defer cancel()
	res, err := db.backup(ctx, w, o)
	if err != nil {
		return BackupResult{}, fmt.Errorf("back up %s: %w", db.dir, err)
	}
	return res, nil
}

func (db *DB) backup(ctx context.Context, w io.Writer, o BackupOptions) (res BackupResult, err error) {
	if err := db.mayBackUp(); err != nil {
		return res, err
	}
	start := time.Now()
	if _, err := db.store.Flush(); err != nil {
		return res, err
	}
	image, err := db.image(ctx, o)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, image.close()) }()
	if err := image.checkIndexes(db); err != nil {
		return res, err
	}
	header := image.header()
	out := &countingWriter{w: w}
	bw, err := backup.NewWriter(out, header)
	if err != nil {
		return res, err
	}
	in := &progressReader{ctx: ctx, stage: "back up", progress: o.Progress, total: int64(header.Bytes)}
	for _, f := range image.files {
		in.r = io.NewSectionReader(f.data, 0, int64(f.entry.Size))
		if err := bw.Entry(f.entry, in); err != nil {
			bw.Abandon()
			return res, err
		}
	}
	if err := bw.Close(); err != nil {
		return res, err
	}
	return BackupResult{
		LSN:     header.LSN,
		Files:   int(header.Entries),
		Bytes:   int64(header.Bytes),
		Packed:  out.n,
		LeftOut: image.leftOut,
		Elapsed: time.Since(start),
	}, nil
}

// mayBackUp returns an error if a file must not be written in the directory. For a database that
// was opened read-only, it returns an error if the bbolt file lacks what the log holds.
func (db *DB) mayBackUp() error {
	switch {
	case !db.opts.ReadOnly:
		return db.owned()
	case uint64(db.log.Durable()) != db.store.Applied():
		return fmt.Errorf("%w: the log holds changes that %s lacks: open it for writing once, as `flashdb checkpoint` does, and back it up then", ErrReadOnly, storeFile)
	}
	return nil
}

// An image holds the files of a database as of one LSN, so that no later write or rebuild changes
// or removes their bytes.
type image struct {
	lsn     uint64
	files   []imageFile
	leftOut []string
	fs      vfs.FS
	store   string // name of the bbolt file
	copied  string // name of the temporary copy of the bbolt file; "" without one
}

type imageFile struct {
	entry      backup.Entry
	data       vfs.File
	index      *ivf.Index // of a generation
	collection string
}

// image copies the bbolt file and opens the generations it names. Nothing is flushed or published
// meanwhile.
func (db *DB) image(ctx context.Context, o BackupOptions) (im *image, err error) {
	im = &image{fs: db.fs, store: db.storeName}
	if !db.opts.ReadOnly {
		im.copied = fmt.Sprintf("%s%08x%s", imagePrefix, rand.Uint32(), imageSuffix)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, im.close())
		}
	}()
	err = db.store.Snapshot(func(s *storage.Snapshot) error {
		im.lsn = s.Applied()
		all := o.AllReleases || im.copied == ""
		if err := im.hold(ctx, s, all); err != nil {
			return err
		}
		if o.WithoutIndex {
			return nil
		}
		infos := s.Collections()
		for _, r := range s.Releases() {
			if all && r.State != storage.Live {
				infos = append(infos, r.Collections...)
			}
		}
		for _, info := range infos {
			if err := im.pin(db, info); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range im.files {
		if err != nil {
			break
		}
		var size int64
		size, err = im.files[i].data.Size()
		im.files[i].entry.Size = uint64(size)
	}
	return im, err
}

// hold adds the bbolt file: a copy of it, or the file itself in a database that was opened
// read-only.
func (im *image) hold(ctx context.Context, s *storage.Snapshot, all bool) error {
	if im.copied == "" {
		f, err := im.fs.Open(im.store)
		if err == nil {
			im.add(backup.Store, storeFile, f)
		}
		return err
	}
	if !all && len(s.Releases()) > 1 {
		if err := s.WriteLive(ctx, im.copied); err != nil {
			return fmt.Errorf("copy %s: %w", storeFile, err)
		}
		f, err := im.fs.Open(im.copied)
		if err == nil {
			im.add(backup.Store, storeFile, f)
		}
		return err
	}
	f, err := im.fs.Create(im.copied)
	if err != nil {
		return err
	}
	im.add(backup.Store, storeFile, f)
	if _, err := s.WriteTo(&contextWriter{ctx, f}); err != nil {
		return fmt.Errorf("copy %s: %w", storeFile, err)
	}
	return nil
}

func (im *image) add(kind backup.Kind, name string, f vfs.File) *imageFile {
	im.files = append(im.files, imageFile{entry: backup.Entry{Kind: kind, Name: name}, data: f})
	return &im.files[len(im.files)-1]
}

// pin adds the served generation of a collection and its segments, if there is one and they can be
// opened.
func (im *image) pin(db *DB, info storage.Info) error {
	if info.Generation == 0 {
		return nil
	}
	files, err := db.mapFiles(info)
	if err != nil {
		im.leaveOut(db, info.Name, err)
		return nil
	}
	for i, number := range filesOf(info) {
		f, err := db.fs.Open(generationName(info.Name, number))
		if err != nil {
			releaseFiles(files[i:])
			return err
		}
		added := im.add(backup.Generation, path.Join(indexDir, info.Name, generationFile(number)), f)
		added.index, added.collection = files[i], info.Name
	}
	return nil
}

func (im *image) leaveOut(db *DB, collection string, cause error) {
	im.leftOut = append(im.leftOut, collection)
	db.slog.Warn("index left out of the backup: it can be rebuilt", "collection", collection, "err", cause)
}

// checkIndexes reads every generation in full and leaves out those that are damaged, because
// Restore refuses a database in which Check finds anything.
func (im *image) checkIndexes(db *DB) error {
	kept := im.files[:0]
	for _, f := range im.files {
		if f.index != nil {
			err := f.index.Check()
			f.index.Release()
			f.index = nil
			if err != nil {
				im.leaveOut(db, f.collection, err)
				if err := f.data.Close(); err != nil {
					return err
				}
				continue
			}
		}
		kept = append(kept, f)
	}
	im.files = kept
	return nil
}

func (im *image) header() backup.Header {
	h := backup.Header{LSN: im.lsn, Entries: uint32(len(im.files))}
	for _, f := range im.files {
		h.Bytes += f.entry.Size
	}
	return h
}

// close closes the files and removes the copy.
func (im *image) close() error {
	var errs []error
	for _, f := range im.files {
		if f.index != nil {
			f.index.Release()
		}
		errs = append(errs, f.data.Close())
	}
	if im.copied != "" {
		errs = append(errs, removeIfThere(im.fs, im.copied))
	}
	return errors.Join(errs...)
}

// Names of the temporary copies of the bbolt file. A backup that is killed leaves its copy.
const (
	imagePrefix = "backup-"
	imageSuffix = ".tmp"
)

func removeIfThere(fsys vfs.FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// A progressReader reports what is read through it. It fails once its context has ended.
type progressReader struct {
	ctx         context.Context
	r           io.Reader
	stage       string
	progress    func(stage string, done, total int64) // may be nil
	done, total int64
}

func (p *progressReader) Read(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	n, err := p.r.Read(b)
	if p.done += int64(n); p.progress != nil {
		p.progress(p.stage, p.done, p.total)
	}
	return n, err
}

// A contextWriter fails once its context has ended.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (c *contextWriter) Write(b []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.w.Write(b)
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
