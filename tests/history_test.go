package tests

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/dbtest"
	"github.com/flashdb/flashdb/internal/vfs"
)

// A world is what a database should hold: collections by name. It is immutable, and a write leads
// to another one.
type world map[string]*model

// names returns the names of the collections, sorted.
func (w world) names() []string { return slices.Sorted(maps.Keys(w)) }

// after returns the world after a write on one of its collections.
func (w world) after(name string, a write) world {
	m := w[name].clone()
	a.on(m)
	next := maps.Clone(w)
	next[name] = m
	next.endLinks(name)
	return next
}

// endLinks takes the links from nodes of a collection that are there no longer out of the others.
func (w world) endLinks(name string) {
	ended := func(from source, _ map[string]bool) bool {
		if from.collection != name {
			return false
		}
		m := w[name]
		return m == nil || m.nodes[from.key].Embedding == nil
	}
	for other, m := range w {
		if other != name {
			w[other] = m.clone()
			maps.DeleteFunc(w[other].links, ended)
		}
	}
}

// A step is one call of a history, and the world that it leads to.
type step struct {
	name string
	do   func(context.Context) error
	then world
}

// history drives a database and a world with the same calls.
type history struct {
	t     *rapid.T
	dir   string
	db    *flashdb.DB
	w     world
	seed  uint64
	rng   *rand.Rand
	steps int // done
	tally *tally
}

// historyNames are the collections that a history makes and drops.
var historyNames = []string{"c", "d", "e"}

func (h *history) open() {
	// Without flushes and segments in the background the files are at rest between calls, so that
	// crash copies what a kill at that moment would leave.
	db, err := openOn(vfs.Unsynced(vfs.OS()), h.dir, &flashdb.Options{FlushBytes: 1 << 40, SegmentRows: -1, CalibrateTime: -1})
	require.NoError(h.t, err)
	h.db = db
}

// close ends the database; rapid may abandon a history in the middle.
func (h *history) close() { _ = h.db.Close() }

func (h *history) key() string {
	return fmt.Sprintf("n%d", rapid.IntRange(0, 60).Draw(h.t, "key"))
}

// existing draws a key that is stored; "" when there is none.
func (h *history) existing(m *model) string {
	keys := m.keys()
	if len(keys) == 0 {
		return ""
	}
	return rapid.SampledFrom(keys).Draw(h.t, "existing")
}

// draws are the calls of a history that may run beside reads: all public ones of DB and Collection
// that change something on disk or in memory. Each returns the call, or the two, that it drew for a
// world; none when none fits.
func (h *history) draws() map[string]func(w world) []step {
	all := map[string]func(w world) []step{
		"create": h.create, "drop": h.drop, "batch": h.batch, "batch again": h.batch,
		"rebuild": h.rebuild, "index newer": h.indexNewer, "index newer again": h.indexNewer, "calibrate": h.calibrate,
		"checkpoint": h.atRest("checkpoint", func(ctx context.Context) error { return h.db.Checkpoint(ctx) }),
		"stats":      h.atRest("stats", func(ctx context.Context) error { _, err := h.db.Stats(ctx); return err }),
		"backup":     h.atRest("backup", func(ctx context.Context) error { _, err := h.db.Backup(ctx, io.Discard, nil); return err }),
		"check": h.atRest("check", func(ctx context.Context) error {
			findings, err := h.db.Check(ctx)
			if err == nil && len(findings) > 0 {
				err = fmt.Errorf("check found %q", findings)
			}
			return err
		}),
		"compact": func(w world) []step {
			o := &flashdb.CompactOptions{Rebuild: rapid.Bool().Draw(h.t, "rebuild")}
			return []step{{"compact", func(ctx context.Context) error { _, err := h.db.Compact(ctx, o); return err }, w}}
		},
	}
	for name, draw := range h.writes() {
		all[name] = func(w world) []step { return h.onOne(w, draw) }
	}
	return all
}

// writes are the calls that change one collection of a world.
func (h *history) writes() map[string]func(w world, name string) (write, bool) {
	all := map[string]func(w world, name string) (write, bool){}
	for kind, draw := range map[string]func(m *model) (write, bool){
		"upsert": h.upsert, "delete": h.delete, "set tags": h.setTags, "set payload": h.setPayload, "set attributes": h.setAttributes,
		"decoders": h.decoders, "meta": h.meta,
	} {
		all[kind] = func(w world, name string) (write, bool) { return draw(w[name]) }
	}
	for kind, change := range map[string]func(...flashdb.Edge) write{"link": linkWrite, "link more": linkWrite, "unlink any": unlinkWrite} {
		all[kind] = func(w world, name string) (write, bool) { return change(h.edges(w, name)...), true }
	}
	all["unlink"] = func(w world, name string) (write, bool) {
		known := w[name].edges()
		if len(known) == 0 {
			return write{}, false
		}
		return unlinkWrite(rapid.SliceOfN(rapid.SampledFrom(known), 1, 4).Draw(h.t, "known")...), true
	}
	return all
}

