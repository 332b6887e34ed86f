package remote

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
)

// PushOptions are the options of one Push. The zero value, or nil, means the defaults.
type PushOptions struct {
	// Links also copies the known links into the local directory.
	Links bool
	// Restart begins again where an earlier Push did not end, and drops what that one wrote.
	Restart bool
	// BatchBytes is about how many bytes of rows go into one call of the engine. Default 4 MiB.
	BatchBytes int
	// Verify is how many sampled rows of each collection are read back and compared before they are
	// published. Default 1000.
	Verify int
	// Progress is called from time to time.
	Progress func(stage string, done, total int64)
}

// A PushResult says what a Push did.
type PushResult struct {
	Collections map[string]string // version by collection
	Rows        int               // written by this call
	Resumed     int               // written by an earlier call that did not end
	Links       int
	Verified    int
	Elapsed     time.Duration
}

// metaPush is the name of the meta value of an unfinished Push.
const metaPush = "flashdb.remote.push"

// A push is the state of an unfinished Push, for the next call to go on with.
type push struct {
	Version string  `json:"version"`
	Norm    float32 `json:"norm"`
	Rows    int     `json:"rows"`  // of the source, when the push began
	Model   string  `json:"model"` // hash of its decoders and of what its rows were
	Done    int     `json:"done"`  // rows that the engine has acknowledged, in the order of Nodes
}

// Push copies collections of an embedded database, with their decoders, into the engine, as one new
// version of each. Nothing changes for queries until all are copied and verified; then they are
// published together, and the versions before are dropped.
//
// A Push that did not end is continued by the next one of the same collections, if they have not
// changed since. Rows written to the embedded database meanwhile may be missing: push when nobody
// writes.
func (db *DB) Push(ctx context.Context, from *flashdb.DB, collections []string, opts *PushOptions) (res PushResult, err error) {
	var o PushOptions
	if opts != nil {
		o = *opts
	}
	if o.BatchBytes == 0 {
		o.BatchBytes = 4 << 20
	}
	if o.Verify == 0 {
		o.Verify = 1000
	}
	began := time.Now()
	if len(collections) == 0 {
		return res, fmt.Errorf("push: %w: no collection is named", flashdb.ErrInvalid)
	}
	res.Collections = map[string]string{}
	states := map[string]*push{}
	for _, name := range collections {
		if states[name], err = db.prepare(ctx, from, name, o.Restart); err != nil {
			return res, fmt.Errorf("push %q: %w", name, err)
		}
		res.Collections[name] = states[name].Version
		res.Resumed += states[name].Done
	}
	var names []Name
	for _, name := range collections {
		c, err := from.Collection(name)
		if err == nil {
			err = db.copyRows(ctx, from, c, states[name], res.Collections, &o, &res)
		}
		if err != nil {
			return res, fmt.Errorf("push %q: %w", name, err)
		}
		names = append(names, Name{Collection: name, Version: states[name].Version})
	}
	if o.Links {
		for _, name := range collections {
			if err := db.copyLinks(ctx, from, name, &o, &res); err != nil {
				return res, fmt.Errorf("push links of %q: %w", name, err)
			}
		}
	}
	if err := db.publish(ctx, names); err != nil {
		return res, fmt.Errorf("push: %w", err)
	}
	res.Elapsed = time.Since(began)
	return res, nil
}

// prepare returns the state to go on from: that of an unfinished push of the same rows, or a new
// one.
func (db *DB) prepare(ctx context.Context, from *flashdb.DB, name string, restart bool) (*push, error) {
	c, err := from.Collection(name)
	if err != nil {
		return nil, err
	}
	local, err := db.linksOf(name)
	if err != nil {
		return nil, err
	}
	fresh, err := describe(ctx, c)
	if err != nil {
		return nil, err
	}
	value, ok, err := local.Meta(ctx, metaPush)
	if err != nil {
		return nil, err
	}
	var old push
	if ok && json.Unmarshal([]byte(value), &old) == nil && !restart && old.Model == fresh.Model && old.Rows == fresh.Rows && old.Norm == fresh.Norm {
		names, err := db.engine.Versions(ctx, name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, Name{Collection: name, Version: old.Version}) {
			return &old, nil
		}
	}
	if old.Version != "" { // of other rows, or to begin again
		if err := db.dropStaged(ctx, name, old.Version); err != nil {
			return nil, err
		}
	}
	return fresh, db.save(ctx, local, fresh)
}

