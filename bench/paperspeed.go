package main

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// speedRecord is what one model answers how fast, on one thread.
type speedRecord struct {
	Sources int          `json:"sources"`
	Nodes   int          `json:"nodes"`
	Exact   float64      `json:"exact"` // sources per second by the exact scan
	Load    string       `json:"load"`  // of the machine when the part began
	Points  []speedPoint `json:"points"`
}

// speedPoint is one way to retrieve.
type speedPoint struct {
	Line   string  `json:"line"` // of the plot
	Plan   string  `json:"plan"`
	Recall float64 `json:"recall"` // mean, of the best paperK
	Rate   float64 `json:"rate"`   // sources per second: of the median source
	Scored float64 `json:"scored"` // rows, mean
}

// speed measures the plans of one model.
func (r *paperRun) speed(ctx context.Context, at paperServing) (speedRecord, error) {
	return recorded(r.records, "speed/"+at.key(), func() (record speedRecord, err error) {
		s, err := r.served(ctx, at, r.settings.Timed)
		if err != nil {
			return record, err
		}
		record = speedRecord{Sources: len(s.sources), Nodes: s.n, Load: load()}
		ways := []*way{s.exactWay(ctx)}
		for _, line := range speedPlans(s.n) {
			for _, plan := range line.plans {
				ways = append(ways, s.planWay(ctx, line.name, plan))
			}
		}
		for _, n := range []int{100, 1000, 10_000, s.n / 2} {
			if n < s.n {
				ways = append(ways, s.randomWay(n))
			}
		}
		points, err := inTurns(ways)
		if err != nil {
			return record, err
		}
		record.Exact, record.Points = points[0].Rate, points[1:]
		return record, nil
	})
}

// A way to answer is timed in turns with others.
type way struct {
	point   speedPoint
	sources int // that are asked
	ask     func(i int) (wayAnswer, error)
}

// wayAnswer is what one source took and gave.
type wayAnswer struct{ seconds, recall, scored float64 }

// timedTurns is how often each way has its turn: what slows the machine for a while then falls on
// all of them.
const timedTurns = 3

// inTurns asks the sources of each way: a third of them by one way after the other, then the next
// third.
func inTurns(ways []*way) ([]speedPoint, error) {
	points, seconds := make([]speedPoint, len(ways)), make([][]float64, len(ways))
	for turn := range timedTurns {
		for j, w := range ways {
			for i := turn; i < w.sources; i += timedTurns {
				a, err := w.ask(i)
				if err != nil {
					return nil, err
				}
				seconds[j] = append(seconds[j], a.seconds)
				points[j].Recall += a.recall / float64(w.sources)
				points[j].Scored += a.scored / float64(w.sources)
			}
		}
	}
	for j, w := range ways {
		points[j].Line, points[j].Plan, points[j].Rate = w.point.Line, w.point.Plan, 1/median(seconds[j])
	}
	return points, nil
}

// timed returns the processor time that run takes, in seconds. Other programs on the machine
// lengthen it far less than the time that passes. Queries are of one thread.
func timed(run func() error) (float64, error) {
	before, err := processorSeconds()
	if err != nil {
		return 0, err
	}
	if err := run(); err != nil {
		return 0, err
	}
	after, err := processorSeconds()
	return after - before, err
}