// batch draws a batch of some writes on any of the collections. Each fits the world that those
// before it lead to.
func (h *history) batch(w world) []step {
	draws := h.writes()
	kinds := append(slices.Sorted(maps.Keys(draws)), "upsert", "upsert", "upsert", "decoders", "decoders")
	var b flashdb.Batch
	then := w
	for range rapid.IntRange(1, 8).Draw(h.t, "writes") {
		name := rapid.SampledFrom(w.names()).Draw(h.t, "collection")
		if a, ok := draws[rapid.SampledFrom(kinds).Draw(h.t, "write")](then, name); ok {
			a.add(&b, name, then[name])
			then = then.after(name, a)
		}
	}
	return []step{{"batch", func(ctx context.Context) error { return h.db.Apply(ctx, &b) }, then}}
}

// atRest is a call that changes nothing that a caller can see.
func (h *history) atRest(name string, do func(context.Context) error) func(w world) []step {
	return func(w world) []step { return []step{{name, do, w}} }
}

// onOne draws a write on one of the collections.
func (h *history) onOne(w world, draw func(w world, name string) (write, bool)) []step {
	name := rapid.SampledFrom(w.names()).Draw(h.t, "collection")
	a, ok := draw(w, name)
	if !ok {
		return nil
	}
	return []step{h.write(w, name, a)}
}

// write makes a step of a write.
func (h *history) write(w world, name string, a write) step {
	return step{a.name, func(ctx context.Context) error {
		c, err := h.db.Collection(name)
		if err != nil {
			return err
		}
		return a.do(ctx, c)
	}, w.after(name, a)}
}

func (h *history) upsert(*model) (write, bool) {
	var nodes []flashdb.Node
	for range rapid.IntRange(1, 30).Draw(h.t, "batch") {
		n := flashdb.Node{Key: h.key(), Embedding: randomVector(h.rng, modelDim), Payload: []byte{byte(h.rng.Uint32())}}
		if h.rng.IntN(2) == 0 {
			n.Tags = []string{"red"}
		}
		n.Attributes = attributes(h.rng, "")
		nodes = append(nodes, n)
	}
	return upsertWrite(nodes...), true
}

func (h *history) setTags(m *model) (write, bool) {
	key := h.existing(m)
	return setTagsWrite(key, []string{"blue", "red"}[h.rng.IntN(3):]...), key != ""
}

func (h *history) setAttributes(m *model) (write, bool) {
	key := h.existing(m)
	return setAttributesWrite(key, setOrRemoved(h.rng, "")), key != ""
}

func (h *history) setPayload(m *model) (write, bool) {
	key := h.existing(m)
	return setPayloadWrite(key, []byte{byte(h.rng.Uint32())}), key != ""
}

func (h *history) delete(m *model) (write, bool) {
	keys := []string{h.existing(m), h.existing(m), h.existing(m)}
	slices.Sort(keys)
	return deleteWrite(slices.Compact(keys)...), keys[0] != ""
}

// edges draws some from nodes of one, two or three collections to those of one, with relations and
// without.
func (h *history) edges(w world, name string) (edges []flashdb.Edge) {
	for range rapid.IntRange(1, 3).Draw(h.t, "collections") {
		from := rapid.SampledFrom(w.names()).Draw(h.t, "from")
		sources, targets := []string{h.existing(w[from]), h.existing(w[from])}, []string{h.existing(w[name]), h.existing(w[name])}
		if sources[0] == "" || targets[0] == "" {
			continue
		}
		some := edgesBetween(sources[:rapid.IntRange(1, 2).Draw(h.t, "sources")], targets)
		related(rapid.SampledFrom(append(relations, "", "")).Draw(h.t, "relation"), some)
		for i := range some {
			if from != name {
				some[i].SourceCollection = from
			}
		}
		edges = append(edges, some...)
	}
	return edges
}

func (h *history) decoders(*model) (write, bool) {
	name := rapid.SampledFrom([]string{"a", "b", "mlp", "related"}).Draw(h.t, "decoder")
	if name == "related" {
		return putDecoderWrite(name, h.related()), true
	}
	if name != "mlp" && rapid.Bool().Draw(h.t, "drop") {
		return dropDecoderWrite(name), true
	}
	return putDecoderWrite(name, h.mlp()), true
}

func (h *history) mlp() decoder.Decoder {
	d, err := dbtest.RandomMLP(h.rng, modelDim, 8)
	require.NoError(h.t, err)
	return d
}

