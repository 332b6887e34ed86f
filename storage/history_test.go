package storage_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/storage"
)

var seed = flag.Uint64("seed", 0, "seed of the random histories; 0 tries a few")

// TestHistories runs random histories of changes, groups, flushes, reopenings and crashes against a
// model, on files of each layout in turn.
func TestHistories(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	switch {
	case *seed != 0:
		seeds = []uint64{*seed}
	case testing.Short():
		seeds = seeds[:2]
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			h := newHistory(t, seed)
			for range 120 {
				h.step()
			}
			h.s.Publish()
			h.published = h.staged
			flush(h.t, h.s)
			assertView(t, h.s, h.published)
			h.published.equalStreams(t, h.s)
		})
	}
	attempts.Count(t, len(seeds), "histories")
}

// A history is a store and what it should hold at each of its stages.
type history struct {
	t    *testing.T
	rng  *rand.Rand
	path string
	opts *storage.Options
	s    *storage.Store

	across bool // links may lead to other collections and have relations

	staged, published, flushed *model
	lsn                        uint64   // last staged
	publishedLSN               uint64   // last published
	log                        [][]byte // the change of LSN i+1
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{t: t, rng: rand.New(rand.NewPCG(seed, seed)), path: newPath(t)}
	h.staged, h.published, h.flushed = newModel(), newModel(), newModel()
	layout := storage.Layouts[seed%uint64(len(storage.Layouts))]
	h.opts, h.across = storage.OptionsFor(layout, 3), layout >= 3
	h.s = openWith(t, h.path, h.opts)
	return h
}

func (h *history) step() {
	switch n := h.rng.IntN(100); {
	case n < 45:
		h.change()
	case n < 70:
		h.s.Publish()
		h.published, h.publishedLSN = h.staged.clone(), h.lsn
	case n < 74:
		h.s.Discard()
		h.staged, h.lsn = h.published.clone(), h.publishedLSN
		h.log = h.log[:h.lsn]
	case n < 84:
		flush(h.t, h.s)
		assert.Equal(h.t, h.publishedLSN, h.s.Applied())
		assert.Zero(h.t, h.s.Pending())
		h.flushed = h.published.clone()
		h.flushed.equalStreams(h.t, h.s)
	case n < 88:
		h.publishGeneration()
	case n < 92:
		h.crash()
	case n < 94:
		h.reopen()
	default:
		assertView(h.t, h.s, h.published)
	}
}

// change makes a change of some operations, and stages it in most cases.
func (h *history) change() {
	c := h.s.Begin()
	m := h.staged.clone()
	var ops []storage.Op
	for range 1 + h.rng.IntN(12) {
		op := h.randomOp(m)
		if nodes, ok := op.(storage.PutNodes); ok {
			h.resolve(c, m, nodes)
		}
		require.NoError(h.t, c.Apply(op, h.lsn+1))
		m.apply(op, h.lsn+1)
		ops = append(ops, op)
	}
	if h.rng.IntN(4) == 0 {
		m.equal(h.t, c)
		require.Equal(h.t, m.next, c.NextUID())
	}
	if h.rng.IntN(10) == 0 {
		return // abandoned
	}
	h.s.Stage(c)
	h.staged = m
	h.lsn++
	h.log = append(h.log, storage.EncodeOps(ops))
}

func (h *history) publishGeneration() {
	if len(h.flushed.collections) == 0 {
		return
	}
	uid := pick(h.rng, h.flushed.collections)
	build := h.rng.Uint64N(h.s.Applied() + 1)
	number := h.rng.Uint64N(100)
	require.NoError(h.t, h.s.PublishGeneration(uid, number, build))
	for _, m := range []*model{h.staged, h.published, h.flushed} {
		m.publishGeneration(uid, number, build)
	}
}

// crash opens a copy of the file as it is, without the overlay, and then replays the log into it.
func (h *history) crash() {
	copied := filepath.Join(h.t.TempDir(), "copy.db")
	b, err := os.ReadFile(h.path)
	require.NoError(h.t, err)
	require.NoError(h.t, os.WriteFile(copied, b, 0o600))
	s, err := storage.Open(copied, h.opts)
	require.NoError(h.t, err)
	assertView(h.t, s, h.flushed)
	assertClean(h.t, s)
	h.replay(s)
	assertView(h.t, s, h.published)
	require.NoError(h.t, s.Close())
}

// reopen closes the store without a flush, so that the log must bring back what was published.
func (h *history) reopen() {
	require.NoError(h.t, h.s.Close())
	h.s = openWith(h.t, h.path, h.opts)
	h.log = h.log[:h.publishedLSN]
	h.replay(h.s)
	h.staged, h.lsn = h.published.clone(), h.publishedLSN
	assertView(h.t, h.s, h.published)
}

// replay does what the root package does with its log.
func (h *history) replay(s *storage.Store) {
	for lsn := uint64(1); lsn <= h.publishedLSN; lsn++ {
		ops, err := storage.DecodeOps(h.log[lsn-1])
		require.NoError(h.t, err)
		if lsn <= s.Applied() {
			// Skipped by the caller; should it not, nothing is applied twice.
			require.ErrorContains(h.t, s.Begin().Apply(ops[0], lsn), "was applied before")
			continue
		}
		commit(h.t, s, lsn, ops...)
	}
}

