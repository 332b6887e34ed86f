// Package memory is a remote.Engine in this process. It compares every row, and is meant for tests.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

// An Engine keeps versions of collections in memory. The zero value is empty and ready to use.
type Engine struct {
	mu       sync.RWMutex
	live     map[string]string // version by collection
	versions map[remote.Name]*table
}

type table struct {
	version remote.Version
	rows    map[string]remote.Row
}

// table returns a version. The caller holds the lock.
func (e *Engine) table(of remote.Name) (*table, error) {
	t := e.versions[of]
	if t == nil {
		return nil, fmt.Errorf("version %s of collection %q %w", of.Version, of.Collection, flashdb.ErrNotFound)
	}
	return t, nil
}

// Live implements remote.Engine.
func (e *Engine) Live(_ context.Context, collection string) (remote.Version, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	id, ok := e.live[collection]
	if !ok {
		return remote.Version{}, fmt.Errorf("collection %q %w", collection, flashdb.ErrNotFound)
	}
	return e.versions[remote.Name{Collection: collection, Version: id}].version, nil
}

// Versions implements remote.Engine.
func (e *Engine) Versions(_ context.Context, collection string) (names []remote.Name, _ error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for name := range e.versions {
		if name.Collection == collection {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b remote.Name) int {
		if live := e.live[collection]; a.Version == live || b.Version == live {
			return boolAsInt(b.Version == live) - boolAsInt(a.Version == live)
		}
		return cmp.Compare(a.Version, b.Version)
	})
	return names, nil
}

func boolAsInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Stage implements remote.Engine.
func (e *Engine) Stage(_ context.Context, collection string, v remote.Version) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.versions == nil {
		e.live, e.versions = map[string]string{}, map[remote.Name]*table{}
	}
	name := remote.Name{Collection: collection, Version: v.ID}
	if t := e.versions[name]; t != nil {
		t.version = v
		return nil
	}
	e.versions[name] = &table{version: v, rows: map[string]remote.Row{}}
	return nil
}

// Publish implements remote.Engine.
func (e *Engine) Publish(_ context.Context, names ...remote.Name) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range names {
		if _, err := e.table(name); err != nil {
			return err
		}
	}
	for _, name := range names {
		if was, ok := e.live[name.Collection]; ok && was != name.Version {
			delete(e.versions, remote.Name{Collection: name.Collection, Version: was})
		}
		e.live[name.Collection] = name.Version
	}
	return nil
}

// Drop implements remote.Engine.
func (e *Engine) Drop(_ context.Context, of remote.Name) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.versions, of)
	if e.live[of.Collection] == of.Version {
		delete(e.live, of.Collection)
	}
	return nil
}

// Put implements remote.Engine.
func (e *Engine) Put(_ context.Context, in remote.Name, rows []remote.Row) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, err := e.table(in)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if len(r.Vector) != t.version.Dim+1 {
			return fmt.Errorf("row %q: %w: its vector has %d values, want %d", r.Key, flashdb.ErrDim, len(r.Vector), t.version.Dim+1)
		}
	}
	for _, r := range rows {
		r.Vector, r.Tags, r.Payload = slices.Clone(r.Vector), slices.Clone(r.Tags), slices.Clone(r.Payload)
		t.rows[r.Key] = r
	}
	return nil
}

// Delete implements remote.Engine.
func (e *Engine) Delete(_ context.Context, in remote.Name, keys []string) (deleted int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, err := e.table(in)
	if err != nil {
		return 0, err
	}
	for _, key := range keys {
		if _, ok := t.rows[key]; ok {
			delete(t.rows, key)
			deleted++
		}
	}
	return deleted, nil
}

// Refresh implements remote.Engine.
func (e *Engine) Refresh(_ context.Context, of remote.Name) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	_, err := e.table(of)
	return err
}

// Get implements remote.Engine.
func (e *Engine) Get(_ context.Context, in remote.Name, keys []string) (rows []remote.Row, err error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t, err := e.table(in)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if r, ok := t.rows[key]; ok {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// Search implements remote.Engine. It is always exact.
func (e *Engine) Search(ctx context.Context, in remote.Name, q *remote.Query) (remote.Answer, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t, err := e.table(in)
	if err != nil {
		return remote.Answer{}, err
	}
	without := map[string]bool{}
	for _, key := range q.Exclude {
		without[key] = true
	}
	type found struct {
		distance float64
		row      remote.Row
	}
	a := remote.Answer{Rows: make([][]remote.Row, len(q.Vectors))}
	for i, v := range q.Vectors {
		if err := ctx.Err(); err != nil {
			return remote.Answer{}, err
		}
		if len(v) != t.version.Dim+1 {
			return remote.Answer{}, fmt.Errorf("%w: a query vector has %d values, want %d", flashdb.ErrDim, len(v), t.version.Dim+1)
		}
		var all []found
		for _, r := range t.rows {
			if !without[r.Key] && matches(q.Filter, r.Tags) {
				all = append(all, found{distance(v, r.Vector), r})
			}
		}
		slices.SortFunc(all, func(a, b found) int {
			return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.row.Key, b.row.Key))
		})
		for _, f := range all[:min(q.N, len(all))] {
			f.row.Payload = nil
			a.Rows[i] = append(a.Rows[i], f.row)
		}
	}
	return a, nil
}

func distance(a, b []float32) (sum float64) {
	for i, x := range a {
		d := float64(x) - float64(b[i])
		sum += d * d
	}
	return sum
}

func matches(f *remote.Filter, tags []string) bool {
	if f == nil {
		return true
	}
	switch f.Op {
	case remote.Not:
		return !matches(f.Args[0], tags)
	case remote.And:
		return !slices.ContainsFunc(f.Args, func(a *remote.Filter) bool { return !matches(a, tags) })
	case remote.Or:
		return slices.ContainsFunc(f.Args, func(a *remote.Filter) bool { return matches(a, tags) })
	}
	if f.Span != nil {
		return slices.ContainsFunc(tags, func(tag string) bool { return tag >= f.Span.From && tag < f.Span.To })
	}
	return slices.Contains(tags, f.Tag)
}

// Scan implements remote.Engine.
func (e *Engine) Scan(ctx context.Context, in remote.Name, f *remote.Filter, fn func([]remote.Row) error) error {
	const some = 100
	e.mu.RLock()
	t, err := e.table(in)
	var keys []string
	if err == nil {
		keys = slices.Sorted(maps.Keys(t.rows))
	}
	e.mu.RUnlock()
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(keys, some) {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, err := e.Get(ctx, in, chunk)
		if err != nil {
			return err
		}
		rows = slices.DeleteFunc(rows, func(r remote.Row) bool { return !matches(f, r.Tags) })
		for i := range rows {
			rows[i].Payload = nil
		}
		if err := fn(rows); err != nil {
			return err
		}
	}
	return nil
}

// Count implements remote.Engine.
func (e *Engine) Count(_ context.Context, in remote.Name) (int, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t, err := e.table(in)
	if err != nil {
		return 0, err
	}
	return len(t.rows), nil
}

// Close implements remote.Engine.
func (e *Engine) Close() error { return nil }
