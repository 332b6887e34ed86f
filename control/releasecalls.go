package control

import (
	"context"
	"time"

	"github.com/flashdb/flashdb"
)

// stagedRelease names a release to stage, and its collections.
type stagedRelease struct {
	Name        string   `json:"name"`
	Collections []string `json:"collections"`
}

var stageRelease = onDB("stagerelease", func(ctx context.Context, db *flashdb.DB, r stagedRelease, _ out) (none, error) {
	_, err := db.StageRelease(ctx, r.Name, r.Collections...)
	return none{}, err
})

// StageRelease is that of flashdb.DB.
func (c *Client) StageRelease(ctx context.Context, name string, collections ...string) error {
	_, err := stageRelease.ask(ctx, c, stagedRelease{name, collections}, out{})
	return err
}

// releaseCut says when the data of a release was cut.
type releaseCut struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

var setCut = onDB("setcut", func(ctx context.Context, db *flashdb.DB, r releaseCut, _ out) (none, error) {
	of, err := db.Release(ctx, r.Name)
	if err != nil {
		return none{}, err
	}
	return none{}, of.SetCut(ctx, r.At)
})

// SetCut is that of flashdb.Release.
func (c *Client) SetCut(ctx context.Context, name string, at time.Time) error {
	_, err := setCut.ask(ctx, c, releaseCut{name, at}, out{})
	return err
}

var releases = onDB("releases", func(ctx context.Context, db *flashdb.DB, _ none, _ out) ([]flashdb.ReleaseInfo, error) {
	return db.Releases(ctx)
})

// Releases is that of flashdb.DB.
func (c *Client) Releases(ctx context.Context) ([]flashdb.ReleaseInfo, error) {
	return releases.ask(ctx, c, none{}, out{})
}

// releaseWrites are for one release.
type releaseWrites struct {
	Name  string `json:"name"`
	Batch batch  `json:"batch"`
}

var fillRelease = onDB("fillrelease", func(ctx context.Context, db *flashdb.DB, r releaseWrites, _ out) (int, error) {
	of, err := db.Release(ctx, r.Name)
	if err != nil {
		return 0, err
	}
	return of.Apply(ctx, r.Batch.Batch)
})

// FillRelease is Apply of flashdb.Release. A batch for another process has at most MaxBatchBytes.
func (c *Client) FillRelease(ctx context.Context, name string, b *flashdb.Batch) (added int, err error) {
	return fillRelease.ask(ctx, c, releaseWrites{name, batch{b}}, out{})
}

// releaseBuild says how to build a release.
type releaseBuild struct {
	Name    string                 `json:"name"`
	Options flashdb.RebuildOptions `json:"options"`
}

var buildRelease = onDB("buildrelease", func(ctx context.Context, db *flashdb.DB, r releaseBuild, o out) ([]flashdb.ReleaseBuild, error) {
	of, err := db.Release(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	r.Options.Progress = o.progress
	return of.Build(ctx, &r.Options)
})

// BuildRelease is Build of flashdb.Release.
func (c *Client) BuildRelease(ctx context.Context, name string, opts *flashdb.RebuildOptions) ([]flashdb.ReleaseBuild, error) {
	o := deref(opts)
	return buildRelease.ask(ctx, c, releaseBuild{name, o}, out{progress: o.Progress})
}

// releaseComparison says how to compare a release.
type releaseComparison struct {
	Name    string                 `json:"name"`
	Options flashdb.CompareOptions `json:"options"`
}

var compareRelease = onDB("comparerelease", func(ctx context.Context, db *flashdb.DB, r releaseComparison, o out) (flashdb.Comparison, error) {
	r.Options.Progress = o.progress
	return db.CompareRelease(ctx, r.Name, &r.Options)
})

// CompareRelease is that of flashdb.DB.
func (c *Client) CompareRelease(ctx context.Context, name string, opts *flashdb.CompareOptions) (flashdb.Comparison, error) {
	o := deref(opts)
	return compareRelease.ask(ctx, c, releaseComparison{name, o}, out{progress: o.Progress})
}

// releasePublication says how to publish a release.
type releasePublication struct {
	Name    string                 `json:"name"`
	Options flashdb.PublishOptions `json:"options"`
}

var publish = onDB("publish", func(ctx context.Context, db *flashdb.DB, r releasePublication, o out) (flashdb.PublishResult, error) {
	r.Options.Compare.Progress = o.progress
	return db.Publish(ctx, r.Name, &r.Options)
})

// Publish is that of flashdb.DB. If another process refuses the release, the result is empty.
func (c *Client) Publish(ctx context.Context, name string, opts *flashdb.PublishOptions) (flashdb.PublishResult, error) {
	o := deref(opts)
	return publish.ask(ctx, c, releasePublication{name, o}, out{progress: o.Compare.Progress})
}

var rollback = onDB("rollback", func(ctx context.Context, db *flashdb.DB, _ none, _ out) (named, error) {
	name, err := db.Rollback(ctx)
	return named{name}, err
})

// Rollback is that of flashdb.DB.
func (c *Client) Rollback(ctx context.Context) (name string, err error) {
	n, err := rollback.ask(ctx, c, none{}, out{})
	return n.Name, err
}

var dropRelease = onDB("droprelease", func(ctx context.Context, db *flashdb.DB, r named, _ out) (none, error) {
	of, err := db.Release(ctx, r.Name)
	if err != nil {
		return none{}, err
	}
	return none{}, of.Drop(ctx)
})

// DropRelease is Drop of flashdb.Release.
func (c *Client) DropRelease(ctx context.Context, name string) error {
	_, err := dropRelease.ask(ctx, c, named{name}, out{})
	return err
}
