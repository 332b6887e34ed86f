package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flashdb/flashdb"
)

// A rebuildLoad is the traffic that a rebuild goes on beside: one reader that asks again as soon as
// it has an answer, and one writer.
type rebuildLoad struct {
	target *flashdb.Collection
	dim    int
	keys   []string
	pause  time.Duration // between two writes

	reads, writes, errors atomic.Int64
}

// beside runs the traffic while fn runs, and returns the latencies of reads in milliseconds.
func (l *rebuildLoad) beside(ctx context.Context, fn func() error) (ms []float64, err error) {
	var work sync.WaitGroup
	done := make(chan struct{})
	work.Go(func() {
		rng := rand.New(rand.NewPCG(1, 1))
		for !isClosed(done) {
			start := time.Now()
			_, err := l.target.Predict(ctx, l.keys[rng.IntN(len(l.keys))], 100, nil)
			ms = append(ms, milliseconds(time.Since(start)))
			l.count(&l.reads, err)
		}
	})
	work.Go(func() {
		rng := rand.New(rand.NewPCG(2, 2))
		tick := time.NewTicker(l.pause)
		defer tick.Stop()
		for i := 0; !isClosed(done); i++ {
			<-tick.C
			l.write(ctx, rng, i)
		}
	})
	err = fn()
	close(done)
	work.Wait()
	return ms, err
}

// write stores a new node, or deletes the one stored before.
func (l *rebuildLoad) write(ctx context.Context, rng *rand.Rand, i int) {
	if i%2 == 1 {
		_, err := l.target.Delete(ctx, fmt.Sprintf("new-%d", i-1))
		l.count(&l.writes, err)
		return
	}
	row := make([]float32, l.dim)
	for j := range row {
		row[j] = float32(rng.NormFloat64())
	}
	l.count(&l.writes, l.target.Upsert(ctx, flashdb.Node{Key: fmt.Sprintf("new-%d", i), Embedding: row}))
}

func (l *rebuildLoad) count(done *atomic.Int64, err error) {
	done.Add(1)
	if err != nil {
		l.errors.Add(1)
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func rebuildCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := newFlags("rebuild", stderr)
	data := fs.String("data", os.Getenv("FLASHDB_DATA"), "`folder` that holds one folder per graph (default $FLASHDB_DATA; "+demoGraph+" needs none)")
	graph := fs.String("graph", demoGraph, "`name` of the graph")
	workers := fs.Int("workers", 0, "goroutines of a rebuild; 0: as many as by default")
	turns := fs.Int("turns", 3, "turns, each a quiet stretch and a rebuild")
	quiet := fs.Duration("quiet", 5*time.Second, "length of a quiet stretch")
	pause := fs.Duration("pause", 10*time.Millisecond, "time between two writes")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *turns < 1 || *quiet <= 0 || *pause <= 0 || *workers < 0 {
		return errors.New("-turns, -quiet and -pause want positive values")
	}
	d, err := openDataset(*data, *graph)
	if err != nil {
		return err
	}
	scratch, remove, err := scratchDir("")
	if err != nil {
		return err
	}
	defer remove()
	dir := filepath.Join(scratch, "db")
	if err := buildPart(ctx, d, part{}, dir, stderr); err != nil {
		return err
	}
	db, err := flashdb.Open(dir, &flashdb.Options{MustExist: true})
	if err != nil {
		return err
	}
	c, _, err := builtPart(ctx, db, d, part{})
	if err == nil {
		err = measureRebuilds(ctx, &rebuildLoad{target: c, dim: d.info.Dim, pause: *pause}, *workers, *turns, *quiet, stdout)
	}
	return errors.Join(err, db.Close())
}

// measureRebuilds takes turns, so that what else the machine does falls on quiet stretches and on
// rebuilds alike, and prints one line for each.
func measureRebuilds(ctx context.Context, l *rebuildLoad, workers, turns int, quiet time.Duration, out io.Writer) error {
	for key, err := range l.target.Keys(ctx) {
		if err != nil {
			return err
		}
		l.keys = append(l.keys, key)
	}
	for turn := range turns {
		watch := watchMemory()
		still, err := l.beside(ctx, func() error {
			select {
			case <-time.After(quiet):
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		before := watch.stop()
		if err != nil {
			return err
		}
		watch = watchMemory()
		var res flashdb.RebuildResult
		busy, err := l.beside(ctx, func() (err error) {
			res, err = l.target.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Workers: workers})
			return err
		})
		after := watch.stop()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "turn %d: quiet %d reads, p50 %.2f, p99 %.2f ms; rebuilding for %.1f s: %d reads, p50 %.2f, p99 %.2f ms (%.2f x); peak memory %+.0f MB, without mapped files %+.0f MB\n",
			turn+1, len(still), percentile(still, 50), percentile(still, 99), res.Elapsed.Seconds(), len(busy), percentile(busy, 50), percentile(busy, 99),
			percentile(busy, 99)/percentile(still, 99), float64(after.resident-before.resident)/1e6, float64(after.anonymous-before.anonymous)/1e6)
	}
	_, err := fmt.Fprintf(out, "%d reads and %d writes, %d errors\n", l.reads.Load(), l.writes.Load(), l.errors.Load())
	return err
}
