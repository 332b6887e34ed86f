package calibrate

import (
	"math"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// A rule says where the query vectors of a plan come from. The best rule hardly depends on the
// amount of work, so rules and amounts are searched one after the other.
type rule struct {
	seed    flashlight.Seed
	from    flashlight.AnchorsFrom
	anchors int
}

// anchorRules are the ways to choose the query vectors of later rounds. The first is that of
// flashlight.DefaultPlan.
var anchorRules = []rule{
	{from: flashlight.AnchorsBoth, anchors: 20},
	{from: flashlight.AnchorsRound, anchors: 1},
	{from: flashlight.AnchorsRound, anchors: 20},
	{from: flashlight.AnchorsAll, anchors: 20},
	{from: flashlight.AnchorsRoundOnes, anchors: 20},
}

// seeded returns the rule with a seed.
func (r rule) seeded(seed flashlight.Seed) rule {
	r.seed = seed
	return r
}

// firstSeeds returns the seeds to compare: also the learned ones where there are any, and the
// components of a mixture of logits.
func firstSeeds(learned, mixture bool) (seeds []flashlight.Seed) {
	if learned {
		seeds = append(seeds, flashlight.SeedLearned, flashlight.SeedLearnedOnes)
	}
	if mixture {
		seeds = append(seeds, flashlight.SeedComponents)
	}
	return append(seeds, flashlight.SeedOnes, flashlight.SeedBoth, flashlight.SeedSource)
}

// An amount says how much work a plan may do.
type amount struct {
	shape
	probed int // rows
}

// A shape says how the work is spread over rounds.
type shape struct {
	rounds, perRound int
	patience         int // 0: see plan
	stopsEarly       bool
}

// shapes are tried in this order, the most important first. Those that stop early run another round
// only for the sources that need one: see flashlight.Plan.Tail. Those with a patience are for
// decoders with which a round may bring nothing although a later one does.
var shapes = []shape{
	{rounds: 1, perRound: 500},
	{rounds: 2, perRound: 300, stopsEarly: true},
	{rounds: 1, perRound: 200},
	{rounds: 2, perRound: 500, stopsEarly: true},
	{rounds: 1, perRound: 1000},
	{rounds: 2, perRound: 200, stopsEarly: true},
	{rounds: 2, perRound: 200},
	{rounds: 1, perRound: 300},
	{rounds: 1, perRound: 100},
	{rounds: 2, perRound: 100, stopsEarly: true},
	{rounds: 4, perRound: 150},
	{rounds: 2, perRound: 500},
	{rounds: 1, perRound: 700},
	{rounds: 4, perRound: 200, stopsEarly: true},
	{rounds: 2, perRound: 300},
	{rounds: 2, perRound: 64, stopsEarly: true},
	{rounds: 1, perRound: 2000},
	{rounds: 2, perRound: 64},
	{rounds: 10, perRound: 100},
	{rounds: 1, perRound: 64},
	{rounds: 10, perRound: 200, patience: 4},
	{rounds: 3, perRound: 200},
	{rounds: 2, perRound: 1000, stopsEarly: true},
	{rounds: 2, perRound: 1000},
	{rounds: 1, perRound: 4000},
	{rounds: 4, perRound: 64},
	{rounds: 6, perRound: 200},
	{rounds: 3, perRound: 1000},
	{rounds: 20, perRound: 200, patience: 6},
	{rounds: 10, perRound: 400, patience: 4},
}

// plan returns the plan with a rule and an amount for a search in so many rows. A plan of up to
// three rounds runs all of them. A longer one stops after two rounds in a row that bring nothing,
// or after as many as the amount says.
func (r rule) plan(a amount, rows int) flashlight.Plan {
	p := flashlight.Plan{
		Method:      flashlight.MethodFlashlight,
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
	if a.stopsEarly {
		p.Tail = stopTail
	}
	if a.rounds == 1 { // it uses no anchors: equal plans must have equal fields
		p.AnchorsFrom, p.Anchors = anchorRules[0].from, anchorRules[0].anchors
	}
	return p
}

// ladder returns the sizes of search sets to try, in rows: from leastProbed to all rows, each
// ladderStep times the one before.
func ladder(rows int) (all []int) {
	for n := leastProbed; n < rows; n *= ladderStep {
		all = append(all, n)
	}
	return append(all, rows)
}

// fits reports whether an amount is worth trying for the k best of so many rows. It must score more
// than k rows, and at most half of all rows, because with more the exact scan is as good. One with
// a patience may score up to all rows: it seldom runs all its rounds.
func (a amount) fits(k, rows int) bool {
	most := max(rows/2, 500)
	if a.patience > 0 {
		most = rows
	}
	n := a.rounds * a.perRound
	if a.stopsEarly { // most often after the first round
		n = a.perRound
	}
	return n >= k+k/5 && n <= most && a.probed >= a.perRound && a.probed <= rows
}

// amounts returns the amounts to try for the k best of so many rows, in the order of shapes.
func amounts(k, rows int) (all []amount) {
	for _, s := range shapes {
		for _, probed := range ladder(rows) {
			if a := (amount{s, probed}); a.fits(k, rows) {
				all = append(all, a)
			}
		}
	}
	return all
}

// between returns the plan with a search set half a step of the ladder larger, and half a step
// smaller. For a plan that stops early it also returns one that does so more rarely.
func between(p flashlight.Plan) []flashlight.Plan {
	smaller, larger := p, p
	smaller.Probes, larger.Probes = p.Probes.Scale(1/math.Sqrt(ladderStep)), p.Probes.Scale(math.Sqrt(ladderStep))
	plans := []flashlight.Plan{larger, smaller}
	if p.Tail == stopTail {
		p.Tail = rareTail
		plans = append(plans, p)
	}
	return plans
}

// beyond returns plans that do more than this one: with more rows in the search set, with more rows
// in each round, and with a round more.
func beyond(p flashlight.Plan) []flashlight.Plan {
	wider, larger := p, p
	wider.Probes = p.Probes.Scale(ladderStep)
	larger.Probes, larger.PerRound = p.Probes.Scale(math.Sqrt(ladderStep)), 2*p.PerRound
	longer := larger
	longer.PerRound, longer.Rounds, longer.Tail = p.PerRound, p.Rounds+1, 0
	longer.Patience = longer.Rounds
	return []flashlight.Plan{wider, larger, longer}
}

// plans returns a plan for each of the amounts.
func (r rule) plans(of []amount, rows int) (plans []flashlight.Plan) {
	for _, a := range of {
		plans = append(plans, r.plan(a, rows))
	}
	return plans
}

// seedAmounts returns the amounts with which seeds are compared: one round in few rows and one in
// many. ruleAmounts returns those with which anchor rules are compared.
func seedAmounts(k, rows int) []amount {
	return []amount{
		{shape{rounds: 1, perRound: max(64, 5*k)}, min(rows, 8*leastProbed)},
		{shape{rounds: 1, perRound: max(64, 2*k)}, min(rows, 64*leastProbed)},
	}
}

func ruleAmounts(k, rows int) []amount {
	return []amount{
		{shape{rounds: 2, perRound: max(64, 2*k)}, min(rows, 8*leastProbed)},
		{shape{rounds: 2, perRound: max(64, 3*k), stopsEarly: true}, min(rows, 32*leastProbed)},
		{shape{rounds: 4, perRound: max(64, k*3/2)}, min(rows, 64*leastProbed)},
	}
}

// linearPlans returns the plans for a decoder whose score is one inner product: one round, with
// different probes and numbers of rows to score.
func linearPlans(k, rows int) (plans []flashlight.Plan) {
	for probed := leastProbed; ; probed *= 2 {
		for _, n := range []int{k, 2 * k, 4 * k, 10 * k} {
			if n <= probed || probed >= rows {
				plans = append(plans, anchorRules[0].seeded(flashlight.SeedOnes).plan(amount{shape{rounds: 1, perRound: n}, probed}, rows))
			}
		}
		if probed >= rows {
			return plans
		}
	}
}

// share returns probes of about so many of the rows.
func share(rows, of int) index.Probes {
	return index.Probes{Share: min(1, float64(rows)/float64(max(1, of)))}
}
