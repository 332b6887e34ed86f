package main

import (
	"fmt"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// A setting is a way to answer a question, under the name that tables and plots give it.
type setting struct {
	name string
	grid bool // of the grid of plans
	opts flashdb.PredictOptions
}

// Names that more than one place uses.
const (
	exactSetting   = "exact scan"
	defaultSetting = "default plan"
)

// everyList visits the whole index.
var everyList = index.Probes{Share: 1}

// exact is the baseline of every ratio.
func exact() setting {
	return setting{name: exactSetting, opts: flashdb.PredictOptions{Exact: true}}
}

// namedSettings are those every run measures beside the exact scan.
func namedSettings() []setting {
	return []setting{
		// The rows of highest inner product with the source, scored by the decoder: what is done
		// without knowing better. One round whose query is the source's own row is just that.
		{name: "DotMax 1000", opts: flashdb.PredictOptions{
			Plan: &flashlight.Plan{Seed: flashlight.SeedSource, Rounds: 1, PerRound: 1000, Probes: everyList},
		}},
		{name: "paper mode", opts: flashdb.PredictOptions{Plan: &flashlight.Plan{Method: flashlight.MethodPaper}}},
		// What is asked for a recall is a plan that was measured; the default plan is the one
		// without measurements.
		{name: "recall .90", opts: flashdb.PredictOptions{Recall: .90}},
		{name: "recall .95", opts: flashdb.PredictOptions{Recall: .95}},
		{name: "recall .98, unless said", opts: flashdb.PredictOptions{}},
		{name: "recall .99", opts: flashdb.PredictOptions{Recall: .99}},
		{name: defaultSetting, opts: flashdb.PredictOptions{Plan: &flashlight.Plan{}}},
		{name: "default, every list", opts: flashdb.PredictOptions{Plan: &flashlight.Plan{Probes: everyList}}},
	}
}

// gridSettings are plans of many shapes, one big round among them, that each visit several numbers
// of rows: what a plan needs visited hardly depends on the size of the graph, so that shares would
// be the wrong scale.
func gridSettings(rows int64) []setting {
	shapes := []struct {
		rounds, perRound int
		seed             flashlight.Seed
		tail             float64
	}{
		{1, 500, "", 0},
		{1, 1000, "", 0},
		{1, 2000, "", 0},
		{1, 4000, "", 0},
		{2, 500, "", 0},
		{2, 1000, "", 0},
		{3, 200, "", 0},
		{4, 150, "", 0},
		{6, 100, "", 0},
		{10, 100, "", 0},
		{10, 200, "", 0},
		{1, 300, flashlight.SeedLearned, 0},
		{1, 500, flashlight.SeedLearned, 0},
		{1, 300, flashlight.SeedLearnedOnes, 0},
		{1, 500, flashlight.SeedLearnedOnes, 0},
		{2, 300, flashlight.SeedLearned, .03},
		{2, 500, flashlight.SeedLearned, .03},
		{2, 300, flashlight.SeedLearnedOnes, .03},
		{2, 500, flashlight.SeedLearnedOnes, .03},
	}
	var settings []setting
	add := func(name string, plan flashlight.Plan, probes index.Probes) {
		plan.Probes = probes
		settings = append(settings, setting{name: name, grid: true, opts: flashdb.PredictOptions{Plan: &plan}})
	}
	for _, shape := range shapes {
		plan := flashlight.Plan{Rounds: shape.rounds, PerRound: shape.perRound, Seed: shape.seed, Tail: shape.tail}
		name := fmt.Sprintf("%d x %d", shape.rounds, shape.perRound)
		if shape.seed != "" {
			name += " " + string(shape.seed)
		}
		if shape.tail > 0 {
			plan.AnchorsFrom = flashlight.AnchorsRoundOnes
			name += ", tail " + fmt.Sprintf("%g%%", 100*shape.tail)
		}
		for visited := int64(2_000); visited < rows; visited *= 2 {
			if visited > 64_000 {
				break
			}
			add(fmt.Sprintf("%s, %dk rows", name, visited/1000), plan, index.Probes{Share: float64(visited) / float64(rows)})
		}
		add(name+", every list", plan, everyList)
	}
	return settings
}
