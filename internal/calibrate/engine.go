package calibrate

import (
	"context"
	"math"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// A Searcher is a flashlight.Searcher that serves one query after another.
type Searcher interface {
	flashlight.Searcher
	// Reset begins another query.
	Reset()
}

// An Engine is what one worker asks: a search and the rows it searches. It belongs to one goroutine at a time.
type Engine struct {
	Search Searcher
	Rows   flashlight.Rows
}

// A Source is one sampled source.
type Source struct {
	Vector   []float32
	Excluded []uint32 // ids never returned: the source itself, its known links
	Drawn    Draw     // see Pick
}

// truth is the exact answer of a source, best first, and what it took.
type truth struct {
	hits    []index.Hit
	seconds float64 // of one core
}

// tieTolerance, relative, is how far below the true k-th score a hit still counts as found, and scoreFloor what scores
// are taken relative to at least: nodes that tie there are equally right answers.
const (
	tieTolerance = 1e-5
	scoreFloor   = 0.1
)

// recall returns the share of the true k best that are among hits.
func (t *truth) recall(hits []index.Hit, k int) float64 {
	k = min(k, len(t.hits))
	if k == 0 {
		return 1
	}
	kth := t.hits[k-1].Score
	least := kth
	if kth-kth == 0 { // a number, and finite
		least -= tieTolerance * max(float32(math.Abs(float64(kth))), scoreFloor)
	}
	found := 0
	for _, h := range hits {
		if !(h.Score < least) && (h.Score == h.Score || kth != kth) { // any hit is as good as a NaN
			found++
		}
	}
	return float64(min(found, k)) / float64(k)
}

// outcome is how a plan did on one source.
type outcome struct {
	recall, seconds       float64
	rounds, scored, codes int
}

// An asker is one worker: an engine and the scratch to ask it.
type asker struct {
	engine   Engine
	decoder  decoder.Decoder
	clock    func() time.Time
	executor flashlight.Executor
	bound    decoder.Bound
	excluded *roaring.Bitmap
	hits     []index.Hit
}

func newAsker(e Engine, d decoder.Decoder, clock func() time.Time) *asker {
	return &asker{engine: e, decoder: d, clock: clock, excluded: roaring.New()}
}

// query sets up a query of s, as far as scan and plan have in common.
func (a *asker) query(s *Source, k int) flashlight.Query {
	a.bound = a.decoder.Bind(a.bound, s.Vector)
	a.excluded.Clear()
	a.excluded.AddMany(s.Excluded)
	return flashlight.Query{Bound: a.bound, Source: s.Vector, K: k, Excluded: a.excluded}
}

// scan finds the exact answer on one thread.
func (a *asker) scan(ctx context.Context, s *Source, k int) (truth, error) {
	start := a.clock()
	q := a.query(s, k)
	hits, _, err := flashlight.Exact(ctx, &q, a.engine.Rows, 1, nil)
	return truth{hits, a.clock().Sub(start).Seconds()}, err
}

// ask runs a plan.
func (a *asker) ask(ctx context.Context, s *Source, t *truth, k int, p flashlight.Plan) (outcome, error) {
	start := a.clock()
	q := a.query(s, k)
	q.Plan = p
	a.engine.Search.Reset()
	hits, report, err := a.executor.Run(ctx, &q, a.engine.Search, a.engine.Rows, a.hits[:0])
	if err != nil {
		return outcome{}, err
	}
	a.hits = hits
	return outcome{
		recall:  t.recall(hits, k),
		seconds: a.clock().Sub(start).Seconds(),
		rounds:  report.Rounds,
		scored:  report.RowsScored,
		codes:   report.Cost.Codes,
	}, nil
}
