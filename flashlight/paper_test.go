package flashlight_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// paperNet is a Hadamard MLP written as in the paper (arXiv 2209.10100, section 4), in float64 and
// with its mask matrices.
type paperNet struct {
	w [][][]float64 // w[l][out][in]
	b [][]float64
}

func newPaperNet(dim int, net []decoder.Layer) *paperNet {
	p := &paperNet{}
	in := dim
	for _, l := range net {
		var w [][]float64
		for o := 0; o < len(l.Weight); o += in {
			row := make([]float64, in)
			for i := range row {
				row[i] = float64(l.Weight[o+i])
			}
			w = append(w, row)
		}
		b := make([]float64, len(l.Bias))
		for i := range b {
			b[i] = float64(l.Bias[i])
		}
		p.w, p.b = append(p.w, w), append(p.b, b)
		in = len(w)
	}
	return p
}

// forward returns the score of the pair and the diagonals of the masks M_1 ... M_{L-1}: 1 where a
// neuron is active.
func (p *paperNet) forward(x, y []float32) (score float64, masks [][]float64) {
	h := make([]float64, len(x))
	for i := range h {
		h[i] = float64(x[i]) * float64(y[i])
	}
	for l := range p.w {
		out := make([]float64, len(p.w[l]))
		mask := make([]float64, len(out))
		for o := range out {
			out[o] = p.b[l][o]
			for i, v := range h {
				out[o] += p.w[l][o][i] * v
			}
			if out[o] > 0 {
				mask[o] = 1
			} else if l < len(p.w)-1 {
				out[o] = 0
			}
		}
		h = out
		if l < len(p.w)-1 {
			masks = append(masks, mask)
		}
	}
	return h[0], masks
}

// query is x * (W_1^T M_1 W_2^T M_2 ... W_{L-1}^T M_{L-1} w_L). Nil masks are identities.
func (p *paperNet) query(x []float32, masks [][]float64) []float64 {
	v := slices.Clone(p.w[len(p.w)-1][0])
	for l := len(p.w) - 2; l >= 0; l-- {
		back := make([]float64, len(p.w[l][0]))
		for o, row := range p.w[l] {
			if masks != nil {
				v[o] *= masks[l][o]
			}
			for i := range row {
				back[i] += row[i] * v[o]
			}
		}
		v = back
	}
	for i := range v {
		v[i] *= float64(x[i])
	}
	return v
}

// algorithm1 is Algorithm 1 of the paper: T rounds of N rows, and the ids scored in each,
// ascending. The k best of them come last.
func algorithm1(g *graph, p *paperNet, source uint32, rounds, n, k int) (scored [][]uint32, best []uint32) {
	x := g.row(source)
	left := make([]uint32, 0, g.n())
	for id := range uint32(g.n()) {
		if id != source {
			left = append(left, id)
		}
	}
	scores := map[uint32]float64{}
	var masks [][]float64 // all ones in the first round
	for range rounds {
		q := p.query(x, masks)
		product := map[uint32]float64{}
		for _, id := range left {
			for d, v := range g.row(id) {
				product[id] += q[d] * float64(v)
			}
		}
		slices.SortFunc(left, func(a, b uint32) int { return cmp.Compare(product[b], product[a]) })
		round := left[:n]
		left = left[n:] // X <- X \ N[t]
		var top uint32
		for i, id := range round {
			scores[id], _ = p.forward(x, g.row(id))
			if i == 0 || scores[id] > scores[top] {
				top = id
			}
		}
		_, masks = p.forward(x, g.row(top))
		round = slices.Sorted(slices.Values(round))
		scored = append(scored, round)
		best = append(best, round...)
	}
	slices.SortFunc(best, func(a, b uint32) int { return cmp.Compare(scores[b], scores[a]) })
	return scored, best[:k]
}

// TestPaperModeToTheLetter compares the paper mode with an independent implementation of
// Algorithm 1.
func TestPaperModeToTheLetter(t *testing.T) {
	for seed, hidden := range [][]int{{16}, {24, 16}, {32, 16, 8}} {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		dim := 10
		net := layers(rng, slices.Concat([]int{dim}, hidden, []int{1})...)
		dec, err := decoder.NewHadamardMLP(dim, net...)
		require.NoError(t, err)
		g := newGraph(t, uint64(seed), 3000, dim)
		g.dec = dec
		for source := range uint32(5) {
			rounds, best := algorithm1(g, newPaperNet(dim, net), source, 3, 200, 100)

			q := g.query(source, 100, flashlight.PaperPlan())
			q.Excluded = roaring.BitmapOf(source)
			s := &spy{listSearch: newListSearch(g), bound: q.Bound}
			scored := &gathered{Memory: g.memory()}
			hits, report, err := new(flashlight.Executor).Run(context.Background(), q, s, scored, nil)
			require.NoError(t, err)
			require.Equal(t, best, ids(hits))
			assert.Equal(t, 3, report.Rounds)
			assert.Equal(t, 600, report.RowsScored)
			assert.Equal(t, flashlight.StopRounds, report.Stop)
			for i, round := range s.rounds { // the spy sees a round when the next begins
				assert.ElementsMatch(t, rounds[i], ids(round))
			}
			assert.ElementsMatch(t, slices.Concat(rounds...), scored.ids)
		}
	}
}

// gathered is Rows that remember which were scored.
type gathered struct {
	*flashlight.Memory
	ids []uint32
}

func (g *gathered) Gather(dst []float32, cands []index.Candidate) error {
	for _, c := range cands {
		g.ids = append(g.ids, c.ID)
	}
	return g.Memory.Gather(dst, cands)
}
