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

// explore asks the first sources by the plans of the grid, as many as there is time for, and returns those asked.
func (r *run) explore(ctx context.Context) ([]*candidate, error) {
	n := min(exploreSources, len(r.Sources))
	if r.linear() {
		return r.exploreAll(ctx, r.plans(linearPlans), n, r.exploreUntil())
	}
	tried, err := r.exploreAll(ctx, r.plans(firstPlans), n, r.exploreUntil())
	if err != nil {
		return nil, err
	}
	ruled, err := r.exploreAll(ctx, r.plans(rulePlans), n, r.exploreUntil())
	if err != nil {
		return nil, err
	}
	tried = append(tried, ruled...)
	r.judge(tried)
	more, err := r.exploreAll(ctx, r.amountsUnderBestRules(tried, ruled), n, r.exploreUntil())
	if err != nil {
		return nil, err
	}
	tried = append(tried, more...)
	r.judge(tried)
	grown, err := r.exploreAll(ctx, r.atOnce(tried), n, r.exploreUntil()+time.Duration(float64(r.Time)*growthShare))
	return append(tried, grown...), err
}

func (r *run) exploreUntil() time.Duration {
	share := exploreShare
	if r.truthSeconds()*float64(len(r.Sources)) < easyTruths*r.Time.Seconds()*float64(len(r.askers)) {
		share = easyShare
	}
	return time.Duration(float64(r.Time) * share)
}

// judge fits the costs of work to what was explored.
func (r *run) judge(explored []*candidate) {
	r.work = fitWork(explored)
	r.setCosts(explored)
}

// linear tells whether the decoder has one query that does it all.
func (r *run) linear() bool {
	return r.Decoder.Bind(nil, r.Sources[0].Vector).Linear()
}

// plans returns what of gives for every k, one of each in turns.
func (r *run) plans(of func(k, rows int) []flashlight.Plan) []*candidate {
	lists := make([][]*candidate, len(r.Ks))
	for i, k := range r.Ks {
		lists[i] = candidatesOf(k, of(k, r.Rows))
	}
	return interleave(lists)
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

// amountsUnderBestRules returns the plans to explore beside those tried, once rules were compared: the default plan of each k,
// every amount under the best rule, and then under the second best.
func (r *run) amountsUnderBestRules(tried, ruled []*candidate) []*candidate {
	var all []*candidate
	ranked := map[int][]rule{}
	for _, k := range r.Ks {
		ranked[k] = rankRules(ruled, k)
		all = append(all, &candidate{k: k, plan: flashlight.DefaultPlan(k, r.Rows)})
	}
	for place := range 2 {
		var lists [][]*candidate
		for _, k := range r.Ks {
			if place >= len(ranked[k]) {
				continue
			}
			lists = append(lists, candidatesOf(k, r.plansUnder(ranked[k][place], k, false)))
		}
		if place == 0 {
			for _, k := range r.Ks {
				lists = append(lists, candidatesOf(k, r.plansUnder(patientRule, k, true)))
			}
		}
		all = append(all, interleave(lists)...)
	}
	type key struct {
		k    int
		plan flashlight.Plan
	}
	known := map[key]bool{}
	for _, c := range tried {
		known[key{c.k, c.plan}] = true
	}
	return slices.DeleteFunc(all, func(c *candidate) bool {
		twice := known[key{c.k, c.plan}]
		known[key{c.k, c.plan}] = true
		return twice
	})
}

// atOnce returns the plans that found most for their cost, of those whose search set grows, with one that does not. The
// dearest come first.
func (r *run) atOnce(explored []*candidate) []*candidate {
	lists := make([][]*candidate, len(r.Ks))
	exact := r.exactSeconds()
	for i, k := range r.Ks {
		of := slices.DeleteFunc(slices.Clone(explored), func(c *candidate) bool {
			return c.k != k || c.cost >= exact || c.plan.Rounds == 1 || c.plan.Probes.All()
		})
		slices.SortStableFunc(of, func(a, b *candidate) int { return cmp.Compare(a.cost, b.cost) })
		best := steps(of, exact)
		slices.Reverse(best)
		for _, c := range best {
			p := c.plan
			p.Growth = atOnce
			lists[i] = append(lists[i], &candidate{k: k, plan: p})
		}
	}
	return interleave(lists)
}

// plansUnder returns the plans of a rule, or its patient ones alone.
func (r *run) plansUnder(under rule, k int, patient bool) []flashlight.Plan {
	var plans []flashlight.Plan
	for _, a := range amounts(k, r.Rows) {
		if !patient || a.patience > 0 {
			plans = append(plans, under.plan(a, r.Rows))
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
		all[i].seconds += c.cost
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

// scored is the mean number of rows scored a source.
func (c *candidate) scored() float64 {
	sum := 0
	for _, o := range c.outcomes {
		sum += o.scored
	}
	return float64(sum) / float64(max(1, len(c.outcomes)))
}
