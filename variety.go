package flashdb

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/filter"
	"github.com/flashdb/flashdb/storage"
)

const (
	// Diversity chooses from at least poolPerHit nodes for each hit, and leastPool in all.
	poolPerHit = 4
	leastPool  = 100
	// poolGrowth is how many times as many are found where Per leaves fewer than k.
	poolGrowth = 8
)

// varied reports whether hits are chosen from more than k.
func (o *PredictOptions) varied() bool { return o.Diversity > 0 || o.Per != nil }

// varied answers with hits that are chosen from the best of a pool. It finds a larger one until k
// are chosen, or there are no further nodes.
func (q *query) varied(ctx context.Context, k int, o PredictOptions, how answerOptions) (Result, error) {
	excluded := q.excluded.Clone() // a run adds to the bitmap
	scored, pool := 0, min(maxK, max(poolPerHit*k, leastPool))
	for {
		p := q.plan(o, pool)
		report, err := q.find(ctx, pool, p)
		if err != nil {
			return Result{}, err
		}
		scored += report.RowsScored
		q.pool = len(q.hits)
		chosen, err := q.choose(k, o)
		if err != nil {
			return Result{}, err
		}
		last := len(q.hits) < pool || pool == maxK || report.Stop == flashlight.StopBudget || report.Stop == flashlight.StopDeadline
		if len(chosen) < k && !last {
			pool = min(maxK, poolGrowth*pool)
			q.excluded.Clear()
			q.excluded.Or(excluded)
			q.view.Reset()
			continue
		}
		if o.Per != nil && len(chosen) < min(k, q.pool) {
			q.capped = fmt.Sprintf("with at most %d of one %s, no more of the %d nodes that were found can be taken", o.Per.Most, o.Per.what(), q.pool)
		}
		q.hits, report.RowsScored = chosen, scored
		p.describe += fmt.Sprintf("; chosen from the best %d", q.pool)
		return q.finish(k, p, report, how)
	}
}

// what says of what a cap bounds the hits.
func (c *Cap) what() string {
	if c.Attribute == "" {
		return "tag"
	}
	return c.Attribute
}

// choose returns k of q.hits.
func (q *query) choose(k int, o PredictOptions) (chosen []index.Hit, err error) {
	err = q.c.view(func(v *storage.View) error {
		groups, err := q.groups(v, o.Per)
		if err != nil {
			return err
		}
		ch := chooser{hits: q.hits, groups: groups, taken: map[string]int{}}
		if o.Per != nil {
			ch.most = o.Per.Most
		}
		if o.Diversity == 0 {
			chosen = ch.inOrder(k)
			return nil
		}
		dim := q.c.schema.Dim
		rows := make([]float32, len(q.hits)*dim)
		for i, h := range q.hits {
			row := rows[i*dim : (i+1)*dim]
			if !v.Row(row, q.c.uid, h.ID) {
				continue // deleted since: it is left out when it gets no key
			}
			if u, err := unit(row); err == nil { // an all-zero row is similar to none
				copy(row, u)
			}
		}
		chosen = ch.varied(k, o.Diversity, rows, dim)
		return nil
	})
	return chosen, err
}

// groups returns what a cap counts of each hit: values of the attribute, or tags.
func (q *query) groups(v *storage.View, per *Cap) ([][]string, error) {
	if per == nil {
		return nil, nil
	}
	uid := q.c.uid
	if _, ok := v.Attribute(uid, per.Attribute); !ok && per.Attribute != "" {
		info, _ := v.Collection(q.c.name)
		return nil, fmt.Errorf("per: %w: %w", ErrInvalid, filter.UnknownAttribute(&filterSource{v: v, info: info}, per.Attribute))
	}
	groups := make([][]string, len(q.hits))
	for i, h := range q.hits {
		if per.Attribute == "" {
			n, _ := v.Node(uid, h.ID)
			groups[i] = n.Tags
		} else if x, ok := v.NodeAttribute(uid, h.ID, per.Attribute); ok {
			groups[i] = []string{x.String()}
		}
	}
	return groups, nil
}

// A chooser chooses hits, of which most have one group in common.
type chooser struct {
	hits   []index.Hit // best first
	groups [][]string  // of each hit; nil: none is bounded
	most   int
	taken  map[string]int
}

// allows reports whether the i-th hit may be chosen.
func (c *chooser) allows(i int) bool {
	return c.groups == nil || !slices.ContainsFunc(c.groups[i], func(group string) bool { return c.taken[group] >= c.most })
}

func (c *chooser) take(i int) index.Hit {
	if c.groups != nil {
		for _, group := range c.groups[i] {
			c.taken[group]++
		}
	}
	return c.hits[i]
}

// inOrder chooses the best that are allowed.
func (c *chooser) inOrder(k int) (chosen []index.Hit) {
	for i := range c.hits {
		if len(chosen) == k {
			break
		}
		if c.allows(i) {
			chosen = append(chosen, c.take(i))
		}
	}
	return chosen
}

// varied chooses by maximal marginal relevance. rows are the rows of the hits, of length 1 or zero.
func (c *chooser) varied(k int, diversity float64, rows []float32, dim int) (chosen []index.Hit) {
	relevance := relevances(c.hits)
	similar := make([]float64, len(c.hits)) // to the chosen
	for i := range similar {
		similar[i] = -1
	}
	gone := make([]bool, len(c.hits))
	for len(chosen) < k {
		best, value := -1, math.Inf(-1)
		for i := range c.hits {
			if gone[i] {
				continue
			}
			if !c.allows(i) { // and never will be
				gone[i] = true
				continue
			}
			marginal := (1 - diversity) * relevance[i]
			if len(chosen) > 0 {
				marginal -= diversity * similar[i]
			} else {
				marginal = relevance[i] // the first is the best, whatever the diversity
			}
			if marginal > value {
				best, value = i, marginal
			}
		}
		if best < 0 {
			break
		}
		chosen, gone[best] = append(chosen, c.take(best)), true
		row := rows[best*dim : (best+1)*dim]
		for i := range c.hits {
			if !gone[i] {
				similar[i] = max(similar[i], product(row, rows[i*dim:(i+1)*dim]))
			}
		}
	}
	return chosen
}

// relevances scales scores to 0 for the lowest finite one, or what is below, and 1 for the highest.
func relevances(hits []index.Hit) []float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, h := range hits {
		if x := float64(h.Score); !math.IsNaN(x) && !math.IsInf(x, 0) {
			low, high = min(low, x), max(high, x)
		}
	}
	out := make([]float64, len(hits))
	for i, h := range hits {
		x := float64(h.Score)
		switch {
		case math.IsNaN(x) || x < low:
		case x >= high:
			out[i] = 1
		default:
			out[i] = (x - low) / (high - low)
		}
	}
	return out
}
