package flashdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/dbtest"
)

const snapDim = 6

// A snapWorld is a database of users and items to which random things happen.
type snapWorld struct {
	*testDB
	rng      *rand.Rand
	releases int
	keys     int // items were named up to this one
}

func newSnapWorld(t *testing.T, seed uint64) *snapWorld {
	w := &snapWorld{testDB: openDB(t), rng: rand.New(rand.NewPCG(seed, 17))}
	ctx := context.Background()
	require.NoError(t, w.collection("users", snapDim).Upsert(ctx, w.nodes("user", 0, 12)...))
	items := w.collection("items", snapDim)
	w.keys = 150
	require.NoError(t, items.Upsert(ctx, w.nodes("item", 0, w.keys)...))
	w.decoder(t)
	_, err := items.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, OmitRows: seed%2 == 0})
	require.NoError(t, err)
	return w
}

func (w *snapWorld) nodes(prefix string, from, to int) (nodes []flashdb.Node) {
	for i := from; i < to; i++ {
		nodes = append(nodes, flashdb.Node{
			Key: fmt.Sprint(prefix, i), Embedding: dbtest.RandomVector(w.rng, snapDim), Tags: []string{fmt.Sprint("t", w.rng.IntN(3))},
			Attributes: flashdb.Attributes{"price": w.rng.IntN(10)}, Payload: fmt.Append(nil, w.rng.IntN(1000)),
		})
	}
	return nodes
}

func (w *snapWorld) items(t *testing.T) *flashdb.Collection {
	c, err := w.Collection("items")
	require.NoError(t, err)
	return c
}

func (w *snapWorld) decoder(t *testing.T) {
	d, err := dbtest.RandomMLP(w.rng, snapDim, 8)
	require.NoError(t, err)
	require.NoError(t, w.items(t).PutDecoder(context.Background(), "buys", d))
}

// step does one thing at random.
func (w *snapWorld) step(t *testing.T) string {
	ctx, items := context.Background(), w.items(t)
	item := func() string { return fmt.Sprint("item", w.rng.IntN(w.keys)) }
	user := func() string { return fmt.Sprint("user", w.rng.IntN(12)) }
	opts := &flashdb.RebuildOptions{Force: true, OmitRows: w.rng.IntN(2) == 0}
	did := []string{"upsert", "replace", "delete", "link", "unlink", "tags", "decoder", "meta", "user", "rebuild", "newer", "checkpoint", "compact", "publish", "roll back", "calibrate"}[w.rng.IntN(16)]
	switch did {
	case "upsert":
		require.NoError(t, items.Upsert(ctx, w.nodes("item", w.keys, w.keys+5)...))
		w.keys += 5
	case "replace":
		i := w.rng.IntN(w.keys - 8)
		require.NoError(t, items.Upsert(ctx, w.nodes("item", i, i+8)...))
	case "delete":
		_, err := items.Delete(ctx, item(), item(), item())
		require.NoError(t, err)
	case "link", "unlink":
		edge := flashdb.Edge{SourceCollection: "users", Source: user(), Target: item()}
		var err error
		if did == "link" {
			err = items.Link(ctx, edge)
		} else {
			_, err = items.Unlink(ctx, edge)
		}
		if err != nil {
			require.ErrorIs(t, err, flashdb.ErrNotFound)
		}
	case "tags":
		if err := items.SetTags(ctx, item(), []string{"t1"}); err != nil {
			require.ErrorIs(t, err, flashdb.ErrNotFound)
		}
	case "decoder":
		w.decoder(t)
	case "meta":
		require.NoError(t, items.SetMeta(ctx, "note", item()))
	case "user":
		users, err := w.Collection("users")
		require.NoError(t, err)
		require.NoError(t, users.Upsert(ctx, w.nodes("user", 0, 12)...))
	case "rebuild":
		_, err := items.Rebuild(ctx, opts)
		require.NoError(t, err)
	case "newer":
		_, err := items.Rebuild(ctx, &flashdb.RebuildOptions{NewerOnly: true, Force: true})
		require.NoError(t, err)
	case "checkpoint":
		require.NoError(t, w.Checkpoint(ctx))
	case "compact":
		if runtime.GOOS != "windows" {
			_, err := w.Compact(ctx, nil)
			require.NoError(t, err)
		}
	case "publish":
		w.publish(t, opts)
	case "calibrate":
		_, err := items.Calibrate(ctx, &flashdb.CalibrateOptions{Sources: 20, Time: 30 * time.Millisecond, RandomSeed: w.rng.Uint64()})
		require.NoError(t, err)
	case "roll back":
		if _, err := w.Rollback(ctx); err != nil {
			require.ErrorIs(t, err, flashdb.ErrNotFound)
		}
	}
	return did
}