// processorSeconds is the processor time of this program so far.
func processorSeconds() (float64, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, os.NewSyscallError("getrusage", err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, nil
}

// exactSources is how many sources at most the exact scan is timed for: it is slow.
const exactSources = 20

// exactWay scans every candidate.
func (s *paperServed) exactWay(ctx context.Context) *way {
	return &way{speedPoint{Line: exactLine}, min(exactSources, len(s.sources)), func(i int) (wayAnswer, error) {
		seconds, err := timed(func() error {
			_, _, err := s.exact(ctx, s.sources[i])
			return err
		})
		return wayAnswer{seconds, 1, float64(s.n)}, err
	}}
}

// A planLine is a line of the plot of speed against recall.
type planLine struct {
	name  string
	plans []flashlight.Plan
}

// speedPlans are the plans that are timed for n candidates.
func speedPlans(n int) []planLine {
	shapes := [][2]int{{1, 300}, {1, 1000}, {1, 2000}, {3, 200}, {4, 300}, {10, 100}, {10, 200}, {10, 400}}
	lines := []planLine{{name: oursLine}, {name: learnedLine}, {name: dotMaxLine}}
	for _, shape := range shapes {
		if shape[0]*shape[1] > n {
			continue
		}
		for _, share := range []float64{.2, 1} {
			for i, seed := range []flashlight.Seed{flashlight.SeedOnes, flashlight.SeedLearned, flashlight.SeedLearnedOnes} {
				plan := ours(shape[0], shape[1], seed)
				plan.Patience = min(2, plan.Rounds)
				plan.Probes = index.Probes{Share: share}
				line := &lines[min(i, 1)]
				line.plans = append(line.plans, plan)
			}
		}
	}
	for _, m := range []int{200, 500, 1000, 2000, 5000, 10_000, n / 2} {
		if m < n {
			lines[2].plans = append(lines[2].plans, dotMaxPlan(m))
		}
	}
	return lines
}

// dotMaxPlan retrieves the rows of highest inner product with the source.
func dotMaxPlan(rows int) flashlight.Plan {
	plan := asPrinted(1, rows)
	plan.Seed = flashlight.SeedSource
	return plan
}

// planWay answers by a plan.
func (s *paperServed) planWay(ctx context.Context, line string, plan flashlight.Plan) *way {
	return &way{speedPoint{Line: line, Plan: plan.String()}, len(s.sources), func(i int) (wayAnswer, error) {
		var hits []index.Hit
		var report flashlight.Report
		seconds, err := timed(func() (err error) {
			hits, report, err = s.run(ctx, s.query(s.sources[i], paperK, plan), s.ix)
			return err
		})
		return wayAnswer{seconds, foundOf(s.truth[i], hits), float64(report.RowsScored)}, err
	}}
}

// randomWay scores rows drawn at random, which is what is left without any retrieval.
func (s *paperServed) randomWay(rows int) *way {
	rng := rand.New(rand.NewPCG(3, 1))
	block, scores := make([]float32, rows*s.Dim), make([]float32, rows)
	var scratch decoder.Scratch
	return &way{speedPoint{Line: randomLine, Plan: grouped(int64(rows)) + " rows at random"}, len(s.sources), func(i int) (wayAnswer, error) {
		drawn := roaring.New()
		for drawn.GetCardinality() < uint64(rows) {
			if row := rng.IntN(s.n); s.first > 0 || row != s.sources[i] {
				drawn.Add(uint32(row))
			}
		}
		var hits []index.Hit
		seconds, err := timed(func() error {
			ids := drawn.ToArray()
			for j, id := range ids {
				copy(block[j*s.Dim:(j+1)*s.Dim], s.values[int(id)*s.Dim:])
			}
			s.decoder.Bind(nil, s.row(s.sources[i])).Score(&scratch, scores, block)
			top := index.NewTopK(paperK)
			for j, id := range ids {
				top.Offer(id, scores[j])
			}
			hits = top.Sorted(nil)
			return nil
		})
		return wayAnswer{seconds, foundOf(s.truth[i], hits), float64(rows)}, err
	}}
}

// fullRecall is the recall that counts as 1.00.
const fullRecall = .999

// best returns the fastest point of a line that reaches a recall, or the one of the highest recall
// where none does.
func (r speedRecord) best(line string, recall float64) (p speedPoint, reached bool) {
	for _, q := range r.Points {
		if q.Line != line {
			continue
		}
		better := q.Recall > p.Recall
		if q.Recall >= recall {
			better = !reached || q.Rate > p.Rate
			reached = true
		} else if reached {
			continue
		}
		if better {
			p = q
		}
	}
	return p, reached
}

// frontier returns the points of a line that no other of it beats, by rising recall.
func (r speedRecord) frontier(line string) (points []speedPoint) {
	var all []speedPoint
	for _, p := range r.Points {
		if p.Line == line {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b speedPoint) int {
		switch {
		case a.Rate > b.Rate:
			return -1
		case a.Rate < b.Rate:
			return 1
		}
		return 0
	})
	best := -1.0
	for _, p := range all {
		if p.Recall > best {
			best = p.Recall
			points = append(points, p)
		}
	}
	return points
}
