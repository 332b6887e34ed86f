package calibrate

import (
	"context"
	"slices"
	"time"
)

// The last heat times the plans in question again, and the exact scan with them, on heatSources of the sources: in turns
// and with nothing beside, so that the load of the machine, our other worker's too, falls on all of them alike. Plans that
// cost heatSlack times what one that found as much does are out of the question.
const (
	heatSources = 16
	heatSlack   = 1.25
)

func (r *run) raceUntil() time.Duration { return time.Duration(float64(r.Time) * raceShare) }

// heat times the candidates that may be on a frontier.
func (r *run) heat(ctx context.Context, raced []*candidate) error {
	var close []*candidate
	for _, k := range r.Ks {
		close = append(close, r.closeToFrontier(raced, k)...)
	}
	if len(close) == 0 {
		return nil
	}
	a := r.askers[0]
	var scans, plans float64 // seconds so far
	for i := 0; i < min(heatSources, len(r.truths)) && r.elapsed() < r.Time; i++ {
		s := &r.Sources[i]
		if scans <= plans {
			t, err := a.scan(ctx, s, r.Ks[len(r.Ks)-1])
			if err != nil {
				return err
			}
			scans += t.seconds
			r.timed = append(r.timed, t.seconds)
		}
		for _, c := range close {
			o, err := a.ask(ctx, s, &r.truths[i], c.k, c.plan)
			if err != nil {
				return err
			}
			plans += o.seconds
			c.timed = append(c.timed, o.seconds)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// closeToFrontier returns the candidates for k that no other beats by far.
func (r *run) closeToFrontier(raced []*candidate, k int) []*candidate {
	of := slices.DeleteFunc(slices.Clone(raced), func(c *candidate) bool { return c.k != k })
	bounds := make([]float64, len(of))
	for i, c := range of {
		bounds[i] = r.point(c).Bound
	}
	var close []*candidate
	for i, c := range of {
		beaten := false
		for j, d := range of {
			beaten = beaten || (bounds[j] >= bounds[i] && heatSlack*d.cost < c.cost)
		}
		if !beaten {
			close = append(close, c)
		}
	}
	return close
}

// setCosts sets what the candidates are compared by.
func (r *run) setCosts(candidates []*candidate) {
	for _, c := range candidates {
		c.cost = r.work.seconds(c)
	}
}
