package flashdb_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/vfs"
)

// history drives a database and the model with the same operations.
type history struct {
	t   *rapid.T
	dir string
	db  *flashdb.DB
	c   *flashdb.Collection
	dec decoder.Decoder
	m   *model
	rng *rand.Rand
}

func (h *history) open() {
	// Without flushes in the background the files are at rest between calls,
	// so that crash copies what a kill at that moment would leave.
	db, err := flashdb.OpenOn(unsynced{vfs.OS()}, h.dir, &flashdb.Options{FlushBytes: 1 << 40, CalibrateTime: -1})
	require.NoError(h.t, err)
	h.db = db
	h.c, err = db.Collection("c")
	require.NoError(h.t, err)
}

func (h *history) key() string {
	return fmt.Sprintf("n%d", rapid.IntRange(0, 60).Draw(h.t, "key"))
}

// existing draws a key that is stored; "" when there is none.
func (h *history) existing() string {
	keys := h.m.keys()
	if len(keys) == 0 {
		return ""
	}
	return rapid.SampledFrom(keys).Draw(h.t, "existing")
}

// do lets an act take place in both.
func (h *history) do(a act) {
	require.NoError(h.t, a.do(context.Background(), h.c), a.name)
	a.on(h.m)
}

func (h *history) upsert(*rapid.T) {
	var nodes []flashdb.Node
	for range rapid.IntRange(1, 30).Draw(h.t, "batch") {
		n := flashdb.Node{Key: h.key(), Embedding: randomVector(h.rng, modelDim), Payload: []byte{byte(h.rng.Uint32())}}
		if h.rng.IntN(2) == 0 {
			n.Tags = []string{"red"}
		}
		nodes = append(nodes, n)
	}
	h.do(upsertAct(nodes...))
}

func (h *history) delete(*rapid.T) {
	if key := h.existing(); key != "" {
		h.do(deleteAct(key))
	}
}

func (h *history) link(*rapid.T) {
	if source, target := h.existing(), h.existing(); source != "" {
		h.do(linkAct(source, target))
	}
}

func (h *history) unlink(*rapid.T) {
	if source, target := h.existing(), h.existing(); source != "" {
		h.do(unlinkAct(source, target))
	}
}

func (h *history) decoders(*rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(h.t, "decoder")
	if rapid.Bool().Draw(h.t, "drop") {
		h.do(dropDecoderAct(name))
		return
	}
	d, err := newMLP(h.rng, modelDim, 3)
	require.NoError(h.t, err)
	h.do(putDecoderAct(name, d))
}

func (h *history) meta(*rapid.T) { h.do(setMetaAct("m", fmt.Sprint(h.rng.Uint64()))) }

func (h *history) compact(*rapid.T) {
	_, err := h.db.Compact(context.Background(), nil)
	require.NoError(h.t, err)
}

// restore goes on with what a backup holds.
func (h *history) restore(*rapid.T) {
	var stream bytes.Buffer
	_, err := h.db.Backup(context.Background(), &stream, nil)
	require.NoError(h.t, err)
	next := h.dir + "r"
	_, err = flashdb.Restore(context.Background(), &stream, next, nil)
	require.NoError(h.t, err)
	require.NoError(h.t, h.db.Close())
	require.NoError(h.t, os.RemoveAll(h.dir))
	h.dir = next
	h.open()
}

func (h *history) rebuild(*rapid.T) {
	res, err := h.c.Rebuild(context.Background(), &flashdb.RebuildOptions{Force: true, Lists: 3})
	require.NoError(h.t, err)
	require.Equal(h.t, len(h.m.nodes) > 0, res.Built, res.Reason)
}

func (h *history) flush(*rapid.T) {
	_, err := h.db.Stats(context.Background())
	require.NoError(h.t, err)
}

func (h *history) reopen(*rapid.T) {
	require.NoError(h.t, h.db.Close())
	h.open()
}

// crash opens a copy of the directory as it is on disk at this moment, as after
// a kill: nothing was closed or flushed.
func (h *history) crash(*rapid.T) {
	next := h.dir + "x"
	require.NoError(h.t, os.CopyFS(next, os.DirFS(h.dir)))
	require.NoError(h.t, h.db.Close())
	require.NoError(h.t, os.RemoveAll(h.dir))
	h.dir = next
	h.open()
}

func (h *history) predict(*rapid.T) {
	source := h.existing()
	if source == "" {
		return
	}
	k := rapid.IntRange(1, 80).Draw(h.t, "k")
	o := flashdb.PredictOptions{
		Decoder:       "mlp",
		IncludeLinked: rapid.Bool().Draw(h.t, "includeLinked"),
		Exclude:       []string{h.key(), "never stored"},
		WithNode:      true,
	}
	if rapid.Bool().Draw(h.t, "filtered") {
		o.Filter = "red"
	}
	want := h.m.predict(h.dec, source, k, o)
	o.Mode = flashdb.ModeExact
	if rapid.Bool().Draw(h.t, "by index") {
		// Every list probed and every row scored: as good as exact.
		o.Mode = flashdb.ModeAuto
		o.PerRound, o.Probes = 100, flashdb.Probes{Share: 1}
	}
	got, err := h.c.Predict(context.Background(), source, k, &o)
	require.NoError(h.t, err)
	require.Len(h.t, got.Hits, len(want), "plan %s, short: %s", got.Stats.Plan, got.Stats.Short)
	require.Equal(h.t, len(want) < k, got.Stats.Short != "")
	for i, w := range want {
		g := got.Hits[i]
		require.Equal(h.t, w.Key, g.Key, "hit %d of %s", i, source)
		require.InDelta(h.t, w.Score, g.Score, 1e-4)
		require.Equal(h.t, h.m.nodes[g.Key].Payload, g.Payload)
		require.ElementsMatch(h.t, h.m.nodes[g.Key].Tags, g.Tags)
	}
}

// same compares everything that can be read with the model.
func (h *history) same(*rapid.T) {
	require.NoError(h.t, h.m.diff(context.Background(), h.c, ""))
}

// TestModel runs random histories of writes, queries, rebuilds, reopens and
// crashes against maps and an exact scan.
func TestModel(t *testing.T) {
	root := t.TempDir()
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		seed := rapid.Uint64().Draw(rt, "seed")
		h := &history{
			t:   rt,
			dir: filepath.Join(root, fmt.Sprint(run)),
			rng: rand.New(rand.NewPCG(seed, 1)),
			m:   newModel(),
		}
		h.dec = randomMLP(t, h.rng, modelDim, 8)
		db, err := flashdb.OpenOn(unsynced{vfs.OS()}, h.dir, &flashdb.Options{CalibrateTime: -1})
		require.NoError(rt, err)
		c, err := db.CreateCollection("c", flashdb.Schema{Dim: modelDim})
		require.NoError(rt, err)
		h.c = c
		h.do(putDecoderAct("mlp", h.dec))
		require.NoError(rt, db.Close())
		h.open()
		// rapid may abandon a history in the middle; closing twice is harmless.
		defer func() { _ = h.db.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"upsert": h.upsert, "delete": h.delete, "link": h.link, "unlink": h.unlink,
			"predict": h.predict, "predict again": h.predict, "rebuild": h.rebuild,
			"flush": h.flush, "reopen": h.reopen, "crash": h.crash,
			"decoders": h.decoders, "meta": h.meta, "compact": h.compact, "restore": h.restore, "": h.same,
		})
		findings, err := h.db.Check(context.Background())
		require.NoError(rt, err)
		require.Empty(rt, findings)
		require.NoError(rt, h.db.Close())
		require.NoError(rt, os.RemoveAll(h.dir))
	})
}
