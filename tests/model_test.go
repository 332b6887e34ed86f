package tests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/dbtest"
)

const modelDim = 6

// model is what a collection should hold: maps, and an exact scan.
type model struct {
	nodes    map[string]flashdb.Node
	links    map[source]map[string]bool // those that lead to nodes of it
	ids      map[string]int             // in the order of insertion, as ties are broken
	next     int
	decoders map[string]decoder.Decoder
	meta     map[string]string
}

func newModel() *model {
	return &model{
		nodes:    map[string]flashdb.Node{},
		links:    map[source]map[string]bool{},
		ids:      map[string]int{},
		decoders: map[string]decoder.Decoder{},
		meta:     map[string]string{},
	}
}

func (m *model) keys() []string { return slices.Sorted(maps.Keys(m.nodes)) }

// clone returns a copy that writes may change.
func (m *model) clone() *model {
	c := *m
	c.nodes, c.ids, c.decoders, c.meta = maps.Clone(m.nodes), maps.Clone(m.ids), maps.Clone(m.decoders), maps.Clone(m.meta)
	c.links = map[source]map[string]bool{}
	for from, targets := range m.links {
		c.links[from] = maps.Clone(targets)
	}
	return &c
}

// merge adds what other models hold to m; no key is in two.
func (m *model) merge(others ...*model) *model {
	for _, o := range others {
		maps.Copy(m.nodes, o.nodes)
		maps.Copy(m.links, o.links)
		maps.Copy(m.decoders, o.decoders)
		maps.Copy(m.meta, o.meta)
	}
	return m
}

// predict scores every allowed node with the decoder and sorts.
func (m *model) predict(d decoder.Decoder, key string, k int, opts flashdb.PredictOptions) []flashdb.Hit {
	bound := d.Bind(nil, m.nodes[key].Embedding)
	var scratch decoder.Scratch
	var hits []flashdb.Hit
	known := m.linked(source{key: key})
	for target, n := range m.nodes {
		linked := known[target] && !opts.IncludeLinked
		tagged := opts.Filter == "" || slices.Contains(n.Tags, opts.Filter)
		if target == key || linked || !tagged || slices.Contains(opts.Exclude, target) {
			continue
		}
		var score [1]float32
		bound.Score(&scratch, score[:], n.Embedding)
		hits = append(hits, flashdb.Hit{Key: target, Score: score[0]})
	}
	slices.SortFunc(hits, func(a, b flashdb.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(m.ids[a.Key], m.ids[b.Key]))
	})
	return hits[:min(k, len(hits))]
}

// diff compares everything that can be read of the keys and names that begin with prefix with the
// model, and returns the first difference.
func (m *model) diff(ctx context.Context, c *flashdb.Collection, prefix string) error {
	var keys []string
	for key, err := range c.Keys(ctx) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	if want := m.keys(); !slices.Equal(want, keys) {
		return fmt.Errorf("keys are %q, want %q", keys, want)
	}
	for key, want := range m.nodes {
		got, err := c.Get(ctx, key)
		if err != nil {
			return err
		}
		same := slices.Equal(want.Embedding, got.Embedding) && sameNode(want, got.Tags, got.Payload, got.Attributes)
		if !same {
			return fmt.Errorf("node %v, want %v", got, want)
		}
	}
	return cmp.Or(m.diffLinks(ctx, c, prefix), m.diffNamed(c, prefix))
}

