package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/calibrate"
)

// A Collection is a collection whose rows are in an engine. Its methods mean what those of
// flashdb.Collection mean. It is safe for concurrent use.
//
// Methods that write rows write into the live version. A search may not find what was written less
// than the engine's refresh interval ago, unless Refresh was called.
type Collection struct {
	db      *DB
	name    string
	local   *flashdb.Collection // its links, and its calibrations as meta values
	queries sync.Pool           // of *query

	mu     sync.Mutex
	served *served
}

// served is the live version as this process knows it. It is immutable.
type served struct {
	Version
	name     Name
	rows     int // when it was loaded
	decoders map[string]*trained
}

// trained is a decoder of a version and its calibration, which is nil if there is none.
type trained struct {
	decoder.Decoder
	name  string
	plans *plans
}

// plans are what a calibration has measured.
type plans struct {
	calibrate.Calibration
	// seedKeys are the keys of the sources of the learned seeds, by their id there.
	seedKeys []string
}

// load reads what is known of a version.
func (c *Collection) load(ctx context.Context, v Version) (*served, error) {
	s := &served{Version: v, name: Name{Collection: c.name, Version: v.ID}, decoders: map[string]*trained{}}
	if v.Dim < 1 || !(v.Norm >= 0) {
		return nil, fmt.Errorf("version %s: %w: it has %d dimensions and norm %v", v.ID, ErrForeign, v.Dim, v.Norm)
	}
	for name, blob := range v.Decoders {
		d, err := decoder.Unmarshal(blob)
		if err != nil {
			return nil, fmt.Errorf("version %s: decoder %q: %w", v.ID, name, err)
		}
		if d.Dim() != v.Dim {
			return nil, fmt.Errorf("version %s: decoder %q: %w: it takes %d values, rows have %d", v.ID, name, flashdb.ErrDim, d.Dim(), v.Dim)
		}
		t := &trained{Decoder: d, name: name}
		if t.plans, err = c.storedPlans(ctx, v.ID, name); err != nil {
			return nil, err
		}
		s.decoders[name] = t
	}
	var err error
	s.rows, err = c.db.engine.Count(ctx, s.name)
	return s, err
}

// current returns the version that queries use.
func (c *Collection) current() *served {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.served
}

// replaced looks for another live version than the one of s, which the engine does not hold any
// more. It returns flashdb.ErrNotFound if there is none.
func (c *Collection) replaced(ctx context.Context, s *served) error {
	v, err := c.db.engine.Live(ctx, c.name)
	if err != nil {
		return err
	}
	if v.ID == s.ID {
		return fmt.Errorf("version %s of collection %q %w", v.ID, c.name, flashdb.ErrNotFound)
	}
	return c.serve(ctx, v)
}

// serve makes queries that begin from now on use a version.
func (c *Collection) serve(ctx context.Context, v Version) error {
	s, err := c.load(ctx, v)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served = s
	return nil
}

// on calls fn with the served version. If the engine has replaced it meanwhile, it calls fn once
// more with the new one.
func (c *Collection) on(ctx context.Context, fn func(s *served) error) error {
	const attempts = 3 // a version may be replaced again at once
	for attempt := 1; ; attempt++ {
		s := c.current()
		err := fn(s)
		if attempt == attempts || !errors.Is(err, errGone) {
			return err
		}
		if err := c.replaced(ctx, s); err != nil {
			return err
		}
	}
}

// errGone is the error of a query whose version the engine does not hold any more.
var errGone = errors.New("the version was replaced")

