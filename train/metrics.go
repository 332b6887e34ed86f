package train

import (
	"context"
	"slices"
	"sort"
)

// metrics computes the metrics from the places of the links.
func (r *ranking) metrics() *Metrics {
	m := &Metrics{Edges: len(r.Edges), Hits: map[int]float64{}}
	all := make([]int, len(r.Edges))
	for i := range all {
		all[i] = i
	}
	m.MRR, m.AUC = r.mean(m.Hits, all)
	if len(r.Known) == 0 {
		return m
	}
	degrees := r.degrees()
	for from, to := 0, 0; len(all) > 0; from, to = to+1, max(9, 10*to+9) {
		var within, rest []int
		for _, link := range all {
			if degrees[r.Edges[link].Source] <= to {
				within = append(within, link)
			} else {
				rest = append(rest, link)
			}
		}
		if all = rest; len(within) == 0 {
			continue
		}
		d := DegreeMetrics{From: from, To: to, Edges: len(within), Hits: map[int]float64{}}
		d.MRR, d.AUC = r.mean(d.Hits, within)
		m.Degree = append(m.Degree, d)
	}
	return m
}

// mean returns the mean reciprocal rank and the mean AUC of some links, and adds the shares of
// hits.
func (r *ranking) mean(hits map[int]float64, links []int) (mrr, auc float64) {
	for _, link := range links {
		mrr += 1 / r.place[link]
		auc += r.auc[link]
		for _, k := range r.Hits {
			if r.place[link] <= float64(k) {
				hits[k]++
			}
		}
	}
	n := float64(len(links))
	for _, k := range r.Hits {
		hits[k] /= n
	}
	return mrr / n, auc / n
}

// degrees returns the number of known links of every node.
func (r *ranking) degrees() []int {
	degrees := make([]int, r.nodes)
	for _, e := range r.Known {
		degrees[e.Source]++
		if r.Undirected {
			degrees[e.Target]++
		}
	}
	return degrees
}

// shared ranks every link among the one list of negatives.
func (r *ranking) shared(ctx context.Context) (*Metrics, error) {
	links, err := r.scores(ctx, r.Edges)
	if err != nil {
		return nil, err
	}
	negatives, err := r.scores(ctx, r.NegativeEdges)
	if err != nil {
		return nil, err
	}
	slices.Sort(negatives) // ascending, NaN first
	m := &Metrics{Edges: len(links), Hits: map[int]float64{}}
	n := float64(len(links))
	for _, x := range links {
		below := sort.Search(len(negatives), func(i int) bool { return negatives[i] >= x })
		upTo := sort.Search(len(negatives), func(i int) bool { return negatives[i] > x })
		m.AUC += float64(below+upTo) / 2 / float64(len(negatives)) / n
	}
	for _, k := range r.Hits {
		m.Hits[k] = hitsAt(links, negatives, k)
	}
	return m, nil
}

// scores returns the scores of edges, in their order.
func (r *ranking) scores(ctx context.Context, edges []Edge) ([]float32, error) {
	scores := make([]float32, len(edges))
	order := make([]int, len(edges))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareEdges(r.question(edges[a]), r.question(edges[b])) })
	workers := make([]rankWorker, r.cores)
	const size = 1024
	r.ranges(len(order), size, func(worker, first, last int) {
		w := &workers[worker]
		for i := first; i < last && ctx.Err() == nil; i++ {
			e := edges[order[i]]
			if i == first || r.question(e) != r.question(edges[order[i-1]]) {
				r.bind(w, e)
			}
			w.bound.Score(&w.scratch, scores[order[i]:order[i]+1], r.row(e.Target))
		}
	})
	return scores, ctx.Err()
}
