package main

import (
	"errors"
	"math"
	"slices"

	"github.com/flashdb/flashdb/decoder"
)

// The two-stage retrievals of a mixture of logits.
const (
	eachPair  = "two-stage, each pair"
	meanPair  = "two-stage, mean of pairs"
	halfPairs = "two-stage, half of each"
)

// twoStage measures the recall of the retrieval that the code of Ding and Zhai, "Retrieval with
// Learned Similarities" (2024), has for a mixture of logits: the best rows by the logit of each
// pair of components (naive top-k there), by the mean of all logits (average top-k), or half of
// each, and then the exact score. The logits are exact: no index loses any. Another decoder has no
// components, and no rows here.
func (b *budgetBench) twoStage() ([]budgetRow, error) {
	if b.decoder.Kind() != decoder.MoL {
		return nil, nil
	}
	c, err := newComponents(b.decoder, b.rows)
	if err != nil {
		return nil, err
	}
	most := budgets[len(budgets)-1]
	rows := []budgetRow{{Name: eachPair}, {Name: meanPair}, {Name: halfPairs}}
	recalls := make([][][]float64, len(rows)) // by row, budget and source
	for i := range recalls {
		recalls[i] = make([][]float64, len(budgets))
	}
	for i, source := range b.asked {
		orders, mean := c.orders(source, most+1)
		for j, n := range budgets {
			for way, found := range []map[uint32]bool{
				union(orders, source, n, nil),
				union([][]uint32{mean}, source, n, nil),
				union(orders, source, n, union([][]uint32{mean}, source, n/2, nil)),
			} {
				hits := 0
				for id := range b.truths[i] {
					if found[id] {
						hits++
					}
				}
				recalls[way][j] = append(recalls[way][j], float64(hits)/float64(len(b.truths[i])))
			}
		}
	}
	for way := range rows {
		for j := range budgets {
			rows[way].add(recalls[way][j])
		}
	}
	return rows, nil
}

// union adds to found the best of each order in turn, without the source, until there are n.
func union(orders [][]uint32, source, n int, found map[uint32]bool) map[uint32]bool {
	if found == nil {
		found = map[uint32]bool{}
	}
	for at := 0; at < len(orders[0]); at++ {
		for _, order := range orders {
			if len(found) == n {
				return found
			}
			if id := order[at]; int(id) != source {
				found[id] = true
			}
		}
	}
	return found
}

// components are those of all rows, as sources and as candidates.
type components struct {
	count             [2]int
	width, rows       int
	source, candidate []float64 // row-major, rows x count*width
}

// newComponents computes them from the tensors of a mixture whose projections are one matrix each.
func newComponents(d decoder.Decoder, rows []float32) (*components, error) {
	m, dim := d.Spec().Mixture, d.Dim()
	c := &components{count: [2]int{m.Source.Components, m.Candidate.Components}, rows: len(rows) / dim}
	for i, side := range []decoder.SideSpec{m.Source, m.Candidate} {
		if len(side.Layers) != 1 || side.Layers[0].Norm != nil || side.Layers[0].Bias == "" || side.Layers[0].Residual != "" || !m.Cosine {
			return nil, errors.New("the two-stage retrieval is measured for cosines of components by one matrix and a bias each alone")
		}
		weight, bias := d.Tensors()[side.Layers[0].Weight].Data, d.Tensors()[side.Layers[0].Bias].Data
		c.width = len(bias) / side.Components
		all := make([]float64, 0, c.rows*len(bias))
		for r := range c.rows {
			for o := range bias {
				all = append(all, float64(bias[o])+inner(weight[o*dim:(o+1)*dim], rows[r*dim:(r+1)*dim]))
			}
		}
		for from := 0; from < len(all); from += c.width {
			part := all[from : from+c.width]
			square := 0.0
			for _, x := range part {
				square += x * x
			}
			for k := range part {
				part[k] /= math.Sqrt(square)
			}
		}
		if i == 0 {
			c.source = all
		} else {
			c.candidate = all
		}
	}
	return c, nil
}

// orders returns the n best rows by each logit, and by the mean of all.
func (c *components) orders(source, n int) (each [][]uint32, mean []uint32) {
	sum := make([]float64, c.rows)
	scores := make([]float64, c.rows)
	for i := range c.count[0] {
		at := (source*c.count[0] + i) * c.width
		mine := c.source[at : at+c.width]
		for j := range c.count[1] {
			for r := range scores {
				at := (r*c.count[1] + j) * c.width
				product := 0.0
				for k, x := range c.candidate[at : at+c.width] {
					product += mine[k] * x
				}
				scores[r] = product
				sum[r] += product
			}
			each = append(each, bestOf(scores, n))
		}
	}
	return each, bestOf(sum, n)
}

// bestOf returns the numbers of the n highest scores, best first.
func bestOf(scores []float64, n int) []uint32 {
	order := make([]uint32, len(scores))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return int(a) - int(b)
	})
	return order[:min(n, len(order))]
}
