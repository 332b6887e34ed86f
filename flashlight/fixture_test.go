package flashlight_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// graph is a set of rows with clusters, as embeddings of a graph have, and a decoder.
type graph struct {
	dim  int
	rows []float32 // row-major, n x dim
	dec  decoder.Decoder
}

func (g *graph) n() int                  { return len(g.rows) / g.dim }
func (g *graph) row(id uint32) []float32 { return g.rows[int(id)*g.dim : (int(id)+1)*g.dim] }

func (g *graph) memory() *flashlight.Memory { return flashlight.NewMemory(g.dim, nil, g.rows) }

// query returns a query for the k best for a source, which is not excluded.
func (g *graph) query(source uint32, k int, plan flashlight.Plan) *flashlight.Query {
	return &flashlight.Query{Bound: g.dec.Bind(nil, g.row(source)), Source: g.row(source), K: k, Plan: plan}
}

// normal returns n standard normal numbers times scale.
func normal(rng *rand.Rand, n int, scale float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(scale * rng.NormFloat64())
	}
	return v
}

// layers returns the layers of a random ReLU network of the given widths, input first, with biases.
func layers(rng *rand.Rand, widths ...int) []decoder.Layer {
	var out []decoder.Layer
	for i, in := range widths[:len(widths)-1] {
		n := widths[i+1]
		out = append(out, decoder.Layer{
			Weight: normal(rng, n*in, math.Sqrt(2/float64(in))),
			Bias:   normal(rng, n, 0.1),
		})
	}
	return out
}

// newGraph returns n clustered rows and a random Hadamard MLP.
func newGraph(t require.TestingT, seed uint64, n, dim int, hidden ...int) *graph {
	rng := rand.New(rand.NewPCG(seed, 1))
	centres := normal(rng, (1+n/20)*dim, 1)
	rows := normal(rng, n*dim, 0.4)
	for i := range n {
		c := rng.IntN(1 + n/20)
		for d := range dim {
			rows[i*dim+d] += centres[c*dim+d]
		}
	}
	dec, err := decoder.NewHadamardMLP(dim, layers(rng, slices.Concat([]int{dim}, hidden, []int{1})...)...)
	require.NoError(t, err)
	return &graph{dim: dim, rows: rows, dec: dec}
}

