package main

import (
	"context"
	"io"
	"iter"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
)

// A database is what the commands need of one, so that each command has one
// path whether this process has the directory open (localDB) or asks the
// process that has (remoteDB, see remote.go). The methods are those of
// flashdb.DB, with a context and an error where an answer may come from
// elsewhere.
type database interface {
	Collections(ctx context.Context) ([]string, error)
	Collection(ctx context.Context, name string) (collection, error)
	CreateCollection(ctx context.Context, name string, s flashdb.Schema) error
	DropCollection(ctx context.Context, name string) error
	Stats(ctx context.Context) (flashdb.Stats, error)
	Metrics(ctx context.Context) (flashdb.Metrics, error)
	Check(ctx context.Context) (findings, strays []string, err error)
	Checkpoint(ctx context.Context) error
	Compact(ctx context.Context, opts *flashdb.CompactOptions) (flashdb.CompactResult, error)
	Backup(ctx context.Context, w io.Writer, opts *flashdb.BackupOptions) (flashdb.BackupResult, error)
	BackupFile(ctx context.Context, name string, opts *flashdb.BackupOptions) (flashdb.BackupResult, error)
	Close() error
}

// A collection is what the commands need of one; see database.
type collection interface {
	Name() string
	Schema() flashdb.Schema

	Upsert(ctx context.Context, nodes ...flashdb.Node) error
	Get(ctx context.Context, key string) (flashdb.Node, error)
	Delete(ctx context.Context, keys ...string) (int, error)
	LinkAll(ctx context.Context, edges ...flashdb.Edge) error
	UnlinkAll(ctx context.Context, edges ...flashdb.Edge) (int, error)
	Linked(ctx context.Context, key string) ([]string, error)
	Keys(ctx context.Context, fn func(id uint32, key string) error) error
	KeysWithPrefix(ctx context.Context, prefix string, limit int) ([]string, error)
	KeysOf(ctx context.Context, ids []uint32) (map[uint32]string, error)
	Meta(ctx context.Context, name string) (string, error) // "" when there is none
	SetMeta(ctx context.Context, name, value string) error

	Decoders(ctx context.Context) ([]string, error)
	Decoder(ctx context.Context, name string) (decoder.Decoder, error)
	PutDecoder(ctx context.Context, name string, d decoder.Decoder) error
	DropDecoder(ctx context.Context, name string) error

	Predict(ctx context.Context, key string, k int, opts *flashdb.PredictOptions) (flashdb.Result, error)
	PredictVector(ctx context.Context, source []float32, k int, opts *flashdb.PredictOptions) (flashdb.Result, error)
	PredictBatch(ctx context.Context, keys []string, k int, opts *flashdb.PredictOptions) iter.Seq2[flashdb.Result, error]
	Score(ctx context.Context, decoderName, source string, candidates ...string) ([]flashdb.Hit, error)
	Search(ctx context.Context, vec []float32, k int, opts *flashdb.SearchOptions) (flashdb.Result, error)

	Calibrations(ctx context.Context) ([]flashdb.Calibration, error)
	ListSizes(ctx context.Context) ([]int, error)
	Calibrate(ctx context.Context, opts *flashdb.CalibrateOptions) ([]flashdb.Calibration, error)
	Rebuild(ctx context.Context, opts *flashdb.RebuildOptions) (flashdb.RebuildResult, error)
}

// A localDB is a directory that this process has open.
type localDB struct{ *flashdb.DB }

func (db localDB) Collections(context.Context) ([]string, error) { return db.DB.Collections(), nil }

func (db localDB) Collection(_ context.Context, name string) (collection, error) {
	c, err := db.DB.Collection(name)
	if err != nil {
		return nil, err
	}
	return localCollection{c}, nil
}

func (db localDB) Metrics(context.Context) (flashdb.Metrics, error) { return db.DB.Metrics(), nil }

func (db localDB) Check(ctx context.Context) (findings, strays []string, err error) {
	if findings, err = db.DB.Check(ctx); err == nil {
		strays, err = db.DB.Strays(ctx)
	}
	return findings, strays, err
}

func (db localDB) CreateCollection(_ context.Context, name string, s flashdb.Schema) error {
	_, err := db.DB.CreateCollection(name, s)
	return err
}

type localCollection struct{ *flashdb.Collection }

func (c localCollection) KeysOf(_ context.Context, ids []uint32) (map[uint32]string, error) {
	keys := make(map[uint32]string, len(ids))
	for _, id := range ids {
		if key, ok := c.Key(id); ok {
			keys[id] = key
		}
	}
	return keys, nil
}

func (c localCollection) Meta(_ context.Context, name string) (string, error) {
	value, _ := c.Collection.Meta(name)
	return value, nil
}

func (c localCollection) Decoders(context.Context) ([]string, error) {
	return c.Collection.Decoders(), nil
}

func (c localCollection) Decoder(_ context.Context, name string) (decoder.Decoder, error) {
	return c.Collection.Decoder(name)
}
