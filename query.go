package flashdb

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/calibrate"
	"github.com/flashdb/flashdb/internal/filter"
	"github.com/flashdb/flashdb/storage"
)

// parsedFilter parses an expression of tags and attributes. It is nil for an empty one.
func parsedFilter(expression string) (*filter.Node, error) {
	n, err := filter.Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return n, nil
}

// A query is the reusable state of one Predict or Search. Each collection keeps a pool of them, so
// that a query allocates little more than its result.
type query struct {
	c        *Collection
	view     view
	executor flashlight.Executor
	run      flashlight.Query

	bound   decoder.Bound // boundOf bound to the source; its memory is reused
	boundOf decoder.Decoder

	source   []float32
	excluded *roaring.Bitmap
	allowed  *roaring.Bitmap        // nil when there is no filter
	unknown  []string               // tags of the filter that no node has
	nodes    uint64                 // live nodes of the collection that have a row
	decoder  *trained               // of selection.decoder
	asked    decoder.Decoder        // decoder, for the relation of the selection
	measured *calibrate.Calibration // calibration of decoder on the pinned generation; nil if there is none
	decodes  bool                   // the query is a Predict: its decoder may be calibrated
	broken   bool                   // a panic ended it halfway: it is not used again
	hits     []index.Hit
	capped   string // why Per left fewer than k hits
	pool     int    // hits from which Diversity or Per chose; 0 without them
	names    names
}

func newQuery(c *Collection) *query {
	return &query{c: c, view: view{c: c}, excluded: roaring.New()}
}

// begin takes a query from the pool, pins what is served, looks up the decoder and resolves the
// selection. All of it is as of the same batch. Otherwise a query could use the filter or decoder
// of a batch with the rows from before it, and would answer with half of the batch.
//
// A batch is first published in the store, then its decoders replace those in memory, and then its
// rows reach the delta. That takes a few microseconds. A query that begins in between tries again.
// The decoder is looked up after the pin and before the store is read. If pin and store agree on
// the last batch, the decoder is as of that batch too. A source of another collection, and its
// links, are as of the read of the store.
func (c *Collection) begin(ctx context.Context, sel selection) (*query, error) {
	q := c.queries.Get().(*query)
	for {
		q.excluded.Clear()
		q.allowed, q.measured, q.decodes = nil, nil, sel.decodes
		q.hits, q.unknown = q.hits[:0], q.unknown[:0]
		q.capped, q.pool = "", 0
		p, err := c.pin(ctx)
		var at moment
		if err == nil {
			q.view.open(p)
			if sel.decodes {
				if q.decoder, err = c.trained(sel.decoder); err == nil {
					q.asked, err = q.decoder.of(sel.relation, sel.reverse)
				}
			}
		}
		if err == nil {
			at, err = q.resolve(sel)
		}
		if err == nil && at == p.at {
			return q, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			q.end()
			return nil, err
		}
		q.view.close()
		runtime.Gosched()
	}
}

// end releases the pin and returns the query to the pool.
func (q *query) end() {
	q.view.close()
	q.run, q.decoder, q.asked = flashlight.Query{}, nil, nil
	if !q.broken {
		q.c.queries.Put(q)
	}
}

// errReplaced is the error of a query that needs rows of bbolt after another release became live.
var errReplaced = errors.New("another release is live")

// ask runs one query. If the served generation turns out damaged, it is no longer served, and the
// query runs again on the rows in bbolt. It also runs again if it needs rows that only bbolt has
// and another release has become live meanwhile.
func (c *Collection) ask(ctx context.Context, sel selection, run func(*query) (Result, error)) (Result, error) {
	for {
		res, damaged, err := c.askOnce(ctx, sel, run)
		switch {
		case damaged != 0:
			c.giveUp(damaged, err)
		case !errors.Is(err, errReplaced):
			return res, err
		}
	}
}

// askOnce runs one query on what is served. If err says that the generation is damaged, it returns
// the number of that generation.
func (c *Collection) askOnce(ctx context.Context, sel selection, run func(*query) (Result, error)) (res Result, damaged uint64, err error) {
	q, err := c.begin(ctx, sel)
	if err != nil {
		return Result{}, 0, err
	}
	defer q.end()
	gen := q.view.pinned.gen
	if gen == nil {
		res, err = run(q)
		return res, 0, err
	}
	q.broken = true // until run returns
	err = gen.Guard(func() error {
		res, err = run(q)
		q.broken = false
		return err
	})
	var corrupt *CorruptError
	number := q.view.pinned.number
	if errors.As(err, &corrupt) && gen.Has(corrupt.File) {
		damaged = number
	}
	return res, damaged, err
}

// selection is what the caller named: the source, the decoder, and what the answer leaves out or
// keeps.
type selection struct {
	source  string // key of the source; "" for a query by vector
	from    string // collection of the source; "" for the collection itself
	links   bool   // leave out the known links of the source
	exclude []string
	filter  *filter.Node

	decodes  bool   // the query needs a decoder
	decoder  string // its name; "" for the only one
	relation string // of the decoder
	reverse  bool
}

