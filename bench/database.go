package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/flashdb/flashdb"
)

const (
	candidateCollection = "candidates"
	sourceCollection    = "sources" // only where sources are not candidates
	decoderName         = "links"

	// importBatch is the number of rows of one atomic write, as in "flashdb import".
	importBatch = 10_000
	// metaBuild is where the candidates remember what building them cost, which is also the mark of
	// a complete database.
	metaBuild = "bench_build"
)

// A part says which rows of a dataset to put into a database.
type part struct {
	candidates int64 // this many, evenly spread; 0: all
	sources    bool  // import sources that are no candidates, too
}

// takes reports whether the i-th of n candidates is in the part.
func (p part) takes(i, n int64) bool {
	return p.candidates == 0 || (i+1)*p.candidates/n > i*p.candidates/n
}

// openPart opens the database of a part in dir, and builds it first unless it is there. It is
// opened with one worker, so that every query, also an exact scan, runs on one thread.
func openPart(ctx context.Context, d *dataset, p part, dir string, log io.Writer) (*flashdb.DB, *flashdb.Collection, buildRecord, error) {
	db, err := flashdb.Open(dir, &flashdb.Options{MustExist: true, Workers: 1})
	if errors.Is(err, flashdb.ErrNotFound) {
		if err := buildPart(ctx, d, p, dir, log); err != nil {
			return nil, nil, buildRecord{}, fmt.Errorf("build graph %q in %s: %w", d.name, dir, err)
		}
		db, err = flashdb.Open(dir, &flashdb.Options{MustExist: true, Workers: 1})
	}
	if err != nil {
		return nil, nil, buildRecord{}, err
	}
	c, record, err := builtPart(ctx, db, d, p)
	if err != nil {
		return nil, nil, buildRecord{}, errors.Join(fmt.Errorf("database %s: %w", dir, err), db.Close())
	}
	return db, c, record, nil
}

// builtPart checks that the database holds that part, complete.
func builtPart(ctx context.Context, db *flashdb.DB, d *dataset, p part) (*flashdb.Collection, buildRecord, error) {
	var record buildRecord
	c, err := db.Collection(candidateCollection)
	if err != nil {
		return nil, record, fmt.Errorf("%w: it is not one that bench made: remove it or use another -dir", err)
	}
	text, ok, err := c.Meta(ctx, metaBuild)
	if err != nil {
		return nil, record, err
	}
	if !ok {
		return nil, record, errors.New("building it was not finished: remove it")
	}
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return nil, record, fmt.Errorf("what it remembers of its build: %w: remove it", err)
	}
	want := p.candidates
	if want == 0 {
		want = d.candidates()
	}
	if record.Graph != d.name || record.Candidates != want {
		return nil, record, fmt.Errorf("it holds %d candidates of graph %q, not %d of %q: use another -dir", record.Candidates, record.Graph, want, d.name)
	}
	return c, record, nil
}

// buildPart imports and indexes the part with default options, and measures it.
func buildPart(ctx context.Context, d *dataset, p part, dir string, log io.Writer) (err error) {
	watch := watchMemory()
	defer watch.stop()
	db, err := flashdb.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	record := buildRecord{Kind: kindBuild, Graph: d.name, Dim: d.info.Dim}
	fmt.Fprintf(log, "%s: importing into %s\n", d.name, dir)
	start := time.Now()
	candidates, err := importCandidates(ctx, db, d, p, &record)
	if err != nil {
		return err
	}
	if p.sources && d.info.CandidatesFrom > 0 {
		if err := importSources(ctx, db, d, &record); err != nil {
			return err
		}
	}
	record.ImportSeconds = time.Since(start).Seconds()

	fmt.Fprintf(log, "%s: building the index of %d rows\n", d.name, record.Rows)
	start = time.Now()
	stats, err := db.Stats(ctx)
	if err != nil {
		return err
	}
	for _, s := range stats.Collections {
		c, err := db.Collection(s.Name)
		if err != nil {
			return err
		}
		// Forced, since the subject is the index also where a scan would do.
		built, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, CalibrateTime: -1})
		if err != nil {
			return err
		}
		if s.Name == candidateCollection {
			record.Lists = built.Lists
		}
	}
	record.BuildSeconds = time.Since(start).Seconds()
	peak := watch.stop()
	record.PeakBytes, record.PeakAnonymousBytes = peak.resident, peak.anonymous
	if p.sources {
		if err := calibrate(ctx, d, candidates, &record, log); err != nil {
			return err
		}
	}
	return remember(ctx, db, candidates, &record)
}

