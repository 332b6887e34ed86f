package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// newerFlags are what the newer command takes.
type newerFlags struct {
	data, graph string
	rate        int
	replaced    float64
	away        float64
	load, quiet time.Duration
	pause       time.Duration
	report      time.Duration
	queries     int
	segmentRows int
}

// newerCommand measures queries beside a steady stream of upserts, without a rebuild: latency,
// memory, and at the end the recall beside that after a rebuild.
func newerCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var f newerFlags
	fs := newFlags("newer", stderr)
	fs.StringVar(&f.data, "data", os.Getenv("FLASHDB_DATA"), "`folder` that holds one folder per graph (default $FLASHDB_DATA)")
	fs.StringVar(&f.graph, "graph", "genes", "`name` of the graph")
	fs.IntVar(&f.rate, "rate", 5000, "upserts a second")
	fs.Float64Var(&f.replaced, "replaced", .5, "`share` of the upserts that replace a node")
	fs.Float64Var(&f.away, "away", 0, "how `far` from the other rows the new ones lie, in standard deviations of each dimension")
	fs.DurationVar(&f.load, "for", 10*time.Minute, "length of the stretch with upserts")
	fs.DurationVar(&f.quiet, "quiet", 20*time.Second, "length of the quiet stretches before and after it")
	fs.DurationVar(&f.pause, "pause", 20*time.Millisecond, "time from one query to the next")
	fs.DurationVar(&f.report, "report", time.Minute, "time between two lines")
	fs.IntVar(&f.queries, "queries", 200, "sources whose recall is measured")
	fs.IntVar(&f.segmentRows, "segment-rows", 0, "Options.SegmentRows (default flashdb's; negative: no segments)")
	if err := parse(fs, args); err != nil {
		return err
	}
	if f.rate < 100 || f.load <= 0 || f.quiet <= 0 || f.pause <= 0 || f.report <= 0 || f.queries < 1 || !(f.replaced >= 0 && f.replaced <= 1) {
		return errors.New("-rate wants at least 100, -replaced 0 to 1, and the others positive values")
	}
	d, err := openDataset(f.data, f.graph)
	if err != nil {
		return err
	}
	scratch, remove, err := scratchDir("")
	if err != nil {
		return err
	}
	defer remove()
	dir := filepath.Join(scratch, "db")
	if err := buildPart(ctx, d, part{sources: true}, dir, stderr); err != nil {
		return err
	}
	s := &stream{newerFlags: f, options: flashdb.Options{MustExist: true, SegmentRows: f.segmentRows}, dir: dir, out: stdout}
	if err := s.opened(func(db *flashdb.DB) error { return s.measure(ctx, db, d) }); err != nil {
		return err
	}
	start := time.Now()
	return s.opened(func(db *flashdb.DB) error {
		first := time.Now()
		if _, err := s.c.PredictVector(ctx, s.sources[0], 100, nil); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "opened again in %v, the first answer %v later\n", first.Sub(start).Round(time.Millisecond), time.Since(first).Round(time.Millisecond))
		return s.compareRecall(ctx)
	})
}

// A stream is the traffic: queries, and upserts beside them.
type stream struct {
	newerFlags
	options flashdb.Options
	dir     string
	out     io.Writer
	c       *flashdb.Collection
	sources [][]float32
	rows    [][]float32 // that new rows are made from
	keys    []string    // that are replaced

	mu sync.Mutex
	ms []float64 // of the queries since the last line
}

// opened calls fn with the database open.
func (s *stream) opened(fn func(db *flashdb.DB) error) error {
	db, err := flashdb.Open(s.dir, &s.options)
	if err != nil {
		return err
	}
	if s.c, err = db.Collection(candidateCollection); err == nil {
		err = fn(db)
	}
	return errors.Join(err, db.Close())
}

func (s *stream) measure(ctx context.Context, db *flashdb.DB, d *dataset) (err error) {
	from := s.c
	if d.info.CandidatesFrom > 0 {
		if from, err = db.Collection(sourceCollection); err != nil {
			return err
		}
	}
	if s.sources, err = drawn(ctx, from, 2000, 1); err != nil {
		return err
	}
	if s.rows, err = drawn(ctx, s.c, 20_000, 2); err != nil {
		return err
	}
	for key, err := range s.c.Keys(ctx) {
		if err != nil {
			return err
		}
		s.keys = append(s.keys, key)
	}
	fmt.Fprintf(s.out, "%-8s %10s %9s %9s %9s %8s %9s %10s\n", "", "upserts", "p50 ms", "p99 ms", "segments", "rows", "delta", "anonymous")
	if err := s.run(ctx, db, s.quiet, s.quiet, 0, "quiet"); err != nil {
		return err
	}
	if err := s.run(ctx, db, s.load, s.report, s.rate, ""); err != nil {
		return err
	}
	select { // a merge may not have ended
	case <-time.After(s.quiet / 2):
	case <-ctx.Done():
	}
	return s.run(ctx, db, s.quiet, s.quiet, 0, "after")
}

