package storage

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"
	bolt "go.etcd.io/bbolt"
)

// A reader looks things up in layers, newest first, and then in bbolt. View and Changes embed it;
// its exported methods are theirs.
type reader struct {
	file    string
	layout  layout
	catalog *catalog
	layers  []*layer // oldest first
	reading
	ended bool

	as *release // the staged or former release that is seen instead of the live one; nil: none

	// lender is set in a Changes. Its transaction is opened when first needed, and may be taken
	// away between any two lookups: Store.lease must be held to use it, and what was found must be
	// copied.
	lender *Store

	// err is the first damage found. From then on every lookup finds nothing, and the call that
	// made the reader returns err, whatever fn returned.
	err error

	// The bbolt buckets of one collection, kept because finding them costs more than reading from
	// them.
	uid     uint32 // 0: none yet
	parent  *bolt.Bucket
	set     *bolt.Bucket // of what belongs to a release
	setUID  uint32
	buckets [bucketCount]table
	key     [4]byte              // scratch for the bbolt key of an id
	linkKey [acrossKeyBytes]byte // scratch for that of links
}

// fail records damage.
func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// damaged notes an error about the value of a key in a bucket of a collection.
func (r *reader) damaged(uid uint32, b bucket, key any, err error) {
	name := fmt.Sprintf("with UID %d", uid)
	if col := r.catalog.byUID[uid]; col != nil {
		name = strconv.Quote(col.name)
	}
	r.fail(located(err, r.file, "collection %s: %s: %v", name, b, key))
}

// shownKey returns a key of a bucket as errors show it: an id, a block of ids, or a quoted string.
func (l layout) shownKey(b bucket, key []byte) string {
	switch b {
	case keysBucket, rowsBucket, dirtyBucket, linksBucket:
		if len(key) == 4 {
			return l.shown(b, binary.BigEndian.Uint32(key))
		}
	case attributesBucket:
		if name, n, column, ok := splitAttributeKey(key); column && ok {
			return shownColumn(name, n)
		} else if ok {
			return strconv.Quote(name)
		}
	case recentBucket:
		return shownLSN(key)
	case acrossBucket, typedBucket:
		if len(key) == acrossKeyBytes {
			return fmt.Sprintf("%d to UID %d", binary.BigEndian.Uint32(key[4:]), binary.BigEndian.Uint32(key))
		}
	}
	return strconv.Quote(string(key))
}

// shown is shownKey of a key that is a number.
func (l layout) shown(b bucket, n uint32) string {
	if l.blocked() && (b == rowsBucket || b == dirtyBucket) {
		return "block " + strconv.FormatUint(uint64(n), 10)
	}
	return strconv.FormatUint(uint64(n), 10)
}

// acquire prepares for using r.tx until release. It returns false if there is nothing to be found
// any more.
func (r *reader) acquire() bool {
	if r.ended {
		panic("storage: use of a View or Changes that has ended")
	}
	if r.lender == nil || r.err != nil {
		return r.err == nil
	}
	r.lender.lease.Lock()
	if r.tx != nil {
		return true
	}
	// Any transaction will do: only this writer publishes, so that no flush can have put anything
	// into bbolt that is not in r.layers.
	began, err := r.lender.read()
	if err != nil {
		r.lender.lease.Unlock()
		r.fail(err)
		return false
	}
	r.reading = began
	return true
}

func (r *reader) release() {
	if r.lender == nil {
		return
	}
	if r.lender.writing {
		r.rollback()
	}
	r.lender.lease.Unlock()
}

// rollback ends the transaction. What was found in it must not be used any more.
func (r *reader) rollback() {
	if r.tx != nil {
		_ = r.tx.Rollback() // it fails only on a transaction that has ended
	}
	r.reading, r.uid, r.parent, r.set, r.buckets = reading{}, 0, nil, nil, [bucketCount]table{}
}

// table returns a bucket of a collection. It may panic.
func (r *reader) table(uid uint32, b bucket) table {
	if r.uid != uid {
		var key [4]byte
		r.uid, r.buckets = uid, [bucketCount]table{}
		r.parent = r.tx.Bucket(bucketOfCollections).Bucket(bigEndian(&key, uid))
		r.set, r.setUID = r.parent, uid
		if set := r.setOf(uid); set != nil && set.uid != uid {
			r.set, r.setUID = setBucket(r.tx, uid, set.uid), set.uid
		}
	}
	if t := r.buckets[b]; t.Bucket != nil {
		return t
	}
	parent, of := r.parent, uid
	if ofRelease[b] {
		parent, of = r.set, r.setUID
	}
	if parent != nil {
		r.buckets[b] = r.layout.table(parent.Bucket(bucketNames[b]), of, b)
	}
	return r.buckets[b]
}

