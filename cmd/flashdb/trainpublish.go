package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/train"
)

// mayTrain refuses before a long run what could not be stored after it. It returns how large the
// model may be, 0 for a new database, which sets no limit.
func (a *app) mayTrain(ctx context.Context, r *trainRequest) (mostBytes int, err error) {
	if err := checkNames(r.names()...); err != nil {
		return 0, err
	}
	if a.shared == nil && r.release == "" {
		if empty, err := isNewDir(r.dir); err != nil || empty {
			return 0, err
		}
	}
	err = a.withDB(ctx, r.dir, flashdb.Options{}, func(db database) error {
		if r.release != "" {
			return r.mayRelease(ctx, db)
		}
		mostBytes = db.MaxBatchBytes()
		for _, name := range r.names() {
			if err := r.mayFill(ctx, db, name); err != nil {
				return err
			}
		}
		return nil
	})
	return mostBytes, err
}

// fits refuses a model that is too large for one write, before it is trained.
func (t *trainRun) fits() error {
	if t.mostBytes == 0 {
		return nil
	}
	const perNode, perLink = 4, 4 // beside key and embedding; as flashdb.MaxBatchBytes counts
	links := len(t.g.Edges)
	if t.bothWays() {
		links *= 2
	}
	size := t.namedBytes + perLink*links + t.g.Nodes*(perNode+4*t.r.opts.DimFor(&t.g.Graph, len(t.g.Edges)))
	for _, key := range t.g.Keys {
		size += len(key)
	}
	if t.g.RelationNames != nil {
		for _, e := range t.g.Edges {
			size += len(t.g.RelationNames[e.Relation])
		}
	}
	if size <= t.mostBytes {
		return nil
	}
	where := ""
	if size <= flashdb.MaxBatchBytes {
		where = " while another process has it open"
	}
	return fmt.Errorf("the model takes about %s, and what is stored in an existing database%s must fit one atomic write of %s: train into a directory that is not there yet, or with a smaller --dim",
		show.Bytes(int64(size)), where, show.Bytes(int64(t.mostBytes)))
}

// names are the collections to make.
func (r *trainRequest) names() []string {
	if r.sourceCollection == "" {
		return []string{r.collection}
	}
	return []string{r.sourceCollection, r.collection}
}

// mayFill refuses a collection that holds something.
func (r *trainRequest) mayFill(ctx context.Context, db database, name string) error {
	c, err := db.Collection(ctx, name)
	if errors.Is(err, flashdb.ErrNotFound) {
		return nil
	}
	if err != nil || r.replace {
		return err
	}
	empty, err := isEmpty(ctx, c)
	if err == nil && !empty {
		err = fmt.Errorf("collection %s holds nodes already: name another, or say --replace to drop them once the training has ended", name)
	}
	return err
}

// checkNames refuses names that collections cannot have, by making such ones.
func checkNames(names ...string) (err error) {
	dir, err := os.MkdirTemp("", "flashdb-train-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := flashdb.Open(dir, nil)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := db.CreateCollection(name, flashdb.Schema{Dim: 1}); err != nil {
			return errors.Join(err, db.Close())
		}
	}
	return db.Close()
}

// isNewDir tells whether a directory is not there, or empty.
func isNewDir(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	return len(entries) == 0, err
}

// publish stores the model. A new database is made beside its place and renamed, so that it is
// there whole or not at all. In a database that is there the model is one batch: a process that is
// killed leaves the collections as they were, or the model whole.
func (t *trainRun) publish(ctx context.Context) error {
	if t.r.release != "" {
		return t.withDB(ctx, t.r.dir, t.options(), func(db database) error { return t.publishRelease(ctx, db) })
	}
	isNew, err := isNewDir(t.r.dir)
	if err != nil {
		return err
	}
	if !isNew || t.shared != nil {
		return t.withDB(ctx, t.r.dir, t.options(), func(db database) error {
			return t.fill(ctx, &modelWriter{db: db, whole: true})
		})
	}
	dir := filepath.Clean(t.r.dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	staged, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".train-*")
	if err != nil {
		return err
	}
	if err := t.stage(ctx, staged, dir); err != nil {
		return errors.Join(err, os.RemoveAll(staged))
	}
	return nil
}

// stage makes the database in one directory and moves it to another.
func (t *trainRun) stage(ctx context.Context, staged, dir string) error {
	db, err := t.open(ctx, staged, t.options())
	if err != nil {
		return err
	}
	if err := errors.Join(t.fill(ctx, &modelWriter{db: db}), db.Close()); err != nil {
		return err
	}
	if err := os.Chmod(staged, 0o755); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("something was put in %s meanwhile: %w", show.Text(dir), err)
	}
	return os.Rename(staged, dir)
}

