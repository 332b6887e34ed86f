package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/control"
	"github.com/flashdb/flashdb/internal/output"
)

// A remoteDB is a directory that another process has open, asked through its
// control socket.
type remoteDB struct{ client *control.Client }

// openRemote connects to the process that has dir open and says so on w. It
// returns control.ErrNoOwner when nobody answers.
func openRemote(ctx context.Context, dir string, w io.Writer) (database, error) {
	db := remoteDB{control.NewClient(dir)}
	var owner control.Owner
	if err := db.ask(ctx, control.CallOwner, nil, &owner); err != nil {
		db.client.Close()
		return nil, err
	}
	fmt.Fprintf(w, "%s is open in process %d; asked it through %s\n", shown(dir), owner.PID, control.SocketName)
	return db, nil
}

func (db remoteDB) ask(ctx context.Context, call string, request, result any) error {
	return db.client.Call(ctx, call, request, result, control.Reply{})
}

func (db remoteDB) Close() error {
	db.client.Close()
	return nil
}

func (db remoteDB) Collections(ctx context.Context) ([]string, error) {
	var names control.Names
	err := db.ask(ctx, control.CallCollections, nil, &names)
	return names.Names, err
}

func (db remoteDB) Collection(ctx context.Context, name string) (collection, error) {
	c := remoteCollection{client: db.client, in: control.In{Collection: name}}
	if err := db.ask(ctx, control.CallCollection, c.in, &c.schema); err != nil {
		return nil, err
	}
	return c, nil
}

func (db remoteDB) CreateCollection(ctx context.Context, name string, s flashdb.Schema) error {
	return db.ask(ctx, control.CallCreate, control.Create[flashdb.Schema]{Collection: name, Schema: s}, nil)
}

func (db remoteDB) DropCollection(ctx context.Context, name string) error {
	return db.ask(ctx, control.CallDrop, control.In{Collection: name}, nil)
}

func (db remoteDB) Stats(ctx context.Context) (flashdb.Stats, error) {
	var s flashdb.Stats
	err := db.ask(ctx, control.CallStats, nil, &s)
	return s, err
}

func (db remoteDB) Metrics(ctx context.Context) (flashdb.Metrics, error) {
	var m flashdb.Metrics
	err := db.ask(ctx, control.CallMetrics, nil, &m)
	return m, err
}

func (db remoteDB) Check(ctx context.Context) (findings, strays []string, err error) {
	var f control.Findings
	err = db.ask(ctx, control.CallCheck, nil, &f)
	return f.Findings, f.Strays, err
}

func (db remoteDB) Checkpoint(ctx context.Context) error {
	return db.ask(ctx, control.CallCheckpoint, nil, nil)
}

// A remoteCollection is a collection of a remoteDB.
type remoteCollection struct {
	client *control.Client
	in     control.In
	schema flashdb.Schema
}

func (c remoteCollection) Name() string           { return c.in.Collection }
func (c remoteCollection) Schema() flashdb.Schema { return c.schema }

func (c remoteCollection) ask(ctx context.Context, call string, request, result any) error {
	return c.client.Call(ctx, call, request, result, control.Reply{})
}

func (c remoteCollection) Upsert(ctx context.Context, nodes ...flashdb.Node) error {
	r := control.Upsert{In: c.in, Nodes: make([]control.Node, len(nodes))}
	for i, n := range nodes {
		r.Nodes[i] = control.Node{Key: n.Key, Embedding: n.Embedding, Tags: n.Tags, Payload: n.Payload}
	}
	return c.ask(ctx, control.CallUpsert, r, nil)
}

func (c remoteCollection) Get(ctx context.Context, key string) (flashdb.Node, error) {
	var n control.Node
	err := c.client.Call(ctx, control.CallGet, control.Nodes{In: c.in, Keys: []string{key}}, nil, control.Reply{
		Item: func(decode func(any) error) error { return decode(&n) },
	})
	return flashdb.Node{Key: n.Key, Embedding: n.Embedding, Tags: n.Tags, Payload: n.Payload}, err
}

func (c remoteCollection) Delete(ctx context.Context, keys ...string) (int, error) {
	var d control.Deleted
	err := c.ask(ctx, control.CallDelete, control.Nodes{In: c.in, Keys: keys}, &d)
	return d.Nodes, err
}

func (c remoteCollection) LinkAll(ctx context.Context, edges ...flashdb.Edge) error {
	return c.ask(ctx, control.CallLink, c.linkOf(edges), nil)
}

func (c remoteCollection) UnlinkAll(ctx context.Context, edges ...flashdb.Edge) (int, error) {
	var u control.Unlinked
	err := c.ask(ctx, control.CallUnlink, c.linkOf(edges), &u)
	return u.Links, err
}

