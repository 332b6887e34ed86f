package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// A Snapshot is the bbolt file as the last Flush or PublishGeneration left it. It is valid until
// the function that got it returns.
type Snapshot struct {
	store *Store
	reading
}

// Snapshot calls fn with a Snapshot. Flushes and publishing wait until fn returns. Readers and the
// writer do not wait, and changes stay in memory meanwhile. Because no flush runs, a read
// transaction as long as a copy of the file does no harm. Otherwise bbolt might have to extend its
// mapping, would wait for that transaction, and would make new readers wait too.
func (s *Store) Snapshot(fn func(*Snapshot) error) (err error) {
	s.file.Lock()
	defer s.file.Unlock()
	r, err := s.read()
	if err != nil {
		return err
	}
	defer func() { _ = r.tx.Rollback() }() // it fails only on a transaction that has ended
	return fn(&Snapshot{store: s, reading: r})
}

// Applied returns the LSN of the last change in the snapshot.
func (s *Snapshot) Applied() uint64 { return s.store.Applied() }

// Collections describes the collections in the snapshot, by UID.
func (s *Snapshot) Collections() []Info { return s.store.flushed.infos() }

// Releases describes the releases in the snapshot.
func (s *Snapshot) Releases() []Release {
	return (&reader{catalog: s.store.flushed}).Releases()
}

// WriteLive makes a file of that name, in the directory of the store, that holds the snapshot with
// the live release only.
func (s *Snapshot) WriteLive(ctx context.Context, name string) error {
	cat := s.store.flushed
	live := map[uint32]bool{}
	for _, col := range cat.byUID {
		live[col.set.uid] = true
	}
	skip := func(path [][]byte, key []byte) bool {
		switch {
		case bytes.Equal(path[0], bucketOfReleases):
			r, err := cat.find(string(key))
			return err != nil || r.state != Live
		case bytes.Equal(path[0], bucketOfSets):
			return len(path) == 1 && len(key) == 4 && !live[binary.BigEndian.Uint32(key)]
		case !bytes.Equal(path[0], bucketOfCollections) || len(path) == 1 || len(path[1]) != 4:
			return false
		}
		if live[binary.BigEndian.Uint32(path[1])] {
			return false
		}
		if len(path) == 3 {
			return bytes.Equal(path[2], bucketNames[encoderBucket]) && metaOf(string(key)) == encoderBucket
		}
		return bytes.Equal(key, keyIndex) || bytes.Equal(key, keyHeld) || bytes.Equal(key, keyEmbedded) ||
			slices.ContainsFunc(ownBuckets, func(b bucket) bool { return bytes.Equal(key, bucketNames[b]) })
	}
	dst, _, err := s.store.copyPart(ctx, place{s.store.place.dir, name}, skip, nil)
	if err != nil {
		return err
	}
	return dst.close()
}

// Size returns how many bytes WriteTo writes.
func (s *Snapshot) Size() int64 { return s.tx.Size() }

// WriteTo writes a bbolt file that holds the snapshot. Its pages are copied as they are, without
// looking into them.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	out := &keptError{w: w}
	n, err := s.tx.WriteTo(out)
	switch {
	case out.err != nil:
		err = out.err
	case errors.Is(err, io.EOF):
		err = errors.Join(s.db.whole(s.tx), err)
	}
	return n, err
}

// A keptError keeps the error of a writer, of which bbolt passes on only the text.
type keptError struct {
	w   io.Writer
	err error
}

func (k *keptError) Write(b []byte) (n int, err error) {
	n, k.err = k.w.Write(b)
	return n, k.err
}
