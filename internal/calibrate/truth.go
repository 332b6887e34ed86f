package calibrate

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/index"
)

// truth is what is known of the best rows of one source: the pool of those that any plan scored and
// those that were sampled. Of the rows that no plan found, each that was sampled stands for as many
// as the inverse of its chance to be, so that the rows which are in neither can be counted: see
// unseen.
//
// The sample is of short lists, and of parts of long ones. A decoder's score of a centroid says
// where its best rows are, by another way than the gradients that plans follow, so lists are ranked
// by it. The best few thousand rows are all scored, and a list further down has a chance that falls
// with the number of rows before it (systematic sampling, with an offset of the source's own). What
// is scored grows with the logarithm of the rows, and every row has a chance.
type truth struct {
	size int     // rows kept: the largest k
	best []known // best first
}

// known is a row of the pool.
type known struct {
	id      uint32
	score   float32
	weight  float64 // rows that it stands for: 1 once a plan has found it
	sampled bool
}

// add adds a row that a plan found.
func (t *truth) add(h index.Hit) { t.put(known{h.ID, h.Score, 1, false}) }

// put adds a row, or what is new of one that is known.
func (t *truth) put(k known) {
	if n := len(t.best); n == t.size && k.score < t.best[n-1].score {
		return
	}
	for i := range t.best {
		if was := &t.best[i]; was.id == k.id {
			was.weight = min(was.weight, k.weight)
			was.sampled = was.sampled || k.sampled
			return
		}
	}
	at, _ := slices.BinarySearchFunc(t.best, k, func(a, b known) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
	})
	if at == t.size {
		return
	}
	t.best = slices.Insert(t.best, at, k)
	t.best = t.best[:min(len(t.best), t.size)]
}

// recall returns the share of the k best of the pool that are among hits of these scores, best
// first.
func (t *truth) recall(scores []float32, k int) float64 {
	k = min(k, len(t.best))
	if k == 0 {
		return 1
	}
	kth := t.best[k-1].score
	least := kth
	if kth-kth == 0 { // a number, and finite
		least -= tieTolerance * max(float32(math.Abs(float64(kth))), scoreFloor)
	}
	found := 0
	for found < min(k, len(scores)) && cmp.Compare(scores[found], least) >= 0 { // any hit is as good as a NaN
		found++
	}
	return float64(found) / float64(k)
}

// unseen estimates, without bias, how many of the k best rows are neither found by a plan nor
// sampled: the others that sampled rows stand for. The recall of a plan among all rows is at least
// that in the pool less unseen/k. It returns the variance of the estimate too, estimated likewise
// (Horvitz and Thompson 1952).
func (t *truth) unseen(k int) (rows, variance float64) {
	for _, b := range t.best[:min(k, len(t.best))] {
		rows += b.weight - 1
		variance += b.weight * (b.weight - 1)
	}
	return rows, variance
}

// sampled returns how many of the k best rows were sampled, found or not.
func (t *truth) sampled(k int) (n int) {
	for _, b := range t.best[:min(k, len(t.best))] {
		if b.sampled {
			n++
		}
	}
	return n
}

// sampler samples rows for truths.
type sampler struct {
	sizes   []int     // of the lists; all workers share them
	runs    []float32 // the mean centroid of each runLists neighbouring lists, where there are many; likewise shared
	certain int       // see certainRows
	scratch decoder.Scratch
	top     index.TopK
	weights map[uint32]float64 // of rows that have been in top
	order   []uint64           // lists, in the lower half
	byRun   []uint64           // runs, likewise
	scores  []float32
	list    []index.Candidate
	block   []index.Candidate
	weight  []float64 // of block
	rows    []float32
	hits    []index.Hit
}

// certain returns how many rows are sampled for sure where lists are ranked by so many centroids
// and a row takes so many seconds: certainRows, or fewer so that all samples take their share of
// the time.
func (r *run) certain(centroids int, row float64) int {
	n := certainRows
	for ; n > fewestCertain; n /= 2 {
		rows := float64(centroids) + float64(n)*(1+math.Log(max(1, float64(r.Rows)/float64(n))))
		if rows*row*float64(len(r.Sources)) <= sampleShare*r.Time.Seconds()*float64(len(r.workers)) {
			break
		}
	}
	return n
}

// sizesOf counts the rows of every list.
func sizesOf(e Engine) []int {
	sizes := make([]int, len(e.Lists.Centroids())/e.Rows.Dim())
	var rows []index.Candidate
	for l := range sizes {
		rows = e.Lists.List(l, rows[:0])
		sizes[l] = len(rows)
	}
	return sizes
}