func (c remoteCollection) linkOf(edges []flashdb.Edge) control.Link {
	r := control.Link{In: c.in, Sources: make([]string, len(edges)), Targets: make([]string, len(edges))}
	for i, e := range edges {
		r.Sources[i], r.Targets[i] = e.Source, e.Target
	}
	return r
}

func (c remoteCollection) Linked(ctx context.Context, key string) ([]string, error) {
	var names control.Names
	err := c.ask(ctx, control.CallLinked, control.Nodes{In: c.in, Keys: []string{key}}, &names)
	return names.Names, err
}

func (c remoteCollection) Keys(ctx context.Context, fn func(id uint32, key string) error) error {
	return c.client.Call(ctx, control.CallKeys, c.in, nil, control.Reply{
		Item: func(decode func(any) error) error {
			var page control.IDs
			if err := decode(&page); err != nil {
				return err
			}
			return page.Each(fn)
		},
	})
}

func (c remoteCollection) KeysWithPrefix(ctx context.Context, prefix string, limit int) ([]string, error) {
	var names control.Names
	err := c.ask(ctx, control.CallPrefix, control.Prefix{In: c.in, Prefix: prefix, Limit: limit}, &names)
	return names.Names, err
}

func (c remoteCollection) KeysOf(ctx context.Context, ids []uint32) (map[uint32]string, error) {
	var found control.IDs
	if err := c.ask(ctx, control.CallKeysOf, control.IDs{In: c.in, IDs: ids}, &found); err != nil {
		return nil, err
	}
	keys := make(map[uint32]string, len(found.IDs))
	return keys, found.Each(func(id uint32, key string) error { keys[id] = key; return nil })
}

func (c remoteCollection) Meta(ctx context.Context, name string) (string, error) {
	var m control.Meta
	err := c.ask(ctx, control.CallMeta, control.Meta{In: c.in, Name: name}, &m)
	return m.Value, err
}

func (c remoteCollection) SetMeta(ctx context.Context, name, value string) error {
	return c.ask(ctx, control.CallSetMeta, control.Meta{In: c.in, Name: name, Value: value}, nil)
}

func (c remoteCollection) Decoders(ctx context.Context) ([]string, error) {
	var names control.Names
	err := c.ask(ctx, control.CallDecoders, c.in, &names)
	return names.Names, err
}

func (c remoteCollection) Decoder(ctx context.Context, name string) (decoder.Decoder, error) {
	var d control.Decoder
	if err := c.ask(ctx, control.CallDecoder, control.Decoder{In: c.in, Name: name}, &d); err != nil {
		return nil, err
	}
	return decoder.Unmarshal(d.Blob)
}

func (c remoteCollection) PutDecoder(ctx context.Context, name string, d decoder.Decoder) error {
	return c.ask(ctx, control.CallPutDecoder, control.Decoder{In: c.in, Name: name, Blob: decoder.Marshal(d)}, nil)
}

func (c remoteCollection) DropDecoder(ctx context.Context, name string) error {
	return c.ask(ctx, control.CallDropDecoder, control.Decoder{In: c.in, Name: name}, nil)
}

// errEnough ends a reply that the caller does not want to read to its end: the
// owner notices, and does not compute the rest.
var errEnough = errors.New("enough")

// predict yields the answers, and after them what kept the rest from coming.
func (c remoteCollection) predict(ctx context.Context, r control.Predict[flashdb.PredictOptions], yield func(flashdb.Result, error) bool) {
	r.In = c.in
	enough := false
	err := c.client.Call(ctx, control.CallPredict, r, nil, control.Reply{
		Item: func(decode func(any) error) error {
			var a control.Answer[flashdb.Result]
			if err := decode(&a); err != nil {
				return err
			}
			var failed error
			if a.Error != nil {
				failed = a.Error
			}
			if enough = !yield(a.Result, failed); enough {
				return errEnough
			}
			return nil
		},
	})
	if err != nil && !enough {
		yield(flashdb.Result{}, err)
	}
}

// one returns the answer to a request for one.
func (c remoteCollection) one(ctx context.Context, r control.Predict[flashdb.PredictOptions]) (res flashdb.Result, err error) {
	c.predict(ctx, r, func(answer flashdb.Result, failed error) bool {
		res, err = answer, failed
		return failed == nil
	})
	return res, err
}

func (c remoteCollection) Predict(ctx context.Context, key string, k int, opts *flashdb.PredictOptions) (flashdb.Result, error) {
	return c.one(ctx, control.Predict[flashdb.PredictOptions]{Keys: []string{key}, K: k, Options: opts})
}

