package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/failpoint"
	"github.com/flashdb/flashdb/internal/vfs"
)

const (
	// copySuffix is added to the name of the bbolt file for the copy that Compact makes.
	copySuffix = ".compact"

	// copyBytes is about how much one transaction of a copy holds in memory.
	copyBytes = 16 << 20

	// replaceable is whether the system can replace a file that is open.
	replaceable = runtime.GOOS != "windows"
)

// ErrPinned is returned by Compact where it cannot replace the file, because a Pin has it open.
var ErrPinned = errors.New("a snapshot has the file open: close it first")

// Compact returns the space of everything deleted and replaced since the last Compact to the file
// system. It copies the remaining data to a new file, and replaces the old file with it by a
// rename. It returns the length of the file before and after. progress, if not nil, is called with
// the bytes copied so far.
//
// Readers and the writer continue, first on the old file and then on the new one. Flushes wait. On
// Windows an open file cannot be replaced, so readers wait as well during the rename. A crash
// leaves the old file or the new one, which hold the same data, and perhaps a part of the copy,
// which the next Open removes. If the last step fails, nobody knows which of the two a crash would
// leave. Then every further Flush fails, as after a failed sync, and the log keeps its records,
// which are right for both.
//
// The rename and what comes with it is done through fsys, which has the store's directory as a
// root: nil for the store's own, which bbolt uses in any case.
func (s *Store) Compact(ctx context.Context, fsys vfs.FS, progress func(copied int64)) (before, after int64, err error) {
	if fsys == nil {
		fsys = s.place.dir
	}
	s.file.Lock()
	defer s.file.Unlock()
	switch {
	case s.closed.Load():
		return 0, 0, ErrClosed
	case s.opts.ReadOnly:
		return 0, 0, ErrReadOnly
	case s.failed != nil:
		return 0, 0, fmt.Errorf("compact %s: an earlier write failed, open the database again: %w", s.path, s.failed)
	}
	if err := s.Held(); err != nil {
		return 0, 0, fmt.Errorf("compact %s: %w", s.path, err)
	}
	if s.db.Load().pinned() && !replaceable {
		return 0, 0, fmt.Errorf("compact %s: %w", s.path, ErrPinned)
	}
	if before, err = fsys.Size(s.place.name); err != nil {
		return 0, 0, err
	}
	temp := s.place.copy()
	copied, id, err := s.copyTo(ctx, temp, progress)
	if err != nil {
		removeCopy(temp)
		return 0, 0, fmt.Errorf("compact %s: %w", s.path, err)
	}
	if err := s.swap(fsys, temp, copied, id); err != nil {
		return 0, 0, fmt.Errorf("compact %s: %w", s.path, err)
	}
	after, err = fsys.Size(s.place.name)
	return before, after, err
}

// copy returns the place of the copy that Compact makes.
func (p place) copy() place { return place{p.dir, p.name + copySuffix} }

// removeCopy removes the copy of a Compact that was killed. Anything else of that name is left
// alone and does not keep the file from being opened. The next Compact reports it.
func removeCopy(p place) {
	if info, err := p.dir.Lstat(p.name); err == nil && info.Mode().IsRegular() {
		_ = p.dir.Remove(p.name) // the next Compact tries again
	}
}

// copyTo copies the store's file to a new bbolt file, and leaves that open and synced. Nothing may
// write to the store's file meanwhile.
func (s *Store) copyTo(ctx context.Context, to place, progress func(int64)) (dst *boltFile, id fs.FileInfo, err error) {
	return s.copyPart(ctx, to, nil, progress)
}

