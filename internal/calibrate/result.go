package calibrate

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/flashdb/flashdb/flashlight"
)

// A Result is a calibration and the run that measured it.
type Result struct {
	Calibration
	run *run
}

// frontiers returns the frontier for each k. It considers the candidates that were run for all
// sources used so far and cost less than the exact scan.
func (r *run) frontiers(tried []*candidate) (all []Frontier) {
	for _, k := range r.Ks {
		var points []Point
		for _, c := range tried {
			if c.k != k || len(c.outcomes) < r.asked {
				continue
			}
			if p := r.point(c); p.Seconds < r.exactSeconds() {
				points = append(points, p)
			}
		}
		all = append(all, NewFrontier(k, points))
	}
	return all
}

// recalls returns the recall of a candidate for each source, measured against the pool.
func (r *run) recalls(c *candidate) []float64 {
	recalls := make([]float64, len(c.outcomes))
	for i := range recalls {
		recalls[i] = r.truths[i].recall(c.outcomes[i].scores, c.k)
	}
	return recalls
}

// point summarises the outcomes of a candidate. The bound is never above the mean recall of one
// draw, because the plan must serve the sources of every draw.
func (r *run) point(c *candidate) Point {
	n := len(c.outcomes)
	p := Point{Plan: c.plan}
	p.Seconds = r.costs.timed(c)
	for i := range c.outcomes {
		o := &c.outcomes[i]
		p.RowsScored += float64(o.scored) / float64(n)
		p.CodesScanned += float64(o.codes) / float64(n)
	}
	found := r.recalls(c)
	missing, margin := r.missing(c.k)
	mean := Mean(found)
	p.Mean = max(0, mean-missing)
	p.Bound = p.Mean - math.Hypot(mean-LowerBound(found, c.k), margin)
	for drawn := range draws {
		var of []float64
		for i := range found {
			if r.Sources[i].Drawn == drawn {
				of = append(of, found[i])
			}
		}
		if len(of) > 0 {
			p.Bound = min(p.Bound, Mean(of)-missing)
		}
	}
	if relation, lowest := r.lowestRelation(found); relation != "" {
		p.Relation, p.RelationMean = relation, max(0, lowest-missing)
	}
	slices.Sort(found)
	p.P5, p.Worst = quantile(found, 0.05), found[0]
	p.Bound = max(0, p.Bound)
	return p
}

// lowestRelation returns the relation whose sources have the lowest mean recall, and that mean. It
// returns "" if no relation has enough sources. found holds one recall for each source.
func (r *run) lowestRelation(found []float64) (name string, lowest float64) {
	recalls := map[string][]float64{}
	for i, recall := range found {
		relation := r.Sources[i].Relation
		recalls[relation] = append(recalls[relation], recall)
	}
	delete(recalls, "")
	for _, relation := range slices.Sorted(maps.Keys(recalls)) {
		of := recalls[relation]
		if mean := Mean(of); len(of) >= relationSources && (name == "" || mean < lowest) {
			name, lowest = relation, mean
		}
	}
	return name, lowest
}

// missing estimates which share of the k best rows of all sources was neither found by a plan nor
// sampled, and by how much it may be higher (95%, one-sided).
func (r *run) missing(k int) (share, margin float64) {
	var sum, variance float64
	sampled := 0
	for i := range r.truths[:r.asked] {
		t := &r.truths[i]
		s, v := t.unseen(k)
		sum, variance, sampled = sum+s, variance+v, sampled+t.sampled(k)
	}
	best := float64(r.asked * k)
	return sum / best, normal95*math.Sqrt(variance)/best + missMargin(sampled, r.asked*k)
}

// missMargin bounds the share of the best rows that all plans may have missed unnoticed, if so many
// of the best rows were sampled. A sample in which no row was missed is compatible with unseenRows
// misses among the sampled rows, and with as many in proportion among the others.
func missMargin(sampled, best int) float64 {
	if sampled == 0 {
		return 1
	}
	return max(0, unseenRows*(1/float64(sampled)-1/float64(best)))
}

// A Served is an engine over a generation, and the plan and seeds that its queries use.
type Served struct {
	Engine Engine
	Plan   flashlight.Plan
	Seeds  *flashlight.Seeds
}

// Compare runs before and after for the sources of the calibration, and returns the recall of each
// for every source. The recall is measured against the k best rows that the calibration and both of
// them have found, so neither has an advantage.
func (r *Result) Compare(ctx context.Context, before, after Served, k int) (old, new []float64, err error) {
	found := [2][][]float32{}
	for i, s := range []Served{before, after} {
		w := newWorker(s.Engine, r.run.Decoder, r.run.Rows, r.run.Clock)
		for n := range r.Sources {
			o, err := w.ask(ctx, &r.run.Sources[n], &r.run.truths[n], k, s.Plan, s.Seeds)
			if err != nil {
				return nil, nil, fmt.Errorf("calibrate: %w", err)
			}
			found[i] = append(found[i], o.scores)
		}
	}
	for n := range r.Sources {
		t := &r.run.truths[n]
		old, new = append(old, t.recall(found[0][n], k)), append(new, t.recall(found[1][n], k))
	}
	return old, new, nil
}
