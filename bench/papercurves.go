package main

import (
	"context"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/simd"
	"github.com/flashdb/flashdb/train"
)

// curveRecord is recall@k: the share of the best paperK rows among the first k retrieved, in the
// order in which the executor retrieved them.
type curveRecord struct {
	Encoder train.EncoderKind    `json:"encoder"`
	Sources int                  `json:"sources"`
	Nodes   int                  `json:"nodes"` // candidates
	K       []int                `json:"k"`
	Recall  map[string][]float64 `json:"recall"` // of each line, at each of K
}

// The figure has the paper's numbers of rounds and rows.
const (
	curveRounds   = 10
	curvePerRound = 50
)

var curveKs = []int{1, 2, 5, 10, 20, 35, 50, 75, 100, 125, 150, 175, 200, 250, 300, 350, 400, 450, 500}

// The lines of the curves, and of other tables.
const (
	printedLine = "Flashlight as printed"
	oursLine    = "Flashlight, 20 anchors"
	learnedLine = "Flashlight, learned seeds"
	dotMaxLine  = "DotMax"
	randomLine  = "random rows"
	oracleName  = "oracle"
)

// curve measures recall@k of one model.
func (r *paperRun) curve(ctx context.Context, at paperServing, s *paperServed) (curveRecord, error) {
	return recorded(r.records, "recall/"+at.key(), func() (curveRecord, error) {
		c := curveRecord{Encoder: at.encoder, Sources: len(s.sources), Nodes: s.n, K: curveKs, Recall: map[string][]float64{}}
		for name, plan := range map[string]flashlight.Plan{
			printedLine: asPrinted(curveRounds, curvePerRound),
			learnedLine: ours(curveRounds, curvePerRound, flashlight.SeedLearned),
		} {
			line := make([]float64, len(curveKs))
			for i, source := range s.sources {
				order := &gathered{from: s.ix}
				if _, _, err := s.run(ctx, s.query(source, paperK, plan), order); err != nil {
					return c, err
				}
				addCurve(line, order.ids, s.truth[i], len(s.sources))
			}
			c.Recall[name] = line
		}
		return c, nil
	})
}

// addCurve adds to line the shares of the best rows among the first curveKs ids, over n sources.
func addCurve(line []float64, ids []uint32, best []index.Hit, n int) {
	wanted := map[uint32]bool{}
	for _, h := range best {
		wanted[h.ID] = true
	}
	found, at := 0, 0
	for i, k := range curveKs {
		for ; at < min(k, len(ids)); at++ {
			if wanted[ids[at]] {
				found++
			}
		}
		line[i] += float64(found) / float64(len(best)) / float64(n)
	}
}

// ablationRecord is the recall for numbers of rounds by rows per round.
type ablationRecord struct {
	Sources  int                    `json:"sources"`
	Rounds   []int                  `json:"rounds"`
	PerRound []int                  `json:"per_round"`
	Recall   map[string][][]float64 `json:"recall"` // by seed, then rounds, then rows per round
}

// ablation measures plans without an early stop, by the paper's seed and by learned ones. The
// rounds of a plan are the first ones of a plan with more, so that the longest is asked alone.
func (r *paperRun) ablation(ctx context.Context, at paperServing, s *paperServed) (ablationRecord, error) {
	return recorded(r.records, "ablation/"+at.key(), func() (ablationRecord, error) {
		s := s.of(r.settings.Ablated)
		a := ablationRecord{
			Sources: len(s.sources), Rounds: []int{1, 2, 3, 4, 5}, PerRound: []int{100, 200, 300, 400},
			Recall: map[string][][]float64{},
		}
		for _, seed := range ablationSeeds {
			cells := make([][]float64, len(a.Rounds))
			for _, perRound := range a.PerRound {
				recalls, err := s.recallByRound(ctx, seed, a.Rounds[len(a.Rounds)-1], perRound)
				if err != nil {
					return a, err
				}
				for i, rounds := range a.Rounds {
					cells[i] = append(cells[i], recalls[rounds-1])
				}
			}
			a.Recall[string(seed)] = cells
		}
		return a, nil
	})
}

// ablationSeeds are the first queries that the ablation compares.
var ablationSeeds = []flashlight.Seed{flashlight.SeedOnes, flashlight.SeedLearned}