// dropStaged drops a version unless it is live.
func (db *DB) dropStaged(ctx context.Context, name, version string) error {
	live, err := db.engine.Live(ctx, name)
	if errors.Is(err, flashdb.ErrNotFound) || (err == nil && live.ID != version) {
		return db.engine.Drop(ctx, Name{Collection: name, Version: version})
	}
	return err
}

// save stores the state of a push.
func (db *DB) save(ctx context.Context, local *flashdb.Collection, p *push) error {
	value, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return local.SetMeta(ctx, metaPush, string(value))
}

// describe reads all rows of an embedded collection, for the largest norm and a hash of them.
func describe(ctx context.Context, c *flashdb.Collection) (*push, error) {
	p := &push{}
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	p.Version = hex.EncodeToString(id[:])
	var sum uint32
	longest := 0.0
	for n, err := range c.Nodes(ctx) {
		if err != nil {
			return nil, err
		}
		p.Rows++
		longest = max(longest, squares(n.Embedding))
		sum ^= checksum("", n.Key, n.Embedding)
	}
	p.Norm = float32(math.Sqrt(longest))
	if float64(p.Norm)*float64(p.Norm) < longest {
		p.Norm = math.Nextafter32(p.Norm, math.MaxFloat32)
	}
	decoders, err := blobs(ctx, c)
	if err != nil {
		return nil, err
	}
	for name, blob := range decoders {
		sum ^= checksum(string(blob), name, nil)
	}
	p.Model = fmt.Sprintf("%08x", sum)
	return p, nil
}

