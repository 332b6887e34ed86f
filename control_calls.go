package flashdb

import (
	"context"
	"fmt"
	"os"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/control"
)

// keysPage is how many keys travel in one line.
const keysPage = 4096

// controlCalls are the calls that the control socket answers.
func (db *DB) controlCalls() map[string]control.Call {
	return map[string]control.Call{
		control.CallOwner: answer(func(context.Context, *control.None, *control.Stream) (any, error) {
			return control.Owner{PID: os.Getpid()}, nil
		}),
		control.CallStats: answer(func(ctx context.Context, _ *control.None, _ *control.Stream) (any, error) {
			return db.Stats(ctx)
		}),
		control.CallMetrics: answer(func(context.Context, *control.None, *control.Stream) (any, error) {
			return db.Metrics(), nil
		}),
		control.CallCheck: answer(func(ctx context.Context, _ *control.None, _ *control.Stream) (any, error) {
			findings, err := db.Check(ctx)
			if err != nil {
				return nil, err
			}
			strays, err := db.Strays(ctx)
			return control.Findings{Findings: findings, Strays: strays}, err
		}),
		control.CallCheckpoint: answer(func(ctx context.Context, _ *control.None, _ *control.Stream) (any, error) {
			return nil, db.Checkpoint(ctx)
		}),
		control.CallCompact: answer(db.controlCompact),
		control.CallBackup:  answer(db.controlBackup),
		control.CallCollections: answer(func(context.Context, *control.None, *control.Stream) (any, error) {
			return control.Names{Names: db.Collections()}, nil
		}),
		control.CallCreate: answer(func(_ context.Context, r *control.Create[Schema], _ *control.Stream) (any, error) {
			_, err := db.CreateCollection(r.Collection, r.Schema)
			return nil, err
		}),
		control.CallDrop: answer(func(ctx context.Context, r *control.In, _ *control.Stream) (any, error) {
			return nil, db.DropCollection(ctx, r.Collection)
		}),

		control.CallCollection:  answerIn(db, (*Collection).controlSchema),
		control.CallUpsert:      answerIn(db, (*Collection).controlUpsert),
		control.CallGet:         answerIn(db, (*Collection).controlGet),
		control.CallDelete:      answerIn(db, (*Collection).controlDelete),
		control.CallLink:        answerIn(db, (*Collection).controlLink),
		control.CallUnlink:      answerIn(db, (*Collection).controlUnlink),
		control.CallLinked:      answerIn(db, (*Collection).controlLinked),
		control.CallKeys:        answerIn(db, (*Collection).controlKeys),
		control.CallKeysOf:      answerIn(db, (*Collection).controlKeysOf),
		control.CallPrefix:      answerIn(db, (*Collection).controlPrefix),
		control.CallMeta:        answerIn(db, (*Collection).controlMeta),
		control.CallSetMeta:     answerIn(db, (*Collection).controlSetMeta),
		control.CallDecoders:    answerIn(db, (*Collection).controlDecoders),
		control.CallDecoder:     answerIn(db, (*Collection).controlDecoder),
		control.CallPutDecoder:  answerIn(db, (*Collection).controlPutDecoder),
		control.CallDropDecoder: answerIn(db, (*Collection).controlDropDecoder),
		control.CallPredict:     answerIn(db, (*Collection).controlPredict),
		control.CallScore:       answerIn(db, (*Collection).controlScore),
		control.CallSearch:      answerIn(db, (*Collection).controlSearch),
		control.CallRebuild:     answerIn(db, (*Collection).controlRebuild),
		control.CallCalibrations: answerIn(db, func(c *Collection, ctx context.Context, _ *control.In, _ *control.Stream) (any, error) {
			all, err := c.Calibrations(ctx)
			return control.Calibrations[Calibration]{Calibrations: all}, err
		}),
		control.CallLists: answerIn(db, func(c *Collection, ctx context.Context, _ *control.In, _ *control.Stream) (any, error) {
			sizes, err := c.ListSizes(ctx)
			return control.Lists{Sizes: sizes}, err
		}),
		control.CallCalibrate: answerIn(db, (*Collection).controlCalibrate),
	}
}

// answer makes a call of fn.
func answer[Req any](fn func(ctx context.Context, r *Req, s *control.Stream) (any, error)) control.Call {
	return control.Handle(func(err error) error { return fmt.Errorf("%w: request: %w", ErrInvalid, err) }, fn)
}

