package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/report"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/control"
)

// The subsets whose queries are timed are an eighth, a quarter and a half of the rows; growthLeast
// is the fewest of the smallest one.
const (
	growthLeast     = 1000
	growthCalibrate = 2 * time.Second
	growthSources   = 200 // nodes of another collection to calibrate with
)

// A grower times the queries of subsets of a collection.
type grower struct {
	*reporter
	decoder string
	keys    []string // of all rows, in id order
	sources []flashdb.Node
	asks    []string // the relation for each source, if there are any
}

// growth measures how the time of a query grows with the rows, or says why not. What it builds lies
// in a temporary directory and is removed.
func (r *reporter) growth(ctx context.Context, stats flashdb.CollectionStats, decoderName string) (*report.Growth, error) {
	switch {
	case r.growthTime == 0:
		return &report.Growth{Note: "Not measured: --growth-time 0."}, nil
	case stats.Generation == 0:
		return &report.Growth{Note: "Not measured: there is no index, and every query scans exactly."}, nil
	case stats.Nodes < 8*growthLeast:
		return &report.Growth{Note: fmt.Sprintf("Not measured: there are fewer than %s, too few to tell.", show.Count(8*growthLeast, "row"))}, nil
	}
	deadline := time.Now().Add(r.growthTime)
	within, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	dir, err := os.MkdirTemp("", "flashdb-report-")
	if err != nil {
		return nil, err
	}
	g := grower{reporter: r, decoder: decoderName}
	out, err := g.measure(within, dir, deadline)
	if within.Err() != nil && ctx.Err() == nil {
		err = nil // what there is was measured in time
	}
	return out, errors.Join(err, os.RemoveAll(dir))
}

func (g *grower) measure(ctx context.Context, dir string, deadline time.Time) (*report.Growth, error) {
	out := &report.Growth{K: reportK, Wanted: defaultRecall, Relations: g.asked(), Note: fmt.Sprintf("Not all was measured within --growth-time %v; more time allows it.", g.growthTime)}
	if err := g.prepare(ctx); err != nil {
		return out, err
	}
	if out.Sources = len(g.sources); out.Sources == 0 {
		out.Note = "Not measured: there are no sources to ask."
		return out, nil
	}
	g.progress.Update("growth", 0, 4)
	whole, err := g.timed(ctx, g.c, len(g.keys))
	if err != nil {
		return out, err
	}
	out.Points = []report.GrowthPoint{whole}
	took := time.Duration(0)
	for i, part := range []int{8, 4, 2} {
		g.progress.Update("growth", int64(i+1), 4)
		if time.Until(deadline) < 2*took {
			return out, nil
		}
		start := time.Now()
		p, err := g.subset(ctx, filepath.Join(dir, fmt.Sprint(part)), len(g.keys)/part)
		if err != nil {
			return out, err
		}
		took = time.Since(start)
		out.Points = slices.Insert(out.Points, len(out.Points)-1, p)
	}
	out.Note = ""
	return out, nil
}

// prepare reads the keys of the rows and the sources.
func (g *grower) prepare(ctx context.Context) (err error) {
	g.keys, err = liveKeys(ctx, g.c)
	if err == nil {
		g.sources, err = g.sampleNodes(ctx, g.from, g.reporter.sources)
	}
	g.asks = make([]string, len(g.sources))
	for i, n := range g.sources {
		if err == nil {
			g.asks[i], err = g.relationFor(ctx, n.Key, i)
		}
	}
	return err
}

// sampleNodes returns about n nodes of a collection.
func (r *reporter) sampleNodes(ctx context.Context, c collection, n int) ([]flashdb.Node, error) {
	keys, err := sample(ctx, c, n)
	if err != nil {
		return nil, err
	}
	return nodesOf(ctx, c, keys)
}

// nodesOf returns the embeddings of nodes, but for those deleted since.
func nodesOf(ctx context.Context, c collection, keys []string) (nodes []flashdb.Node, err error) {
	for _, key := range keys {
		n, err := embedded(ctx, c, key)
		if errors.Is(err, flashdb.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, flashdb.Node{Key: key, Embedding: n.Embedding})
	}
	return nodes, nil
}

// subset makes a database of so many rows, evenly spread over all, and asks it.
func (g *grower) subset(ctx context.Context, dir string, rows int) (point report.GrowthPoint, err error) {
	db, err := flashdb.Open(dir, &flashdb.Options{CalibrateTime: -1})
	if err != nil {
		return point, err
	}
	defer func() { err = errors.Join(err, db.Close(), os.RemoveAll(dir)) }()
	made, err := db.CreateCollection(g.c.Name(), g.c.Schema())
	if err != nil {
		return point, err
	}
	keys := make([]string, rows)
	for i := range keys {
		keys[i] = g.keys[i*len(g.keys)/rows]
	}
	size := max(1, min(batchRows, batchBytes/(4*g.c.Schema().Dim)))
	for batch := range slices.Chunk(keys, size) {
		nodes, err := nodesOf(ctx, g.c, batch)
		if err == nil {
			err = made.Upsert(ctx, nodes...)
		}
		if err != nil {
			return point, err
		}
	}
	d, err := g.c.Decoder(ctx, g.decoder)
	if err == nil {
		err = made.PutDecoder(ctx, g.decoder, d)
	}
	if err == nil {
		_, err = made.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	}
	if err != nil {
		return point, err
	}
	plans := flashdb.CalibrateOptions{Time: g.planTime}
	if g.from.Name() != g.c.Name() {
		if plans.SourceCollection, err = g.copySources(ctx, db); err != nil {
			return point, err
		}
	}
	if _, err := made.Calibrate(ctx, &plans); err != nil {
		return point, err
	}
	asked, err := control.Local(db).Collection(ctx, made.Name())
	if err != nil {
		return point, err
	}
	return g.timed(ctx, asked, rows)
}

// copySources copies some nodes of the sources' collection, to calibrate with.
func (g *grower) copySources(ctx context.Context, db *flashdb.DB) (name string, err error) {
	nodes, err := g.sampleNodes(ctx, g.from, growthSources)
	if err != nil {
		return "", err
	}
	to, err := db.CreateCollection(g.from.Name(), g.from.Schema())
	if err != nil {
		return "", err
	}
	return to.Name(), to.Upsert(ctx, nodes...)
}

// timed times the sources in a collection of so many rows, each by plan and by exact scan.
func (g *grower) timed(ctx context.Context, c collection, rows int) (point report.GrowthPoint, err error) {
	var planned, exact []time.Duration
	point.Rows = rows
	for i, n := range slices.Concat(g.sources[:1], g.sources) {
		opts := flashdb.PredictOptions{Decoder: g.decoder, Relation: g.asks[max(0, i-1)], Reverse: g.reverse, Verify: true}
		if g.from.Name() == g.c.Name() {
			opts.Exclude = []string{n.Key}
		}
		res, err := c.PredictVector(ctx, n.Embedding, reportK, &opts)
		if err != nil {
			return point, err
		}
		if i == 0 {
			continue // the first query of an index verifies its file
		}
		planned, exact = append(planned, res.Stats.Elapsed), append(exact, res.Stats.Verification.Elapsed)
		point.Scanned = point.Scanned || res.Stats.Stop == flashdb.StopExact
		point.Recall += res.Stats.Verification.Recall / float64(len(g.sources))
	}
	slices.Sort(planned)
	slices.Sort(exact)
	point.Planned, point.Exact = planned[len(planned)/2], exact[len(exact)/2]
	return point, nil
}