// related returns a decoder with relations.
func (h *history) related() decoder.Decoder {
	kind := []decoder.Kind{decoder.DistMult, decoder.ComplEx}[h.rng.IntN(2)]
	d, err := decoder.NewRelations(kind, modelDim, relations, randomVector(h.rng, len(relations)*modelDim))
	require.NoError(h.t, err)
	return d
}

func (h *history) meta(*model) (write, bool) {
	return setMetaWrite("m", fmt.Sprint(h.rng.Uint64())), true
}

// create makes a collection that there is not, and gives it a decoder and one with relations.
func (h *history) create(w world) []step {
	name := rapid.SampledFrom(historyNames).Draw(h.t, "create")
	if w[name] != nil {
		return nil
	}
	then := maps.Clone(w)
	then[name] = newModel()
	created := step{"create", func(context.Context) error {
		_, err := h.db.CreateCollection(name, flashdb.Schema{Dim: modelDim})
		return err
	}, then}
	plain := h.write(then, name, putDecoderWrite("mlp", h.mlp()))
	return []step{created, plain, h.write(plain.then, name, putDecoderWrite("related", h.related()))}
}

// drop deletes a collection, unless it is the last.
func (h *history) drop(w world) []step {
	name := rapid.SampledFrom(w.names()).Draw(h.t, "drop")
	then := maps.Clone(w)
	delete(then, name)
	then.endLinks(name)
	if len(then) == 0 {
		return nil
	}
	return []step{{"drop", func(ctx context.Context) error { return h.db.DropCollection(ctx, name) }, then}}
}

func (h *history) rebuild(w world) []step {
	name := rapid.SampledFrom(w.names()).Draw(h.t, "rebuild")
	return []step{{"rebuild", func(ctx context.Context) error {
		c, err := h.db.Collection(name)
		if err != nil {
			return err
		}
		res, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 3})
		if err == nil && res.Built != (len(w[name].nodes) > 0) {
			err = fmt.Errorf("rebuild of %d nodes: built is %v: %s", len(w[name].nodes), res.Built, res.Reason)
		}
		return err
	}, w}}
}

// indexNewer writes some rows and puts them into a segment, if there is an index.
func (h *history) indexNewer(w world) []step {
	written := h.onOne(w, func(w world, name string) (write, bool) { return h.upsert(w[name]) })
	return append(written, step{"index newer", func(ctx context.Context) error {
		for _, name := range w.names() {
			c, err := h.db.Collection(name)
			if err != nil {
				return err
			}
			res, err := c.Rebuild(ctx, &flashdb.RebuildOptions{NewerOnly: true})
			if err != nil {
				return err
			}
			if res.Built {
				h.tally.segments.Add(1)
			}
		}
		return nil
	}, written[0].then})
}

// calibrate measures plans, where there is a generation to measure them on.
func (h *history) calibrate(w world) []step {
	name := rapid.SampledFrom(w.names()).Draw(h.t, "calibrate")
	dec := rapid.SampledFrom([]string{"mlp", "related"}).Draw(h.t, "calibrated")
	return []step{{"calibrate", func(ctx context.Context) error {
		c, err := h.db.Collection(name)
		if err != nil {
			return err
		}
		stats, err := h.db.Stats(ctx)
		at := slices.IndexFunc(stats.Collections, func(s flashdb.CollectionStats) bool { return s.Name == name })
		if err != nil || at < 0 || stats.Collections[at].Lists == 0 || len(w[name].nodes) < 5 || w[name].decoders[dec] == nil {
			return err
		}
		_, err = c.Calibrate(ctx, &flashdb.CalibrateOptions{Decoder: dec, Sources: 2})
		return err
	}, w}}
}

// besides are calls that change nothing that a caller can see, and that writes may go on beside.
func (h *history) besides() map[string]func(context.Context) error {
	name := rapid.SampledFrom(h.w.names()).Draw(h.t, "beside")
	return map[string]func(context.Context) error{
		"nothing": func(context.Context) error { return nil },
		"rebuild": func(ctx context.Context) error {
			c, err := h.db.Collection(name)
			if err == nil {
				_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 3})
			}
			for range 3 {
				if err == nil {
					_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{NewerOnly: true})
				}
			}
			return unexpected(err) // it may be dropped
		},
		"compact": func(ctx context.Context) error {
			_, err := h.db.Compact(ctx, &flashdb.CompactOptions{Rebuild: true})
			return err
		},
		"backup":     func(ctx context.Context) error { _, err := h.db.Backup(ctx, io.Discard, nil); return err },
		"checkpoint": func(ctx context.Context) error { return h.db.Checkpoint(ctx) },
	}
}