func (c remoteCollection) PredictVector(ctx context.Context, source []float32, k int, opts *flashdb.PredictOptions) (flashdb.Result, error) {
	return c.one(ctx, control.Predict[flashdb.PredictOptions]{Vector: source, K: k, Options: opts})
}

func (c remoteCollection) PredictBatch(ctx context.Context, keys []string, k int, opts *flashdb.PredictOptions) iter.Seq2[flashdb.Result, error] {
	return func(yield func(flashdb.Result, error) bool) {
		c.predict(ctx, control.Predict[flashdb.PredictOptions]{Keys: keys, K: k, Options: opts}, yield)
	}
}

func (c remoteCollection) Score(ctx context.Context, decoderName, source string, candidates ...string) ([]flashdb.Hit, error) {
	var hits control.Hits[flashdb.Hit]
	err := c.ask(ctx, control.CallScore, control.Score{In: c.in, Decoder: decoderName, Source: source, Candidates: candidates}, &hits)
	return hits.Hits, err
}

func (c remoteCollection) Search(ctx context.Context, vec []float32, k int, opts *flashdb.SearchOptions) (flashdb.Result, error) {
	var res flashdb.Result
	err := c.ask(ctx, control.CallSearch, control.Search[flashdb.SearchOptions]{In: c.in, Vector: vec, K: k, Options: opts}, &res)
	return res, err
}

func (c remoteCollection) Rebuild(ctx context.Context, opts *flashdb.RebuildOptions) (flashdb.RebuildResult, error) {
	var o flashdb.RebuildOptions
	if opts != nil {
		o = *opts
	}
	var res flashdb.RebuildResult
	err := c.client.Call(ctx, control.CallRebuild, control.Rebuild[flashdb.RebuildOptions]{In: c.in, Options: &o}, &res, progressTo(o.Progress))
	return res, err
}

func (c remoteCollection) Calibrations(ctx context.Context) ([]flashdb.Calibration, error) {
	var all control.Calibrations[flashdb.Calibration]
	err := c.ask(ctx, control.CallCalibrations, c.in, &all)
	return all.Calibrations, err
}

func (c remoteCollection) ListSizes(ctx context.Context) ([]int, error) {
	var lists control.Lists
	err := c.ask(ctx, control.CallLists, c.in, &lists)
	return lists.Sizes, err
}

func (c remoteCollection) Calibrate(ctx context.Context, opts *flashdb.CalibrateOptions) ([]flashdb.Calibration, error) {
	var o flashdb.CalibrateOptions
	if opts != nil {
		o = *opts
	}
	var all control.Calibrations[flashdb.Calibration]
	err := c.client.Call(ctx, control.CallCalibrate, control.Calibrate[flashdb.CalibrateOptions]{In: c.in, Options: &o}, &all, progressTo(o.Progress))
	return all.Calibrations, err
}

// progressTo hands the owner's progress on to fn, which may be nil.
func progressTo(fn func(stage string, done, total int64)) control.Reply {
	return control.Reply{Progress: func(decode func(any) error) error {
		var p control.Progress
		if err := decode(&p); err != nil || fn == nil {
			return err
		}
		fn(p.Stage, p.Done, p.Total)
		return nil
	}}
}

func (db remoteDB) Compact(ctx context.Context, opts *flashdb.CompactOptions) (res flashdb.CompactResult, err error) {
	err = db.client.Call(ctx, control.CallCompact, control.Compact[flashdb.CompactOptions]{Options: opts}, &res, progressTo(opts.Progress))
	return res, err
}

// BackupFile writes the owner's backup to a file, whole or not at all.
func (db remoteDB) BackupFile(ctx context.Context, file string, opts *flashdb.BackupOptions) (res flashdb.BackupResult, err error) {
	target, err := output.Resolve(file)
	if err != nil {
		return res, err
	}
	err = target.Write(func(w io.Writer) (err error) {
		res, err = db.Backup(ctx, w, opts)
		return err
	})
	return res, err
}

func (db remoteDB) Backup(ctx context.Context, w io.Writer, opts *flashdb.BackupOptions) (res flashdb.BackupResult, err error) {
	err = db.client.Call(ctx, control.CallBackup, control.Backup[flashdb.BackupOptions]{Options: opts}, &res, control.Reply{
		Item: func(decode func(any) error) error {
			var c control.Chunk
			if err := decode(&c); err != nil {
				return err
			}
			_, err := w.Write(c.Bytes)
			return err
		},
		Progress: func(decode func(any) error) error {
			var p control.Progress
			err := decode(&p)
			opts.Progress(p.Done, p.Total)
			return err
		},
	})
	return res, err
}
