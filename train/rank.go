package train

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/flashdb/flashdb/decoder"
)

// scoreRows is the number of rows scored at once: their scores stay in the cache.
const scoreRows = 1024

// ranking is the state of an evaluation.
type ranking struct {
	*Task
	crew
	nodes int
	order []int  // the links, ordered so that those of one source and relation are adjacent
	known []Edge // by source, relation and target, each once

	place, auc []float64 // of each link
}

func newRanking(t *Task) *ranking {
	r := &ranking{Task: t, crew: crew{t.Cores}, nodes: len(t.Embeddings) / t.Dim}
	r.place, r.auc = make([]float64, len(t.Edges)), make([]float64, len(t.Edges))
	r.order = make([]int, len(t.Edges))
	for i := range r.order {
		r.order[i] = i
	}
	slices.SortFunc(r.order, func(a, b int) int {
		return cmp.Or(compareEdges(r.question(t.Edges[a]), r.question(t.Edges[b])), cmp.Compare(a, b))
	})
	for _, edges := range [][]Edge{t.Known, t.Edges} {
		for _, e := range edges {
			r.known = append(r.known, r.plain(e))
			if t.Undirected {
				e.Source, e.Target = e.Target, e.Source
				r.known = append(r.known, r.plain(e))
			}
		}
	}
	slices.SortFunc(r.known, compareEdges)
	r.known = slices.Compact(r.known)
	return r
}

// plain returns an edge, without its relation if there is one decoder for all relations.
func (r *ranking) plain(e Edge) Edge {
	if len(r.Decoders) == 1 {
		e.Relation = 0
	}
	return e
}

// question is the part of an edge that its negatives share.
func (r *ranking) question(e Edge) Edge {
	e = r.plain(e)
	return Edge{Source: e.Source, Target: uint32(e.Relation)}
}

// isKnown reports whether a candidate must not be a negative for the source of e.
func (r *ranking) isKnown(e Edge, candidate uint32) bool {
	if candidate == e.Source && r.Sources == 0 {
		return true
	}
	e = r.plain(e)
	e.Target = candidate
	_, found := slices.BinarySearchFunc(r.known, e, compareEdges)
	return found
}

// rankWorker is the memory of one goroutine.
type rankWorker struct {
	scratch decoder.Scratch
	bound   decoder.Bound
	rows    []float32
	nodes   []uint32
	scores  []float32
}

func (r *ranking) row(node uint32) []float32 {
	return r.Embeddings[int(node)*r.Dim : (int(node)+1)*r.Dim]
}

// bind prepares a worker to score candidates for the source of e.
func (r *ranking) bind(w *rankWorker, e Edge) {
	d := r.Decoders[0]
	if len(r.Decoders) > 1 {
		d, w.bound = r.Decoders[e.Relation], nil
	}
	w.bound = d.Bind(w.bound, r.row(e.Source))
}

// run ranks every link.
func (r *ranking) run(ctx context.Context) error {
	workers := make([]rankWorker, r.cores)
	var groups [][]int
	for first := 0; first < len(r.order); {
		last := first + 1
		for last < len(r.order) && r.question(r.Edges[r.order[last]]) == r.question(r.Edges[r.order[first]]) {
			last++
		}
		groups = append(groups, r.order[first:last])
		first = last
	}
	r.each(len(groups), func(worker, group int) {
		if ctx.Err() != nil {
			return
		}
		w := &workers[worker]
		r.bind(w, r.Edges[groups[group][0]])
		if r.All {
			r.rankAll(w, groups[group])
			return
		}
		for _, link := range groups[group] {
			r.rankOne(w, link)
		}
	})
	return ctx.Err()
}

// rankOne ranks a link among negatives of its own.
func (r *ranking) rankOne(w *rankWorker, link int) {
	e := r.Edges[link]
	w.nodes = append(w.nodes[:0], e.Target)
	if r.Candidates != nil {
		w.nodes = append(w.nodes, r.Candidates[link]...)
	} else {
		w.nodes = r.sample(w.nodes, e, rand.New(rand.NewPCG(mix(r.Seed, uint64(link)), streamSample)))
	}
	w.scores = grow(w.scores, len(w.nodes))
	w.rows = grow(w.rows, min(scoreRows, len(w.nodes))*r.Dim)
	for first := 0; first < len(w.nodes); first += scoreRows {
		some := w.nodes[first:min(len(w.nodes), first+scoreRows)]
		for i, node := range some {
			copy(w.rows[i*r.Dim:(i+1)*r.Dim], r.row(node))
		}
		w.bound.Score(&w.scratch, w.scores[first:first+len(some)], w.rows[:len(some)*r.Dim])
	}
	r.place[link] = rankOf(w.scores[0], w.scores[1:])
	r.auc[link] = aucOf(r.place[link], len(w.scores)-1)
}

// sample appends negatives for a link: Sample of them, or fewer if nearly all candidates are known.
func (r *ranking) sample(dst []uint32, e Edge, rng *rand.Rand) []uint32 {
	for range r.Sample {
		for range 100 {
			node := uint32(r.Sources + rng.IntN(r.nodes-r.Sources))
			if !r.isKnown(e, node) {
				dst = append(dst, node)
				break
			}
		}
	}
	return dst
}

// rankAll ranks the links of one source among all candidates but its known ones.
func (r *ranking) rankAll(w *rankWorker, links []int) {
	w.scores = grow(w.scores, r.nodes-r.Sources)
	for first := 0; first < len(w.scores); first += scoreRows {
		last := min(len(w.scores), first+scoreRows)
		w.bound.Score(&w.scratch, w.scores[first:last], r.Embeddings[(r.Sources+first)*r.Dim:(r.Sources+last)*r.Dim])
	}
	e := r.plain(r.Edges[links[0]])
	own := r.knownOf(e)
	others := len(w.scores) - len(own)
	if r.Sources == 0 && !r.listed(own, e.Source) {
		others--
	}
	for _, link := range links {
		score := r.scoreAt(w, r.Edges[link].Target)
		rank := rankOf(score, w.scores)
		for _, k := range own {
			rank -= rankOf(score, []float32{r.scoreAt(w, k.Target)}) - 1
		}
		if r.Sources == 0 && !r.listed(own, e.Source) {
			rank -= rankOf(score, []float32{r.scoreAt(w, e.Source)}) - 1
		}
		r.place[link], r.auc[link] = rank, aucOf(rank, others)
	}
}

// scoreAt returns the score of a node from those of all candidates, or minus infinity if it is no
// candidate.
func (r *ranking) scoreAt(w *rankWorker, node uint32) float32 {
	if int(node) < r.Sources {
		return float32(math.Inf(-1))
	}
	return w.scores[int(node)-r.Sources]
}

// knownOf returns the known edges of a source and relation that lead to candidates.
func (r *ranking) knownOf(e Edge) []Edge {
	first := sort.Search(len(r.known), func(i int) bool { return cmp.Compare(r.known[i].Source, e.Source) >= 0 })
	var own []Edge
	for _, k := range r.known[first:] {
		if k.Source != e.Source {
			break
		}
		if k.Relation == e.Relation && int(k.Target) >= r.Sources {
			own = append(own, k)
		}
	}
	return own
}

// listed reports whether one of the edges leads to a node.
func (r *ranking) listed(edges []Edge, node uint32) bool {
	return slices.ContainsFunc(edges, func(e Edge) bool { return e.Target == node })
}

// aucOf returns the share of the negatives that are behind a place.
func aucOf(place float64, negatives int) float64 {
	if negatives == 0 {
		return 1
	}
	return 1 - (place-1)/float64(negatives)
}