func (t *trainRun) options() flashdb.Options {
	return flashdb.Options{FlushBytes: importFlushBytes, CalibrateTime: -1}
}

// A modelWriter collects what is stored of a model, and writes it in batches of some size or as a
// whole.
type modelWriter struct {
	db      database
	release string // that is filled; empty: what is written is live at once
	whole   bool
	batch   flashdb.Batch
	bytes   int // of the batch, about
}

// add makes room for a write of some bytes.
func (w *modelWriter) add(ctx context.Context, bytes int) error {
	if w.bytes += bytes; w.whole || w.bytes < batchBytes {
		return nil
	}
	w.bytes = bytes
	return w.flush(ctx)
}

func (w *modelWriter) flush(ctx context.Context) error {
	var err error
	if w.release != "" {
		_, err = w.db.FillRelease(ctx, w.release, &w.batch)
	} else {
		err = w.db.Apply(ctx, &w.batch)
	}
	w.batch = flashdb.Batch{}
	return err
}

// fill stores the model in its collections, which are made anew.
func (t *trainRun) fill(ctx context.Context, w *modelWriter) error {
	for _, name := range t.r.names() {
		if err := t.r.mayFill(ctx, w.db, name); err != nil {
			return err
		}
		_, err := w.db.Collection(ctx, name)
		if err == nil {
			w.batch.DropCollection(name)
		} else if !errors.Is(err, flashdb.ErrNotFound) {
			return err
		}
		w.batch.CreateCollection(name, flashdb.Schema{Dim: t.model.Dim})
	}
	if err := t.storeModel(ctx, w); err != nil {
		return err
	}
	if err := t.storeLinks(ctx, w); err != nil {
		return err
	}
	score, err := t.score()
	if err != nil {
		return err
	}
	w.batch.SetMeta(t.r.collection, metaScore, score)
	t.r.progress.Update("store", 0, 1)
	if err := w.flush(ctx); err != nil {
		return err
	}
	target, err := w.db.Collection(ctx, t.r.collection)
	if err != nil {
		return err
	}
	return t.index(ctx, w.db, target)
}

// storeModel stores embeddings, encoders and decoder.
func (t *trainRun) storeModel(ctx context.Context, w *modelWriter) error {
	if t.r.sourceCollection != "" {
		if err := t.storeNodes(ctx, w, t.r.sourceCollection, 0, t.g.Sources); err != nil {
			return err
		}
	}
	if err := t.storeNodes(ctx, w, t.r.collection, t.g.Sources, t.g.Nodes); err != nil {
		return err
	}
	for name, use := range t.encodersOf() {
		w.batch.PutEncoder(name, t.model.Encoder, use)
	}
	w.batch.PutDecoder(t.r.collection, t.r.decoderName, t.model.Decoder)
	return nil
}

// encodersOf says what the encoder of the model is for, by collection.
func (t *trainRun) encodersOf() map[string]flashdb.EncoderUse {
	target, source := t.r.collection, t.r.sourceCollection
	use := flashdb.EncoderUse{
		Decoder: t.r.decoderName, Targets: target, Neighbours: target,
		Directed: t.g.Directed, OneWay: !t.bothWays(), Features: t.g.FeatureDim,
	}
	if source == "" {
		return map[string]flashdb.EncoderUse{target: use}
	}
	sources, targets := use, use
	targets.Neighbours = source
	sources.Features = t.sourceFeatureDim
	targets.FirstFeature, targets.Features = t.sourceFeatureDim, t.g.FeatureDim-t.sourceFeatureDim
	return map[string]flashdb.EncoderUse{target: targets, source: sources}
}

// related tells whether the model has relations.
func (t *trainRun) related() bool { return len(t.model.Decoder.Spec().Relations) > 0 }

// relationName is that of an edge, empty where the model has none.
func (t *trainRun) relationName(e train.Edge) string {
	if !t.related() {
		return ""
	}
	return t.g.RelationNames[e.Relation]
}

