package storage

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/failpoint"
)

// fillPercent is how full bbolt makes a page that it splits. Ids are put in ascending order and
// mostly once, so their pages need no free room. Keys, tags and names come in any order.
var fillPercent = [bucketCount]float64{
	idsBucket:        0.7,
	keysBucket:       0.9,
	rowsBucket:       1,
	dirtyBucket:      1,
	linksBucket:      0.7,
	acrossBucket:     0.7,
	typedBucket:      0.7,
	tagsBucket:       0.5,
	attributesBucket: 0.9,
	decodersBucket:   0.5,
	metaBucket:       0.5,
	plansBucket:      0.5,
	recentBucket:     1,
	encoderBucket:    0.5,
}

// Flush moves everything published into the bbolt file, in one synced transaction, and returns the
// LSN of the last change in the file. The log may forget all records up to it. Changes published
// meanwhile wait for the next Flush.
//
// If writing fails, everything stays visible and in memory, and every further Flush fails: after a
// failed sync nobody knows what the file holds. Opening it again and replaying the log gives the
// same state.
func (s *Store) Flush() (applied uint64, err error) {
	s.file.Lock()
	defer s.file.Unlock()
	if s.closed.Load() {
		return s.Applied(), ErrClosed
	}
	st := s.state.Load()
	if st.lsn == s.Applied() {
		if s.opts.ReadOnly {
			return st.lsn, nil
		}
		db := s.db.Load() // of a file that has lost something the log must not forget more
		return st.lsn, db.view(db.whole)
	}
	done := make(chan struct{})
	s.flushing.Store(&done)
	defer func() {
		s.flushing.Store(nil)
		close(done)
	}()
	var pinned int
	s.replace(func(now *state) {
		now.epoch++
		s.pinned = len(now.layers)
		st, pinned = now, len(now.layers)
	})
	err = s.update(func(tx *bolt.Tx) error {
		err := s.write(tx, st)
		failpoint.FlushWrite.Reach()
		return err
	})
	s.replace(func(now *state) {
		s.pinned = 0
		if err == nil {
			now.layers = now.layers[pinned:]
		}
	})
	if err != nil {
		return s.Applied(), fmt.Errorf("flush %s: %w", s.path, err)
	}
	s.flushed = st.catalog
	s.applied.Store(st.lsn)
	return st.lsn, nil
}

// update runs fn in a synced transaction. The caller holds s.file.
func (s *Store) update(fn func(tx *bolt.Tx) error) (err error) {
	if s.failed != nil {
		return fmt.Errorf("an earlier write failed, open the database again: %w", s.failed)
	}
	defer func() {
		var no refusal
		if err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrReadOnly) && !errors.As(err, &no) {
			s.failed = err
		}
	}()
	if err := s.Held(); err != nil {
		return err
	}
	s.lendBriefly(true)
	defer s.lendBriefly(false)
	if err := s.db.Load().update(fn); err != nil {
		return boltError(s.path, err)
	}
	return nil
}

// A refusal is the error of a transaction that is rolled back before it writes a page: it says that
// what was asked for is not possible, and nothing of the file.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// lendBriefly sets whether the read transaction of the open Changes ends after every lookup.
func (s *Store) lendBriefly(writing bool) {
	s.lease.Lock()
	defer s.lease.Unlock()
	s.writing = writing
	if s.open != nil {
		s.open.rollback()
	}
}

// write brings the file from s.flushed to st.
func (s *Store) write(tx *bolt.Tx, st *state) error {
	names, root := s.layout.top(tx.Bucket(bucketOfNames), bucketOfNames), tx.Bucket(bucketOfCollections)
	var key [4]byte
	var mem slab
	for _, uid := range slices.Sorted(maps.Keys(s.flushed.byUID)) {
		if col := s.flushed.byUID[uid]; st.catalog.byUID[uid] == nil {
			if err := errors.Join(names.Delete([]byte(col.name)), root.DeleteBucket(bigEndian(&key, uid)), s.flushed.dropSets(tx, uid)); err != nil {
				return fmt.Errorf("drop collection %q: %w", col.name, err)
			}
		}
	}
	all := flatten(st.layers)
	touched := all.touched()
	for _, uid := range slices.Sorted(maps.Keys(st.catalog.byUID)) {
		col := st.catalog.byUID[uid]
		before := s.flushed.byUID[uid]
		if before == nil {
			if err := names.put([]byte(col.name), binary.LittleEndian.AppendUint32(nil, uid), &mem); err != nil {
				return fmt.Errorf("create collection %q: %w", col.name, err)
			}
		}
		if col == before && touched[uid] == nil {
			continue
		}
		b, err := root.CreateBucketIfNotExists(bigEndian(&key, uid))
		if err == nil {
			err = s.writeCollection(b, before, st.catalog, col, all, touched[uid])
		}
		if err != nil {
			return fmt.Errorf("collection %q: %w", col.name, err)
		}
	}
	if !slices.Equal(s.flushed.releases, st.catalog.releases) { // a collection was dropped
		if err := s.layout.putReleases(tx, st.catalog.releases); err != nil {
			return err
		}
	}
	return errors.Join(s.putVersion(tx, st.catalog), s.layout.putState(tx, st.lsn, st.catalog.nextUID))
}

// touched lists what a layer mentions of one collection, in the order bbolt keeps it in.
type touched struct {
	nodes   []uint32
	keys    []keyed
	links   []linkKey
	typed   []linkKey
	recent  []recentKey
	tags    []string
	columns []columnKey
	blobs   []blobKey
}

// keyed is a key and what it leads to.
type keyed struct {
	key string
	idOf
}