// answerIn makes a call of fn, which asks the collection that the request names.
func answerIn[Req any, P interface {
	*Req
	Where() string
}](db *DB, fn func(c *Collection, ctx context.Context, r *Req, s *control.Stream) (any, error)) control.Call {
	return answer(func(ctx context.Context, r *Req, s *control.Stream) (any, error) {
		c, err := db.Collection(P(r).Where())
		if err != nil {
			return nil, err
		}
		return fn(c, ctx, r, s)
	})
}

func (db *DB) controlCompact(ctx context.Context, r *control.Compact[CompactOptions], s *control.Stream) (any, error) {
	var o CompactOptions
	if r.Options != nil {
		o = *r.Options
	}
	o.Progress = func(stage string, done, total int64) {
		s.Progress(control.Progress{Stage: stage, Done: done, Total: total})
	}
	return db.Compact(ctx, &o)
}

func (db *DB) controlBackup(ctx context.Context, r *control.Backup[BackupOptions], s *control.Stream) (any, error) {
	var o BackupOptions
	if r.Options != nil {
		o = *r.Options
	}
	o.Progress = func(done, total int64) { s.Progress(control.Progress{Stage: "back up", Done: done, Total: total}) }
	return db.Backup(ctx, chunks{s}, &o)
}

// chunks writes a stream of bytes as items.
type chunks struct{ stream *control.Stream }

