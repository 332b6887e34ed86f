package calibrate

import (
	"slices"

	"github.com/flashdb/flashdb/flashlight"
)

// leastProbed is the smallest search set that is tried, in rows; the ladder of probes doubles from there to every list.
const leastProbed = 2000

// A rule is where the queries of a plan come from. It hardly interacts with the amounts of work, so that rules and
// amounts are searched one after the other.
type rule struct {
	seed    flashlight.Seed
	from    flashlight.AnchorsFrom
	anchors int
}

// defaultRule is that of flashlight.DefaultPlan. It is always raced.
var defaultRule = rule{flashlight.SeedOnes, flashlight.AnchorsBoth, 20}

func rules() []rule {
	all := []rule{defaultRule}
	for _, anchors := range []int{20, 1} {
		for _, from := range []flashlight.AnchorsFrom{flashlight.AnchorsBoth, flashlight.AnchorsRound, flashlight.AnchorsAll} {
			for _, seed := range []flashlight.Seed{flashlight.SeedOnes, flashlight.SeedSource, flashlight.SeedBoth} {
				if r := (rule{seed, from, anchors}); r != defaultRule {
					all = append(all, r)
				}
			}
		}
	}
	return all
}

// An amount is how much work a plan may do.
type amount struct {
	shape
	probed int // rows
}

// A shape is how an amount is spread over rounds.
type shape struct {
	rounds, perRound int
	patience         int // 0: see plan
}

// patientRule is that of the long, patient plans that are tried beside those of the rules that did best: the best rules for
// a few easy sources say little of the hard ones, for which looking everywhere is the safer bet.
var patientRule = rule{flashlight.SeedBoth, flashlight.AnchorsBoth, 20}

// plan joins a rule and an amount for a search in so many rows. Three rounds and fewer are always run; of more, two in a
// row that bring nothing end the query, or as many as the amount says.
func (r rule) plan(a amount, rows int) flashlight.Plan {
	p := flashlight.Plan{
		Mode:        flashlight.ModeFlashlight,
		Seed:        r.seed,
		AnchorsFrom: r.from,
		Anchors:     r.anchors,
		Rounds:      a.rounds,
		PerRound:    a.perRound,
		Patience:    a.rounds,
		Probes:      share(a.probed, rows),
	}
	switch {
	case a.patience > 0:
		p.Patience = a.patience
	case a.rounds > 3:
		p.Patience = 2
	}
	if a.rounds == 1 { // no anchors are ever used: one form for what is one plan
		p.AnchorsFrom, p.Anchors = defaultRule.from, defaultRule.anchors
	}
	return p
}

// shapes are tried in this order, those that matter most first. The patient ones are for decoders and sources where a
// round without news means little.
var shapes = []shape{
	{4, 150, 0},
	{1, 500, 0},
	{10, 100, 0},
	{2, 150, 0},
	{1, 1000, 0},
	{10, 200, 4},
	{3, 200, 0},
	{6, 200, 0},
	{1, 2000, 0},
	{2, 400, 0},
	{20, 100, 6},
	{1, 4000, 0},
	{10, 200, 0},
	{3, 100, 0},
	{6, 100, 0},
	{4, 400, 0},
	{10, 100, 4},
	{20, 200, 6},
	{10, 64, 0},
	{3, 1000, 0},
	{10, 400, 4},
	{10, 400, 0},
	{6, 64, 0},
	{6, 200, 6},
	{20, 64, 6},
	{2, 1000, 0},
	{3, 400, 0},
	{6, 400, 0},
	{4, 64, 0},
	{1, 8000, 0},
	{1, 200, 0},
	{2, 64, 0},
	{3, 64, 0},
	{10, 1000, 0},
	{6, 1000, 0},
}

// atOnce is the growth that is tried beside the default one: on ddi, where the best rows lie in the lists that the seed leads
// to, it finds .99 for the work that finds .95 by the default. Over two rounds was never better than both, and over
// five a tenth cheaper at most, for few k and recalls (docs/algorithms.md).
const atOnce = 1

// ladder returns the search sets to try in rows: coarse steps first, then those between. Every list comes first.
func ladder(rows int) (coarse, fine []int) {
	coarse = append(coarse, rows)
	for i, n := 0, leastProbed; n < rows; i, n = i+1, 2*n {
		if i%2 == 0 {
			fine = append(fine, n)
		} else {
			coarse = append(coarse, n)
		}
	}
	return coarse, fine
}

// rulePlans returns those by which rules are compared, each with two amounts: a small one in part of the rows, where good
// queries matter most, and a large one in all.
func rulePlans(k, rows int) []flashlight.Plan {
	var plans []flashlight.Plan
	for _, r := range rules() {
		for _, a := range []amount{
			{shape{rounds: 4, perRound: max(64, k*3/2)}, min(rows, 4*leastProbed)},
			{shape{rounds: 6, perRound: max(64, 2*k)}, rows},
		} {
			plans = append(plans, r.plan(a, rows))
		}
	}
	return plans
}

// firstPlans returns those that are tried before all else: little work under the default rule, which suffices for well
// trained decoders on graphs that are not large. However short the box is, they have their chance.
func firstPlans(k, rows int) []flashlight.Plan {
	const part = 8 * leastProbed
	var plans []flashlight.Plan
	for _, a := range []amount{
		{shape{1, 500, 0}, part},
		{shape{1, 500, 0}, rows},
		{shape{2, 150, 0}, part},
		{shape{2, 150, 0}, rows},
		{shape{1, 2000, 0}, rows},
	} {
		if a.fits(k, rows) {
			plans = append(plans, defaultRule.plan(a, rows))
		}
	}
	return plans
}

// fits reports whether an amount is worth trying for the k best of so many rows. It scores at least k rows, and at most half of
// all, beyond which the exact scan is as good; a patient one, which seldom runs all its rounds, at most all.
func (a amount) fits(k, rows int) bool {
	most := max(rows/2, 500)
	if a.patience > 0 {
		most = rows
	}
	n := a.rounds * a.perRound
	return n >= k+k/5 && n <= most && a.probed >= a.perRound && a.probed <= rows
}

// amounts returns those to try for the k best of so many rows, the most telling first.
func amounts(k, rows int) []amount {
	coarse, fine := ladder(rows)
	var all []amount
	for _, probed := range [][]int{coarse, fine} {
		for _, s := range shapes {
			for _, p := range probed {
				if a := (amount{s, p}); a.fits(k, rows) {
					all = append(all, a)
				}
			}
		}
	}
	return all
}

// linearPlans returns the plans for a decoder whose score is one inner product: one round, over how much and for how many.
func linearPlans(k, rows int) []flashlight.Plan {
	coarse, fine := ladder(rows)
	var plans []flashlight.Plan
	for _, probed := range slices.Concat(coarse, fine) {
		for _, n := range []int{k, 2 * k, 4 * k, 10 * k} {
			if n <= probed || probed == rows {
				plans = append(plans, defaultRule.plan(amount{shape{rounds: 1, perRound: n}, probed}, rows))
			}
		}
	}
	return plans
}