// storeNodes stores the nodes of a range of numbers, in order.
func (t *trainRun) storeNodes(ctx context.Context, w *modelWriter, collection string, from, to int) error {
	dim := t.model.Dim
	size := min(batchRows, max(1, batchBytes/(4*dim)))
	nodes, bytes := make([]flashdb.Node, 0, size), 0
	for i := from; i < to; i++ {
		n := flashdb.Node{Key: t.g.Keys[i]}
		if t.named {
			var err error
			if n, err = t.node(i); err != nil {
				return err
			}
		}
		n.Embedding = t.model.Embeddings[i*dim : (i+1)*dim]
		bytes += 4*dim + len(n.Payload)
		if nodes = append(nodes, n); len(nodes) < size && bytes < batchBytes && i+1 < to {
			continue
		}
		if err := w.add(ctx, bytes); err != nil {
			return err
		}
		bytes = 0
		w.batch.Upsert(collection, nodes...)
		nodes = nodes[:0]
		t.r.progress.Update("store "+collection, int64(i+1-from), int64(to-from))
	}
	if w.release == "" && (t.g.Keys[from] == "0" || t.named) {
		w.batch.SetMeta(collection, metaFirstRow, "0")
		w.batch.SetMeta(collection, metaRowCount, strconv.Itoa(to-from))
	}
	return nil
}

// links are the known links in the order of their sources, as storage keeps them: all edges but
// those of a test file.
func (t *trainRun) links() []train.Edge {
	links := slices.Concat(t.split.Train, t.split.Valid)
	if t.r.testFile == "" && t.g.Test == nil {
		links = append(links, t.split.Test...)
	}
	if t.cold != nil {
		links = append(links, t.cold.edges...)
	}
	if t.bothWays() && !t.related() {
		links = append(links, reversed(links)...)
	}
	if !t.related() {
		links = withoutRelations(links)
	}
	slices.SortFunc(links, func(x, y train.Edge) int {
		return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(x.Relation, y.Relation), cmp.Compare(x.Target, y.Target))
	})
	return slices.Compact(links)
}

func (t *trainRun) storeLinks(ctx context.Context, w *modelWriter) error {
	links := t.links()
	t.report.Links = len(links)
	batch := make([]flashdb.Edge, 0, batchEdges)
	for i, e := range links {
		batch = append(batch, flashdb.Edge{
			SourceCollection: t.r.sourceCollection, Source: t.g.Keys[e.Source], Target: t.g.Keys[e.Target], Relation: t.relationName(e),
		})
		if len(batch) < batchEdges && i+1 < len(links) {
			continue
		}
		if err := w.add(ctx, linkBytes*len(batch)); err != nil {
			return err
		}
		w.batch.Link(t.r.collection, batch...)
		batch = batch[:0]
		t.r.progress.Update("link "+t.r.collection, int64(i+1), int64(len(links)))
	}
	return nil
}

// linkBytes is what a link takes in a batch, beside the bytes of its keys, which are not copied.
const linkBytes = 48

// longestCalibration is how long train calibrates at most by default.
const longestCalibration = time.Minute

// calibrateTime is how long the decoder is calibrated. By default that is little beside the
// training: more of it finds faster plans.
func (t *trainRun) calibrateTime() time.Duration {
	if t.r.calibrateTime != 0 {
		return t.r.calibrateTime
	}
	return min(max(10*time.Second, t.model.Elapsed/10), longestCalibration)
}

// index builds the index and measures plans.
func (t *trainRun) index(ctx context.Context, db database, c collection) error {
	opts := flashdb.RebuildOptions{CalibrateTime: -1, Workers: t.buildWorkers(db)}
	res, err := rebuildWith(ctx, c, opts, t.r.progress)
	if err != nil {
		return err
	}
	t.report.Index = jsonTrainIndex{Built: res.Built, Reason: res.Reason, Lists: res.Lists, Bytes: res.Bytes}
	if !res.Built || t.r.calibrateTime < 0 {
		return nil
	}
	return t.calibrate(ctx, c)
}

// calibrated is a collection whose decoder is calibrated.
type calibrated interface {
	Calibrate(ctx context.Context, opts *flashdb.CalibrateOptions) ([]flashdb.Calibration, error)
}

// calibrate measures plans. If none reaches the recall of a query that says nothing else, it
// measures once more, for longer: a plan may be there that the time did not suffice to find.
func (t *trainRun) calibrate(ctx context.Context, c calibrated) error {
	opts := flashdb.CalibrateOptions{SourceCollection: t.r.sourceCollection, Time: t.calibrateTime(), Progress: t.r.progress.Update}
	all, err := c.Calibrate(ctx, &opts)
	if err == nil && slices.ContainsFunc(all, lacksPlan) && t.r.calibrateTime == 0 && opts.Time < longestCalibration {
		opts.Time = longestCalibration
		all, err = c.Calibrate(ctx, &opts)
	}
	if err != nil {
		return err
	}
	for _, of := range all {
		t.describePlans(of)
	}
	return nil
}