// resolve reads from the store what the selection names: the row of the source into q.source, and
// the excluded and allowed ids. It returns the moment on the collection that it saw.
func (q *query) resolve(sel selection) (at moment, err error) {
	c := q.c
	if sel.source == "" && len(sel.exclude) == 0 && sel.filter == nil && c.release == "" && c.frozen == nil { // nothing to look up
		info, lsn, ok := c.db.store.Collection(c.name)
		if !ok || info.UID != c.uid {
			return at, fmt.Errorf("collection %q %w: it was dropped", c.name, ErrNotFound)
		}
		q.nodes = uint64(info.Rows)
		return moment{lsn, info.Stamp}, nil
	}
	err = c.view(func(v *storage.View) error {
		info, ok := v.Collection(c.name)
		if !ok || info.UID != c.uid {
			return fmt.Errorf("collection %q %w: it was dropped", c.name, ErrNotFound)
		}
		at, q.nodes = moment{v.LSN(c.uid), info.Stamp}, uint64(info.Rows)
		if sel.source != "" {
			if err := q.resolveSource(v, sel); err != nil {
				return err
			}
		}
		for _, key := range sel.exclude {
			if id, ok := v.ID(c.uid, key); ok {
				q.excluded.Add(id)
			}
		}
		if sel.filter != nil {
			in := filterSource{v: v, info: info}
			if q.allowed, err = sel.filter.Find(&in); err != nil {
				return fmt.Errorf("%w: %w", ErrInvalid, err)
			}
			q.unknown = in.unknown
		}
		return nil
	})
	return at, err
}

// resolveSource reads the row of the source into q.source. It excludes the source itself and, if
// the selection says so, its known links.
func (q *query) resolveSource(v *storage.View, sel selection) error {
	c := q.c
	from, err := c.rowsOfSources(v, sel.from)
	if err != nil {
		return err
	}
	q.source = grow(q.source, c.schema.Dim)
	id, err := c.sourceRow(v, from, q.source, sel.source)
	if err != nil {
		return err
	}
	if from.UID == c.uid {
		q.excluded.Add(id)
	}
	if sel.links {
		if links := knownLinks(v, from.UID, id, c.uid, sel.relation, sel.reverse); links != nil {
			q.excluded.Or(links)
		}
	}
	return nil
}

// rowsOfSources is sourcesIn for a collection whose rows are used as sources, which must have the
// same width.
func (c *Collection) rowsOfSources(v keyReader, name string) (storage.Info, error) {
	from, err := c.sourcesIn(v, name)
	if err == nil && from.Schema.Dim != c.schema.Dim {
		err = fmt.Errorf("%w: sources from %q have %d values, collection %q holds %d", ErrDim, name, from.Schema.Dim, c.name, c.schema.Dim)
	}
	return from, err
}

// sourceRow reads the row of a source into dst, normalized if the schema says so, and returns its
// id.
func (c *Collection) sourceRow(v *storage.View, from storage.Info, dst []float32, key string) (id uint32, err error) {
	id, ok := v.ID(from.UID, key)
	if !ok {
		return 0, noNodeIn(from.Name, key)
	}
	if !v.Row(dst, from.UID, id) {
		return 0, c.db.noRowIn(v, from, id, key)
	}
	if c.schema.Normalize && from.UID != c.uid {
		row, err := unit(dst)
		if err != nil {
			return 0, fmt.Errorf("node %q of collection %q: %w", key, from.Name, err)
		}
		copy(dst, row)
	}
	return id, nil
}

// bind binds d to q.source. It reuses the memory of the last bound if that was of d.
func (q *query) bind(d decoder.Decoder) {
	if q.boundOf != d {
		q.bound, q.boundOf = nil, d
	}
	q.bound = d.Bind(q.bound, q.source)
	q.run.Bound = q.bound
}

// stats returns the stats of a result from the executor's report.
func (q *query) stats(report flashlight.Report) QueryStats {
	return QueryStats{
		IndexDamaged: q.indexDamaged(),
		UnknownTags:  append([]string(nil), q.unknown...),
		Rounds:       report.Rounds,
		ListsProbed:  report.Cost.Lists,
		RowsVisited:  report.Cost.Rows,
		CodesScanned: report.Cost.Codes,
		RowsScored:   report.RowsScored,
		Pool:         q.pool,
		Stop:         Stop(report.Stop),
		Generation:   q.view.pinned.number,
		DeltaRows:    q.view.pinned.delta.Len(),
	}
}

// indexDamaged reports whether there is an index that could not be pinned.
func (q *query) indexDamaged() bool {
	return q.view.pinned.gen == nil && q.c.served.damaged.Load() != 0
}

// grow returns a slice of length n, in the memory of s if it is large enough.
func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
