package main

import (
	"context"
	"errors"

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

// curve measures recall@k of one model of a graph.
func (r *paperRun) curve(ctx context.Context, graph string, s *paperServed) (curveRecord, error) {
	return recorded(r.records, "recall/"+graph, func() (curveRecord, error) {
		c := curveRecord{Encoder: r.settings.Encoders[0], Sources: len(s.sources), Nodes: s.n, K: curveKs, Recall: map[string][]float64{}}
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

// ablation measures plans without an early stop, by the paper's seed and by learned ones.
func (r *paperRun) ablation(ctx context.Context, graph string, s *paperServed) (ablationRecord, error) {
	return recorded(r.records, "ablation/"+graph, func() (ablationRecord, error) {
		a := ablationRecord{
			Sources: min(r.settings.Sources/2, len(s.sources)), Rounds: []int{1, 2, 3, 4, 5}, PerRound: []int{100, 200, 300, 400},
			Recall: map[string][][]float64{},
		}
		for _, seed := range []flashlight.Seed{flashlight.SeedOnes, flashlight.SeedLearned} {
			for _, rounds := range a.Rounds {
				var cells []float64
				for _, perRound := range a.PerRound {
					plan := asPrinted(rounds, perRound)
					plan.Seed = seed
					recall, err := s.recallOf(ctx, plan, a.Sources)
					if err != nil {
						return a, err
					}
					cells = append(cells, recall)
				}
				a.Recall[string(seed)] = append(a.Recall[string(seed)], cells)
			}
		}
		return a, nil
	})
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
func (r *paperRun) dotMax(ctx context.Context, graph string, s *paperServed) (dotMaxRecord, error) {
	return recorded(r.records, "dotmax/"+graph, func() (d dotMaxRecord, err error) {
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

// measureModel measures what needs one model of a graph behind an index: all that is not in the
// records yet.
func (r *paperRun) measureModel(ctx context.Context, graph string, page *paperPage) (err error) {
	var s *paperServed
	need := func() error {
		if s != nil {
			return nil
		}
		s, err = r.served(ctx, graph, r.settings.Encoders[0], r.settings.Sources)
		return err
	}
	defer func() {
		if s != nil {
			err = errors.Join(err, s.close())
		}
	}()
	for _, key := range []string{"recall/", "ablation/", "dotmax/"} {
		if _, done := r.records.values[key+graph]; !done {
			if err := need(); err != nil {
				return err
			}
		}
	}
	curve, err := r.curve(ctx, graph, s)
	if err != nil {
		return err
	}
	ablation, err := r.ablation(ctx, graph, s)
	if err != nil {
		return err
	}
	dotMax, err := r.dotMax(ctx, graph, s)
	if err != nil {
		return err
	}
	page.curves[graph], page.ablations[graph], page.dotMaxes[graph] = curve, ablation, dotMax
	return nil
}