// blobs returns the decoders of an embedded collection.
func blobs(ctx context.Context, c *flashdb.Collection) (map[string][]byte, error) {
	names, err := c.Decoders(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, name := range names {
		d, err := c.Decoder(name)
		if err != nil {
			return nil, err
		}
		all[name] = decoder.Marshal(d)
	}
	return all, nil
}

// attributeTypes returns the types of the attributes of an embedded collection, by name.
func attributeTypes(ctx context.Context, from *flashdb.DB, name string) (types map[string]string, err error) {
	stats, err := from.Stats(ctx)
	for _, c := range stats.Collections {
		for _, a := range c.Attributes {
			if c.Name == name {
				if types == nil {
					types = map[string]string{}
				}
				types[a.Name] = a.Type
			}
		}
	}
	return types, err
}

// versionOf describes the version that an embedded collection becomes. versions are those of the
// collections that are pushed together.
func versionOf(ctx context.Context, from *flashdb.DB, c *flashdb.Collection, p *push, versions map[string]string) (v Version, err error) {
	schema := c.Schema()
	v = Version{ID: p.Version, Dim: schema.Dim, Normalize: schema.Normalize, Norm: p.Norm}
	if v.Decoders, err = blobs(ctx, c); err != nil {
		return v, err
	}
	if v.Attributes, err = attributeTypes(ctx, from, c.Name()); err != nil {
		return v, err
	}
	for other, version := range versions {
		if other != c.Name() {
			if v.Sources == nil {
				v.Sources = map[string]string{}
			}
			v.Sources[other] = version
		}
	}
	return v, nil
}

// copyRows stages a version, copies the rows that it lacks, and verifies some.
func (db *DB) copyRows(ctx context.Context, from *flashdb.DB, c *flashdb.Collection, p *push, versions map[string]string, o *PushOptions, res *PushResult) error {
	v, err := versionOf(ctx, from, c, p, versions)
	if err != nil {
		return err
	}
	name := Name{Collection: c.Name(), Version: p.Version}
	if err := db.engine.Stage(ctx, name.Collection, v); err != nil {
		return err
	}
	local, err := db.linksOf(c.Name())
	if err != nil {
		return err
	}
	var batch []Row
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := db.engine.Put(ctx, name, batch); err != nil {
			return err
		}
		p.Done, res.Rows = p.Done+len(batch), res.Rows+len(batch)
		batch, size = batch[:0], 0
		if o.Progress != nil {
			o.Progress("rows of "+name.Collection, int64(p.Done), int64(p.Rows))
		}
		return db.save(ctx, local, p)
	}
	skip := p.Done
	sampled := newSampler(o.Verify)
	for n, err := range c.Nodes(ctx) {
		if err != nil {
			return err
		}
		r, err := v.NewRow(n)
		if err != nil {
			return err
		}
		sampled.offer(&r)
		if skip > 0 {
			skip--
			continue
		}
		batch = append(batch, r)
		if size += 4*len(r.Vector) + len(r.Key) + len(r.Payload) + 64; size >= o.BatchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if err := db.engine.Refresh(ctx, name); err != nil {
		return err
	}
	stored, err := db.engine.Count(ctx, name)
	if err != nil {
		return err
	}
	if stored != p.Rows {
		return fmt.Errorf("the engine holds %d rows after %d were written: push again when nobody writes to the database", stored, p.Rows)
	}
	n, err := db.readBack(ctx, name, sampled.rows)
	res.Verified += n
	return err
}

// A sampler keeps an even sample of the rows offered (algorithm R, Vitter 1985).
type sampler struct {
	rows []Row
	n    int
	seen int
	rng  *mathrand.Rand
}

func newSampler(n int) *sampler {
	return &sampler{n: max(0, n), rng: mathrand.New(mathrand.NewPCG(1, 3))}
}

func (s *sampler) offer(r *Row) {
	s.seen++
	if len(s.rows) < s.n {
		s.rows = append(s.rows, *r)
	} else if at := s.rng.IntN(s.seen); at < s.n {
		s.rows[at] = *r
	}
}

// readBack compares rows with those that the engine returns.
func (db *DB) readBack(ctx context.Context, name Name, rows []Row) (verified int, err error) {
	const some = 100
	for chunk := range slices.Chunk(rows, some) {
		keys, byKey := make([]string, len(chunk)), map[string]*Row{}
		for i := range chunk {
			keys[i], byKey[chunk[i].Key] = chunk[i].Key, &chunk[i]
		}
		got, err := db.engine.Get(ctx, name, keys)
		if err != nil {
			return verified, err
		}
		for _, r := range got {
			want := byKey[r.Key]
			if want == nil || r.Sum != want.Sum || !slices.Equal(r.Vector, want.Vector) || string(r.Payload) != string(want.Payload) || !sameTags(r.Tags, want.Tags) {
				return verified, fmt.Errorf("row %q: %w: it is not what was written", r.Key, ErrForeign)
			}
			verified++
		}
		if len(got) != len(chunk) {
			return verified, fmt.Errorf("%w: %d of %d rows read back are missing", ErrForeign, len(chunk)-len(got), len(chunk))
		}
	}
	return verified, nil
}

// sameTags reports whether two nodes have the same tags, in any order.
func sameTags(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// copyLinks copies the known links to nodes of a collection.
func (db *DB) copyLinks(ctx context.Context, from *flashdb.DB, name string, o *PushOptions, res *PushResult) error {
	const some = 10_000
	c, err := from.Collection(name)
	if err != nil {
		return err
	}
	local, err := db.linksOf(name)
	if err != nil {
		return err
	}
	to := &Collection{db: db, name: name, local: local}
	var batch []flashdb.Edge
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := to.Link(ctx, batch...)
		res.Links += len(batch)
		batch = batch[:0]
		if o.Progress != nil {
			o.Progress("links of "+name, int64(res.Links), 0)
		}
		return err
	}
	for e, err := range c.Links(ctx) {
		if err != nil {
			return err
		}
		if batch = append(batch, e); len(batch) == some {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// publish publishes versions, and forgets that their push was unfinished.
func (db *DB) publish(ctx context.Context, names []Name) error {
	if err := db.engine.Publish(ctx, names...); err != nil {
		return err
	}
	for _, name := range names {
		local, err := db.linksOf(name.Collection)
		if err != nil {
			return err
		}
		if err := local.SetMeta(ctx, metaPush, ""); err != nil {
			return err
		}
		db.mu.Lock()
		c := db.collections[name.Collection]
		db.mu.Unlock()
		if c != nil {
			if err := c.Reload(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Drop removes every version of a collection from the engine, and its calibrations and links from
// the local directory.
func (db *DB) Drop(ctx context.Context, collection string) error {
	names, err := db.engine.Versions(ctx, collection)
	if err != nil {
		return fmt.Errorf("drop %q: %w", collection, err)
	}
	slices.Reverse(names) // the live one last
	for _, name := range names {
		if err := db.engine.Drop(ctx, name); err != nil {
			return fmt.Errorf("drop %q: %w", collection, err)
		}
	}
	db.mu.Lock()
	delete(db.collections, collection)
	db.mu.Unlock()
	err = db.local.DropCollection(ctx, collection)
	if errors.Is(err, flashdb.ErrNotFound) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("drop %q: %w", collection, err)
	}
	return nil
}
