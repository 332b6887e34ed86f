package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/train"
)

// mayTrain refuses before a long run what could not be stored after it.
func (a *app) mayTrain(ctx context.Context, r *trainRequest) error {
	if err := checkNames(r.names()...); err != nil {
		return err
	}
	if a.shared == nil {
		if empty, err := isNewDir(r.dir); err != nil || empty {
			return err
		}
	}
	return a.withDB(ctx, r.dir, flashdb.Options{}, func(db database) error {
		for _, name := range r.names() {
			if err := r.mayFill(ctx, db, name); err != nil {
				return err
			}
		}
		return nil
	})
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
// there whole or not at all.
func (t *trainRun) publish(ctx context.Context) error {
	isNew, err := isNewDir(t.r.dir)
	if err != nil {
		return err
	}
	if !isNew || t.shared != nil {
		return t.withDB(ctx, t.r.dir, t.options(), func(db database) error { return t.fill(ctx, db) })
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
	if err := errors.Join(t.fill(ctx, db), db.Close()); err != nil {
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

// fill stores the model in its collections. What it made is dropped again if that fails.
func (t *trainRun) fill(ctx context.Context, db database) (err error) {
	var made []string
	defer func() {
		if err == nil {
			return
		}
		for _, name := range made {
			err = errors.Join(err, db.DropCollection(ctx, name))
		}
	}()
	collections := map[string]collection{}
	for _, name := range t.r.names() {
		if err := t.r.mayFill(ctx, db, name); err != nil {
			return err
		}
		if err := db.DropCollection(ctx, name); err != nil && !errors.Is(err, flashdb.ErrNotFound) {
			return err
		}
		c, err := db.CreateCollection(ctx, name, flashdb.Schema{Dim: t.model.Dim})
		if err != nil {
			return err
		}
		made, collections[name] = append(made, name), c
	}
	target := collections[t.r.collection]
	if source, two := collections[t.r.sourceCollection]; two {
		if err := t.storeNodes(ctx, source, 0, t.g.Sources); err != nil {
			return err
		}
	}
	if err := t.storeNodes(ctx, target, t.g.Sources, t.g.Nodes); err != nil {
		return err
	}
	if err := t.storeLinks(ctx, target); err != nil {
		return err
	}
	for _, c := range collections {
		if err := t.storeEncoder(ctx, c); err != nil {
			return err
		}
	}
	for i, d := range t.model.Decoders {
		if err := target.PutDecoder(ctx, t.decoderName(i), d); err != nil {
			return err
		}
	}
	return t.index(ctx, db, target)
}

// decoderName is that of the i-th decoder: the relation's where there are several.
func (t *trainRun) decoderName(i int) string {
	if len(t.model.Decoders) == 1 {
		return t.r.decoderName
	}
	return t.g.RelationNames[i]
}

// storeNodes stores the nodes of a range of numbers, in order.
func (t *trainRun) storeNodes(ctx context.Context, c collection, from, to int) error {
	dim := t.model.Dim
	size := min(batchRows, max(1, batchBytes/(4*dim)))
	var nodes []flashdb.Node
	for i := from; i < to; i++ {
		n := flashdb.Node{Key: t.g.Keys[i], Embedding: t.model.Embeddings[i*dim : (i+1)*dim]}
		if t.payloads != nil && t.payloads[i] != "" {
			n.Payload = []byte(t.payloads[i])
		}
		if nodes = append(nodes, n); len(nodes) < size && i+1 < to {
			continue
		}
		if err := c.Upsert(ctx, nodes...); err != nil {
			return err
		}
		nodes = nodes[:0]
		t.r.progress.Update("store "+c.Name(), int64(i+1-from), int64(to-from))
	}
	if t.g.Keys[from] == "0" || t.payloads != nil {
		return setRowSpan(ctx, c, 0, int64(to-from))
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
	if t.bothWays() {
		links = append(links, reversed(links)...)
	}
	slices.SortFunc(links, func(x, y train.Edge) int {
		return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(x.Target, y.Target))
	})
	return slices.CompactFunc(links, func(x, y train.Edge) bool { return x.Source == y.Source && x.Target == y.Target })
}

func (t *trainRun) storeLinks(ctx context.Context, c collection) error {
	links := t.links()
	t.report.Links = len(links)
	batch := make([]flashdb.Edge, 0, batchEdges)
	for i, e := range links {
		batch = append(batch, flashdb.Edge{SourceCollection: t.r.sourceCollection, Source: t.g.Keys[e.Source], Target: t.g.Keys[e.Target]})
		if len(batch) < batchEdges && i+1 < len(links) {
			continue
		}
		if err := c.Link(ctx, batch...); err != nil {
			return err
		}
		batch = batch[:0]
		t.r.progress.Update("link "+c.Name(), int64(i+1), int64(len(links)))
	}
	return nil
}

// index builds the index and measures plans.
func (t *trainRun) index(ctx context.Context, db database, c collection) error {
	opts := flashdb.RebuildOptions{CalibrateTime: -1}
	if db.DB() != nil && t.shared == nil {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	res, err := rebuildWith(ctx, c, opts, t.r.progress)
	if err != nil {
		return err
	}
	t.report.Index = jsonTrainIndex{Built: res.Built, Reason: res.Reason, Lists: res.Lists, Bytes: res.Bytes}
	if !res.Built || t.r.calibrateTime < 0 {
		return nil
	}
	calibrate := flashdb.CalibrateOptions{SourceCollection: t.r.sourceCollection, Time: t.r.calibrateTime}
	calibrate.Progress = func(stage string, done, total int64) { t.r.progress.Update(stage, done, total) }
	if len(t.model.Decoders) > 1 { // one of many relations tells how it is with the others
		calibrate.Decoder = t.decoderName(0)
	}
	all, err := c.Calibrate(ctx, &calibrate)
	if err != nil {
		return err
	}
	for _, of := range all {
		t.describePlans(of)
	}
	return nil
}