func (l *layer) touched() map[uint32]*touched {
	all := map[uint32]*touched{}
	of := func(uid uint32) *touched {
		t := all[uid]
		if t == nil {
			t = &touched{}
			all[uid] = t
		}
		return t
	}
	for _, r := range l.runs {
		l.touchedOf(r, of(r.uid))
	}
	for k := range l.nodes {
		t := of(k.uid)
		t.nodes = append(t.nodes, k.id)
	}
	for k, v := range l.ids {
		t := of(k.uid)
		t.keys = append(t.keys, keyed{k.name, v})
	}
	for k := range l.links {
		t := of(k.uid)
		t.links = append(t.links, k)
	}
	for k := range l.typed {
		t := of(k.uid)
		t.typed = append(t.typed, k)
	}
	for k := range l.recent {
		t := of(k.uid)
		t.recent = append(t.recent, k)
	}
	for k := range l.tags {
		t := of(k.uid)
		t.tags = append(t.tags, k.name)
	}
	for k := range l.columns {
		t := of(k.uid)
		t.columns = append(t.columns, k)
	}
	for k := range l.blobs {
		t := of(k.uid)
		t.blobs = append(t.blobs, k)
	}
	for _, t := range all {
		slices.Sort(t.nodes)
		slices.SortFunc(t.keys, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
		slices.SortFunc(t.links, linkKey.compare)
		slices.SortFunc(t.typed, linkKey.compare)
		slices.SortFunc(t.recent, func(a, b recentKey) int { return cmp.Compare(a.lsn, b.lsn) })
		slices.Sort(t.tags)
		slices.SortFunc(t.columns, columnKey.compare)
	}
	return all
}

// touchedOf lists what a run of l mentions, except what the maps of l mention too.
func (l *layer) touchedOf(r *run, t *touched) {
	t.nodes, t.keys = slices.Grow(t.nodes, r.len()), slices.Grow(t.keys, r.len())
	for i := range r.len() {
		id, key := r.first+uint32(i), r.key(i)
		if _, newer := l.nodes[nodeKey{r.uid, id}]; !newer {
			t.nodes = append(t.nodes, id)
		}
		if _, newer := l.ids[nameKey{r.uid, key}]; !newer {
			t.keys = append(t.keys, keyed{key, idOf{id, true}})
		}
	}
}

// A writer puts values into the buckets of one collection. Its error is sticky.
type writer struct {
	parent  table
	set     table // in which the buckets are that belong to a release
	file    string
	uid     uint32
	dim     int
	nextID  uint32               // as the file has it: no id from there on is in it
	slab    slab                 // holds what bbolt keeps until it commits
	key     [4]byte              // scratch for an id
	linkKey [acrossKeyBytes]byte // scratch
	number  [8]byte              // scratch for an id or LSN that is a value
	err     error
}

func (s *Store) writeCollection(b *bolt.Bucket, before *collection, cat *catalog, col *collection, all *layer, t *touched) error {
	w := &writer{parent: s.layout.collection(b, col.uid), file: s.path, uid: col.uid, dim: col.schema.Dim}
	w.set = w.parent
	if set := col.set.uid; set != col.uid {
		w.set = s.layout.collection(setBucket(b.Tx(), col.uid, set), set)
	}
	if before != nil {
		w.nextID = before.nextID
	}
	w.put(w.parent, keyInfo, encodeInfo(col))
	w.dropLinks(before, col)
	if col.tombs != nil && (before == nil || before.tombs != col.tombs) {
		tombs, err := encodeBitmap(col.tombs)
		w.fail(err)
		w.put(w.parent, keyTombs, tombs)
	}
	if col.held != nil && before != nil && before.held != col.held {
		w.putHeld(w.set, col.held)
	}
	if t != nil {
		w.nodes(t.nodes, all)
		w.takeOut(cat.releases, t.nodes, all)
		w.ids(t.keys)
		w.links(t.links, cat, all)
		w.typed(t.typed, cat, all)
		w.recent(t.recent, all)
		w.tags(col.uid, t.tags, all)
		w.attributes(before, col, t.columns, all)
		for _, k := range t.blobs {
			if all.blobs[k] == nil && w.in(k.in).Bucket.Bucket(bucketNames[k.in]) == nil {
				continue // removed before it was ever written
			}
			w.put(w.table(k.in), []byte(k.name), all.blobs[k])
		}
	}
	return w.err
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// put stores a value, or removes it if it is nil.
func (w *writer) put(t table, key, value []byte) {
	if w.err == nil {
		w.err = t.put(key, value, &w.slab)
	}
}

// table returns a bucket of the collection, made if need be.
func (w *writer) table(b bucket) table {
	if w.err != nil {
		return table{}
	}
	in := w.in(b)
	bkt, err := in.CreateBucketIfNotExists(bucketNames[b])
	if err != nil {
		w.err = err
		return table{}
	}
	bkt.FillPercent = fillPercent[b]
	return in.layout.table(bkt, in.uid, b)
}

func (w *writer) ids(keys []keyed) {
	if len(keys) == 0 {
		return
	}
	t := w.table(idsBucket)
	for _, v := range keys {
		if !v.live {
			w.put(t, []byte(v.key), nil)
			continue
		}
		w.put(t, []byte(v.key), binary.LittleEndian.AppendUint32(w.number[:0], v.id))
	}
}

func (w *writer) tags(uid uint32, names []string, all *layer) {
	if len(names) == 0 {
		return
	}
	t := w.table(tagsBucket)
	for _, name := range names {
		var value []byte
		if ids := all.tags[nameKey{uid, name}]; ids != nil {
			var err error
			value, err = encodeBitmap(ids)
			w.fail(err)
		}
		w.put(t, []byte(name), value)
	}
}
