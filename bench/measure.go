package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flashdb/flashdb"
)

// A lane is one setting on one collection, with what was measured of it.
type lane struct {
	setting
	target    *flashdb.Collection
	questions []question
	perTurn   int // questions a turn; 0: all
	k         int

	next    int               // where the next turn begins among the questions
	answers []flashdb.Result  // by question, the latest; no Plan: not asked
	ms      []float64         // of every query on one core
	turnMS  []float64         // median of each turn on one core
	rates   map[int][]float64 // queries per second of each turn, by cores
}

func newLane(s setting, target *flashdb.Collection, questions []question, k, perTurn int) *lane {
	if perTurn == 0 || perTurn > len(questions) {
		perTurn = len(questions)
	}
	return &lane{
		setting:   s,
		target:    target,
		questions: questions,
		perTurn:   perTurn,
		k:         k,
		answers:   make([]flashdb.Result, len(questions)),
		rates:     map[int][]float64{},
	}
}

// measure gives every lane a turn on each number of cores, and that as many times as there are
// rotations. Whatever slows the machine down for a while so slows all lanes down alike, and medians
// over the turns pass over it.
func measure(ctx context.Context, lanes []*lane, rotations int, cores []int, log io.Writer) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for r := range rotations {
		start := time.Now()
		for _, n := range cores {
			runtime.GOMAXPROCS(n)
			for _, l := range lanes {
				if err := l.turn(ctx, n); err != nil {
					return fmt.Errorf("%s: %w", l.name, err)
				}
			}
		}
		for _, l := range lanes {
			l.next = (l.next + l.perTurn) % len(l.questions)
		}
		fmt.Fprintf(log, "rotation %d of %d: %d settings in %.1f s\n", r+1, rotations, len(lanes), time.Since(start).Seconds())
	}
	return nil
}

// turn asks the lane's next questions by as many goroutines as there are cores.
func (l *lane) turn(ctx context.Context, cores int) error {
	// Leave no garbage of another lane to be collected at this one's cost, and bring what it needs
	// into the caches.
	runtime.GC()
	if _, _, err := l.ask(ctx, l.next); err != nil {
		return err
	}
	elapsed := make([]time.Duration, l.perTurn)
	failures := make([]error, cores)
	var taken atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for worker := range cores {
		wg.Go(func() {
			for failures[worker] == nil {
				i := int(taken.Add(1)) - 1
				if i >= l.perTurn {
					return
				}
				at := (l.next + i) % len(l.questions)
				l.answers[at], elapsed[i], failures[worker] = l.ask(ctx, at)
			}
		})
	}
	wg.Wait()
	total := time.Since(start)
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	l.rates[cores] = append(l.rates[cores], float64(l.perTurn)/total.Seconds())
	if cores == 1 {
		turn := make([]float64, l.perTurn)
		for i, d := range elapsed {
			turn[i] = milliseconds(d)
		}
		l.ms = append(l.ms, turn...)
		l.turnMS = append(l.turnMS, median(turn))
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ask asks the i-th question.
func (l *lane) ask(ctx context.Context, i int) (flashdb.Result, time.Duration, error) {
	q := l.questions[i]
	opts := l.opts // a copy: queries may run at once
	start := time.Now()
	var res flashdb.Result
	var err error
	if q.vector != nil {
		res, err = l.target.PredictVector(ctx, q.vector, l.k, &opts)
	} else {
		res, err = l.target.Predict(ctx, q.key, l.k, &opts)
	}
	return res, time.Since(start), err
}

// versus returns how many times faster than base the lane is: the median over the turns of the
// ratio within a rotation.
func (l *lane) versus(base *lane) float64 {
	ratios := make([]float64, len(l.turnMS))
	for i, ms := range l.turnMS {
		ratios[i] = base.turnMS[i] / ms
	}
	return median(ratios)
}

// recall returns the recalls of the sources that were asked and whose truth is known. Answers do
// not depend on the turn.
func (l *lane) recall() []float64 {
	var recalls []float64
	for i, q := range l.questions {
		if q.truth != nil && l.asked(i) {
			recalls = append(recalls, q.truth.recall(l.answers[i].Hits))
		}
	}
	return recalls
}

func (l *lane) asked(i int) bool { return l.answers[i].Stats.Plan != "" }

// result sums the lane up; rows is the number of candidates.
func (l *lane) result(graph string, base *lane, rows int64) resultRecord {
	recalls := l.recall()
	r := resultRecord{
		Kind:        kindResult,
		Peer:        flashdbPeer,
		Graph:       graph,
		Setting:     l.name,
		Grid:        l.grid,
		K:           l.k,
		RecallMean:  mean(recalls),
		RecallP5:    percentile(recalls, 5),
		RecallWorst: percentile(recalls, 0),
		P50:         median(l.ms),
		P99:         percentile(l.ms, 99),
		QPS1:        median(l.rates[1]),
		VersusExact: l.versus(base),
	}
	if rates := l.rates[2]; rates != nil {
		r.QPS2 = median(rates)
	}
	for i, a := range l.answers {
		if !l.asked(i) {
			continue
		}
		r.Sources++
		r.Plan = a.Stats.Plan
		r.RowsScored += float64(a.Stats.RowsScored)
		r.CodesScanned += float64(a.Stats.CodesScanned)
		r.VisitedShare += float64(a.Stats.RowsVisited) / float64(rows)
	}
	n := math.Max(1, float64(r.Sources))
	r.RowsScored /= n
	r.CodesScanned /= n
	r.VisitedShare /= n
	return r
}
