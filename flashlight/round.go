package flashlight

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/index"
)

// scoreBlock is the number of rows gathered and scored at a time. It bounds the memory of a large
// round. Usual rounds are one block.
const scoreBlock = 512

// chooseQueries sets the query vectors of the next round to the mean gradients at the anchors.
// After a round that scored nothing there are no new anchors, and the query vectors stay.
func (e *Executor) chooseQueries() {
	if len(e.anchors[fromRound].hits) == 0 {
		return
	}
	e.queries = e.queries[:0]
	from := e.plan.AnchorsFrom
	if from == AnchorsBoth && e.anchors[fromAll].allFresh() {
		from = AnchorsRound // the best of all rounds are all from this one, so both query vectors would be equal
	}
	if from != AnchorsAll {
		e.linearise(fromRound, e.nextQuery(string(AnchorsRound)))
	}
	if from == AnchorsAll || from == AnchorsBoth {
		e.linearise(fromAll, e.nextQuery(string(AnchorsAll)))
	}
	if from == AnchorsRoundOnes {
		e.q.Bound.Ones(e.nextQuery(string(SeedOnes)))
	}
	e.bound()
}

// bound makes the query vectors finite, because a Searcher needs that. If the arithmetic of the
// decoder has overflowed, the largest number replaces an infinity, and zero replaces NaN.
func (e *Executor) bound() {
	for _, query := range e.queries {
		for j, x := range query {
			switch {
			case x != x:
				query[j] = 0
			case x > math.MaxFloat32:
				query[j] = math.MaxFloat32
			case x < -math.MaxFloat32:
				query[j] = -math.MaxFloat32
			}
		}
	}
}

// linearise writes the mean gradient at a set of anchors to query. For a ReLU network and one
// anchor, it is the masked weight product x_i * (W1^T M1 ... W_{L-1}^T M_{L-1} w_L) of the paper.
func (e *Executor) linearise(set int, query []float32) {
	e.q.Bound.Gradient(&e.decoder, query, e.anchors[set].rows, nil)
}

// nextQuery returns the memory for one more query vector.
func (e *Executor) nextQuery(from string) []float32 {
	i := len(e.queries)
	e.vectors[i] = sized(e.vectors[i], e.dim)
	e.queries, e.origins[i] = append(e.queries, e.vectors[i]), from
	return e.vectors[i]
}

// round searches with the current query vectors and scores the n best rows found, or fewer if the
// budget is smaller. It returns how many entered the top-k.
func (e *Executor) round(ctx context.Context, n int, probes index.Probes) (entered int, err error) {
	began, before := e.now(), e.s.Cost()
	n = min(n, e.budget())
	if probes, err = e.search(ctx, n, probes); err != nil {
		return 0, err
	}
	aims := e.explainAims()
	e.choose(n)
	entered, best, err := e.score(ctx)
	if err != nil {
		return 0, err
	}
	e.report.Rounds++
	if e.q.Explain {
		after := e.s.Cost()
		e.report.Trace = append(e.report.Trace, Round{
			Aims:    aims,
			Probes:  probes,
			Cost:    index.Cost{Lists: after.Lists - before.Lists, Codes: after.Codes - before.Codes, Rows: after.Rows - before.Rows},
			Scored:  len(e.chosen),
			Best:    best,
			Entered: entered,
			Elapsed: e.now().Sub(began),
		})
	}
	return entered, nil
}

// search finds the n best rows for each query vector. While a filter leaves fewer, it doubles the
// probes, for this round and later ones. It returns the probes of its last attempt.
func (e *Executor) search(ctx context.Context, n int, probes index.Probes) (index.Probes, error) {
	e.exclude()
	filter := index.Filter{Allowed: e.q.Allowed, Excluded: e.excluded}
	for {
		if err := ctx.Err(); err != nil {
			return probes, err
		}
		asked := probes
		if e.widen > 1 {
			asked = probes.Scale(e.widen)
		}
		if err := e.s.Search(ctx, e.queries, n, asked, filter, e.found[:len(e.queries)]); err != nil {
			return asked, err
		}
		short := true
		for i := range e.queries {
			short = short && len(e.found[i]) < n
		}
		e.seenAll = short && e.s.Exhausted()
		if !short || e.seenAll || e.q.Allowed == nil {
			return asked, nil
		}
		e.widen *= 2
	}
}

// exclude adds the pending ids to the excluded ones.
func (e *Executor) exclude() {
	slices.Sort(e.pending) // adding to a bitmap is faster in order
	e.excluded.AddMany(e.pending)
	e.pending = e.pending[:0]
}

