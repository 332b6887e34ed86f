package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/failpoint"
)

// A ReleaseState says what a release is.
type ReleaseState uint8

// The states of a release. One release is live. At most one is the former one.
const (
	Staged        ReleaseState = 1 + iota // it can be filled and published
	Live                                  // it is what queries see
	Former                                // it was live before the live one
	stateDropping                         // its sets are being removed; nobody sees it
)

// firstRelease is the name of what was there before the first release was staged.
const firstRelease = "1"

// ErrState is matched by errors about a release whose state does not allow a call.
var ErrState = errors.New("not possible in the state of the release")

// ErrReleaseExists is matched by the error of StageRelease for a name that is in use.
var ErrReleaseExists = errors.New("release exists")

// A release is a name for sets of some collections. It is immutable.
type release struct {
	name      string
	number    uint64 // counted from 1
	state     ReleaseState
	created   int64              // seconds since 1970
	cut       int64              // likewise: when the data was cut that it was trained on
	published int64              // 0: never
	sets      map[uint32]*rowSet // by the UID of their collection; none of the live one: the collections have them
}

// A Release describes a release.
type Release struct {
	Name      string
	Number    uint64
	State     ReleaseState
	Created   time.Time // zero: no release was ever staged
	Cut       time.Time // when the data was cut that it was trained on; Created unless SetCut said so
	Published time.Time // zero: never
	// Collections are those of which it has rows of its own, of the live one all, as the release
	// sees them.
	Collections []Info
}

// withoutCollection returns releases without their sets of a collection.
func withoutCollection(all []*release, uid uint32) []*release {
	if !slices.ContainsFunc(all, func(r *release) bool { return r.sets[uid] != nil }) {
		return all
	}
	all = slices.Clone(all)
	for i, r := range all {
		if r.sets[uid] != nil {
			clone := *r
			clone.sets = maps.Clone(r.sets)
			delete(clone.sets, uid)
			all[i] = &clone
		}
	}
	return all
}

// find returns the release of that name, or an error.
func (c *catalog) find(name string) (*release, error) {
	for _, r := range c.releases {
		if r.name == name && r.state != stateDropping {
			return r, nil
		}
	}
	return nil, fmt.Errorf("release %q: %w", name, ErrNotFound)
}

// other returns the release of that name, or nil if it is the live one.
func (c *catalog) other(name string) (*release, error) {
	if len(c.releases) == 0 && name == firstRelease {
		return nil, nil
	}
	r, err := c.find(name)
	if err != nil || r.state == Live {
		return nil, err
	}
	return r, nil
}

// in returns the release in a state, or nil.
func (c *catalog) in(state ReleaseState) *release {
	for _, r := range c.releases {
		if r.state == state {
			return r
		}
	}
	return nil
}

// set returns the set of a collection in a release; "" is the live one.
func (c *catalog) set(name string, uid uint32) (*rowSet, error) {
	if name != "" {
		r, err := c.other(name)
		if err != nil {
			return nil, err
		}
		if r != nil {
			if s := r.sets[uid]; s != nil {
				return s, nil
			}
			return nil, fmt.Errorf("release %q has no rows of its own for this collection: %w", name, ErrNotFound)
		}
	}
	return c.byUID[uid].set, nil
}

// putRelease replaces the release of the same number, or adds it.
func (c *catalog) putRelease(r *release) {
	c.releases = slices.Clone(c.releases)
	for i, old := range c.releases {
		if old.number == r.number {
			c.releases[i] = r
			return
		}
	}
	c.releases = append(c.releases, r)
}

// Releases describes all releases by number. If none was ever staged, that is the first one alone.
func (r *reader) Releases() (all []Release) {
	if len(r.catalog.releases) == 0 {
		return []Release{{Name: firstRelease, Number: 1, State: Live, Collections: r.catalog.infos()}}
	}
	for _, rel := range r.catalog.releases {
		if rel.state == stateDropping {
			continue
		}
		d := Release{Name: rel.name, Number: rel.number, State: rel.state, Created: time.Unix(rel.created, 0), Cut: time.Unix(rel.cut, 0)}
		if rel.published != 0 {
			d.Published = time.Unix(rel.published, 0)
		}
		seen := reader{catalog: r.catalog, as: rel}
		for _, info := range r.catalog.infos() {
			if rel.state == Live || rel.sets[info.UID] != nil {
				d.Collections = append(d.Collections, seen.ofRelease(info))
			}
		}
		all = append(all, d)
	}
	return all
}

