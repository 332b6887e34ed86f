package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/internal/attr"
)

// mayRelease refuses before a long run what could not be released after it. By default embeddings
// are as wide as the ones that the release replaces.
func (r *trainRequest) mayRelease(ctx context.Context, db database) error {
	for _, name := range r.names() {
		c, err := collectionOf(ctx, db, name)
		if err != nil {
			return fmt.Errorf("--release: %w: a release replaces what collections hold", err)
		}
		r.opts.Dim = cmp.Or(r.opts.Dim, c.Schema().Dim)
		if dim := r.opts.Dim; dim != c.Schema().Dim {
			return fmt.Errorf("--release: collection %s holds embeddings of %d values, and %d are to be trained: say --dim %d", name, c.Schema().Dim, dim, c.Schema().Dim)
		}
	}
	if r.keysFile != "" {
		var err error
		if r.kinds, err = kindsOf(ctx, db, r.collection); err != nil {
			return err
		}
		r.nodes.types.lookUp = func() (map[string]attr.Kind, error) { return r.kinds, nil }
	}
	earlier, err := releaseNamed(ctx, db, r.release)
	switch {
	case errors.Is(err, flashdb.ErrNotFound):
		return nil
	case err != nil:
		return err
	case earlier.State != flashdb.ReleaseStaged:
		return fmt.Errorf("release %s is the %s one: name another", show.Text(r.release), earlier.State)
	case !r.replace:
		return fmt.Errorf("release %s is staged already: name another, or say --replace to drop it once the training has ended", show.Text(r.release))
	}
	return nil
}

// jsonTrainRelease says what became of the release.
type jsonTrainRelease struct {
	Release string `json:"release"`
	Former  string `json:"former"`
}

// publishRelease stages a release of the model, fills and builds it, and publishes it unless it is
// worse than the live one. The links are of the nodes: they are known in both.
func (t *trainRun) publishRelease(ctx context.Context, db database) error {
	name := t.r.release
	earlier, err := releaseNamed(ctx, db, name)
	if err == nil && earlier.State == flashdb.ReleaseStaged && t.r.replace {
		err = db.DropRelease(ctx, name)
	}
	if err != nil && !errors.Is(err, flashdb.ErrNotFound) {
		return err
	}
	if err := db.StageRelease(ctx, name, t.r.names()...); err != nil {
		return err
	}
	if err := db.SetCut(ctx, name, t.cut); err != nil {
		return err
	}
	w := &modelWriter{db: db, release: name}
	if err := t.fillRelease(ctx, w); err != nil {
		return err
	}
	if err := t.buildRelease(ctx, db); err != nil {
		return err
	}
	c, err := db.CompareRelease(ctx, name, &flashdb.CompareOptions{Progress: t.r.progress.Update})
	if err != nil {
		return err
	}
	t.r.progress.Clear()
	if !t.json {
		if err := t.describeComparison(c); err != nil {
			return err
		}
	}
	if len(c.Worse) > 0 {
		return &codedError{code: exitRefused, err: fmt.Errorf("release %s: %w: it stays staged: %s", show.Text(name), flashdb.ErrQuality, strings.Join(c.Worse, "; "))}
	}
	res, err := db.Publish(ctx, name, &flashdb.PublishOptions{Force: true})
	if err != nil {
		return err
	}
	t.report.Release = &jsonTrainRelease{show.JSON(name), show.JSON(res.Former)}
	score, err := t.score()
	if err != nil {
		return err
	}
	var b flashdb.Batch
	b.SetMeta(t.r.collection, metaScore, score)
	return db.Apply(ctx, &b)
}

// fillRelease stores embeddings, decoder and encoders in the release, and the links, which are not
// new to it.
func (t *trainRun) fillRelease(ctx context.Context, w *modelWriter) error {
	if err := t.storeModel(ctx, w); err != nil {
		return err
	}
	return errors.Join(t.storeLinks(ctx, w), w.flush(ctx))
}

// buildRelease builds the indexes.
func (t *trainRun) buildRelease(ctx context.Context, db database) error {
	opts := flashdb.RebuildOptions{CalibrateTime: t.calibrateTime(), Workers: t.buildWorkers(db), Progress: t.r.progress.Update}
	built, err := db.BuildRelease(ctx, t.r.release, &opts)
	for _, b := range built {
		if b.Collection == t.r.collection {
			t.report.Index = jsonTrainIndex{Built: b.Built, Reason: b.Reason, Lists: b.Lists, Bytes: b.Bytes}
			for _, of := range b.Calibrations {
				t.describePlans(of)
			}
		}
	}
	return err
}