// copyPart is copyTo without what skip says: a key in the bucket that path leads to.
func (s *Store) copyPart(ctx context.Context, to place, skip func(path [][]byte, key []byte) bool, progress func(int64)) (dst *boltFile, id fs.FileInfo, err error) {
	if info, err := to.dir.Lstat(to.name); err == nil && !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file: move it away", to.path())
	}
	if err := removeIfThere(to); err != nil {
		return nil, nil, err
	}
	src := s.db.Load()
	o := s.opts
	if o.PageSize, err = src.pageSize(); err != nil {
		return nil, nil, err
	}
	o.NoSync = true // once, at the end
	if dst, id, err = openFile(to, o, false); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dst.close())
			dst = nil
		}
	}()
	err = src.view(func(tx *bolt.Tx) error {
		c := &copier{ctx: ctx, src: src, dst: dst, skip: skip, progress: progress}
		return c.copy(tx)
	})
	if err == nil && !s.opts.NoSync {
		dst.bolt.NoSync, dst.bolt.NoGrowSync = false, false
		err = errors.Join(dst.bolt.Sync(), to.dir.SyncDir("."))
	}
	return dst, id, err
}

// swap makes the copy at temp the store's file.
func (s *Store) swap(fsys vfs.FS, temp place, copied *boltFile, id fs.FileInfo) error {
	s.lease.Lock()
	defer s.lease.Unlock()
	if s.open != nil {
		s.open.rollback()
	}
	if err := s.Held(); err != nil {
		return errors.Join(err, copied.close(), removeIfThere(temp))
	}
	if !replaceable {
		return s.swapClosed(fsys, temp, copied)
	}
	// Both are open, and locked, throughout: no other process can come between.
	failpoint.CompactRename.Reach()
	old, err := s.rename(fsys, temp, copied, id)
	if err != nil {
		if s.Held() != nil {
			s.failed = err // it has been renamed all the same
		}
		return errors.Join(err, copied.close(), removeIfThere(temp))
	}
	failpoint.CompactRenamed.Reach()
	if err := fsys.SyncDir("."); err != nil {
		s.failed = err
		return errors.Join(err, old.retire())
	}
	return old.retire() // closed after the last reader on it
}

// rename gives the copy the store's name, and returns what had it.
func (s *Store) rename(fsys vfs.FS, temp place, copied *boltFile, id fs.FileInfo) (old *boltFile, err error) {
	s.named.Lock()
	defer s.named.Unlock()
	if err := fsys.Rename(temp.name, s.place.name); err != nil {
		return nil, err
	}
	s.id, copied.path = id, s.path
	return s.db.Swap(copied), nil
}

// swapClosed is swap where an open file cannot be renamed. If it cannot be opened again the store
// is closed: the log has what was acknowledged.
func (s *Store) swapClosed(fsys vfs.FS, temp place, copied *boltFile) error {
	s.named.Lock()
	defer s.named.Unlock()
	old := s.db.Load()
	if !old.retireUnpinned() {
		return errors.Join(ErrPinned, copied.close(), removeIfThere(temp))
	}
	if err := errors.Join(old.close(), copied.close()); err != nil {
		s.closed.Store(true)
		return err
	}
	renamed := fsys.Rename(temp.name, s.place.name)
	if renamed != nil {
		renamed = errors.Join(renamed, removeIfThere(temp))
	}
	db, id, err := openFile(s.place, s.opts, false)
	if err != nil {
		s.closed.Store(true)
		return errors.Join(renamed, err)
	}
	s.db.Store(db)
	s.id = id
	return renamed
}

// A copier copies a bbolt file to an empty one, in many transactions of bounded size. It puts keys
// in order, so that pages can be filled. It recovers panics of bbolt over the copy. Panics over the
// source are passed on to the reader of the source.
type copier struct {
	ctx      context.Context
	src, dst *boltFile
	skip     func(path [][]byte, key []byte) bool // may be nil
	progress func(copied int64)

	tx      *bolt.Tx // nil before the first and after the last
	pending int      // bytes put in tx
	copied  int64    // bytes put in all
}

// guard, deferred, is boltFile.guard of the copy. What is put there is read from the mapping of the
// source, until the commit: a fault in that is passed on.
func (c *copier) guard(err *error) {
	p := recover()
	switch {
	case p == nil:
	case c.src.fault(p) != nil:
		panic(p)
	default:
		*err = c.dst.recovered(p)
	}
}