// run queries for that long beside that many upserts a second, and prints a line from time to time.
func (s *stream) run(ctx context.Context, db *flashdb.DB, length, report time.Duration, rate int, name string) error {
	ctx, stop := context.WithCancelCause(ctx)
	var work sync.WaitGroup
	written := 0
	work.Go(func() { stop(s.query(ctx)) })
	if rate > 0 {
		work.Go(func() { stop(s.write(ctx, rate, &written)) })
	}
	defer func() {
		stop(nil)
		work.Wait() // before the database is closed
	}()
	start, printed := time.Now(), time.Time{}
	end := time.NewTimer(length)
	tick := time.NewTicker(report)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-tick.C:
		case <-end.C:
			over = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if over && time.Since(printed) < report/2 {
			continue
		}
		printed = time.Now()
		s.mu.Lock()
		ms, upserts := s.ms, written
		s.ms = nil
		s.mu.Unlock()
		stats, err := db.Stats(ctx)
		if err != nil {
			return err
		}
		label := name
		if label == "" {
			label = time.Since(start).Round(time.Second).String()
		}
		for _, of := range stats.Collections {
			if of.Name == s.c.Name() {
				fmt.Fprintf(s.out, "%-8s %10d %9.2f %9.2f %9d %8d %9d %7.0f MB\n", label, upserts, percentile(ms, 50), percentile(ms, 99),
					of.Segments, of.SegmentRows, of.DeltaRows, float64(processMemory()["RssAnon"])/1e6)
			}
		}
	}
	return nil
}

func (s *stream) query(ctx context.Context) error {
	tick := time.NewTicker(s.pause)
	defer tick.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		start := time.Now()
		_, err := s.c.PredictVector(ctx, s.sources[i%len(s.sources)], 100, nil)
		if err != nil && ctx.Err() == nil {
			return err
		}
		s.mu.Lock()
		s.ms = append(s.ms, milliseconds(time.Since(start)))
		s.mu.Unlock()
		<-tick.C
	}
	return nil
}

// write stores batches of a hundredth of a second each. Where it falls behind it does not wait.
func (s *stream) write(ctx context.Context, rate int, written *int) error {
	rng := rand.New(rand.NewPCG(2, 2))
	spread := spreadOf(s.rows)
	start := time.Now()
	for i := 0; ctx.Err() == nil; {
		nodes := make([]flashdb.Node, rate/100)
		for j := range nodes {
			key := fmt.Sprint("new-", i)
			if rng.Float64() < s.replaced {
				key = s.keys[rng.IntN(len(s.keys))]
			}
			nodes[j] = flashdb.Node{Key: key, Embedding: s.row(rng, spread)}
			i++
		}
		if err := s.c.Upsert(ctx, nodes...); err != nil && ctx.Err() == nil {
			return err
		}
		s.mu.Lock()
		*written = i
		s.mu.Unlock()
		time.Sleep(time.Until(start.Add(time.Duration(float64(i) / float64(rate) * float64(time.Second)))))
	}
	return nil
}

// row returns a row near one of the graph's, or away from them.
func (s *stream) row(rng *rand.Rand, spread []float64) []float32 {
	of := s.rows[rng.IntN(len(s.rows))]
	row := make([]float32, len(of))
	for j, x := range of {
		row[j] = x + float32(spread[j]*(.1*rng.NormFloat64()+s.away))
	}
	return row
}

// compareRecall prints the recall with segments, or with all newer rows in the delta where there
// are to be none, and after a rebuild: of the default query, whose plan a rebuild measures again,
// and of one plan.
func (s *stream) compareRecall(ctx context.Context) error {
	name := "without segments"
	if s.segmentRows >= 0 {
		name = "with segments"
		if _, err := s.c.Rebuild(ctx, &flashdb.RebuildOptions{NewerOnly: true}); err != nil {
			return err
		}
	}
	if err := s.printRecall(ctx, name); err != nil {
		return err
	}
	if _, err := s.c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true}); err != nil {
		return err
	}
	return s.printRecall(ctx, "rebuilt")
}

func (s *stream) printRecall(ctx context.Context, name string) error {
	sources := s.sources[:min(s.queries, len(s.sources))]
	var truths []truth
	for _, v := range sources {
		res, err := s.c.PredictVector(ctx, v, 100, &flashdb.PredictOptions{Exact: true})
		if err != nil {
			return err
		}
		truths = append(truths, truthOf(res.Hits))
	}
	for _, o := range []*flashdb.PredictOptions{nil, {Plan: &flashlight.Plan{Rounds: 2, PerRound: 300, Probes: index.Probes{Share: .1}}}} {
		var recalls, ms []float64
		plan := ""
		for i, v := range sources {
			start := time.Now()
			res, err := s.c.PredictVector(ctx, v, 100, o)
			if err != nil {
				return err
			}
			ms = append(ms, milliseconds(time.Since(start)))
			recalls = append(recalls, truths[i].recall(res.Hits))
			plan = res.Stats.Plan
		}
		fmt.Fprintf(s.out, "%s: recall %s, p50 %.2f ms, plan %s\n", name, meanAndWorst(recalls), median(ms), plan)
	}
	return nil
}

// spreadOf returns the standard deviation of each dimension of rows.
func spreadOf(rows [][]float32) []float64 {
	spread := make([]float64, len(rows[0]))
	for j := range spread {
		var sum, squares float64
		for _, row := range rows {
			x := float64(row[j])
			sum, squares = sum+x, squares+x*x
		}
		n := float64(len(rows))
		spread[j] = math.Sqrt(max(0, squares/n-(sum/n)*(sum/n)))
	}
	return spread
}
