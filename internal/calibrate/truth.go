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

// truth holds what is known of the best rows of one source. Its pool has the rows that any plan
// returned and those that were sampled. A sampled row that no plan found represents 1/p rows, where
// p is its chance of being sampled. So the number of rows outside the pool can be estimated: see
// unseen.
//
// Short lists, and parts of long ones, are sampled as a whole. Lists are ranked by the decoder's
// score of their centroids. That score is independent of the gradients that plans follow. The rows
// of the first lists are all scored, up to certainRows. A list further down is sampled with a
// chance that falls with the number of rows before it (systematic sampling, with an offset for each
// source). So every row has a chance, and the number of rows scored grows with the logarithm of all
// rows. Of the true 100 best, nine in ten are sampled on debian, go-stdlib and genes.
type truth struct {
	size int     // rows kept: the largest k
	best []known // best first
}

// known is a row of the pool.
type known struct {
	id      uint32
	score   float32
	weight  float64 // number of rows that it represents; 1 once a plan has found it
	sampled bool
}

// add adds a row that a plan found.
func (t *truth) add(h index.Hit) { t.put(known{h.ID, h.Score, 1, false}) }

// put adds a row, or updates it if it is in the pool.
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

// recall returns which share of the k best rows of the pool a plan has found, from the scores of
// its hits, best first.
func (t *truth) recall(scores []float32, k int) float64 {
	k = min(k, len(t.best))
	if k == 0 {
		return 1
	}
	kth := t.best[k-1].score
	least := kth
	if kth-kth == 0 { // kth is finite
		least -= tieTolerance * max(float32(math.Abs(float64(kth))), scoreFloor)
	}
	found := 0
	for found < min(k, len(scores)) && cmp.Compare(scores[found], least) >= 0 { // every score is at least a NaN
		found++
	}
	return float64(found) / float64(k)
}

// unseen estimates, without bias, how many of the k best rows were neither found by a plan nor
// sampled: the other rows that sampled rows represent. The recall of a plan among all rows is at
// least that in the pool less unseen/k. unseen also returns an estimate of its variance (Horvitz
// and Thompson 1952).
func (t *truth) unseen(k int) (rows, variance float64) {
	for _, b := range t.best[:min(k, len(t.best))] {
		rows += b.weight - 1
		variance += b.weight * (b.weight - 1)
	}
	return rows, variance
}

// sampled returns how many of the k best rows were sampled, whether or not a plan found them.
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
	dim     int
	sizes   []int     // rows of each list; shared by all workers
	runs    []float32 // mean centroid of each runLists neighbouring lists, if there are many lists; shared by all workers
	certain int       // see certainRows
	scratch decoder.Scratch
	top     index.TopK
	drawn   map[uint32]drawn // sampled rows that have been in top
	order   []uint64         // the number of a list in the lower half, its score in the upper
	byRun   []uint64         // the same for runs
	scores  []float32
	list    []index.Candidate
	block   []index.Candidate
	weight  []float64 // of block
	rows    []float32
	hits    []index.Hit
}

// drawn says where a sampled row is, and how many rows it represents.
type drawn struct {
	at     index.Candidate
	weight float64
}

// certain returns how many rows are always sampled, if lists are ranked by so many centroids and
// scoring a row takes so many seconds. It is certainRows, or fewer if the samples would take more
// than sampleShare of the time.
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

// newSampler returns the sampler that each worker starts with.
func newSampler(e Engine) sampler {
	sm := sampler{dim: e.Rows.Dim(), runs: runsOf(e.Lists, e.Rows.Dim()), certain: certainRows}
	var rows []index.Candidate
	for l := range len(e.Lists.Centroids()) / sm.dim {
		rows = e.Lists.List(l, rows[:0])
		sm.sizes = append(sm.sizes, len(rows))
	}
	return sm
}

// runsOf returns the mean centroid of each runLists neighbouring lists. It returns nil if lists are
// ranked one by one, because they are few or neighbours are not similar.
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