// get returns the value of a key in bbolt, or nil. It is valid until r ends, and must not be
// written to.
func (r *reader) get(uid uint32, b bucket, key []byte) (value []byte) {
	if !r.acquire() {
		return nil
	}
	defer r.release()
	defer r.db.guard(&r.err)
	defer faults(faults(true))
	value, err := r.lookUp(uid, b, key)
	if value == nil && err == nil {
		// A page that is truncated away and extended again during the search reads as zeros and
		// looks empty. bbolt refuses it when the search starts again.
		r.uid = 0
		value, err = r.lookUp(uid, b, key)
	}
	if err != nil {
		r.damaged(uid, b, r.layout.shownKey(b, key), err)
		return nil
	}
	if r.lender != nil {
		value = slices.Clone(value)
	}
	return value
}

// lookUp returns the value of a key in bbolt, or nil. It may panic.
func (r *reader) lookUp(uid uint32, b bucket, key []byte) ([]byte, error) {
	t := r.table(uid, b)
	if t.Bucket == nil {
		return nil, nil
	}
	return t.get(key)
}

// each calls fn for the keys and values of a bucket in bbolt, valid until fn returns.
func (r *reader) each(uid uint32, b bucket, fn func(key, value []byte)) {
	r.from(uid, b, nil, func(key, value []byte) bool { fn(key, value); return true })
}

// from is each from the key first on, until fn returns false.
func (r *reader) from(uid uint32, b bucket, first []byte, fn func(key, value []byte) bool) {
	if !r.acquire() {
		return
	}
	defer r.release()
	defer r.db.guard(&r.err)
	defer faults(faults(true))
	t := r.table(uid, b)
	if t.Bucket == nil {
		return
	}
	c := t.Cursor()
	for k, stored := c.Seek(first); k != nil; k, stored = c.Next() {
		value, err := t.open(k, stored) // it vouches for the key too
		if err != nil {
			r.damaged(uid, b, r.layout.shownKey(b, k), err)
			return
		}
		if !fn(k, value) {
			return
		}
	}
}

// record returns the record of a node, or nil.
func (r *reader) record(uid, id uint32) []byte {
	k := nodeKey{uid, id}
	for i := len(r.layers) - 1; i >= 0; i-- {
		if n, ok := r.layers[i].node(k); ok {
			return n.record
		}
	}
	return r.get(uid, keysBucket, bigEndian(&r.key, id))
}

// node returns a decoded record. Its payload may be a part of bbolt's memory.
func (r *reader) node(uid, id uint32) (Node, bool) {
	record := r.record(uid, id)
	if record == nil {
		return Node{}, false
	}
	n, err := decodeRecord(record)
	if err != nil {
		r.damaged(uid, keysBucket, id, err)
		return Node{}, false
	}
	return n, true
}

func (r *reader) tag(uid uint32, name string) *roaring.Bitmap {
	k := nameKey{uid, name}
	for i := len(r.layers) - 1; i >= 0; i-- {
		if b, ok := r.layers[i].tags[k]; ok {
			return b
		}
	}
	return r.bitmap(uid, tagsBucket, []byte(name))
}

// bitmap returns a bitmap of bbolt, or nil.
func (r *reader) bitmap(uid uint32, b bucket, key []byte) *roaring.Bitmap {
	value := r.get(uid, b, key)
	if value == nil {
		return nil
	}
	m, err := decodeBitmap(value)
	if err != nil {
		r.damaged(uid, b, r.layout.shownKey(b, key), err)
	}
	return m
}

// blob returns a value of decoders or meta, or nil. It may be a part of bbolt's memory.
func (r *reader) blob(uid uint32, in bucket, name string) []byte {
	k := blobKey{uid, in, name}
	for i := len(r.layers) - 1; i >= 0 && !r.redirected(uid, in); i-- {
		if b, ok := r.layers[i].blobs[k]; ok {
			return b
		}
	}
	return r.get(uid, in, []byte(name))
}

// Collections returns all collections in the order they were created in.
func (r *reader) Collections() []Info {
	infos := r.catalog.infos()
	for i := range infos {
		infos[i] = r.ofRelease(infos[i])
	}
	return infos
}

// Collection returns the collection of that name.
func (r *reader) Collection(name string) (Info, bool) {
	c := r.catalog.byName[name]
	if c == nil {
		return Info{}, false
	}
	return r.ofRelease(c.info()), true
}

