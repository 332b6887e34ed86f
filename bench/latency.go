package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/flashdb/flashdb"
)

// latencyCommand measures single queries of a database that is there: of one that is larger than
// memory, or whose files are on a slow disk. It opens it read-only, and asks about nodes drawn at
// random, each once.
func latencyCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	fs := newFlags("latency", stderr)
	dir := fs.String("dir", "", "`directory` of the database")
	name := fs.String("collection", candidateCollection, "collection that is searched")
	from := fs.String("sources-from", "", "`collection` of the sources (default: the one that is searched)")
	n := fs.Int("n", 300, "queries")
	k := fs.Int("k", 100, "nodes asked for")
	recall := fs.Float64("recall", 0, "recall asked for (default flashdb's)")
	seed := fs.Uint64("seed", 1, "seed of the draw")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *dir == "" || *n < 1 || *k < 1 {
		return errors.New("-dir is needed, and -n and -k want a positive number")
	}
	db, err := flashdb.Open(*dir, &flashdb.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := db.Collection(*name)
	if err != nil {
		return err
	}
	sources := c
	if *from != "" {
		if sources, err = db.Collection(*from); err != nil {
			return err
		}
	}
	vectors, err := drawn(ctx, sources, *n, *seed)
	if err != nil {
		return err
	}
	opts := flashdb.PredictOptions{Recall: *recall}
	var times []float64
	plan := ""
	before := majorFaults()
	for _, v := range vectors {
		began := time.Now()
		res, err := c.PredictVector(ctx, v, *k, &opts)
		if err != nil {
			return err
		}
		times = append(times, float64(time.Since(began).Microseconds())/1000)
		plan = res.Stats.Plan
	}
	_, err = fmt.Fprintf(stdout, "%d queries: p50 %.2f ms, p99 %.2f ms, mean %.2f ms, %.1f major faults each\nplan %s\n",
		len(times), median(times), percentile(times, 99), mean(times), float64(majorFaults()-before)/float64(len(times)), plan)
	return err
}

// drawn returns the embeddings of n nodes, drawn at random, or of all.
func drawn(ctx context.Context, c *flashdb.Collection, n int, seed uint64) (vectors [][]float32, err error) {
	var keys []string
	for key, err := range c.Keys(ctx) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys[:min(n, len(keys))] {
		node, err := c.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, node.Embedding)
	}
	return vectors, nil
}

// majorFaults counts the pages that this process had to wait for the disk for.
func majorFaults() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return int64(u.Majflt)
}