// several runs some calls in a row, with the same reads beside all of them, and beside them one of
// those that take long.
func (h *history) several(*rapid.T) {
	draws := h.draws()
	names := slices.Sorted(maps.Keys(draws))
	var steps []step
	w := h.w
	for range rapid.IntRange(2, 6).Draw(h.t, "calls") {
		if drawn := draws[rapid.SampledFrom(names).Draw(h.t, "call")](w); len(drawn) > 0 {
			steps = append(steps, drawn...)
			w = steps[len(steps)-1].then
		}
	}
	beside := rapid.SampledFrom([]string{"nothing", "rebuild", "rebuild", "rebuild", "compact", "backup", "checkpoint"}).Draw(h.t, "long")
	h.runBeside(beside, h.besides()[beside], steps)
}

// restore goes on with what a backup holds.
func (h *history) restore(*rapid.T) {
	ctx := context.Background()
	var stream bytes.Buffer
	_, err := h.db.Backup(ctx, &stream, nil)
	require.NoError(h.t, err)
	_, err = flashdb.VerifyBackup(ctx, bytes.NewReader(stream.Bytes()), nil)
	require.NoError(h.t, err)
	next := h.dir + "r"
	_, err = flashdb.Restore(ctx, &stream, next, nil)
	require.NoError(h.t, err)
	h.moveTo(next)
}

func (h *history) moveTo(dir string) {
	require.NoError(h.t, h.db.Close())
	require.NoError(h.t, os.RemoveAll(h.dir))
	h.dir = dir
	h.open()
}

func (h *history) reopen(*rapid.T) {
	require.NoError(h.t, h.db.Close())
	h.open()
}

// readOnly reads what a database opened read-only shows, and opens it again.
func (h *history) readOnly(*rapid.T) {
	require.NoError(h.t, h.db.Close())
	db, err := flashdb.Open(h.dir, &flashdb.Options{ReadOnly: true})
	require.NoError(h.t, err)
	h.db = db
	h.same(nil)
	h.run()
	h.reopen(nil)
}

// crash opens a copy of the directory as it is on disk at this moment, as after a kill: nothing was
// closed or flushed.
func (h *history) crash(*rapid.T) {
	next := h.dir + "x"
	require.NoError(h.t, os.CopyFS(next, os.DirFS(h.dir)))
	h.moveTo(next)
}

// same compares everything that can be read with the world.
func (h *history) same(*rapid.T) {
	names, err := h.db.Collections(context.Background())
	require.NoError(h.t, err)
	require.Equal(h.t, h.w.names(), names)
	for name, m := range h.w {
		c, err := h.db.Collection(name)
		require.NoError(h.t, err)
		require.NoError(h.t, m.diff(context.Background(), c, ""), name)
	}
}

// TestModel runs random histories of every public call against maps and an exact scan. While the
// calls that do not end the database take place, readers check that each answer is one of the
// moments before and after the call. Only calls that return what they were given (Dir, Name,
// Schema) are left out.
func TestModel(t *testing.T) {
	root := t.TempDir()
	var total tally
	t.Cleanup(func() {
		if seen := total.seen.Load(); seen != nil {
			t.Log(*seen)
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		n := total.histories.Add(1)
		seed := rapid.Uint64().Draw(rt, "seed")
		h := &history{
			t:     rt,
			dir:   filepath.Join(root, fmt.Sprint(n)),
			w:     world{},
			seed:  seed,
			rng:   rand.New(rand.NewPCG(seed, 1)),
			tally: &total,
		}
		h.open()
		defer h.close()
		h.run(h.create(h.w)...)
		actions := map[string]func(*rapid.T){
			"several": h.several, "several again": h.several, "several more": h.several, "and more": h.several, "reads": func(*rapid.T) { h.run() },
			"reopen": h.reopen, "crash": h.crash, "restore": h.restore, "read-only": h.readOnly, "": h.same,
		}
		for name, draw := range h.draws() {
			actions[name] = func(*rapid.T) {
				if steps := draw(h.w); len(steps) > 0 {
					h.run(steps...)
				}
			}
		}
		rt.Repeat(actions)
		findings, err := h.db.Check(context.Background())
		require.NoError(rt, err)
		require.Empty(rt, findings)
		require.NoError(rt, h.db.Close())
		require.NoError(rt, os.RemoveAll(h.dir))
	})
	attempts.Count(t, int(total.histories.Load()), "histories")
	attempts.Count(t, int(total.steps.Load()), "calls")
	attempts.Count(t, int(total.reads.Load()), "reads beside them")
	t.Logf("%d histories, %d calls, %d segments, %d reads beside them", total.histories.Load(), total.steps.Load(), total.segments.Load(), total.reads.Load())
}