// sample adds sampled rows to t and returns how many rows it scored, centroids included. The same
// source and number give the same sample.
func (w *worker) sample(ctx context.Context, s *Source, number int, t *truth) (scored int, err error) {
	sm := &w.sampler
	q := w.query(s, t.size)
	scored = sm.rank(q.Bound, w.engine.Lists.Centroids())
	sm.top.Reset(t.size)
	sm.weights = map[uint32]float64{}
	sm.block, sm.weight = sm.block[:0], sm.weight[:0]
	keep := index.Filter{Excluded: q.Excluded}
	before, sum := 0, rand.New(rand.NewPCG(uint64(number), 0x7a1e)).Float64()
	for _, ranked := range sm.order {
		l := int(uint32(ranked))
		sm.list = sm.list[:0]
		for from := 0; from < sm.sizes[l]; from += stripRows {
			to := min(from+stripRows, sm.sizes[l])
			before += to - from
			chance, was := min(1, float64(sm.certain)/float64(before)), math.Floor(sum)
			if sum += chance; chance < 1 && math.Floor(sum) == was {
				continue
			}
			if len(sm.list) == 0 {
				sm.list = w.engine.Lists.List(l, sm.list)
			}
			for _, c := range sm.list[from:to] {
				if keep.Keep(c.ID) {
					sm.block, sm.weight = append(sm.block, c), append(sm.weight, 1/chance)
				}
			}
		}
		if len(sm.block) >= blockRows {
			scored += len(sm.block)
			if err := w.score(ctx, q.Bound); err != nil {
				return 0, err
			}
		}
	}
	scored += len(sm.block)
	if err := w.score(ctx, q.Bound); err != nil {
		return 0, err
	}
	sm.hits = sm.top.Sorted(sm.hits[:0])
	for _, h := range sm.hits {
		t.put(known{h.ID, h.Score, sm.weights[h.ID], true})
	}
	return scored, nil
}

// runsOf returns the mean centroid of each runLists neighbouring lists, or nothing where lists are
// ranked one by one: where they are few, and where neighbours have nothing in common.
func runsOf(lists Lists, dim int) (runs []float32) {
	centroids := lists.Centroids()
	if len(centroids)/dim <= manyLists || !lists.Grouped() {
		return nil
	}
	for run := range slices.Chunk(centroids, runLists*dim) {
		mean := make([]float32, dim)
		for i, x := range run {
			mean[i%dim] += x * float32(dim) / float32(len(run))
		}
		runs = append(runs, mean...)
	}
	return runs
}

// ranked returns how many centroids are scored to rank the lists.
func (sm *sampler) ranked(dim int) int {
	if len(sm.runs) == 0 {
		return len(sm.sizes)
	}
	return len(sm.runs)/dim + manyLists
}

// rank sets the order of the lists, and returns how many centroids it scored: lists by the score of
// their centroids, highest first. Many lists are ranked by their runs, and manyLists of the best
// runs one by one.
func (sm *sampler) rank(bound decoder.Bound, centroids []float32) (scored int) {
	n := len(sm.sizes)
	sm.order = sm.order[:0]
	if len(sm.runs) == 0 {
		sm.scoreLists(bound, centroids, 0, n)
		slices.Sort(sm.order)
		return n
	}
	dim := len(centroids) / n
	sm.scores = slices.Grow(sm.scores[:0], len(sm.runs)/dim)[:len(sm.runs)/dim]
	bound.Score(&sm.scratch, sm.scores, sm.runs)
	byRun := sm.byRun[:0]
	for r, score := range sm.scores {
		byRun = append(byRun, uint64(descending(score))<<32|uint64(r))
	}
	slices.Sort(byRun)
	sm.byRun = byRun
	scored = len(byRun)
	for i, ranked := range byRun {
		from := runLists * int(uint32(ranked))
		to := min(from+runLists, n)
		if i < manyLists/runLists {
			sm.scoreLists(bound, centroids, from, to)
			scored += to - from
			continue
		}
		if i == manyLists/runLists {
			slices.Sort(sm.order)
		}
		for l := from; l < to; l++ {
			sm.order = append(sm.order, uint64(l))
		}
	}
	return scored
}

// scoreLists appends the lists from from to to to the order, with their scores above their numbers.
func (sm *sampler) scoreLists(bound decoder.Bound, centroids []float32, from, to int) {
	dim := len(centroids) / len(sm.sizes)
	sm.scores = slices.Grow(sm.scores[:0], to-from)[:to-from]
	bound.Score(&sm.scratch, sm.scores, centroids[from*dim:to*dim])
	for i, score := range sm.scores {
		sm.order = append(sm.order, uint64(descending(score))<<32|uint64(from+i))
	}
}

// descending maps scores to integers in the opposite order.
func descending(score float32) uint32 {
	b := math.Float32bits(score)
	if b>>31 == 0 {
		return ^b &^ (1 << 31)
	}
	return b
}

// score scores the rows of the block and empties it.
func (w *worker) score(ctx context.Context, bound decoder.Bound) error {
	sm := &w.sampler
	n, dim := len(sm.block), w.engine.Rows.Dim()
	sm.rows = slices.Grow(sm.rows[:0], n*dim)[:n*dim]
	if err := w.engine.Rows.Gather(sm.rows, sm.block); err != nil {
		return err
	}
	sm.scores = slices.Grow(sm.scores[:0], n)[:n]
	bound.Score(&sm.scratch, sm.scores, sm.rows)
	for i, c := range sm.block {
		if sm.top.Offer(c.ID, sm.scores[i]) {
			sm.weights[c.ID] = sm.weight[i]
		}
	}
	sm.block, sm.weight = sm.block[:0], sm.weight[:0]
	return ctx.Err()
}