func (w *snapWorld) publish(t *testing.T, opts *flashdb.RebuildOptions) {
	ctx := context.Background()
	w.releases++
	name := fmt.Sprint("night", w.releases)
	r, err := w.StageRelease(ctx, name, "users", "items")
	require.NoError(t, err)
	_, err = r.Put(ctx, "users", w.nodes("user", 0, 12)...)
	require.NoError(t, err)
	_, err = r.Put(ctx, "items", w.nodes("item", 0, w.keys-10)...)
	require.NoError(t, err)
	d, err := dbtest.RandomMLP(w.rng, snapDim, 8)
	require.NoError(t, err)
	require.NoError(t, r.PutDecoder(ctx, "items", "buys", d))
	_, err = r.Build(ctx, opts)
	require.NoError(t, err)
	_, err = w.Publish(ctx, name, &flashdb.PublishOptions{Force: true})
	require.NoError(t, err)
}

// seen is all that a snapshot answers, as text.
func seen(t *testing.T, s *flashdb.Snapshot) string {
	t.Helper()
	ctx := context.Background()
	var out strings.Builder
	items, err := s.Collection("items")
	require.NoError(t, err)
	users, err := s.Collection("users")
	require.NoError(t, err)
	say := func(what string, x any, err error) {
		fmt.Fprintln(&out, what, x, err)
	}
	result := func(what string, res flashdb.Result, err error) {
		say(what, []any{res.Source, res.Hits, res.Stats.Plan, res.Stats.Generation, res.Stats.DeltaRows, res.Stats.RowsScored}, err)
	}
	of := func(o flashdb.PredictOptions) *flashdb.PredictOptions {
		o.SourceCollection, o.Decoder = "users", "buys"
		return &o
	}
	for _, o := range []flashdb.PredictOptions{{}, {Exact: true, WithNode: true}, {Filter: "t1"}, {Filter: "price < 5", IncludeLinked: true}, {Diversity: .5}} {
		res, err := items.Predict(ctx, "user3", 40, of(o))
		result("predict", res, err)
	}
	for res, err := range items.PredictBatch(ctx, []string{"user1", "user2", "user99"}, 5, of(flashdb.PredictOptions{})) {
		result("batch", res, err)
	}
	res, err := items.Search(ctx, []float32{1, 2, 3, 4, 5, 6}, 5, nil)
	result("search", res, err)
	hits, err := items.Score(ctx, "user1", []string{"item1", "item2"}, &flashdb.ScoreOptions{SourceCollection: "users"})
	say("score", hits, err)
	reasons, err := items.Why(ctx, "user1", []string{"item3"}, &flashdb.WhyOptions{SourceCollection: "users"})
	say("why", reasons, err)
	for _, c := range []*flashdb.Collection{users, items} {
		for n, err := range c.Nodes(ctx) {
			say("node", n, err)
			linked, err := items.Linked(ctx, flashdb.Edge{SourceCollection: c.Name(), Source: n.Key})
			say("linked", linked, err)
		}
		for e, err := range c.Links(ctx) {
			say("edge", e, err)
		}
		keys, err := c.KeysWithPrefix(ctx, "item1", 10)
		say("keys", keys, err)
		decoders, err := c.Decoders(ctx)
		say("decoders", decoders, err)
		all, err := c.Calibrations(ctx)
		say("calibrations", all, err)
		value, ok, err := c.Meta(ctx, "note")
		say("meta", []any{value, ok}, err)
	}
	return out.String()
}