// calibrate measures plans with the sources that will be asked, not with those that are asked: all
// of the collection they are from.
func calibrate(ctx context.Context, d *dataset, c *flashdb.Collection, record *buildRecord, log io.Writer) error {
	opts := flashdb.CalibrateOptions{}
	if d.info.CandidatesFrom > 0 {
		opts.SourceCollection = sourceCollection
	}
	fmt.Fprintf(log, "%s: calibrating\n", d.name)
	start := time.Now()
	all, err := c.Calibrate(ctx, &opts)
	if err != nil {
		return err
	}
	record.CalibrateSeconds = time.Since(start).Seconds()
	for _, of := range all {
		record.CalibrateSources = of.Sources
	}
	return nil
}

func importCandidates(ctx context.Context, db *flashdb.DB, d *dataset, p part, record *buildRecord) (*flashdb.Collection, error) {
	c, err := db.CreateCollection(candidateCollection, flashdb.Schema{Dim: d.info.Dim})
	if err != nil {
		return nil, err
	}
	if err := c.PutDecoder(ctx, decoderName, d.decoder); err != nil {
		return nil, err
	}
	first := d.info.CandidatesFrom
	wants := func(row int64) bool { return p.takes(row-first, d.candidates()) }
	record.Candidates, err = importRows(ctx, c, d, first, d.info.Nodes, wants)
	record.Rows += record.Candidates
	return c, err
}

func importSources(ctx context.Context, db *flashdb.DB, d *dataset, record *buildRecord) error {
	c, err := db.CreateCollection(sourceCollection, flashdb.Schema{Dim: d.info.Dim})
	if err != nil {
		return err
	}
	n, err := importRows(ctx, c, d, 0, d.info.CandidatesFrom, func(int64) bool { return true })
	record.Rows += n
	return err
}

// importRows stores the wanted rows of a span, and returns their number.
func importRows(ctx context.Context, c *flashdb.Collection, d *dataset, first, end int64, wants func(row int64) bool) (n int64, err error) {
	var slab []float32 // embeddings of the batch, which the database keeps
	batch := make([]flashdb.Node, 0, importBatch)
	flush := func() error {
		err := c.Upsert(ctx, batch...)
		n += int64(len(batch))
		batch, slab = batch[:0], make([]float32, 0, importBatch*d.info.Dim)
		return err
	}
	slab = make([]float32, 0, importBatch*d.info.Dim)
	err = d.rows(ctx, first, end, func(row int64, values []float32) error {
		if !wants(row) {
			return nil
		}
		at := len(slab)
		slab = append(slab, values...)
		batch = append(batch, flashdb.Node{Key: key(row), Embedding: slab[at:len(slab):len(slab)]})
		if len(batch) < importBatch {
			return nil
		}
		return flush()
	})
	if err == nil && len(batch) > 0 {
		err = flush()
	}
	return n, err
}

// remember adds the sizes on disk to the record and stores it.
func remember(ctx context.Context, db *flashdb.DB, c *flashdb.Collection, record *buildRecord) error {
	stats, err := db.Stats(ctx)
	if err != nil {
		return err
	}
	record.StoreBytes, record.LogBytes = stats.Disk.Store, stats.Disk.WAL
	for _, s := range stats.Collections {
		record.IndexBytes += s.IndexBytes
	}
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return c.SetMeta(ctx, metaBuild, string(text))
}

// scratchDir returns dir, or a new temporary directory where it is empty, with what removes that
// again.
func scratchDir(dir string) (string, func(), error) {
	if dir != "" {
		return dir, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "flashdb-bench-")
	return dir, func() { os.RemoveAll(dir) }, err
}
