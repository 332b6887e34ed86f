package flashdb

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/calibrate"
)

const (
	// maxSubset is up to how many nodes that match a filter are all scored. That costs no more than
	// the rounds of a plan.
	maxSubset = 2000
	// Under a filter a plan misses more of the answer than without it, however much it visits: 1.5
	// to 2 times as much on debian and genes, both with random tags and with a tag for one side of
	// space. So a plan is chosen that misses half as much as is allowed.
	filteredMisses = 2
	// filteredCode is the cost of a code under a filter, relative to one without. The fewer rows a
	// filter keeps, the lower is the score of the best of them, and the more codes are looked at
	// closely. Measured on genes: 1.2 at 5%, 1.5 at 2% and 1.9 at 0.5%.
	filteredCode = 1.5
	// gatherCost is the cost of a row that is looked up by its id, relative to a row of a scan.
	gatherCost = 1.5
)

// defaultRecall is what PredictOptions.Recall means when it is zero.
const defaultRecall = 0.98

// planned is a plan, and why it was chosen in words.
type planned struct {
	plan     flashlight.Plan
	describe string
	subset   bool // scan only the rows that match the filter
	// fallback, if not nil, is run for a source that has no learned seed, such as an all-zero one.
	fallback *flashlight.Plan
}

func exactPlan(why string) planned {
	return planned{plan: flashlight.Plan{Method: flashlight.MethodExact}, describe: "exact: " + why}
}

// plan chooses the plan of a query.
func (q *query) plan(o PredictOptions, k int) planned {
	switch {
	case o.Exact:
		return q.exact("asked for")
	case o.Plan != nil:
		return q.described(q.handmade(*o.Plan, k), k)
	case q.allowed != nil && q.allowed.GetCardinality() <= maxSubset:
		p := exactPlan(fmt.Sprintf("the filter keeps %d nodes", q.allowed.GetCardinality()))
		p.subset = true
		return p
	case q.view.pinned.gen == nil:
		return q.exact(q.unindexed())
	case q.measured != nil:
		return q.calibrated(o, k)
	case o.Recall > 0:
		return q.exact(fmt.Sprintf("no calibration says which plan reaches recall %g", o.Recall))
	}
	p := q.described(q.handmade(flashlight.Plan{}, k), k)
	if q.decodes && !q.bound.Linear() {
		p.describe = "uncalibrated: " + p.describe
	}
	return p
}

// handmade returns byHand with its zero fields set to the defaults.
func (q *query) handmade(byHand flashlight.Plan, k int) flashlight.Plan {
	p := byHand.Completed(k, int(q.nodes))
	if q.allowed != nil && byHand.Probes == (index.Probes{}) {
		p = p.Filtered(int(q.allowed.GetCardinality()), int(q.nodes))
	}
	return p
}

// described returns a plan with its text. With a linear decoder a plan runs as one round.
func (q *query) described(p flashlight.Plan, k int) planned {
	if q.bound.Linear() {
		return planned{plan: p, describe: fmt.Sprintf("linear: one round of %d, probes %v", max(k, p.Rounds*p.PerRound), p.Probes)}
	}
	return planned{plan: p, describe: p.String()}
}

// calibrated returns the cheapest plan that was measured to reach the recall, or else the exact
// scan.
func (q *query) calibrated(o PredictOptions, k int) planned {
	target := o.Recall
	if target == 0 {
		target = defaultRecall
	}
	of := q.measured
	f, ok := of.For(k)
	sought := target
	if q.allowed != nil {
		sought = 1 - (1-target)/filteredMisses
	}
	if !ok || len(f.Points) == 0 {
		return q.exact(unreached(sought, of, f))
	}
	point, reached := f.Choose(sought)
	point = f.Scaled(point, k)
	// With so few sources no plan could have shown the default recall. Unless the caller asked for
	// a recall, that is no reason to scan.
	excused := o.Recall == 0 && calibrate.PerfectBound(of.Sources, f.K) < sought
	// Nor is it one if the mean of the best plan reaches it, and only more sources could raise its
	// bound.
	likely := o.Recall == 0 && !reached && point.Mean >= sought
	switch {
	case !reached && !excused && !likely:
		return q.exact(unreached(sought, of, f))
	case q.filteredSeconds(point) >= q.exactSeconds():
		return q.exact(fmt.Sprintf("as fast as any plan for recall %g", target))
	case !reached && excused:
		p := q.handmade(flashlight.Plan{}, k)
		return planned{plan: p, describe: fmt.Sprintf("default, as %d sources are too few to measure recall %g: %v", of.Sources, sought, p)}
	}
	p := point.Plan
	if q.allowed != nil {
		p = p.Filtered(int(q.allowed.GetCardinality()), int(q.nodes))
	}
	how := fmt.Sprintf("measured %s, at least %s with 95%% confidence, %d sources", share(point.Mean), share(point.Bound), of.Sources)
	switch {
	case q.allowed != nil:
		how += ", then widened for the filter"
	case k > f.K:
		how += fmt.Sprintf(", at k = %d, then scaled", f.K)
	}
	chosenBy := "calibrated"
	if !reached {
		chosenBy = "best measured, though no bound reaches it,"
	}
	chosen := planned{plan: p, describe: fmt.Sprintf("%s for recall %g: %v (%s)", chosenBy, target, p, how)}
	if p.Seed.Learned() {
		fallback := q.handmade(flashlight.Plan{}, k)
		chosen.fallback = &fallback
	}
	return chosen
}