// TestSnapshotKeepsItsMoment: whatever happens to the database, each of several snapshots answers
// as when it was taken.
func TestSnapshotKeepsItsMoment(t *testing.T) {
	computes(t)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newSnapWorld(t, seed)
			type taken struct {
				*flashdb.Snapshot
				want string
			}
			var all []taken
			for range 60 {
				if w.rng.IntN(4) == 0 && len(all) < 3 {
					s, err := w.Snapshot(context.Background())
					require.NoError(t, err)
					all = append(all, taken{s, seen(t, s)})
				}
				did := w.step(t)
				for _, s := range all {
					require.Equal(t, s.want, seen(t, s.Snapshot), "after %s", did)
				}
				if len(all) == 3 && w.rng.IntN(5) == 0 {
					require.NoError(t, all[0].Close())
					all = all[1:]
				}
			}
			require.NoError(t, w.DropCollection(context.Background(), "items"))
			for _, s := range all {
				require.Equal(t, s.want, seen(t, s.Snapshot), "after the collection was dropped")
				require.NoError(t, s.Close())
			}
		})
	}
}

// TestSnapshotPages: the second page goes on where the first has ended, although everything has
// changed in between.
func TestSnapshotPages(t *testing.T) {
	ctx := context.Background()
	w := newSnapWorld(t, 5)
	exact := func(exclude ...string) *flashdb.PredictOptions {
		return &flashdb.PredictOptions{SourceCollection: "users", Exact: true, Exclude: exclude}
	}
	both, err := w.items(t).Predict(ctx, "user1", 40, exact())
	require.NoError(t, err)
	s, err := w.Snapshot(ctx, "items")
	require.NoError(t, err)
	items, err := s.Collection("items")
	require.NoError(t, err)
	first, err := items.Predict(ctx, "user1", 20, exact())
	require.NoError(t, err)
	assert.Equal(t, both.Hits[:20], first.Hits)

	_, err = w.items(t).Delete(ctx, both.Hits[25].Key, both.Hits[3].Key)
	require.NoError(t, err)
	require.NoError(t, w.items(t).Upsert(ctx, w.nodes("item", 0, 100)...))
	require.NoError(t, w.items(t).Link(ctx, flashdb.Edge{SourceCollection: "users", Source: "user1", Target: both.Hits[30].Key}))
	w.publish(t, nil)

	var shown []string
	for _, h := range first.Hits {
		shown = append(shown, h.Key)
	}
	second, err := items.Predict(ctx, "user1", 20, exact(shown...))
	require.NoError(t, err)
	assert.Equal(t, both.Hits[20:], second.Hits)
	now, err := w.items(t).Predict(ctx, "user1", 40, exact())
	require.NoError(t, err)
	assert.NotEqual(t, both.Hits, now.Hits)
	require.NoError(t, s.Close())
}

func TestSnapshotErrors(t *testing.T) {
	ctx := context.Background()
	w := newSnapWorld(t, 6)
	_, err := w.Snapshot(ctx, "items", "films")
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	s, err := w.Snapshot(ctx, "items")
	require.NoError(t, err)
	_, err = s.Collection("users")
	require.ErrorContains(t, err, "name it when the snapshot is taken")
	items, err := s.Collection("items")
	require.NoError(t, err)

	// A source of a collection that was not named is found all the same.
	by := &flashdb.PredictOptions{SourceCollection: "users"}
	_, err = items.Predict(ctx, "user1", 3, by)
	require.NoError(t, err)

	d, err := items.Decoder("buys")
	require.NoError(t, err)
	_, rebuilt := items.Rebuild(ctx, nil)
	_, calibrated := items.Calibrate(ctx, nil)
	_, deleted := items.Delete(ctx, "item1")
	for _, err := range []error{
		items.Upsert(ctx, w.nodes("item", 0, 1)...), items.SetTags(ctx, "item1", nil), items.PutDecoder(ctx, "d", d),
		items.PutEncoder(ctx, nil, flashdb.EncoderUse{}), rebuilt, calibrated, deleted,
	} {
		assert.ErrorIs(t, err, flashdb.ErrInvalid)
		assert.ErrorContains(t, err, "of a snapshot, which is only read")
	}

	assert.EqualValues(t, 1, w.Metrics().OpenSnapshots)
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Close(), flashdb.ErrClosed)
	assert.Zero(t, w.Metrics().OpenSnapshots)
	_, err = items.Predict(ctx, "user1", 3, by)
	require.ErrorIs(t, err, flashdb.ErrClosed)
	assert.ErrorContains(t, err, "the snapshot was closed")
	_, err = items.Get(ctx, "item1")
	require.ErrorIs(t, err, flashdb.ErrClosed)

	// One that is left open does not keep the database from closing.
	s, err = w.Snapshot(ctx)
	require.NoError(t, err)
	w.reopen()
	require.ErrorIs(t, s.Close(), flashdb.ErrClosed)
}