func (c chunks) Write(b []byte) (int, error) {
	if err := c.stream.Item(control.Chunk{Bytes: b}); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (c *Collection) controlSchema(context.Context, *control.In, *control.Stream) (any, error) {
	return c.Schema(), nil
}

func (c *Collection) controlUpsert(ctx context.Context, r *control.Upsert, _ *control.Stream) (any, error) {
	nodes := make([]Node, len(r.Nodes))
	for i, n := range r.Nodes {
		nodes[i] = Node{Key: n.Key, Embedding: n.Embedding, Tags: n.Tags, Payload: n.Payload}
	}
	return nil, c.Upsert(ctx, nodes...)
}

func (c *Collection) controlGet(ctx context.Context, r *control.Nodes, s *control.Stream) (any, error) {
	for _, key := range r.Keys {
		n, err := c.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		if err := s.Item(control.Node{Key: n.Key, Embedding: n.Embedding, Tags: n.Tags, Payload: n.Payload}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (c *Collection) controlDelete(ctx context.Context, r *control.Nodes, _ *control.Stream) (any, error) {
	n, err := c.Delete(ctx, r.Keys...)
	return control.Deleted{Nodes: n}, err
}

func (c *Collection) controlLink(ctx context.Context, r *control.Link, _ *control.Stream) (any, error) {
	edges, err := edgesOf(r)
	if err != nil {
		return nil, fmt.Errorf("link in %q: %w", c.name, err)
	}
	return nil, c.LinkAll(ctx, edges...)
}

func (c *Collection) controlUnlink(ctx context.Context, r *control.Link, _ *control.Stream) (any, error) {
	edges, err := edgesOf(r)
	if err != nil {
		return nil, fmt.Errorf("unlink in %q: %w", c.name, err)
	}
	n, err := c.UnlinkAll(ctx, edges...)
	return control.Unlinked{Links: n}, err
}

func edgesOf(r *control.Link) ([]Edge, error) {
	if len(r.Sources) != len(r.Targets) {
		return nil, fmt.Errorf("%w: %d sources and %d targets, want one of each an edge", ErrInvalid, len(r.Sources), len(r.Targets))
	}
	edges := make([]Edge, len(r.Sources))
	for i := range edges {
		edges[i] = Edge{Source: r.Sources[i], Target: r.Targets[i]}
	}
	return edges, nil
}

func (c *Collection) controlLinked(ctx context.Context, r *control.Nodes, _ *control.Stream) (any, error) {
	if len(r.Keys) != 1 {
		return nil, fmt.Errorf("linked in %q: %w: %d keys, want one", c.name, ErrInvalid, len(r.Keys))
	}
	keys, err := c.Linked(ctx, r.Keys[0])
	return control.Names{Names: keys}, err
}

func (c *Collection) controlKeys(ctx context.Context, _ *control.In, s *control.Stream) (any, error) {
	var page control.IDs
	send := func() error {
		if len(page.IDs) == 0 {
			return nil
		}
		err := s.Item(page)
		page.IDs, page.Keys = page.IDs[:0], page.Keys[:0]
		return err
	}
	err := c.Keys(ctx, func(id uint32, key string) error {
		page.IDs, page.Keys = append(page.IDs, id), append(page.Keys, key)
		if len(page.IDs) < keysPage {
			return nil
		}
		return send()
	})
	if err != nil {
		return nil, err
	}
	return nil, send()
}

func (c *Collection) controlPrefix(ctx context.Context, r *control.Prefix, _ *control.Stream) (any, error) {
	keys, err := c.KeysWithPrefix(ctx, r.Prefix, r.Limit)
	return control.Names{Names: keys}, err
}

func (c *Collection) controlKeysOf(_ context.Context, r *control.IDs, _ *control.Stream) (any, error) {
	var found control.IDs
	for _, id := range r.IDs {
		if key, ok := c.Key(id); ok {
			found.IDs, found.Keys = append(found.IDs, id), append(found.Keys, key)
		}
	}
	return found, nil
}

func (c *Collection) controlMeta(_ context.Context, r *control.Meta, _ *control.Stream) (any, error) {
	value, _ := c.Meta(r.Name)
	return control.Meta{Value: value}, nil
}

func (c *Collection) controlSetMeta(ctx context.Context, r *control.Meta, _ *control.Stream) (any, error) {
	return nil, c.SetMeta(ctx, r.Name, r.Value)
}

func (c *Collection) controlDecoders(context.Context, *control.In, *control.Stream) (any, error) {
	return control.Names{Names: c.Decoders()}, nil
}

func (c *Collection) controlDecoder(_ context.Context, r *control.Decoder, _ *control.Stream) (any, error) {
	d, err := c.Decoder(r.Name)
	if err != nil {
		return nil, err
	}
	return control.Decoder{Blob: decoder.Marshal(d)}, nil
}

func (c *Collection) controlPutDecoder(ctx context.Context, r *control.Decoder, _ *control.Stream) (any, error) {
	d, err := decoder.Unmarshal(r.Blob)
	if err != nil {
		return nil, err
	}
	return nil, c.PutDecoder(ctx, r.Name, d)
}

func (c *Collection) controlDropDecoder(ctx context.Context, r *control.Decoder, _ *control.Stream) (any, error) {
	return nil, c.DropDecoder(ctx, r.Name)
}

func (c *Collection) controlPredict(ctx context.Context, r *control.Predict[PredictOptions], s *control.Stream) (any, error) {
	if r.Vector != nil {
		res, err := c.PredictVector(ctx, r.Vector, r.K, r.Options)
		if err != nil {
			return nil, err
		}
		return nil, s.Item(control.Answer[Result]{Result: res})
	}
	for res, err := range c.PredictBatch(ctx, r.Keys, r.K, r.Options) {
		a := control.Answer[Result]{Result: res}
		if err != nil {
			err = c.db.endedByClose(err)
			code, _ := errorCode(err)
			a.Error = &control.Error{Code: code, Text: err.Error()}
		}
		if err := s.Item(a); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (c *Collection) controlScore(ctx context.Context, r *control.Score, _ *control.Stream) (any, error) {
	hits, err := c.Score(ctx, r.Decoder, r.Source, r.Candidates...)
	return control.Hits[Hit]{Hits: hits}, err
}

func (c *Collection) controlSearch(ctx context.Context, r *control.Search[SearchOptions], _ *control.Stream) (any, error) {
	return c.Search(ctx, r.Vector, r.K, r.Options)
}

func (c *Collection) controlRebuild(ctx context.Context, r *control.Rebuild[RebuildOptions], s *control.Stream) (any, error) {
	var o RebuildOptions
	if r.Options != nil {
		o = *r.Options
	}
	o.Progress = func(stage string, done, total int64) {
		s.Progress(control.Progress{Stage: stage, Done: done, Total: total})
	}
	return c.Rebuild(ctx, &o)
}

func (c *Collection) controlCalibrate(ctx context.Context, r *control.Calibrate[CalibrateOptions], s *control.Stream) (any, error) {
	var o CalibrateOptions
	if r.Options != nil {
		o = *r.Options
	}
	o.Progress = func(stage string, done, total int64) {
		s.Progress(control.Progress{Stage: stage, Done: done, Total: total})
	}
	all, err := c.Calibrate(ctx, &o)
	return control.Calibrations[Calibration]{Calibrations: all}, err
}
