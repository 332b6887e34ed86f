package calibrate

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/flashdb/flashdb/flashlight"
)

// chunk is how many plans are explored between two looks at the clock.
const chunk = 12

// enough is a mean recall that needs no more patience.
const enough = 0.99

// explore asks the first sources by the plans of the grid, as many as there is time for, and returns those asked.
func (r *run) explore(ctx context.Context) ([]*candidate, error) {
	n := min(exploreSources, len(r.Sources))
	until := time.Duration(float64(r.Time) * exploreShare)
	if r.linear() {
		var lists [][]*candidate
		for _, k := range r.Ks {
			lists = append(lists, candidatesOf(k, linearPlans(k, r.Rows)))
		}
		return r.exploreAll(ctx, interleave(lists), n, until)
	}
	var lists [][]*candidate
	for _, k := range r.Ks {
		var plans []flashlight.Plan
		for _, rule := range rules() {
			for _, a := range ruleAmounts(k, r.Rows) {
				plans = append(plans, rule.plan(a, r.Rows, false))
			}
		}
		lists = append(lists, candidatesOf(k, plans))
	}
	tried, err := r.exploreAll(ctx, interleave(lists), n, until)
	if err != nil {
		return nil, err
	}
	more, err := r.exploreAll(ctx, r.amountsUnderBestRules(tried), n, until)
	return append(tried, more...), err
}

// linear tells whether the decoder has one query that does it all.
func (r *run) linear() bool {
	return r.Decoder.Bind(nil, r.Sources[0].Vector).Linear()
}

func candidatesOf(k int, plans []flashlight.Plan) []*candidate {
	all := make([]*candidate, len(plans))
	for i, p := range plans {
		all[i] = &candidate{k: k, plan: p}
	}
	return all
}

// exploreAll asks the first n sources by the candidates, some at a time, and returns those it had time for. Those of
// the first chunk are always asked about one source.
func (r *run) exploreAll(ctx context.Context, all []*candidate, n int, until time.Duration) ([]*candidate, error) {
	var asked []*candidate
	for some := range slices.Chunk(all, chunk) {
		if len(r.truths) > 0 {
			n = min(n, len(r.truths)) // what the first chunk had time for
			if len(asked) > 0 && r.elapsed() >= until {
				break
			}
		}
		if err := r.measure(ctx, some, n, r.Time); err != nil {
			return nil, err
		}
		n = min(n, len(some[0].outcomes))
		asked = append(asked, some...)
	}
	return slices.DeleteFunc(asked, func(c *candidate) bool { return len(c.outcomes) < len(r.truths) }), nil
}

// amountsUnderBestRules returns the further plans to explore: the default plan of each k, every amount under the best rule,
// and then under the second best.
func (r *run) amountsUnderBestRules(tried []*candidate) []*candidate {
	var all []*candidate
	ranked := map[int][]rule{}
	for _, k := range r.Ks {
		ranked[k] = rankRules(tried, k)
		all = append(all, &candidate{k: k, plan: flashlight.DefaultPlan(k, r.Rows)})
	}
	for place := range 2 {
		var lists [][]*candidate
		for _, k := range r.Ks {
			if place >= len(ranked[k]) {
				continue
			}
			lists = append(lists, candidatesOf(k, r.plansUnder(ranked[k][place], k, best(tried, k) < enough)))
		}
		all = append(all, interleave(lists)...)
	}
	return slices.DeleteFunc(all, func(c *candidate) bool {
		return slices.ContainsFunc(tried, func(t *candidate) bool { return t.k == c.k && t.plan == c.plan })
	})
}

// plansUnder returns the plans of a rule. Where nothing found all, longer ones are also tried without giving up early.
func (r *run) plansUnder(under rule, k int, hard bool) []flashlight.Plan {
	var plans []flashlight.Plan
	for _, a := range amounts(k, r.Rows) {
		plans = append(plans, under.plan(a, r.Rows, false))
		if hard && a.rounds > 3 {
			plans = append(plans, under.plan(a, r.Rows, true))
		}
	}
	return plans
}

// interleave takes one of each list in turns.
func interleave(lists [][]*candidate) (all []*candidate) {
	for i := 0; ; i++ {
		n := len(all)
		for _, l := range lists {
			if i < len(l) {
				all = append(all, l[i])
			}
		}
		if len(all) == n {
			return all
		}
	}
}

// best returns the highest mean recall of the candidates for k.
func best(candidates []*candidate, k int) (recall float64) {
	for _, c := range candidates {
		if c.k == k {
			recall = max(recall, c.mean())
		}
	}
	return recall
}

