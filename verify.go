package flashdb

import (
	"context"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/storage"
)

// A Verification compares one answer with that of the exact scan of the same rows: see
// PredictOptions.Verify.
type Verification struct {
	// Recall is the share of the exact answer that was found. It is 1 when the exact answer is
	// empty.
	Recall float64
	// Missed are the hits of the exact answer that were not found, best first.
	Missed []Missed
	// Elapsed is the time of the exact scan.
	Elapsed time.Duration
}

// A Missed is a hit that a query did not find.
type Missed struct {
	Key string
	// Rank is the node's place in the exact answer, counted from 1. Score is its score.
	Rank  int
	Score float32
	// List is the inverted list that holds the node, or -1 for a node that is newer than the index.
	// Visited says whether the query visited that list. If it did, no query vector ranked the node
	// among the rows to score. If it did not, more probes would have visited the list.
	List    int
	Visited bool
}

// verify compares the answer of the query that has just run with the exact scan. excluded is what
// the query left out when it began.
func (q *query) verify(ctx context.Context, excluded *roaring.Bitmap) (*Verification, error) {
	start := time.Now()
	exact := q.run
	exact.Plan = flashlight.Plan{Method: flashlight.MethodExact}
	exact.Excluded = excluded
	hits, _, err := flashlight.Exact(ctx, &exact, &q.view, q.c.db.opts.Workers, nil)
	if err != nil {
		return nil, err
	}
	found := roaring.New()
	for _, h := range q.hits {
		found.Add(h.ID)
	}
	v := &Verification{Recall: 1}
	missed := map[uint32]int{} // index in v.Missed by id
	err = q.c.view(func(view *storage.View) error {
		for i, h := range hits {
			if found.Contains(h.ID) {
				continue
			}
			key, ok := view.Key(q.c.uid, h.ID)
			if !ok {
				continue // deleted since
			}
			missed[h.ID] = len(v.Missed)
			v.Missed = append(v.Missed, Missed{Key: key, Rank: i + 1, Score: h.Score, List: -1})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(hits) > 0 {
		v.Recall = 1 - float64(len(v.Missed))/float64(len(hits))
	}
	q.view.locate(missed, v.Missed)
	v.Elapsed = time.Since(start)
	return v, nil
}

// locate fills in which lists of the generation hold the missed nodes.
func (v *view) locate(place map[uint32]int, missed []Missed) {
	if v.pinned.gen == nil || len(missed) == 0 {
		return
	}
	for position, id := range v.pinned.gen.Positions() {
		i, ok := place[id]
		if !ok || v.masked.Contains(id) {
			continue
		}
		missed[i].List = v.pinned.gen.ListOf(int(position))
		missed[i].Visited = v.search.Visited(missed[i].List)
	}
}