// TestSnapshotOfWholeBatches takes snapshots beside batches that write users and items together.
func TestSnapshotOfWholeBatches(t *testing.T) {
	ctx := context.Background()
	d, users, items := emptyShop(t)
	write := func(n int) {
		var b flashdb.Batch
		for i := range 3 {
			b.Upsert("users", node(fmt.Sprint("user", i), float32(n), 0))
			b.Upsert("items", node(fmt.Sprint("item", i), float32(n), 0))
		}
		assert.NoError(t, d.Apply(ctx, &b))
	}
	write(1)
	require.NoError(t, items.PutDecoder(ctx, "dot", dotDecoder(t, 2)))
	var work sync.WaitGroup
	done := make(chan struct{})
	work.Go(func() {
		for n := 2; ; n++ {
			select {
			case <-done:
				return
			default:
				write(n)
			}
		}
	})
	for range 50 {
		s, err := d.Snapshot(ctx)
		require.NoError(t, err)
		of, err := s.Collection("items")
		require.NoError(t, err)
		var all []float32
		for range 2 {
			res, err := of.Predict(ctx, "user1", 3, &flashdb.PredictOptions{SourceCollection: users.Name()})
			require.NoError(t, err)
			for _, h := range res.Hits {
				all = append(all, h.Score)
			}
		}
		n, err := of.Get(ctx, "item0")
		require.NoError(t, err)
		for _, score := range all {
			require.Equal(t, n.Embedding[0]*n.Embedding[0], score)
		}
		require.Len(t, all, 6)
		require.NoError(t, s.Close())
	}
	close(done)
	work.Wait()
}

// TestSnapshotOfDamagedIndex: an index that is cut short under a snapshot is no longer used, and
// the rows of the moment are scanned.
func TestSnapshotOfDamagedIndex(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is mapped cannot be cut short")
	}
	ctx := context.Background()
	w := newSnapWorld(t, 7)
	ask := func(c *flashdb.Collection) flashdb.Result {
		res, err := c.Predict(ctx, "user1", 20, &flashdb.PredictOptions{SourceCollection: "users", Exact: true})
		require.NoError(t, err)
		return res
	}
	want := ask(w.items(t)).Hits
	s, err := w.Snapshot(ctx, "items")
	require.NoError(t, err)
	items, err := s.Collection("items")
	require.NoError(t, err)
	require.NoError(t, w.items(t).Upsert(ctx, w.nodes("item", 0, 100)...))
	files, err := filepath.Glob(filepath.Join(w.dir, "index", "items", "*.ivf"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.Truncate(files[0], 4096))
	for range 2 {
		res := ask(items)
		assert.Equal(t, want, res.Hits)
		assert.True(t, res.Stats.IndexDamaged)
	}
	assert.NotEqual(t, want, ask(w.items(t)).Hits)
	require.NoError(t, s.Close())
	_, err = w.items(t).Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)
}

// TestSnapshotReadOnly: a database that is open read-only has snapshots, too.
func TestSnapshotReadOnly(t *testing.T) {
	ctx := context.Background()
	w := newSnapWorld(t, 8)
	require.NoError(t, w.Close())
	db, err := flashdb.Open(w.dir, &flashdb.Options{ReadOnly: true})
	require.NoError(t, err)
	s, err := db.Snapshot(ctx)
	require.NoError(t, err)
	assert.Contains(t, seen(t, s), "predict")
	require.NoError(t, s.Close())
	require.NoError(t, db.Close())
	w.open()
}