// reshape changes what is live or staged, in one synced transaction and then in memory. The caller
// keeps the writer out and has everything flushed. So the layers are empty, and what they hold
// later belongs to the sets that are live then. fn changes the file and the catalog. after, if not
// nil, runs once that is committed, before readers see it.
func (s *Store) reshape(fn func(tx *bolt.Tx, cat *catalog) (after func(), err error)) error {
	s.file.Lock()
	defer s.file.Unlock()
	st := s.state.Load()
	switch {
	case s.closed.Load():
		return ErrClosed
	case s.opts.ReadOnly:
		return ErrReadOnly
	case !s.layout.blocked():
		return s.layout.needsBlocks(s.path, "releases")
	case len(st.layers) > 0 || st.lsn != s.Applied() || s.staged != nil:
		return errors.New("changes are not flushed")
	}
	cat := st.catalog.clone()
	s.replace(func(now *state) { now.epoch++ })
	var after func()
	err := s.update(func(tx *bolt.Tx) (err error) {
		for _, name := range [][]byte{bucketOfSets, bucketOfReleases} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		if after, err = fn(tx, cat); err != nil {
			return err
		}
		err = errors.Join(s.layout.putReleases(tx, cat.releases), s.putVersion(tx, cat), s.layout.putState(tx, st.lsn, cat.nextUID))
		failpoint.ReleaseWrite.Reach()
		return err
	})
	if err != nil {
		return err
	}
	failpoint.ReleaseAfter.Reach()
	if after != nil {
		after()
	}
	s.flushed = cat
	s.replace(func(now *state) { now.catalog = cat })
	return nil
}

// StageRelease makes an empty release over some collections. The first raises the version of the
// file. The writer must be kept out, and everything flushed; so it must be for SetCut,
// PublishRelease, RollBack, DropRelease and Forget.
func (s *Store) StageRelease(name string, uids []uint32, now time.Time) error {
	if err := s.stageable(name, uids); err != nil {
		return err
	}
	return s.reshape(func(tx *bolt.Tx, cat *catalog) (func(), error) {
		if len(cat.releases) == 0 {
			cat.releases = []*release{{name: firstRelease, number: 1, state: Live, created: now.Unix(), cut: now.Unix(), published: now.Unix()}}
		}
		r := &release{name: name, number: cat.releases[len(cat.releases)-1].number + 1, state: Staged, created: now.Unix(), cut: now.Unix(), sets: map[uint32]*rowSet{}}
		for _, uid := range uids {
			col := *cat.byUID[uid]
			if err := s.holdAll(tx, &col); err != nil {
				return nil, err
			}
			cat.put(&col)
			set, err := s.makeSet(tx, cat.nextUID)
			if err != nil {
				return nil, err
			}
			r.sets[uid] = set
			cat.nextUID++
		}
		cat.putRelease(r)
		return nil, nil
	})
}

// SetCut sets when the data was cut that a staged release was trained on. It raises the version of
// the file. The writer must be kept out, and everything flushed.
func (s *Store) SetCut(name string, at time.Time) error {
	if at.Unix() < 0 || at.Unix() > maxSeconds {
		return fmt.Errorf("release %q: %v is not a time from 1970 on", name, at)
	}
	return s.reshape(func(_ *bolt.Tx, cat *catalog) (func(), error) {
		r, err := cat.find(name)
		if err == nil && r.state != Staged {
			err = fmt.Errorf("release %q: %w: it is %v, and only the data of a staged one is cut", name, ErrState, r.state)
		}
		if err != nil {
			return nil, refusal{err}
		}
		clone := *r
		clone.cut = at.Unix()
		cat.putRelease(&clone)
		return nil, nil
	})
}

// stageable refuses names that are in use, and collections that do not exist.
func (s *Store) stageable(name string, uids []uint32) error {
	if err := CheckNewCollectionName(name); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	cat := s.state.Load().catalog
	for _, uid := range uids {
		if cat.byUID[uid] == nil {
			return collectionNotFound(uid)
		}
	}
	taken := name == firstRelease && len(cat.releases) == 0
	for _, r := range cat.releases {
		taken = taken || r.name == name
	}
	if taken {
		return fmt.Errorf("%w: %q", ErrReleaseExists, name)
	}
	if uint64(cat.nextUID)+uint64(len(uids)) >= maxID {
		return errors.New("no UID is left")
	}
	return nil
}

// holdAll begins to keep which nodes have a row in the live set of a collection: all, as yet.
func (s *Store) holdAll(tx *bolt.Tx, col *collection) error {
	if col.held != nil {
		return nil
	}
	col.held = roaring.New()
	col.held.AddRange(0, uint64(col.nextID))
	if col.tombs != nil {
		col.held.AndNot(col.tombs)
	}
	col.held.RunOptimize()
	w := s.layout.setWriter(tx, s.path, col, col.set.uid)
	w.putHeld(w.set, col.held)
	return w.err
}

// makeSet makes an empty set.
func (s *Store) makeSet(tx *bolt.Tx, uid uint32) (*rowSet, error) {
	var key [4]byte
	if _, err := tx.Bucket(bucketOfSets).CreateBucket(bigEndian(&key, uid)); err != nil {
		return nil, err
	}
	set := newSet(uid)
	set.held.Store(roaring.New())
	set.stamp.Store(s.stamps.Add(1))
	w := s.layout.setWriter(tx, s.path, &collection{schema: Schema{Dim: 1}}, uid)
	w.putHeld(w.set, roaring.New())
	return set, w.err
}