// Scans returns each k for which no plan reaches the default recall of 0.98. Such a query scans
// every node, unless it sets Recall or a Filter.
func (of Calibration) Scans() (ks []int) {
	for _, f := range of.Frontiers {
		p, reached := f.Choose(defaultRecall)
		tooFew := len(f.Plans) > 0 && calibrate.PerfectBound(of.Sources, f.K) < defaultRecall
		if !reached && p.Mean < defaultRecall && !tooFew {
			ks = append(ks, f.K)
		}
	}
	return ks
}

// filteredSeconds estimates the time of a plan, on one core, under the filter of the query. The
// plan was measured without a filter.
func (q *query) filteredSeconds(p calibrate.Point) float64 {
	if q.allowed == nil || p.CodesScanned < 1 {
		return p.Seconds
	}
	return p.Seconds + q.codeSeconds(p)*max(0, filteredCode*q.filteredCodes(p)-p.CodesScanned)
}

// filteredCodes estimates how many codes a plan scans under the filter of the query. A plan that
// probes all lists scans them to their ends, and so more codes than its probes grew by.
func (q *query) filteredCodes(p calibrate.Point) float64 {
	allowed := int(q.allowed.GetCardinality())
	if !p.Plan.Filtered(allowed, int(q.nodes)).Probes.All() {
		return p.CodesScanned * flashlight.FilteredScale(allowed, int(q.nodes))
	}
	vectors := 1.0
	if rounds := p.RowsScored / float64(max(1, p.Plan.PerRound)); !q.bound.Linear() {
		vectors = p.Plan.Vectors(max(1, rounds))
	}
	return vectors * float64(q.nodes)
}

// codeSeconds estimates the time of one more code for a plan. It compares the plan with the one
// that was measured to scan the most codes, without the rows that both score.
func (q *query) codeSeconds(p calibrate.Point) float64 {
	row := gatherCost * q.measured.ExactSeconds / float64(max(1, q.measured.Rows))
	codes := func(p calibrate.Point) float64 { return max(0, p.Seconds-row*p.RowsScored) }
	most := p
	for _, f := range q.measured.Frontiers {
		for _, other := range f.Points {
			if other.CodesScanned > most.CodesScanned {
				most = other
			}
		}
	}
	if most.CodesScanned >= 2*p.CodesScanned && codes(most) > codes(p) {
		return (codes(most) - codes(p)) / (most.CodesScanned - p.CodesScanned)
	}
	return codes(p) / p.CodesScanned
}

// exactSeconds estimates the time of the exact scan, on one core, of the rows that may be returned.
func (q *query) exactSeconds() float64 {
	row := q.measured.ExactSeconds / float64(max(1, q.measured.Rows))
	if q.narrow() {
		return gatherCost * row * float64(q.allowed.GetCardinality())
	}
	return row * float64(q.nodes)
}

// narrow reports whether so few rows match the filter that an exact scan looks them up one by one
// rather than reading all rows.
func (q *query) narrow() bool {
	return q.allowed != nil && 2*q.allowed.GetCardinality() < q.nodes
}

func (q *query) exact(why string) planned {
	p := exactPlan(why)
	p.subset = q.narrow()
	return p
}

// unindexed says why there is no index to search, and what to do.
func (q *query) unindexed() string {
	switch {
	case q.indexDamaged():
		return fmt.Sprintf("the index is damaged: a rebuild repairs it (%d nodes)", q.nodes)
	case q.nodes >= minIndexedRows:
		return fmt.Sprintf("no index (%d nodes): a rebuild makes one", q.nodes)
	}
	return fmt.Sprintf("no index (%d nodes)", q.nodes)
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

// share formats a recall, such as .986. It rounds down, so that only a recall of 1 reads as 1.
func share(recall float64) string {
	switch {
	case recall >= 1:
		return "1"
	case recall < 1e-4:
		return "0"
	}
	return strings.TrimPrefix(strconv.FormatFloat(math.Floor(recall*1e4)/1e4, 'f', -1, 64), "0")
}
