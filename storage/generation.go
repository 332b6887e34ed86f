package storage

import (
	"errors"
	"fmt"
	"slices"

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
	return s.publish(release, uid, func(generation) (generation, error) {
		return generation{number: number, buildLSN: buildLSN}, nil
	})
}

// PublishSegments replaces the segments of a collection's generation, which must be the served one.
// The last segment says up to which LSN rows are no longer dirty. Like PublishGeneration it is one
// synced transaction. The first segment raises the version of the file.
func (s *Store) PublishSegments(release string, uid uint32, number uint64, segments []Segment) error {
	return s.publish(release, uid, func(served generation) (generation, error) {
		if served.number != number || number == 0 {
			return generation{number: number}, fmt.Errorf("its segments cannot be published: generation %d is served", served.number)
		}
		served.segments = slices.Clone(segments)
		return served, nil
	})
}

// Segmented reports whether the file can have segments: files of version 1 and 2 cannot.
func (s *Store) Segmented() bool { return s.layout.blocked() }

// publish records what follows after the served generation of a collection.
func (s *Store) publish(release string, uid uint32, next func(served generation) (generation, error)) error {
	s.file.Lock()
	defer s.file.Unlock()
	col := s.flushed.byUID[uid]
	if col == nil {
		return fmt.Errorf("publish a generation: %w", collectionNotFound(uid))
	}
	set, err := s.flushed.set(release, uid)
	if err != nil {
		return fmt.Errorf("publish a generation of %q: %w", col.name, err)
	}
	g, err := next(*set.served.Load())
	failed := func(err error) error {
		return fmt.Errorf("publish generation %d of %q: %w", g.number, col.name, err)
	}
	if err == nil {
		err = g.validate()
	}
	if err != nil {
		return failed(err)
	}
	if g.last() > s.Applied() {
		return failed(fmt.Errorf("it was built at LSN %d, and only %d has been flushed", g.last(), s.Applied()))
	}
	if len(g.segments) > 0 && !s.layout.blocked() {
		return failed(s.layout.needsBlocks(s.path, "index segments"))
	}
	err = s.update(func(tx *bolt.Tx) error {
		b := s.layout.collection(setBucket(tx, uid, set.uid), set.uid)
		errs := []error{b.put(keyIndex, encodeGeneration(g), &slab{}), b.dropDirty(s.path, set.uid, g.last())}
		if len(g.segments) > 0 {
			errs = append(errs, max(versionSegments, s.flushed.needed()).putFormat(tx))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return failed(err)
	}
	set.served.Store(&g)
	return nil
}

// validate returns what no generation can be.
func (g *generation) validate() error {
	if g.number > maxGeneration {
		return fmt.Errorf("at most %d generations are counted", uint64(maxGeneration))
	}
	last, seen := g.buildLSN, map[uint64]bool{g.number: true}
	for _, s := range g.segments {
		switch {
		case s.Number == 0 || s.Number > maxGeneration || seen[s.Number]:
			return fmt.Errorf("segment %d: want a number of its own, up to %d", s.Number, uint64(maxGeneration))
		case s.LSN < last:
			return fmt.Errorf("segment %d is of LSN %d, and an older one of %d", s.Number, s.LSN, last)
		}
		seen[s.Number] = true
		last = s.LSN
	}
	return nil
}

// segmented reports whether any generation has segments.
func (c *catalog) segmented() bool {
	for _, col := range c.byUID {
		if len(col.set.served.Load().segments) > 0 {
			return true
		}
	}
	for _, r := range c.releases {
		for _, set := range r.sets {
			if len(set.served.Load().segments) > 0 {
				return true
			}
		}
	}
	return false
}
