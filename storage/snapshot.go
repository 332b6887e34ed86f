package storage

import (
	"errors"
	"io"
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