// rankRules orders the rules that were tried for k by the recall of their plans, taken together; of those within a two
// hundredth the cheaper is better.
func rankRules(tried []*candidate, k int) []rule {
	type tally struct {
		rule    rule
		recall  float64
		seconds float64
	}
	var all []tally
	for _, c := range tried {
		if c.k != k {
			continue
		}
		of := rule{c.plan.Seed, c.plan.AnchorsFrom, c.plan.Anchors}
		i := slices.IndexFunc(all, func(t tally) bool { return t.rule == of })
		if i < 0 {
			i = len(all)
			all = append(all, tally{rule: of})
		}
		all[i].recall += c.mean()
		all[i].seconds += c.median()
	}
	const step = 0.005
	slices.SortStableFunc(all, func(a, b tally) int {
		return cmp.Or(cmp.Compare(math.Round(b.recall/step), math.Round(a.recall/step)), cmp.Compare(a.seconds, b.seconds))
	})
	ranked := make([]rule, len(all))
	for i := range all {
		ranked[i] = all[i].rule
	}
	return ranked
}

func (c *candidate) mean() float64 {
	sum := 0.0
	for _, o := range c.outcomes {
		sum += o.recall
	}
	return sum / float64(max(1, len(c.outcomes)))
}

// hopeful is a mean recall that is not unlikely after these outcomes.
func (c *candidate) hopeful() float64 {
	mean, n := c.mean(), float64(len(c.outcomes))
	squares := 0.0
	for _, o := range c.outcomes {
		squares += (o.recall - mean) * (o.recall - mean)
	}
	return min(1, mean+math.Sqrt(squares)/max(1, n-1))
}

func (c *candidate) median() float64 {
	seconds := make([]float64, len(c.outcomes))
	for i, o := range c.outcomes {
		seconds[i] = o.seconds
	}
	if len(seconds) == 0 {
		return 0
	}
	slices.Sort(seconds)
	return quantile(seconds, 0.5)
}

// targets are the recalls that plans are kept for: those that may be asked for, and a little beyond, as bounds lie below
// means.
var targets = []float64{.8, .9, .95, .97, .98, .985, .99, .995, .998, .999, 1}

const (
	keepMost = 8   // plans a target are raced at first
	costStep = 1.5 // for every such step of the cost the best plan is raced
)

// race asks the further sources by ever fewer candidates and returns those that have seen all there was time for.
func (r *run) race(ctx context.Context, candidates []*candidate) ([]*candidate, error) {
	keep := keepMost
	for {
		seen := len(r.truths)
		n := min(2*max(seen, exploreSources), len(r.Sources))
		left := (r.Time - r.elapsed()).Seconds() * float64(len(r.askers))
		// Half of the time left for half of the sources; but the last ones may have all of it.
		budget := left / 2
		if keep == 1 {
			n, budget = len(r.Sources), left
		}
		candidates, keep = r.prune(candidates, keep, budget/float64(max(1, n-seen)))
		if seen >= n || len(candidates) == 0 || left <= 0 {
			return candidates, nil
		}
		if err := r.measure(ctx, candidates, n, r.Time); err != nil {
			return nil, err
		}
		keep = max(1, keep/2)
	}
}

// prune returns the candidates worth going on with, and for how many a target that is: keep, or fewer when scanning and
// asking them takes more than so many seconds a source.
func (r *run) prune(candidates []*candidate, keep int, seconds float64) ([]*candidate, int) {
	exact := r.exactSeconds()
	for ; ; keep-- {
		var kept []*candidate
		for _, k := range r.Ks {
			kept = append(kept, worthwhile(candidates, k, keep, exact)...)
		}
		cost := exact
		for _, c := range kept {
			cost += c.median()
		}
		if cost <= seconds || keep == 1 {
			return kept, keep
		}
	}
}

// worthwhile returns the candidates for k to go on with. Those are, for every target, the cheapest that may reach it;
// and for every cost, in steps of a half, the one that found most: few sources cannot tell a recall of .99 from one of
// .999, but the dearer plan is the safer bet. Plans as dear as the exact scan are of no use.
func worthwhile(candidates []*candidate, k, keep int, exact float64) []*candidate {
	var of []*candidate
	for _, c := range candidates {
		if c.k == k && c.median() < exact {
			of = append(of, c)
		}
	}
	slices.SortStableFunc(of, func(a, b *candidate) int { return cmp.Compare(a.median(), b.median()) })
	kept := map[*candidate]bool{}
	for _, target := range targets {
		n := 0
		for _, c := range of {
			if n < keep && c.hopeful() >= target {
				kept[c] = true
				n++
			}
		}
	}
	most := 0.0
	for from := 0; from < len(of); {
		to := from + 1
		found := of[from]
		for ; to < len(of) && of[to].median() < costStep*of[from].median(); to++ {
			if of[to].mean() >= found.mean() {
				found = of[to]
			}
		}
		if found.mean() >= most && (most < enough || found.median() < exact/2) {
			most = found.mean()
			kept[found] = true
		}
		from = to
	}
	return slices.DeleteFunc(of, func(c *candidate) bool { return !kept[c] })
}
