package ivf

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/flashdb/flashdb/index"
)

// BenchmarkChooseLists chooses a part of the lists by their centroids in float32 and, in turns with
// that, by rounded ones, whose products with the lists chosen it computes. It reports the least
// time of either.
func BenchmarkChooseLists(b *testing.B) {
	for _, dim := range []int{64, 128} {
		for _, lists := range []int{500, 1024, 4000, 14000, 50000} {
			ix := onlyCentroids(dim, lists)
			for _, queries := range []int{1, 2} {
				for _, part := range []int{64, 16, 8, 4, 2} {
					b.Run(fmt.Sprintf("dim=%d/lists=%d/queries=%d/visited=1in%d", dim, lists, queries, part), func(b *testing.B) {
						benchChoose(b, ix, queries, lists/part)
					})
				}
			}
		}
	}
}

// onlyCentroids is an index of lists of one row each that can choose among them.
func onlyCentroids(dim, lists int) *Index {
	rng := rand.New(rand.NewPCG(9, 1))
	ix := &Index{
		header: header{dim: dim, lists: lists, rows: lists}, centroids: make([]float32, lists*dim),
		breadth: make([]float32, lists), profile: make([]float32, dim),
	}
	for i := range ix.centroids {
		ix.centroids[i] = float32(rng.NormFloat64())
	}
	for l := range lists {
		ix.breadth[l] = rng.Float32()
		ix.begin = append(ix.begin, uint32(l))
	}
	ix.begin = append(ix.begin, uint32(lists))
	ix.rounded = roundCentroids(ix.centroids, dim)
	return ix
}

func benchChoose(b *testing.B, ix *Index, n, wanted int) {
	rng := rand.New(rand.NewPCG(9, 2))
	s := &Search{ix: ix, visited: newBitset(ix.header.lists)}
	queries := make([]queryVector, n)
	for i := range queries {
		queries[i].wanted, queries[i].given = index.NewBest(1), make([]float32, ix.header.dim)
	}
	least := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	for b.Loop() {
		for i := range queries {
			for j := range queries[i].given {
				queries[i].given[j] = rng.Float32() - .5
			}
			queries[i].take(ix, queries[i].given)
		}
		for i := range least {
			began := time.Now()
			choosePart(s, queries, wanted, i == 1)
			least[i] = min(least[i], time.Since(began))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(least[0])/1e3, "µs-float")
	b.ReportMetric(float64(least[1])/1e3, "µs-rounded")
	b.ReportMetric(float64(least[0])/float64(least[1]), "times")
}

func choosePart(s *Search, queries []queryVector, wanted int, rounded bool) {
	s.Reset()
	if rounded {
		rateRounded(s.ix, queries)
	} else {
		rateAll(s.ix, queries)
	}
	for probes := (index.Probes{Lists: wanted}); !s.reached(probes); {
		s.takeTurns(queries, probes, false)
	}
	s.lists = s.visited.appendTo(s.lists[:0])
	if rounded {
		for i := range queries {
			queries[i].computeProducts(s.ix, s.lists)
		}
	}
}