// choose merges the candidates of the query vectors: alternately the best remaining one of each,
// none twice, at most n. The chosen rows are excluded from the next search: see pending.
func (e *Executor) choose(n int) {
	if len(e.queries) == 1 && e.chooseAll(n) {
		return
	}
	e.chosen = e.chosen[:0]
	var next [maxQueries]int
	for more := true; more; {
		more = false
		for q := range e.queries {
			for next[q] < len(e.found[q]) && len(e.chosen) < n {
				c := e.found[q][next[q]]
				next[q]++
				if e.excluded.CheckedAdd(c.ID) {
					e.chosen = append(e.chosen, c)
					more = true
					break
				}
			}
		}
	}
}

// chooseAll is choose for one query vector. It returns false if an id was found twice, which
// happens in a damaged index only.
func (e *Executor) chooseAll(n int) bool {
	e.chosen = append(e.chosen[:0], e.found[0][:min(n, len(e.found[0]))]...)
	for _, c := range e.chosen { // none was pending before: see search
		e.pending = append(e.pending, c.ID)
	}
	if repeats(e.pending) {
		e.pending = e.pending[:0]
		return false
	}
	return true
}

// repeats reports whether ids holds an id twice. It may sort ids.
func repeats(ids []uint32) bool {
	const slotBits = 12
	if len(ids) > 1<<slotBits/2 {
		slices.Sort(ids)
		for i := 1; i < len(ids); i++ {
			if ids[i] == ids[i-1] {
				return true
			}
		}
		return false
	}
	var slots [1 << slotBits]uint16 // a hash table of indexes into ids, plus 1; 0 is an empty slot
	for i, id := range ids {
		slot := id * 0x9e3779b1 >> (32 - slotBits)
		for ; slots[slot] > 0; slot = (slot + 1) % (1 << slotBits) {
			if ids[slots[slot]-1] == id {
				return true
			}
		}
		slots[slot] = uint16(i + 1)
	}
	return false
}

// score gathers and scores the chosen rows, a block at a time, and offers each to the top-k and to
// the anchors.
func (e *Executor) score(ctx context.Context) (entered int, best float32, err error) {
	best = float32(math.Inf(-1))
	e.anchors[fromAll].age()
	e.anchors[fromRound].reset(e.plan.Anchors, e.dim)
	e.late = e.late[:0]
	tail := len(e.chosen) - len(e.chosen)/tailParts
	for from := 0; from < len(e.chosen); from += scoreBlock {
		if err := ctx.Err(); err != nil {
			return entered, best, err
		}
		block := e.chosen[from:min(from+scoreBlock, len(e.chosen))]
		e.rows = sized(e.rows, len(block)*e.dim)
		e.scores = sized(e.scores, len(block))
		if err := e.r.Gather(e.rows, block); err != nil {
			return entered, best, err
		}
		e.q.Bound.Score(&e.decoder, e.scores, e.rows)
		e.report.RowsScored += len(block)
		for i, c := range block {
			hit := index.Hit{ID: c.ID, Score: e.scores[i]}
			if e.top.Offer(hit.ID, hit.Score) {
				entered++
			}
			if hit.Score > best {
				best = hit.Score
			}
			if from+i >= tail {
				e.late = append(e.late, hit.Score)
			}
			row := e.rows[i*e.dim : (i+1)*e.dim]
			e.anchors[fromRound].offer(hit, row)
			e.anchors[fromAll].offer(hit, row)
		}
	}
	return entered, best, nil
}

// explainAims returns the origins of the current query vectors for the trace, or nil if there is no
// trace.
func (e *Executor) explainAims() []Aim {
	if !e.q.Explain {
		return nil
	}
	aims := make([]Aim, len(e.queries))
	before := e.active
	for i := range aims {
		aims[i].From = e.origins[i]
		set := fromRound
		switch AnchorsFrom(e.origins[i]) {
		case AnchorsRound:
		case AnchorsAll:
			set = fromAll
		default:
			if Seed(e.origins[i]) == SeedLearned {
				aims[i].Sources = e.sources()
			}
			continue
		}
		aims[i].Anchors = e.anchors[set].ids()
		active := e.explainActivity(&aims[i], e.anchors[set].best(), before)
		if i == 0 {
			e.active = active
		}
	}
	return aims
}

// explainActivity compares which neurons are active at the best anchor with before. An empty before
// means that all were active.
func (e *Executor) explainActivity(aim *Aim, row []float32, before []bool) []bool {
	network, ok := e.q.Bound.(decoder.Neurons)
	if !ok {
		return nil
	}
	active := network.Active(&e.decoder, nil, row)
	aim.Neurons = len(active)
	for i, a := range active {
		if a != (before == nil || before[i]) {
			aim.Changed++
		}
	}
	return active
}

// now is the time of the executor's clock.
func (e *Executor) now() time.Time {
	if e.Clock != nil {
		return e.Clock()
	}
	return time.Now()
}

// sized returns s with length n, reusing its memory. Contents are not kept.
func sized(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