func sameTags(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// diffNamed compares decoders and meta values.
func (m *model) diffNamed(c *flashdb.Collection, prefix string) error {
	stored, err := c.Decoders(context.Background())
	if err != nil {
		return err
	}
	names := slices.DeleteFunc(stored, func(name string) bool { return !strings.HasPrefix(name, prefix) })
	if want := slices.Sorted(maps.Keys(m.decoders)); !slices.Equal(want, names) {
		return fmt.Errorf("decoders are %q, want %q", names, want)
	}
	for name, want := range m.decoders {
		got, err := c.Decoder(name)
		if err != nil {
			return err
		}
		if !slices.Equal(decoder.Marshal(want), decoder.Marshal(got)) {
			return fmt.Errorf("decoder %q is another", name)
		}
	}
	for name, want := range m.meta {
		if got, _, err := c.Meta(context.Background(), name); err != nil || got != want {
			return fmt.Errorf("meta %q is %q, %v, want %q", name, got, err, want)
		}
	}
	return nil
}

// predicts compares queries, by every plan, with an exact scan of the model.
func (m *model) predicts(t testing.TB, c *flashdb.Collection, d decoder.Decoder, name string, sources int) {
	t.Helper()
	keys := m.keys()
	for i := range min(sources, len(keys)) {
		from := keys[i*len(keys)/min(sources, len(keys))]
		want := m.predict(d, from, 20, flashdb.PredictOptions{})
		for _, o := range []*flashdb.PredictOptions{
			{Decoder: name, Exact: true},
			{Decoder: name, Plan: &flashlight.Plan{PerRound: len(keys), Probes: index.Probes{Share: 1}}},
		} {
			got, err := c.Predict(context.Background(), from, 20, o)
			require.NoError(t, err)
			require.Len(t, got.Hits, len(want), "%s: %s", got.Stats.Plan, got.Stats.Short)
			for i, w := range want {
				assert.Equal(t, w.Key, got.Hits[i].Key, "hit %d of %q by %s", i, from, got.Stats.Plan)
				assert.InDelta(t, w.Score, got.Hits[i].Score, 1e-4)
			}
		}
	}
}

// A write is one public call that changes a collection, the same as a part of a batch, and what it
// means for the model.
type write struct {
	name string
	do   func(context.Context, *flashdb.Collection) error
	add  func(b *flashdb.Batch, collection string, m *model) // m: as it is before
	on   func(*model)
	// across, if not nil, is what it also does to the links from one collection to another that is
	// like it: see applyBoth.
	across func(b *flashdb.Batch, from, to string)
}

// applyBoth carries out a write on two collections in one batch. Both are as m is. What it does to
// links it also does to those from the first to the second: see model.linkedFrom.
func (a write) applyBoth(ctx context.Context, db *flashdb.DB, m *model, first, second string) error {
	var b flashdb.Batch
	a.add(&b, first, m)
	a.add(&b, second, m)
	if a.across != nil {
		a.across(&b, first, second)
	}
	return db.Apply(ctx, &b)
}

// linkedFrom returns m with each of its links also from another collection that is like it.
func (m *model) linkedFrom(collection string) *model {
	c := m.clone()
	for from, targets := range m.links {
		c.links[source{collection, from.key, from.relation}] = maps.Clone(targets)
	}
	return c
}

// from returns edges with their sources in another collection.
func from(collection string, edges []flashdb.Edge) []flashdb.Edge {
	edges = slices.Clone(edges)
	for i := range edges {
		edges[i].SourceCollection = collection
	}
	return edges
}

func upsertWrite(nodes ...flashdb.Node) write {
	return write{
		"upsert", func(ctx context.Context, c *flashdb.Collection) error { return c.Upsert(ctx, nodes...) },
		func(b *flashdb.Batch, name string, _ *model) { b.Upsert(name, nodes...) },
		func(m *model) {
			for _, n := range nodes {
				if _, ok := m.nodes[n.Key]; !ok {
					m.ids[n.Key] = m.next
					m.next++
				}
				m.nodes[n.Key] = n
			}
		},
		nil,
	}
}

func setTagsWrite(key string, tags ...string) write {
	return write{
		"set tags", func(ctx context.Context, c *flashdb.Collection) error { return c.SetTags(ctx, key, tags) },
		func(b *flashdb.Batch, name string, _ *model) { b.SetTags(name, key, tags) },
		func(m *model) {
			n := m.nodes[key]
			n.Tags = tags
			m.nodes[key] = n
		},
		nil,
	}
}

func setPayloadWrite(key string, payload []byte) write {
	return write{
		"set payload", func(ctx context.Context, c *flashdb.Collection) error { return c.SetPayload(ctx, key, payload) },
		func(b *flashdb.Batch, name string, _ *model) { b.SetPayload(name, key, payload) },
		func(m *model) {
			n := m.nodes[key]
			n.Payload = payload
			m.nodes[key] = n
		},
		nil,
	}
}

// deleteWrite deletes keys that exist, and one that does not.
func deleteWrite(keys ...string) write {
	return write{
		"delete", func(ctx context.Context, c *flashdb.Collection) error {
			n, err := c.Delete(ctx, append(slices.Clone(keys), "never stored")...)
			if err == nil && n != len(keys) {
				return fmt.Errorf("deleted %d nodes of %d", n, len(keys))
			}
			return err
		},
		func(b *flashdb.Batch, name string, _ *model) {
			b.Delete(name, append(slices.Clone(keys), "never stored")...)
		},
		func(m *model) {
			for _, key := range keys {
				delete(m.nodes, key)
				maps.DeleteFunc(m.links, func(of source, _ map[string]bool) bool { return of.collection == "" && of.key == key })
				for _, l := range m.links {
					delete(l, key)
				}
			}
		},
		nil,
	}
}

// edgesBetween are the edges from each source to each target.
func edgesBetween(sources, targets []string) (edges []flashdb.Edge) {
	for _, s := range sources {
		for _, t := range targets {
			edges = append(edges, flashdb.Edge{Source: s, Target: t})
		}
	}
	return edges
}

func linkWrite(edges ...flashdb.Edge) write {
	return write{
		"link", func(ctx context.Context, c *flashdb.Collection) error { return c.Link(ctx, edges...) },
		func(b *flashdb.Batch, name string, _ *model) { b.Link(name, edges...) },
		func(m *model) {
			for _, e := range edges {
				of := sourceOf(e)
				if m.links[of] == nil {
					m.links[of] = map[string]bool{}
				}
				m.links[of][e.Target] = true
			}
		},
		func(b *flashdb.Batch, first, second string) { b.Link(second, from(first, edges)...) },
	}
}

func unlinkWrite(edges ...flashdb.Edge) write {
	return write{
		"unlink", func(ctx context.Context, c *flashdb.Collection) error {
			_, err := c.Unlink(ctx, edges...)
			return err
		},
		func(b *flashdb.Batch, name string, _ *model) { b.Unlink(name, edges...) },
		func(m *model) {
			for _, e := range edges {
				delete(m.links[sourceOf(e)], e.Target)
			}
		},
		func(b *flashdb.Batch, first, second string) { b.Unlink(second, from(first, edges)...) },
	}
}

func putDecoderWrite(name string, d decoder.Decoder) write {
	return write{
		"put decoder", func(ctx context.Context, c *flashdb.Collection) error { return c.PutDecoder(ctx, name, d) },
		func(b *flashdb.Batch, collection string, _ *model) { b.PutDecoder(collection, name, d) },
		func(m *model) { m.decoders[name] = d },
		nil,
	}
}

// dropDecoderWrite drops a decoder, which need not exist.
func dropDecoderWrite(name string) write {
	return write{
		"drop decoder", func(ctx context.Context, c *flashdb.Collection) error {
			if err := c.DropDecoder(ctx, name); !errors.Is(err, flashdb.ErrNotFound) {
				return err
			}
			return nil
		},
		func(b *flashdb.Batch, collection string, m *model) {
			if m.decoders[name] != nil {
				b.DropDecoder(collection, name)
			}
		},
		func(m *model) { delete(m.decoders, name) },
		nil,
	}
}

func setMetaWrite(name, value string) write {
	return write{
		"set meta", func(ctx context.Context, c *flashdb.Collection) error { return c.SetMeta(ctx, name, value) },
		func(b *flashdb.Batch, collection string, _ *model) { b.SetMeta(collection, name, value) },
		func(m *model) { m.meta[name] = value },
		nil,
	}
}

// A generator makes up writes on the keys and names that begin with its prefix, the same ones for
// the same seed: whoever knows how many of them took place knows what the collection holds.
type generator struct {
	prefix string
	rng    *rand.Rand
	m      *model
	done   int
}

func newGenerator(prefix string, seed uint64) *generator {
	return &generator{prefix: prefix, rng: rand.New(rand.NewPCG(seed, 0xac7)), m: newModel()}
}

// next makes up a write that fits the model. The generator waits for applied.
func (a *generator) next() write {
	keys := a.m.keys()
	some := func(n int) []string {
		var list []string
		for range 1 + a.rng.IntN(n) {
			list = append(list, keys[a.rng.IntN(len(keys))])
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	kind := a.rng.IntN(100)
	switch {
	case len(keys) < 5 || kind < 50:
		var nodes []flashdb.Node
		for range 1 + a.rng.IntN(8) {
			nodes = append(nodes, a.node())
		}
		return upsertWrite(nodes...)
	case kind < 55:
		return setTagsWrite(some(1)[0], a.tags()...)
	case kind < 58:
		return setPayloadWrite(some(1)[0], a.payload())
	case kind < 60:
		return setAttributesWrite(some(1)[0], setOrRemoved(a.rng, a.prefix))
	case kind < 67:
		return deleteWrite(some(4)...)
	case kind < 80:
		return linkWrite(related(a.relation(), edgesBetween(some(1), some(5)))...)
	case kind < 87:
		if known := a.m.edges(); len(known) > 0 && a.rng.IntN(2) == 0 {
			from := a.rng.IntN(len(known))
			return unlinkWrite(known[from:min(from+3, len(known))]...)
		}
		return unlinkWrite(related(a.relation(), edgesBetween(some(1), some(5)))...)
	case kind < 91:
		d, err := dbtest.RandomMLP(a.rng, modelDim, 3)
		if err != nil {
			panic(err)
		}
		return putDecoderWrite(a.name("d", 3), d)
	case kind < 94:
		return dropDecoderWrite(a.name("d", 3))
	default:
		return setMetaWrite(a.name("m", 3), fmt.Sprint(a.rng.Uint64()))
	}
}

// applied says that the write took place.
func (a *generator) applied(write write) {
	write.on(a.m)
	a.done++
}

// skipTo lets writes take place in the model alone, until n have.
func (a *generator) skipTo(n int) *generator {
	for a.done < n {
		a.applied(a.next())
	}
	return a
}

func (a *generator) name(kind string, n int) string {
	return fmt.Sprintf("%s%s%d", a.prefix, kind, a.rng.IntN(n))
}

// relation returns that of some links: one half of them has none.
func (a *generator) relation() string {
	if a.rng.IntN(2) == 0 {
		return ""
	}
	return relations[a.rng.IntN(len(relations))]
}

func (a *generator) node() flashdb.Node {
	return flashdb.Node{
		Key:       a.name("n", 150),
		Embedding: randomVector(a.rng, modelDim),
		Payload:   a.payload(),
		Tags:      a.tags(),

		Attributes: attributes(a.rng, a.prefix),
	}
}

func (a *generator) payload() []byte {
	payload := make([]byte, 1+a.rng.IntN(60))
	for i := range payload {
		payload[i] = byte(a.rng.Uint32())
	}
	return payload
}

func (a *generator) tags() (tags []string) {
	for _, tag := range []string{"blue", "red"} {
		if a.rng.IntN(2) == 0 {
			tags = append(tags, tag)
		}
	}
	return tags
}