// copy copies what a transaction on the source sees.
func (c *copier) copy(src *bolt.Tx) (err error) {
	defer c.end()
	if c.tx, err = c.dst.begin(true); err != nil {
		return err
	}
	err = src.ForEach(func(name []byte, b *bolt.Bucket) error {
		return c.bucket([][]byte{name}, b)
	})
	if err != nil {
		return err
	}
	return c.commit(false)
}

// end ends the transaction that an error has left open. If that panics too, its lock is released:
// closing the copy would wait for it.
func (c *copier) end() {
	defer func() {
		if p := recover(); p != nil {
			c.dst.unlock(true)
			c.dst.fail(c.dst.recovered(p))
		}
	}()
	if c.tx != nil {
		_ = c.tx.Rollback() // it fails only on a transaction that has ended
	}
}

// commit ends the transaction, which ends all its buckets, and begins another if there is more.
func (c *copier) commit(more bool) (err error) {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if err := c.commitTx(); err != nil {
		return err
	}
	if c.progress != nil {
		c.progress(c.copied)
	}
	c.pending = 0
	if more {
		c.tx, err = c.dst.begin(true)
	}
	return err
}

func (c *copier) commitTx() (err error) {
	defer c.guard(&err)
	id := int64(c.tx.ID())
	if err := c.tx.Commit(); err != nil {
		return err
	}
	c.tx = nil
	c.dst.last.Store(id)
	return nil
}

// bucket copies a bucket, given by the names that lead to it, and the buckets in it.
func (c *copier) bucket(path [][]byte, from *bolt.Bucket) error {
	to, err := c.open(path)
	if err != nil {
		return err
	}
	if err := c.setSequence(to, from.Sequence()); err != nil {
		return err
	}
	skipped := uint64(0)
	err = from.ForEach(func(key, value []byte) error {
		if c.skip != nil && c.skip(path, key) {
			skipped++
			return nil
		}
		if value == nil {
			err := c.bucket(append(slices.Clip(path), key), from.Bucket(key))
			to = nil
			return err
		}
		if c.pending >= copyBytes {
			if err := c.commit(true); err != nil {
				return err
			}
			to = nil
		}
		if to == nil {
			if to, err = c.open(path); err != nil {
				return err
			}
		}
		n := len(key) + len(value)
		c.pending += n
		c.copied += int64(n)
		return c.put(to, key, value)
	})
	if err != nil || skipped == 0 || from.Sequence() == 0 {
		return err
	}
	if to, err = c.open(path); err != nil {
		return err
	}
	return c.setSequence(to, from.Sequence()-skipped) // it counts the entries
}

func (c *copier) setSequence(to *bolt.Bucket, n uint64) (err error) {
	defer c.guard(&err)
	return to.SetSequence(n)
}

func (c *copier) put(to *bolt.Bucket, key, value []byte) (err error) {
	defer c.guard(&err)
	return to.Put(key, value)
}

// open returns the bucket that path leads to, and makes its last if need be.
func (c *copier) open(path [][]byte) (b *bolt.Bucket, err error) {
	defer c.guard(&err)
	last := path[len(path)-1]
	if len(path) == 1 {
		b, err = c.tx.CreateBucketIfNotExists(last)
	} else {
		parent := c.tx.Bucket(path[0])
		for _, name := range path[1 : len(path)-1] {
			parent = parent.Bucket(name)
		}
		b, err = parent.CreateBucketIfNotExists(last)
	}
	if err != nil {
		return nil, fmt.Errorf("copy bucket %q: %w", last, err)
	}
	b.FillPercent = copiedFill(last)
	return b, nil
}

// copiedFill returns how full to make the pages of a copied bucket. Rows seldom change, so their
// pages are filled. Where keys come in any order, later ones need some room.
func copiedFill(name []byte) float64 {
	fill := 0.9
	for b, n := range bucketNames {
		if string(n) == string(name) {
			fill = max(fill, fillPercent[b])
		}
	}
	return fill
}
