package flashlight_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

func TestPlanValidateReportsEveryFault(t *testing.T) {
	changed := func(change func(p *flashlight.Plan)) flashlight.Plan {
		p := flashlight.PaperPlan()
		change(&p)
		return p
	}
	tests := []struct {
		name string
		plan flashlight.Plan
		want string // "" = valid
	}{
		{"default", flashlight.DefaultPlan(100, 63_666), ""},
		{"paper", flashlight.PaperPlan(), ""},
		{"paper with fewer probes", changed(func(p *flashlight.Plan) { p.Probes, p.MaxScored = index.Probes{Lists: 9}, 50 }), ""},
		{"exact needs nothing else", flashlight.Plan{Method: flashlight.MethodExact}, ""},
		{"zero", flashlight.Plan{}, `plan: method "": use flashlight, paper or exact`},
		{
			"all at once",
			flashlight.Plan{Method: flashlight.MethodFlashlight, Seed: "seven", AnchorsFrom: "above", Tail: 1, Growth: -2, MaxScored: -1},
			"plan: seed \"seven\": use ones, source, both, learned, learned+ones or components\n" +
				"plan: anchors from \"above\": use round, all, both or round+ones\n" +
				"plan: 0 anchors: want at least 1\n" +
				"plan: 0 rounds: want at least 1\n" +
				"plan: 0 rows per round: want at least 1\n" +
				"plan: patience 0: want at least 1\n" +
				"plan: tail 1: want a share of the top-k below 1, or 0\n" +
				"plan: growth over -2 rounds: want a positive number, or 0 for 3\n" +
				"plan: at most -1 rows scored: want a positive number, or 0 for no bound\n" +
				"plan: probes: neither lists nor share is set",
		},
		{
			"paper with another seed", changed(func(p *flashlight.Plan) { p.Seed = flashlight.SeedSource }),
			"plan: method paper fixes everything but the probes and the bound on rows scored: want " +
				"paper: 3 rounds of 200, seed ones, 1 anchor from round, probes all",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.plan.Validate(); tt.want != "" {
				require.EqualError(t, err, tt.want)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestPlanString(t *testing.T) {
	p := flashlight.PaperPlan()
	p.Method, p.Probes, p.Patience, p.MaxScored = flashlight.MethodFlashlight, index.Probes{Share: 0.3}, 2, 500
	assert.Equal(t, "3 rounds of 200, seed ones, 1 anchor from round, probes 30%, patience 2, at most 500 scored", p.String())
	p.Growth = 2
	assert.Equal(t, "3 rounds of 200, seed ones, 1 anchor from round, probes 30% over 2 rounds, patience 2, at most 500 scored", p.String())
	p.Growth = 1
	assert.Equal(t, "3 rounds of 200, seed ones, 1 anchor from round, probes 30% at once, patience 2, at most 500 scored", p.String())
	p.Tail = .03
	assert.Equal(t, "3 rounds of 200, seed ones, 1 anchor from round, probes 30% at once, patience 2, tail 3%, at most 500 scored", p.String())
	assert.Equal(t, "exact", flashlight.Plan{Method: flashlight.MethodExact}.String())
}

func TestDefaultPlan(t *testing.T) {
	tests := []struct {
		k, rows  int
		perRound int
		share    float64
	}{
		{10, 0, 64, 1},
		{10, 10_000, 64, 1},
		{10, 63_666, 64, 0.249},
		{100, 63_666, 100, 0.249},
		{100, 754_859, 100, 0.039},
		{1000, 63_666, 1000, 0.444},
		{100, 100_000_000, 100, 0.001},
		{100_000, 1_000_000, 100_000, 0.178},
	}
	for _, tt := range tests {
		p := flashlight.DefaultPlan(tt.k, tt.rows)
		require.NoError(t, p.Validate())
		assert.Equal(t, tt.perRound, p.PerRound, "k=%d", tt.k)
		assert.InEpsilon(t, tt.share, p.Probes.Share, 0.02, "k=%d, %d rows", tt.k, tt.rows)
	}
}

func TestFilteredPlanProbesMore(t *testing.T) {
	tests := []struct {
		name          string
		probes        index.Probes
		allowed, rows int
		want          index.Probes
	}{
		{"no filter", index.Probes{Share: 0.1}, 1000, 1000, index.Probes{Share: 0.1}},
		{"more ids than rows", index.Probes{Share: 0.1}, 2000, 1000, index.Probes{Share: 0.1}},
		{"one in 1024", index.Probes{Share: 0.001}, 1, 1024, index.Probes{Share: 0.512}},
		{"one in eight, by lists", index.Probes{Lists: 5}, 1000, 8000, index.Probes{Lists: 32}},
		{"up to all", index.Probes{Share: 0.6}, 1000, 8000, index.Probes{Share: 1}},
		{"all already", index.Probes{Share: 1}, 1, 8000, index.Probes{Share: 1}},
		{"nothing allowed", index.Probes{Share: 0.001}, 0, 1024, index.Probes{Share: 0.512}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := flashlight.PaperPlan()
			p.Probes = tt.probes
			got := p.Filtered(tt.allowed, tt.rows)
			assert.Equal(t, tt.want.Lists, got.Probes.Lists)
			assert.InDelta(t, tt.want.Share, got.Probes.Share, 1e-9)
			got.Probes = p.Probes
			assert.Equal(t, p, got, "nothing else changes")
		})
	}
}