// ID returns the id of a live node.
func (r *reader) ID(uid uint32, key string) (uint32, bool) {
	if r.catalog.byUID[uid] == nil {
		return 0, false
	}
	if v, ok := r.mentioned(uid, key); ok {
		return v.id, v.live
	}
	value := r.get(uid, idsBucket, []byte(key))
	if value == nil {
		return 0, false
	}
	id, err := decodeUint32(value)
	if err != nil {
		r.damaged(uid, idsBucket, strconv.Quote(key), err)
		return 0, false
	}
	return id, true
}

// mentioned returns what the layers say of a key, if one mentions it.
func (r *reader) mentioned(uid uint32, key string) (idOf, bool) {
	if len(r.layers) == 0 {
		return idOf{}, false
	}
	k, hash := nameKey{uid, key}, hashKey(uid, key)
	for i := len(r.layers) - 1; i >= 0; i-- {
		if v, ok := r.layers[i].id(k, hash); ok {
			return v, true
		}
	}
	return idOf{}, false
}

// Node returns key, tags and payload of a live node.
func (r *reader) Node(uid, id uint32) (Node, bool) {
	if r.catalog.byUID[uid] == nil {
		return Node{}, false
	}
	n, ok := r.node(uid, id)
	n.Payload = slices.Clone(n.Payload)
	return n, ok
}

// Key returns the key of a live node.
func (r *reader) Key(uid, id uint32) (string, bool) {
	if r.catalog.byUID[uid] == nil {
		return "", false
	}
	record := r.record(uid, id)
	if record == nil {
		return "", false
	}
	key, err := recordKey(record)
	if err != nil {
		r.damaged(uid, keysBucket, id, err)
		return "", false
	}
	return string(key), true
}

// Tag returns the live ids that have a tag, or nil if there are none. The bitmap must not be
// changed.
func (r *reader) Tag(uid uint32, tag string) *roaring.Bitmap {
	if r.catalog.byUID[uid] == nil {
		return nil
	}
	return r.tag(uid, tag)
}

// Tags returns all tags with the number of live nodes that have each.
func (r *reader) Tags(uid uint32) map[string]uint64 {
	counts := map[string]uint64{}
	if r.catalog.byUID[uid] == nil {
		return counts
	}
	r.each(uid, tagsBucket, func(tag, value []byte) {
		b, err := decodeBitmap(value)
		if err != nil {
			r.damaged(uid, tagsBucket, strconv.Quote(string(tag)), err)
			return
		}
		counts[string(tag)] = b.GetCardinality()
	})
	for _, l := range r.layers {
		for k, b := range l.tags {
			switch {
			case k.uid != uid:
			case b == nil:
				delete(counts, k.name)
			default:
				counts[k.name] = b.GetCardinality()
			}
		}
	}
	return counts
}

// Tombs returns the ids of deleted nodes, or nil if there are none. The bitmap must not be changed.
func (r *reader) Tombs(uid uint32) *roaring.Bitmap {
	col := r.catalog.byUID[uid]
	if col == nil {
		return nil
	}
	return col.tombs
}

// Decoder returns a decoder's blob.
func (r *reader) Decoder(uid uint32, name string) ([]byte, bool) {
	if r.catalog.byUID[uid] == nil {
		return nil, false
	}
	b := r.blob(uid, decodersBucket, name)
	return slices.Clone(b), b != nil
}

// Decoders returns the names of the decoders, sorted.
func (r *reader) Decoders(uid uint32) []string { return r.blobNames(uid, decodersBucket) }

// Plans returns the blob of the calibrations of a decoder.
func (r *reader) Plans(uid uint32, name string) ([]byte, bool) {
	if r.catalog.byUID[uid] == nil {
		return nil, false
	}
	b := r.blob(uid, plansBucket, name)
	return slices.Clone(b), b != nil
}

// Meta returns a string of the user's.
func (r *reader) Meta(uid uint32, name string) (string, bool) {
	if r.catalog.byUID[uid] == nil {
		return "", false
	}
	b := r.blob(uid, metaOf(name), name)
	return string(b), b != nil
}

func (r *reader) blobNames(uid uint32, in bucket) []string {
	if r.catalog.byUID[uid] == nil {
		return nil
	}
	found := map[string]bool{}
	r.each(uid, in, func(name, _ []byte) { found[string(name)] = true })
	for _, l := range r.layers {
		for k, v := range l.blobs {
			if k.uid == uid && k.in == in && !r.redirected(uid, in) {
				found[k.name] = v != nil
			}
		}
	}
	var names []string
	for name, exists := range found {
		if exists {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
