package storage

import (
	"errors"
	"io"
)

// A Snapshot is the bbolt file at rest: as the last Flush, or publishing of a generation, left it.
// It belongs to the function it was handed to.
type Snapshot struct {
	store *Store
	reading
}

// Snapshot calls fn with the bbolt file at rest. Flushes and publishing wait until fn returns;
// readers and the writer, whose changes gather in memory meanwhile, do not. That no flush runs is
// what makes a transaction as long as a copy of the file harmless: bbolt cannot make the file grow
// beyond its mapping while a reader is left, and would let new ones wait behind it.
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