// recallByRound returns the mean recall at paperK after each round of Algorithm 1 as printed.
func (s *paperServed) recallByRound(ctx context.Context, seed flashlight.Seed, rounds, perRound int) ([]float64, error) {
	plan := asPrinted(rounds, perRound)
	plan.Seed = seed
	recalls := make([]float64, rounds)
	for i, source := range s.sources {
		order := &gathered{from: s.ix}
		if _, _, err := s.run(ctx, s.query(source, paperK, plan), order); err != nil {
			return nil, err
		}
		for round, share := range foundByRound(order.ids, s.truth[i], rounds, perRound) {
			recalls[round] += share / float64(len(s.sources))
		}
	}
	return recalls, nil
}

// foundByRound returns the shares of the best rows among the ids of the first round, of the first
// two, and so on.
func foundByRound(ids []uint32, best []index.Hit, rounds, perRound int) []float64 {
	wanted := map[uint32]bool{}
	for _, h := range best {
		wanted[h.ID] = true
	}
	shares, found := make([]float64, rounds), 0
	for round := range shares {
		for _, id := range ids[min(len(ids), round*perRound):min(len(ids), (round+1)*perRound)] {
			if wanted[id] {
				found++
			}
		}
		shares[round] = float64(found) / float64(max(1, len(best)))
	}
	return shares
}

// dotMaxRecord is appendix C: how many rows of highest inner product with the source must be
// retrieved, and what Flashlight finds among few.
type dotMaxRecord struct {
	Sources    int       `json:"sources"`
	Nodes      int       `json:"nodes"`
	Retrieved  []int     `json:"retrieved"`
	DotMax     []float64 `json:"dot_max"`
	Flashlight float64   `json:"flashlight"` // of 3 rounds of 200, as printed
	Learned    float64   `json:"learned"`    // the same with learned seeds
}

// dotMax measures appendix C. The rows of highest inner product are exact: no index.
func (r *paperRun) dotMax(ctx context.Context, at paperServing, s *paperServed) (dotMaxRecord, error) {
	return recorded(r.records, "dotmax/"+at.key(), func() (d dotMaxRecord, err error) {
		d = dotMaxRecord{Sources: len(s.sources), Nodes: s.n}
		for _, n := range []int{1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000} {
			if n < s.n {
				d.Retrieved = append(d.Retrieved, n)
			}
		}
		d.DotMax = make([]float64, len(d.Retrieved))
		for i := range s.sources {
			s.addDotMax(d.DotMax, d.Retrieved, i)
		}
		if d.Flashlight, err = s.recallOf(ctx, asPrinted(3, 200), len(s.sources)); err != nil {
			return d, err
		}
		plan := asPrinted(3, 200)
		plan.Seed = flashlight.SeedLearned
		d.Learned, err = s.recallOf(ctx, plan, len(s.sources))
		return d, err
	})
}

// addDotMax adds the recalls of the i-th source to sums, for each number of rows retrieved.
func (s *paperServed) addDotMax(sums []float64, retrieved []int, i int) {
	products := make([]float32, s.n)
	simd.DotRows(products, s.row(s.sources[i]), s.values)
	best := s.truth[i]
	for _, h := range best {
		before := 0
		for row, product := range products {
			if product > products[h.ID] && !(s.first == 0 && row == s.sources[i]) {
				before++
			}
		}
		for j, n := range retrieved {
			if before < n {
				sums[j] += 1 / float64(len(best)) / float64(len(s.sources))
			}
		}
	}
}

// measureModel measures what needs a model behind an index and many sources: all that is not in the
// records yet.
func (r *paperRun) measureModel(ctx context.Context, at paperServing, page *paperPage) (err error) {
	var s *paperServed
	missing := func(kind string) bool {
		_, done := r.records.values[kind+at.key()]
		return !done
	}
	if missing("recall/") || missing("ablation/") || missing("dotmax/") {
		if s, err = r.served(ctx, at, r.settings.Sources); err != nil {
			return err
		}
	}
	if page.curves[at], err = r.curve(ctx, at, s); err != nil {
		return err
	}
	if page.ablations[at], err = r.ablation(ctx, at, s); err != nil {
		return err
	}
	page.dotMaxes[at], err = r.dotMax(ctx, at, s)
	return err
}