// sample adds sampled rows to t. The same source and number give the same sample.
func (w *worker) sample(ctx context.Context, s *Source, number int, t *truth) error {
	sm := &w.sampler
	q := w.query(s, t.size)
	sm.rank(q.Bound, w.engine.Lists.Centroids())
	sm.top.Reset(t.size)
	sm.drawn = map[uint32]drawn{}
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
			if err := w.score(ctx, q.Bound); err != nil {
				return err
			}
		}
	}
	if err := w.score(ctx, q.Bound); err != nil {
		return err
	}
	sm.hits = sm.top.Sorted(sm.hits[:0])
	for _, h := range sm.hits {
		t.put(known{h.ID, h.Score, sm.drawn[h.ID].weight, true})
	}
	return nil
}

// sampleFew is sample with fewestCertain rows that are always sampled.
func (w *worker) sampleFew(ctx context.Context, s *Source, number int, t *truth) error {
	sm := &w.sampler
	defer func(was int) { sm.certain = was }(sm.certain)
	sm.certain = fewestCertain
	return w.sample(ctx, s, number, t)
}

// promising returns the best rows of a small sample, row-major.
func (w *worker) promising(ctx context.Context, s *Source, number int) ([]float32, error) {
	t := truth{size: startRows}
	if err := w.sampleFew(ctx, s, number, &t); err != nil {
		return nil, err
	}
	sm := &w.sampler
	for _, b := range t.best {
		sm.block = append(sm.block, sm.drawn[b.id].at)
	}
	rows := make([]float32, len(sm.block)*sm.dim)
	err := w.engine.Rows.Gather(rows, sm.block)
	sm.block = sm.block[:0]
	return rows, err
}

// ranked returns how many centroids are scored to rank the lists.
func (sm *sampler) ranked() int {
	if len(sm.runs) == 0 {
		return len(sm.sizes)
	}
	return len(sm.runs)/sm.dim + manyLists
}

// rank sets the order of the lists: by the scores of their centroids, highest first. If there are
// many lists, the runs are ranked, and only the first manyLists lists of the best runs are ranked
// one by one.
func (sm *sampler) rank(bound decoder.Bound, centroids []float32) {
	if len(sm.runs) == 0 {
		sm.order = sm.byScore(sm.order[:0], bound, centroids, 0)
		slices.Sort(sm.order)
		return
	}
	sm.byRun = sm.byScore(sm.byRun[:0], bound, sm.runs, 0)
	slices.Sort(sm.byRun)
	sm.order = sm.order[:0]
	n, dim := len(sm.sizes), sm.dim
	for i, run := range sm.byRun {
		from := runLists * int(uint32(run))
		to := min(from+runLists, n)
		if i < manyLists/runLists {
			sm.order = sm.byScore(sm.order, bound, centroids[from*dim:to*dim], from)
			continue
		}
		if i == manyLists/runLists {
			slices.Sort(sm.order)
		}
		for l := from; l < to; l++ {
			sm.order = append(sm.order, uint64(l))
		}
	}
}

// byScore appends the numbers of rows to dst, counted from first. The upper half of each value
// holds the score, so that the values sort by descending score.
func (sm *sampler) byScore(dst []uint64, bound decoder.Bound, rows []float32, first int) []uint64 {
	n := len(rows) / sm.dim
	sm.scores = slices.Grow(sm.scores[:0], n)[:n]
	bound.Score(&sm.scratch, sm.scores, rows)
	for i, score := range sm.scores {
		dst = append(dst, uint64(descending(score))<<32|uint64(first+i))
	}
	return dst
}

// descending maps scores to integers that sort in the opposite order.
func descending(score float32) uint32 {
	b := math.Float32bits(score)
	if b>>31 == 0 {
		return ^b &^ (1 << 31)
	}
	return b
}

// score scores the rows of the block, and empties the block.
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
			sm.drawn[c.ID] = drawn{c, sm.weight[i]}
		}
	}
	sm.block, sm.weight = sm.block[:0], sm.weight[:0]
	return ctx.Err()
}