// gone turns the flashdb.ErrNotFound of a call of the engine on a version into one that also
// matches errGone.
func gone(err error) error {
	if errors.Is(err, flashdb.ErrNotFound) {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return err
}

// Name returns the collection's name.
func (c *Collection) Name() string { return c.name }

// Schema returns the schema of the live version.
func (c *Collection) Schema() flashdb.Schema {
	s := c.current()
	return flashdb.Schema{Dim: s.Dim, Normalize: s.Normalize}
}

// Version returns the id of the version that queries use.
func (c *Collection) Version() string { return c.current().ID }

// Reload asks the engine which version is live, and how many rows it has. Queries notice a replaced
// version by themselves once the engine has dropped the former one.
func (c *Collection) Reload(ctx context.Context) error {
	v, err := c.db.engine.Live(ctx, c.name)
	if err == nil {
		err = c.serve(ctx, v)
	}
	return err
}

// decoder returns a decoder of a version. The empty name means the only one.
func (s *served) decoder(name string) (*trained, error) {
	if t := s.decoders[name]; t != nil {
		return t, nil
	}
	names := make([]string, 0, len(s.decoders))
	for n := range s.decoders {
		names = append(names, n)
	}
	slices.Sort(names)
	switch {
	case name != "":
		return nil, fmt.Errorf("decoder %q %w: the version has %s", name, flashdb.ErrNotFound, strings.Join(names, ", "))
	case len(names) == 0:
		return nil, fmt.Errorf("decoder %w: the version has none", flashdb.ErrNotFound)
	case len(names) > 1:
		return nil, fmt.Errorf("%w: name the decoder: the version has %s", flashdb.ErrInvalid, strings.Join(names, ", "))
	}
	return s.decoders[names[0]], nil
}

// Decoder returns a decoder of the live version. The empty name means the only one.
func (c *Collection) Decoder(name string) (decoder.Decoder, error) {
	t, err := c.current().decoder(name)
	if err != nil {
		return nil, err
	}
	return t.Decoder, nil
}

// Decoders returns the names of the decoders of the live version, sorted.
func (c *Collection) Decoders() (names []string) {
	for name := range c.current().decoders {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Refresh returns once queries find every row written before.
func (c *Collection) Refresh(ctx context.Context) error {
	return c.on(ctx, func(s *served) error { return gone(c.db.engine.Refresh(ctx, s.name)) })
}

// Len returns the number of rows in the live version.
func (c *Collection) Len(ctx context.Context) (n int, err error) {
	err = c.on(ctx, func(s *served) (err error) {
		n, err = c.db.engine.Count(ctx, s.name)
		return gone(err)
	})
	return n, err
}

// Upsert stores nodes in the live version, and replaces those stored under the same keys. The
// embeddings must be of the model of that version. The nodes are not one atomic write: after an
// error some of them may be stored, and the call may be repeated.
func (c *Collection) Upsert(ctx context.Context, nodes ...flashdb.Node) error {
	return c.on(ctx, func(s *served) error {
		rows := make([]Row, len(nodes))
		for i, n := range nodes {
			var err error
			if rows[i], err = s.NewRow(n); err != nil {
				return err
			}
		}
		return gone(c.db.engine.Put(ctx, s.name, rows))
	})
}

// Delete removes nodes with their links, and returns how many there were.
func (c *Collection) Delete(ctx context.Context, keys ...string) (deleted int, err error) {
	err = c.on(ctx, func(s *served) (err error) {
		deleted, err = c.db.engine.Delete(ctx, s.name, keys)
		return gone(err)
	})
	if err == nil {
		_, err = c.local.Delete(ctx, keys...)
	}
	return deleted, err
}

// Get returns the node stored under key, or flashdb.ErrNotFound.
func (c *Collection) Get(ctx context.Context, key string) (n flashdb.Node, err error) {
	err = c.on(ctx, func(s *served) error {
		r, err := c.row(ctx, s, s.name, key)
		if err != nil {
			return err
		}
		n = flashdb.Node{Key: r.Key, Embedding: r.Vector[:s.Dim:s.Dim], Payload: r.Payload}
		if n.Tags, n.Attributes, err = s.attributesOf(r.Tags); err != nil {
			return fmt.Errorf("row %q: %w", r.Key, err)
		}
		return nil
	})
	return n, err
}

// row gets one row of a version, which is s or one of its Sources, and verifies it.
func (c *Collection) row(ctx context.Context, s *served, in Name, key string) (Row, error) {
	rows, err := c.db.engine.Get(ctx, in, []string{key})
	if err != nil {
		return Row{}, gone(err)
	}
	if len(rows) == 0 {
		return Row{}, fmt.Errorf("node %q %w in collection %q", key, flashdb.ErrNotFound, in.Collection)
	}
	of := Version{ID: in.Version, Dim: s.Dim}
	return rows[0], of.verify(&rows[0])
}
