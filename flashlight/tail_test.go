package flashlight_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// TestTail checks that a query ends after its first round if and only if the last third of the rows
// of that round, by inner product, holds no more of its hits than the plan says. The share is
// counted here by sorting all rows.
func TestTail(t *testing.T) {
	const k, n = 10, 31 // a third is 10 rows
	g := newGraph(t, 51, 700, 6, 12)
	ended := map[bool]int{}
	for source := range uint32(40) {
		bound := g.dec.Bind(nil, g.row(source))
		ones := make([]float32, g.dim)
		bound.Ones(ones)
		type row struct {
			id             uint32
			product, score float32
		}
		var all []row
		for id := range uint32(g.n()) {
			r := row{id: id}
			for d, x := range g.row(id) {
				r.product += x * ones[d]
			}
			var score [1]float32
			bound.Score(new(decoder.Scratch), score[:], g.row(id))
			r.score = score[0]
			all = append(all, r)
		}
		slices.SortFunc(all, func(a, b row) int { return cmp.Compare(b.product, a.product) })
		best := slices.Clone(all[:n])
		slices.SortFunc(best, func(a, b row) int { return cmp.Compare(b.score, a.score) })
		late := 0
		for _, r := range all[n-n/3 : n] {
			if r.score >= best[k-1].score {
				late++
			}
		}
		for _, most := range []int{0, 1, 2, 3, 5} {
			plan := rounds(4, n, 5, flashlight.AnchorsRound)
			plan.Tail, plan.Probes = (float64(most)+.5)/k, index.Probes{Share: 1}
			_, report, err := new(flashlight.Executor).Run(context.Background(), g.query(source, k, plan), g.memory().NewSearch(), g.memory(), nil)
			require.NoError(t, err)
			end := report.Rounds == 1
			assert.Equal(t, late <= most, end, "source %d: %d of the hits are late, %d allowed", source, late, most)
			if end {
				assert.Equal(t, flashlight.StopTail, report.Stop)
			}
			ended[end]++
		}
	}
	assert.Greater(t, ended[true], 10)
	assert.Greater(t, ended[false], 10)
}