// PublishRelease makes a staged release the live one, and the live one the former one. A release
// that was the former one before that is removed by the next Purge. No row is read or written: what
// is written is which set each of its collections has, and the bitmap of the ids that have a row.
func (s *Store) PublishRelease(name string, now time.Time) error {
	return s.reshape(func(tx *bolt.Tx, cat *catalog) (func(), error) {
		next, err := cat.find(name)
		if err != nil {
			return nil, refusal{err}
		}
		if next.state != Staged {
			return nil, refusal{fmt.Errorf("publish release %q: %w: it is %v", name, ErrState, next.state)}
		}
		if former := cat.in(Former); former != nil {
			cat.putRelease(former.as(stateDropping))
		}
		return s.exchange(tx, cat, next, Former, now)
	})
}

// RollBack makes the former release the live one again, and the live one a staged one.
func (s *Store) RollBack(now time.Time) (name string, err error) {
	err = s.reshape(func(tx *bolt.Tx, cat *catalog) (func(), error) {
		former := cat.in(Former)
		if former == nil {
			return nil, refusal{fmt.Errorf("roll back: no former release is kept: %w", ErrNotFound)}
		}
		name = former.name
		return s.exchange(tx, cat, former, Staged, now)
	})
	return name, err
}

// as returns a copy of r in another state.
func (r *release) as(state ReleaseState) *release {
	clone := *r
	clone.state = state
	return &clone
}

// exchange gives the sets of next to their collections, and theirs to the release that was live,
// whose state then is state.
func (s *Store) exchange(tx *bolt.Tx, cat *catalog, next *release, state ReleaseState, now time.Time) (after func(), err error) {
	live := cat.in(Live).as(state)
	live.sets = map[uint32]*rowSet{}
	held := map[*rowSet]*roaring.Bitmap{}
	stamp := s.stamps.Add(1)
	for _, uid := range slices.Sorted(maps.Keys(next.sets)) {
		col, set := *cat.byUID[uid], next.sets[uid]
		live.sets[uid], held[col.set] = col.set, col.held
		col.set, col.held, col.stamp = set, set.rows(&col), stamp
		w := s.layout.setWriter(tx, s.path, &col, set.uid)
		if w.err == nil {
			w.parent = s.layout.collection(setBucket(tx, uid, uid), uid)
			w.put(w.parent, keySet, binary.LittleEndian.AppendUint32(nil, set.uid))
			w.putHeld(w.set, col.held)
		}
		if w.err != nil {
			return nil, fmt.Errorf("collection %q: %w", col.name, w.err)
		}
		cat.put(&col)
	}
	next = next.as(Live)
	next.sets, next.published = nil, now.Unix()
	cat.putRelease(live)
	cat.putRelease(next)
	return func() {
		for set, ids := range held {
			set.held.Store(ids)
			set.stamp.Store(stamp)
		}
	}, nil
}

// DropRelease removes a release that is not live. Nobody sees it any more; Purge frees its space.
func (s *Store) DropRelease(name string) error {
	return s.reshape(func(_ *bolt.Tx, cat *catalog) (func(), error) {
		r, err := cat.other(name)
		if err == nil && r == nil {
			err = fmt.Errorf("drop release %q: %w: it is live", name, ErrState)
		}
		if err != nil {
			return nil, refusal{err}
		}
		cat.putRelease(r.as(stateDropping))
		return nil, nil
	})
}

// Dropping reports whether there are dropped releases that Purge has not removed yet.
func (s *Store) Dropping() bool { return s.state.Load().catalog.in(stateDropping) != nil }

// Purge removes the sets of dropped releases from the file. It may run beside the writer. It takes
// as long as it takes to free their pages. Forget must follow.
func (s *Store) Purge() error {
	s.file.Lock()
	defer s.file.Unlock()
	for _, r := range s.flushed.releases {
		if r.state != stateDropping {
			continue
		}
		for _, uid := range slices.Sorted(maps.Keys(r.sets)) {
			err := s.update(func(tx *bolt.Tx) error { return s.layout.dropSet(tx, uid, r.sets[uid].uid) })
			if err != nil {
				return fmt.Errorf("drop release %q: %w", r.name, err)
			}
			failpoint.ReleasePurge.Reach()
		}
	}
	return nil
}

// Forget removes the names of purged releases. The writer must be kept out, and everything flushed.
func (s *Store) Forget() error {
	return s.reshape(func(_ *bolt.Tx, cat *catalog) (func(), error) {
		cat.releases = slices.DeleteFunc(slices.Clone(cat.releases), func(r *release) bool { return r.state == stateDropping })
		return nil, nil
	})
}

// String returns the name of the state.
func (s ReleaseState) String() string {
	switch s {
	case Staged:
		return "staged"
	case Live:
		return "live"
	case Former:
		return "former"
	}
	return "dropped"
}
