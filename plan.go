package flashdb

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/calibrate"
	"github.com/flashdb/flashdb/storage"
)

// maxSubset is how many nodes may pass a filter for them to be scored all,
// straight from the store: that is exact, and no dearer than a few rounds.
const maxSubset = 1000

// defaultRecall is what PredictOptions.Recall means when it is zero.
const defaultRecall = 0.98

// planned is a plan and, in words, how it was chosen.
type planned struct {
	plan     flashlight.Plan
	describe string
	subset   bool // the filtered nodes are read one by one and scored exactly
}

func exactPlan(why string) planned {
	return planned{plan: flashlight.Plan{Mode: flashlight.ModeExact}, describe: "exact: " + why}
}

// plan chooses how a query is answered. Knobs set by hand are used as they are.
func (q *query) plan(o PredictOptions, k int) planned {
	byHand := o.byHand() || o.Mode == ModePaper
	chosen := !byHand && o.Probes == (Probes{}) // by us
	indexed := q.view.pinned.gen != nil
	switch {
	case o.Mode == ModeExact:
		return exactPlan("asked for")
	case !byHand && q.allowed != nil && q.allowed.GetCardinality() <= maxSubset:
		p := exactPlan(fmt.Sprintf("the filter keeps %d nodes", q.allowed.GetCardinality()))
		p.subset = true
		return p
	case !indexed && !byHand:
		return exactPlan(fmt.Sprintf("no index (%d nodes)", q.nodes))
	case q.measured != nil && chosen:
		return q.calibrated(o, k)
	case o.Recall > 0:
		return exactPlan(fmt.Sprintf("no calibration says which plan reaches recall %g", o.Recall))
	}
	p := q.handmade(o, k)
	switch {
	case q.bound.Linear():
		p.describe = fmt.Sprintf("linear: one round of %d, probes %v", max(k, p.plan.Rounds*p.plan.PerRound), p.plan.Probes)
	case chosen && q.decodes:
		p.describe = "uncalibrated: " + p.describe
	}
	return p
}

// handmade returns the default plan, or the paper's, with the knobs that are
// set.
func (q *query) handmade(o PredictOptions, k int) planned {
	var p flashlight.Plan
	if o.Mode == ModePaper {
		p = flashlight.PaperPlan()
	} else {
		p = flashlight.DefaultPlan(k, int(q.nodes))
	}
	if o.Rounds > 0 {
		p.Rounds = o.Rounds
	}
	if o.PerRound > 0 {
		p.PerRound = o.PerRound
	}
	if o.Anchors > 0 {
		p.Anchors = o.Anchors
	}
	if o.AnchorsFrom != "" {
		p.AnchorsFrom = o.AnchorsFrom
	}
	if o.Seed != "" {
		p.Seed = o.Seed
	}
	switch {
	case o.Probes != (Probes{}):
		p.Probes = o.Probes
	case q.allowed != nil:
		p = p.Filtered(int(q.allowed.GetCardinality()), int(q.nodes))
	}
	if o.MaxScored > 0 {
		p.MaxScored = o.MaxScored
	}
	return planned{plan: p, describe: p.String()}
}

// calibrated returns the cheapest plan that was measured to reach the recall,
// or the exact scan.
func (q *query) calibrated(o PredictOptions, k int) planned {
	target := o.Recall
	if target == 0 {
		target = defaultRecall
	}
	of := q.measured
	f, ok := of.For(k)
	point, reached := f.Choose(target)
	if !ok || !reached {
		return exactPlan(unreached(target, of, f))
	}
	point = f.Scaled(point, k)
	exact := of.ExactSeconds * float64(q.nodes) / float64(max(1, of.Rows))
	if point.Seconds >= exact {
		return exactPlan(fmt.Sprintf("as fast as any plan for recall %g", target))
	}
	p := point.Plan
	if o.MaxScored > 0 {
		p.MaxScored = o.MaxScored
	}
	describe := fmt.Sprintf("calibrated for recall %g: %v (measured %s, at least %s with 95%% confidence, %d sources)",
		target, p, share(point.Mean), share(point.Bound), of.Sources)
	if k > f.K {
		describe = fmt.Sprintf("calibrated for recall %g at k = %d, scaled: %v", target, f.K, p)
	}
	return planned{plan: p, describe: describe}
}

// unreached says why no plan was chosen.
func unreached(target float64, of *calibrate.Calibration, f calibrate.Frontier) string {
	best, _ := f.Choose(2)
	why := fmt.Sprintf("no plan reached recall %g on %d sources", target, of.Sources)
	if len(f.Points) > 0 {
		why += fmt.Sprintf("; the best found %s, at least %s with 95%% confidence", share(best.Mean), share(best.Bound))
	}
	return why
}

// share writes a recall without rounding it up to a certainty: .986.
func share(recall float64) string {
	if recall >= 1 {
		return "1"
	}
	return strings.TrimPrefix(strconv.FormatFloat(math.Floor(recall*1e4)/1e4, 'f', -1, 64), "0")
}

// subset streams a few nodes' rows from the store, for an exact scan of what a
// narrow filter keeps.
type subset struct {
	c   *Collection
	ids *roaring.Bitmap
}

// Dim implements flashlight.Rows.
func (s *subset) Dim() int { return s.c.schema.Dim }

// Gather implements flashlight.Rows; an exact scan never asks for it.
func (s *subset) Gather([]float32, []index.Candidate) error {
	panic("flashdb: subset rows are only scanned")
}

// Rows implements flashlight.Rows.
func (s *subset) Rows(_ context.Context, fn func(ids []uint32, rows []float32) error) error {
	ids := s.ids.ToArray()
	dim := s.Dim()
	rows := make([]float32, 0, len(ids)*dim)
	live := ids[:0]
	err := s.c.db.store.View(func(v *storage.View) error {
		for _, id := range ids {
			at := len(rows)
			rows = rows[:at+dim]
			if v.Row(rows[at:], s.c.uid, id) {
				live = append(live, id)
			} else {
				rows = rows[:at] // deleted since
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return fn(live, rows)
}