// bruteForce scores row after row and sorts everything that keep allows.
func bruteForce(g *graph, b decoder.Bound, k int, keep func(id uint32) bool) []index.Hit {
	var hits []index.Hit
	var s decoder.Scratch
	for id := range uint32(g.n()) {
		if keep == nil || keep(id) {
			var score [1]float32
			b.Score(&s, score[:], g.row(id))
			hits = append(hits, index.Hit{ID: id, Score: score[0]})
		}
	}
	slices.SortStableFunc(hits, func(a, b index.Hit) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	return hits[:min(k, len(hits))]
}

// wholeGraph is a plan that scores everything.
func wholeGraph(n int) flashlight.Plan {
	p := flashlight.DefaultPlan(1, n)
	p.PerRound, p.Probes = n, index.Probes{Share: 1}
	return p
}

// listSearch is a Searcher of a graph whose rows are in lists of listRows neighbouring ids. It
// visits the lists of the best rows first, which no index could know, and computes inner products
// exactly.
type listSearch struct {
	g       *graph
	visited []bool // by list
	cost    index.Cost
	asked   []index.Probes // of every search
	sizes   []int          // n of every search
}

const listRows = 10

func newListSearch(g *graph) *listSearch {
	return &listSearch{g: g, visited: make([]bool, (g.n()+listRows-1)/listRows)}
}

func (s *listSearch) rowsOf(list int) int { return min(listRows, s.g.n()-list*listRows) }

// dots returns the inner products of all rows with a query.
func (s *listSearch) dots(query []float32) []float64 {
	scores := make([]float64, s.g.n())
	for id := range scores {
		for d, v := range s.g.row(uint32(id)) {
			scores[id] += float64(v) * float64(query[d])
		}
	}
	return scores
}

func (s *listSearch) met(probes index.Probes) bool {
	if probes.Lists > 0 {
		return s.cost.Lists >= min(probes.Lists, len(s.visited))
	}
	return float64(s.cost.Rows) >= probes.Share*float64(s.g.n())
}

func (s *listSearch) Search(ctx context.Context, queries [][]float32, n int, probes index.Probes, filter index.Filter,
	dst [][]index.Candidate,
) error {
	s.asked, s.sizes = append(s.asked, probes), append(s.sizes, n)
	if err := ctx.Err(); err != nil {
		return err
	}
	scores := make([][]float64, len(queries))
	for q := range queries {
		scores[q] = s.dots(queries[q])
	}
	for q := 0; !s.met(probes); q = (q + 1) % len(queries) {
		best, at := math.Inf(-1), -1
		for id, score := range scores[q] {
			if list := id / listRows; !s.visited[list] && score > best {
				best, at = score, list
			}
		}
		s.visited[at] = true
		s.cost.Lists++
		s.cost.Rows += s.rowsOf(at)
	}
	for q := range queries {
		best := index.NewBest(n)
		for id, score := range scores[q] {
			if s.visited[id/listRows] && filter.Keep(uint32(id)) {
				best.Offer(index.Candidate{ID: uint32(id), Ref: uint32(id), Score: float32(score)})
			}
		}
		dst[q] = best.Sorted(dst[q][:0])
		s.cost.Codes += s.cost.Rows
	}
	return nil
}

func (s *listSearch) Cost() index.Cost { return s.cost }
func (s *listSearch) Exhausted() bool  { return s.cost.Lists == len(s.visited) }

// bowl is a bound decoder whose score falls with the distance from a centre: its gradient differs
// everywhere.
type bowl struct{ centre []float32 }

func (b bowl) Score(_ *decoder.Scratch, dst, rows []float32) {
	d := len(b.centre)
	for i := range dst {
		dst[i] = 0
		for j, c := range b.centre {
			diff := rows[i*d+j] - c
			dst[i] -= diff * diff
		}
	}
}

func (b bowl) Gradient(_ *decoder.Scratch, dst, rows, _ []float32) {
	d := len(b.centre)
	n := len(rows) / d
	for j, c := range b.centre {
		dst[j] = 0
		for i := range n {
			dst[j] += 2 * (c - rows[i*d+j]) / float32(n)
		}
	}
}

func (b bowl) Ones(dst []float32) { copy(dst, b.centre) }
func (b bowl) Linear() bool       { return false }

// flat is a bound decoder that gives every row the same score.
type flat struct {
	dim   int
	score float32
}

func (f flat) Score(_ *decoder.Scratch, dst, _ []float32) {
	for i := range dst {
		dst[i] = f.score
	}
}
func (f flat) Gradient(_ *decoder.Scratch, dst, _, _ []float32) { clear(dst) }
func (f flat) Ones(dst []float32)                               { clear(dst) }
func (f flat) Linear() bool                                     { return false }

// expiring is a context that ends with err at the n-th call of Err.
type expiring struct {
	context.Context
	looks *int
	n     int
	err   error
}

func expireAt(n int, err error) context.Context {
	return expiring{context.Background(), new(int), n, err}
}

func (c expiring) Err() error {
	if *c.looks++; *c.looks >= c.n {
		return c.err
	}
	return nil
}

// ticking returns a clock that advances by a millisecond per call.
func ticking() func() time.Time {
	at := time.Unix(0, 0)
	return func() time.Time {
		at = at.Add(time.Millisecond)
		return at
	}
}

// ids returns the ids of hits.
func ids(hits []index.Hit) []uint32 {
	out := make([]uint32, len(hits))
	for i, h := range hits {
		out[i] = h.ID
	}
	return out
}
