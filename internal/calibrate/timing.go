package calibrate

import (
	"context"
	"errors"
	"slices"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// time is the final timing. It times the candidates on a frontier and the exact scan once more, in
// turns for a few sources. So load of the machine affects all of them alike, and no other worker
// runs meanwhile. It returns these candidates.
func (r *run) time(ctx context.Context) (best []*candidate, err error) {
	for _, f := range r.frontiers(r.tried) {
		for _, p := range f.Points {
			at := slices.IndexFunc(r.tried, func(c *candidate) bool { return c.k == f.K && c.plan == p.Plan })
			best = append(best, r.tried[at])
		}
	}
	w := r.workers[0]
	r.timed = nil
	for i := 0; i < min(timingSources, r.asked) && (i == 0 || r.elapsed() < r.Time); i++ {
		s := &r.Sources[i]
		if err := r.timeScan(ctx, s); err != nil {
			return nil, err
		}
		for _, c := range best {
			o, err := w.ask(ctx, s, &r.truths[i], c.k, c.plan, r.seeds)
			if err != nil {
				return nil, err
			}
			c.timed = append(c.timed, o.seconds)
		}
	}
	return best, nil
}

// timeScan times an exact scan on one goroutine. If there are many rows, it scans a part and scales
// the time.
func (r *run) timeScan(ctx context.Context, s *Source) error {
	w := r.workers[0]
	start := r.Clock()
	q := w.query(s, r.Ks[len(r.Ks)-1])
	scanned := head{all: w.engine.Rows}
	_, _, err := flashlight.Exact(ctx, &q, &scanned, 1, nil)
	seconds := r.Clock().Sub(start).Seconds()
	if scanned.cut {
		seconds *= float64(r.Rows) / float64(scanned.n)
	}
	r.timed = append(r.timed, seconds)
	return err
}

// head is the first timedRows of some rows, up to the end of a block.
type head struct {
	all flashlight.Rows
	n   int  // rows passed on, also those that the query excludes
	cut bool // there are more
}

var errEnough = errors.New("enough rows")

// Dim implements flashlight.Rows.
func (h *head) Dim() int { return h.all.Dim() }

// Gather implements flashlight.Rows.
func (h *head) Gather(dst []float32, c []index.Candidate) error { return h.all.Gather(dst, c) }

// Rows implements flashlight.Rows.
func (h *head) Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	err := h.all.Rows(ctx, func(ids []uint32, rows []float32) error {
		if h.n >= timedRows {
			h.cut = true
			return errEnough
		}
		h.n += len(ids)
		return fn(ids, rows)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
