package calibrate

import (
	"context"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// A Searcher is a flashlight.Searcher for one query after another.
type Searcher interface {
	flashlight.Searcher
	// Reset begins another query.
	Reset()
}

// Lists are groups of similar rows. Every row is in exactly one.
type Lists interface {
	// Centroids returns one row for each list, row-major, which represents the list.
	Centroids() []float32
	// Grouped reports whether neighbouring lists are similar. A wrong answer makes samples less
	// good, not wrong.
	Grouped() bool
	// List appends the rows of list l to dst, for flashlight.Rows.Gather.
	List(l int, dst []index.Candidate) []index.Candidate
}

// An Engine is what one worker uses: a search, the rows that it searches, and the lists they are
// in. It belongs to one goroutine at a time.
type Engine struct {
	Search Searcher
	Rows   flashlight.Rows
	Lists  Lists
}

// A Source is one sampled source.
type Source struct {
	ID       uint32 // id of the node
	Vector   []float32
	Excluded []uint32 // ids never returned: the source itself, its known links
	Links    int      // number of its known links, by which Pick weighs it
	Drawn    Draw     // see Pick
	Relation string   // relation to predict; "" for a decoder without relations
}

// outcome is the result of one plan for one source.
type outcome struct {
	scores                []float32 // of its hits, best first
	seconds               float64
	rounds, scored, codes int
}

// A worker is an engine with the scratch memory to run plans on it. It belongs to one goroutine.
type worker struct {
	engine   Engine
	decoder  decoder.Decoder
	rows     int // number of rows that the engine searches
	clock    func() time.Time
	executor flashlight.Executor
	bound    decoder.Bound
	excluded *roaring.Bitmap
	hits     []index.Hit
	sampler  sampler
}

func newWorker(e Engine, d decoder.Decoder, rows int, clock func() time.Time) *worker {
	return &worker{engine: e, decoder: d, rows: rows, clock: clock, excluded: roaring.New()}
}

// query returns a query for s without a plan.
func (w *worker) query(s *Source, k int) flashlight.Query {
	w.bound = w.decoder.Bind(w.bound, s.Vector)
	w.excluded.Clear()
	w.excluded.AddMany(s.Excluded)
	return flashlight.Query{Bound: w.bound, Source: s.Vector, K: k, Excluded: w.excluded}
}

// ask runs a plan for s and adds the hits to t. w.hits holds the hits until the next call.
func (w *worker) ask(ctx context.Context, s *Source, t *truth, k int, p flashlight.Plan, seeds *flashlight.Seeds) (outcome, error) {
	start := w.clock()
	q := w.query(s, k)
	q.Plan, q.Seeds = p, seeds
	if p.Seed.Learned() { // the same fallback as that of user queries
		fallback := flashlight.DefaultPlan(k, w.rows)
		q.Fallback = &fallback
	}
	w.engine.Search.Reset()
	hits, report, err := w.executor.Run(ctx, &q, w.engine.Search, w.engine.Rows, w.hits[:0])
	if err == nil {
		err = ctx.Err() // a plan that a deadline has ended measures nothing
	}
	if err != nil {
		return outcome{}, err
	}
	o := outcome{
		scores:  make([]float32, len(hits)),
		seconds: w.clock().Sub(start).Seconds(),
		rounds:  report.Rounds,
		scored:  report.RowsScored,
		codes:   report.Cost.Codes,
	}
	for i, h := range hits {
		o.scores[i] = h.Score
		t.add(h)
	}
	w.hits = hits
	return o, nil
}