// randomOp returns an operation that makes sense in m.
func (h *history) randomOp(m *model) storage.Op {
	r := h.rng
	if len(m.collections) == 0 || r.IntN(60) == 0 {
		name := fmt.Sprintf("c%d", r.IntN(4))
		for _, c := range m.collections {
			if c.info.Name == name {
				return storage.DropCollection{UID: c.info.UID}
			}
		}
		return storage.CreateCollection{UID: m.next, Name: name, Schema: storage.Schema{Dim: []int{1, 2, 5, 64, 300}[r.IntN(5)], Normalize: r.IntN(2) == 0}}
	}
	uid := pick(r, m.collections)
	c := m.collections[uid]
	if len(c.nodes) == 0 {
		return h.putNode(c)
	}
	switch n := r.IntN(26); {
	case n >= 24:
		return h.setAttributes(c)
	case n >= 22:
		return storage.SetPayload{UID: uid, ID: pick(r, c.nodes), Payload: make([]byte, r.IntN(20))}
	case n >= 20:
		return storage.SetTags{UID: uid, ID: pick(r, c.nodes), Tags: h.tags()}
	case n < 1 && c.info.NextID < 250:
		return h.putNodes(c)
	case n < 9:
		return h.putNode(c)
	case n < 11:
		return storage.DeleteNode{UID: uid, ID: pick(r, c.nodes)}
	case n < 14:
		to := h.linkTo(m, c)
		return storage.Link{UID: uid, Source: pick(r, c.nodes), To: to.info.UID, Relation: h.relation(), Targets: h.liveIDs(to), Recorded: h.recorded()}
	case n < 16:
		to := h.linkTo(m, c)
		return storage.Unlink{UID: uid, Source: pick(r, c.nodes), To: to.info.UID, Relation: h.relation(), Targets: h.liveIDs(to)}
	case n < 18:
		name := fmt.Sprintf("d%d", r.IntN(3))
		if _, ok := c.blobs["d"+name]; ok && r.IntN(2) == 0 {
			return storage.DropDecoder{UID: uid, Name: name}
		} else if ok && r.IntN(2) == 0 {
			return storage.SetPlans{UID: uid, Name: name, Blob: make([]byte, r.IntN(20))}
		}
		return storage.PutDecoder{UID: uid, Name: name, Blob: make([]byte, r.IntN(40))}
	default:
		return storage.SetMeta{UID: uid, Name: fmt.Sprintf("m%d", r.IntN(3)), Value: "value"[:r.IntN(6)]}
	}
}

// putNodes returns nodes whose ids are not set: new keys mostly, of which some come twice.
func (h *history) putNodes(c *modelCollection) storage.PutNodes {
	nodes := make(storage.PutNodes, 1+h.rng.IntN(90))
	for i := range nodes {
		nodes[i] = h.putNode(c)
		nodes[i].ID = 0
		if h.rng.IntN(12) > 0 {
			nodes[i].Key = fmt.Sprintf("n%d", h.rng.IntN(100_000))
		}
	}
	return nodes
}

// resolve lets c find the ids of nodes, and checks them by the model.
func (h *history) resolve(c *storage.Changes, m *model, nodes storage.PutNodes) {
	col := m.collections[nodes.Collection()]
	require.NoError(h.t, c.Resolve(col.info.UID, nodes))
	ids := map[string]uint32{}
	for id, n := range col.nodes {
		ids[n.key] = id
	}
	next := col.info.NextID
	for _, o := range nodes {
		if _, ok := ids[o.Key]; !ok {
			ids[o.Key] = next
			next++
		}
		require.Equal(h.t, ids[o.Key], o.ID, "id of %q", o.Key)
	}
}

func (h *history) putNode(c *modelCollection) storage.PutNode {
	r := h.rng
	// Few keys, so that live ones are replaced and deleted ones come again, with a new id.
	o := storage.PutNode{UID: c.info.UID, ID: c.info.NextID, Key: fmt.Sprintf("k%d", r.IntN(30))}
	for id, n := range c.nodes {
		if n.key == o.Key {
			o.ID = id
		}
	}
	o.Row = make([]float32, c.info.Schema.Dim)
	for i := range o.Row {
		o.Row[i] = r.Float32()
	}
	o.Tags = h.tags()
	o.Attributes = h.attributes()
	if r.IntN(2) == 0 {
		o.Payload = make([]byte, r.IntN(20))
	}
	return o
}

// linkTo draws the collection of a link's targets: one with nodes, and where the file may hold such
// links often another.
func (h *history) linkTo(m *model, from *modelCollection) *modelCollection {
	other := m.collections[pick(h.rng, m.collections)]
	if h.across && len(other.nodes) > 0 {
		return other
	}
	return from
}

// relation draws that of a link: none in half of the cases, and where the file may not hold any.
func (h *history) relation() string {
	if !h.across {
		return ""
	}
	return []string{"", "", "", "treats", "causes", "is"}[h.rng.IntN(6)]
}

// recorded draws the time of a link, the same for all of a change: none in half of the cases, and
// where the file may not hold any.
func (h *history) recorded() int64 {
	if !h.across || h.rng.IntN(2) == 0 {
		return 0
	}
	return int64(1 + h.lsn%4)
}

func (h *history) tags() (tags []string) {
	for range h.rng.IntN(4) {
		tags = append(tags, fmt.Sprintf("t%d", h.rng.IntN(5)))
	}
	return tags
}

func (h *history) liveIDs(c *modelCollection) []uint32 {
	ids := make([]uint32, h.rng.IntN(5))
	for i := range ids {
		ids[i] = pick(h.rng, c.nodes)
	}
	return ids
}

// pick returns a key of a map that is not empty, the same for the same random numbers.
func pick[V any](r *rand.Rand, m map[uint32]V) uint32 {
	return slices.Sorted(maps.Keys(m))[r.IntN(len(m))]
}
