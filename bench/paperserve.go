package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/internal/vfs"
)

// paperServed is a trained model behind an index, and sources with their exact answers. It asks by
// one goroutine. Candidates are rows of the model from first on; their ids begin at 0.
type paperServed struct {
	*paperModel
	first   int
	n       int // candidates
	values  []float32
	ix      *ivf.Index
	dir     string
	search  *ivf.Search
	e       flashlight.Executor
	sources []int
	truth   [][]index.Hit // of each source, the best paperK rows, best first
	seeds   *flashlight.Seeds
}

// servePaper indexes the candidates of a model.
func servePaper(ctx context.Context, m *paperModel) (*paperServed, error) {
	s := &paperServed{paperModel: m, first: m.Sources, values: m.Embeddings[m.Sources*m.Dim:]}
	s.n = len(s.values) / m.Dim
	dir, err := os.MkdirTemp("", "flashdb-paper-index-")
	if err != nil {
		return nil, err
	}
	s.dir = dir
	path := filepath.Join(dir, "index.ivf")
	err = ivf.Build(ctx, vfs.OS(), path, &memoryRows{dim: m.Dim, values: s.values}, ivf.BuildOptions{Dim: m.Dim})
	if err == nil {
		s.ix, err = ivf.Open(vfs.OS(), path)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.search = s.ix.NewSearch()
	return s, nil
}

// close removes the index.
func (s *paperServed) close() error {
	return errors.Join(s.ix.Release(), os.RemoveAll(s.dir))
}

// row returns the embedding of a node.
func (s *paperServed) row(node int) []float32 { return s.Embeddings[node*s.Dim : (node+1)*s.Dim] }

// query asks for a source. It is left out where it is a candidate itself; its known links are not.
func (s *paperServed) query(source, k int, plan flashlight.Plan) *flashlight.Query {
	row := s.row(source)
	q := &flashlight.Query{Bound: s.decoder.Bind(nil, row), Source: row, K: k, Plan: plan, Seeds: s.seeds}
	if s.first == 0 {
		q.Excluded = roaring.BitmapOf(uint32(source))
	}
	return q
}

// run answers a query from the index.
func (s *paperServed) run(ctx context.Context, q *flashlight.Query, rows flashlight.Rows) ([]index.Hit, flashlight.Report, error) {
	s.search.Reset()
	return s.e.Run(ctx, q, s.search, rows, nil)
}

// shuffled returns all nodes that may be sources, in a random order.
func (s *paperServed) shuffled(seed uint64) []int {
	nodes := len(s.Embeddings) / s.Dim
	if s.first > 0 {
		nodes = s.first
	}
	return rand.New(rand.NewPCG(seed, 1)).Perm(nodes)
}

// draw draws sources up to n, and scans for the exact answers of those that have none yet.
func (s *paperServed) draw(ctx context.Context, n int) error {
	all := s.shuffled(1)
	for _, source := range all[min(len(s.sources), len(all)):min(n, len(all))] {
		hits, _, err := s.exact(ctx, source)
		if err != nil {
			return err
		}
		s.sources, s.truth = append(s.sources, source), append(s.truth, hits)
	}
	return nil
}

// of returns the same with the first n sources alone.
func (s *paperServed) of(n int) *paperServed {
	fewer := *s
	n = min(n, len(s.sources))
	fewer.sources, fewer.truth = s.sources[:n], s.truth[:n]
	return &fewer
}

// exact scans every candidate on one thread.
func (s *paperServed) exact(ctx context.Context, source int) ([]index.Hit, flashlight.Report, error) {
	q := s.query(source, paperK, flashlight.Plan{Method: flashlight.MethodExact})
	return flashlight.Exact(ctx, q, s.ix, 1, nil)
}

// learn makes learned seeds of n sources other than the first ones that are drawn, of which there
// may be so many.
func (s *paperServed) learn(ctx context.Context, n, asked int) error {
	drawn := map[int]bool{}
	all := s.shuffled(1)
	for _, source := range all[:min(asked, len(all))] {
		drawn[source] = true
	}
	plan := flashlight.LearnPlan(s.n)
	var prototypes []flashlight.Prototype
	for _, source := range s.shuffled(2) {
		if drawn[source] {
			continue
		}
		if len(prototypes) == n {
			break
		}
		s.search.Reset()
		p, err := s.e.Learn(ctx, uint32(source), s.query(source, paperK, plan), s.search, s.ix)
		if err != nil {
			return err
		}
		prototypes = append(prototypes, p)
	}
	s.seeds = flashlight.NewSeeds(s.Dim, prototypes)
	return nil
}

// foundOf is the share of an exact answer among the hits. A hit that ties with the last of the
// answer counts, as in the other commands.
func foundOf(truth, hits []index.Hit) float64 {
	if len(truth) == 0 {
		return 1
	}
	kth := float64(truth[len(truth)-1].Score)
	least := kth - tieTolerance*max(math.Abs(kth), scoreFloor)
	found := 0
	for _, h := range hits {
		if float64(h.Score) >= least {
			found++
		}
	}
	return float64(min(found, len(truth))) / float64(len(truth))
}

// recallOf returns the mean recall at paperK of a plan over the first so many sources.
func (s *paperServed) recallOf(ctx context.Context, plan flashlight.Plan, sources int) (recall float64, err error) {
	sources = min(sources, len(s.sources))
	for i, source := range s.sources[:sources] {
		hits, _, err := s.run(ctx, s.query(source, paperK, plan), s.ix)
		if err != nil {
			return 0, err
		}
		recall += foundOf(s.truth[i], hits) / float64(sources)
	}
	return recall, nil
}

// asPrinted is Algorithm 1 of the paper with other numbers of rounds and rows, and without an early
// stop.
func asPrinted(rounds, perRound int) flashlight.Plan {
	plan := flashlight.PaperPlan()
	plan.Method, plan.Rounds, plan.PerRound, plan.Patience = flashlight.MethodFlashlight, rounds, perRound, rounds
	return plan
}

// ours is Algorithm 1 with the changes of this project: 20 anchors, of the round and of all rounds.
func ours(rounds, perRound int, seed flashlight.Seed) flashlight.Plan {
	plan := asPrinted(rounds, perRound)
	plan.Seed, plan.AnchorsFrom, plan.Anchors = seed, flashlight.AnchorsBoth, 20
	return plan
}

// indexed returns the model with a HadamardMLP of the first seed, or the given one, behind an
// index. One model is kept, because one is measured after the other.
func (r *paperRun) indexed(ctx context.Context, at paperServing) (*paperServed, error) {
	if r.serving != nil && r.servingAt == at {
		return r.serving, nil
	}
	if err := r.release(); err != nil {
		return nil, err
	}
	m, err := r.model(ctx, at.graph, at.encoder, 1)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(r.log, "%v: building the index\n", at)
	r.serving, err = servePaper(ctx, m)
	r.servingAt = at
	return r.serving, err
}

// release removes the index of the model that is kept.
func (r *paperRun) release() error {
	if r.serving == nil {
		return nil
	}
	err := r.serving.close()
	r.serving = nil
	return err
}

// served returns an indexed model with sources and learned seeds.
func (r *paperRun) served(ctx context.Context, at paperServing, sources int) (*paperServed, error) {
	s, err := r.indexed(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := r.ask(ctx, s, sources); err != nil {
		return nil, err
	}
	return s.of(sources), nil
}

// ask draws sources and learns seeds.
func (r *paperRun) ask(ctx context.Context, s *paperServed, sources int) error {
	if len(s.sources) < sources {
		fmt.Fprintf(r.log, "%s candidates: asking %d sources exactly\n", grouped(int64(s.n)), sources)
	}
	if err := s.draw(ctx, sources); err != nil || s.seeds != nil {
		return err
	}
	return s.learn(ctx, r.settings.Learned, max(r.settings.Sources, r.settings.Timed))
}

// gathered hands rows on, and notes their ids in the order in which an executor retrieves them.
type gathered struct {
	from flashlight.Rows
	ids  []uint32
}

// Dim implements flashlight.Rows.
func (g *gathered) Dim() int { return g.from.Dim() }

// Rows implements flashlight.Rows.
func (g *gathered) Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	return g.from.Rows(ctx, fn)
}

// Gather implements flashlight.Rows.
func (g *gathered) Gather(dst []float32, c []index.Candidate) error {
	for i := range c {
		g.ids = append(g.ids, c[i].ID)
	}
	return g.from.Gather(dst, c)
}

// evenly returns n numbers of 0 to of-1, evenly spread.
func evenly(n, of int) []int {
	n = min(n, of)
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i * of / n
	}
	return slices.Compact(numbers)
}
