package storage

import (
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// PublishGeneration makes a generation the served one of a collection. The generation holds every
// change up to buildLSN, so these rows are no longer dirty. Both are recorded in one synced
// transaction, which is all that publishing changes on disk. The generation must not hold more than
// has been flushed.
func (s *Store) PublishGeneration(uid uint32, number, buildLSN uint64) error {
	return s.PublishGenerationOf("", uid, number, buildLSN)
}

// PublishGenerationOf is PublishGeneration in a release: see ViewOf.
func (s *Store) PublishGenerationOf(release string, uid uint32, number, buildLSN uint64) error {
	s.file.Lock()
	defer s.file.Unlock()
	col := s.flushed.byUID[uid]
	if col == nil {
		return fmt.Errorf("publish generation %d: %w", number, collectionNotFound(uid))
	}
	if number > maxGeneration {
		return fmt.Errorf("publish generation %d of %q: at most %d are counted", number, col.name, uint64(maxGeneration))
	}
	if buildLSN > s.Applied() {
		return fmt.Errorf("publish generation %d of %q: it was built at LSN %d, and only %d has been flushed", number, col.name, buildLSN, s.Applied())
	}
	set, err := s.flushed.set(release, uid)
	if err != nil {
		return fmt.Errorf("publish generation %d of %q: %w", number, col.name, err)
	}
	g := generation{number: number, buildLSN: buildLSN}
	err = s.update(func(tx *bolt.Tx) error {
		b := s.layout.collection(setBucket(tx, uid, set.uid), set.uid)
		return errors.Join(b.put(keyIndex, encodeGeneration(g), &slab{}), b.dropDirty(s.path, set.uid, buildLSN))
	})
	if err != nil {
		return fmt.Errorf("publish generation %d of %q: %w", number, col.name, err)
	}
	set.served.Store(&g)
	return nil
}
