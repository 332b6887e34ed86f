package tests

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/backup"
	"github.com/flashdb/flashdb/internal/dbtest"
)

var freeze = flag.Bool("freeze", false, "make the frozen database of the current formats, where there is none yet")

// frozenDir holds a database directory of each version of flash.db, packed as a backup stream, and
// what it must answer. A new version gets files of its own, made with -freeze; those that are there
// are never rewritten.
const frozenDir = "testdata"

// frozenAnswers is what a frozen database must answer.
type frozenAnswers struct {
	Contents *dbtest.Contents
	ByIndex  []string // keys, best first
	Exact    []string
	// By the decoder with relations, by index; from version 5 on.
	ByRelation map[string][]string `json:",omitempty"`
	// By a filter of attributes; from version 6 on.
	Cheap []string `json:",omitempty"`
	// The releases, with their states, and what the staged one answers; from version 7 on.
	Releases []string `json:",omitempty"`
	Staged   []string `json:",omitempty"`
	// The number of segments of papers; from version 8 on.
	Segments int `json:",omitempty"`
	// When the data of the staged release was cut; from version 9 on.
	Cut string `json:",omitempty"`
}

// TestFrozenDatabase opens a whole database as the first program of its formats left it when it was
// killed: with a log tail that is not in flash.db, a generation, rows newer than that, deletes,
// links, tags, decoders, relations. That must work for ever.
func TestFrozenDatabase(t *testing.T) {
	for _, version := range []string{"v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9"} {
		t.Run(version, func(t *testing.T) { testFrozen(t, version) })
	}
}

func testFrozen(t *testing.T, version string) {
	packed, answers := filepath.Join(frozenDir, "frozen-"+version+".zst"), filepath.Join(frozenDir, "frozen-"+version+".json")
	if _, err := os.Stat(packed); os.IsNotExist(err) && *freeze {
		makeFrozen(t, packed, answers)
	}
	var want frozenAnswers
	b, err := os.ReadFile(answers)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &want))
	stream, err := os.ReadFile(packed)
	require.NoError(t, err)

	dir := filepath.Join(t.TempDir(), "db")
	unpackTo(t, dir, stream)
	require.Equal(t, version, versionOf(t, dir), "the version that flash.db states")
	readOnly, err := flashdb.Open(dir, &flashdb.Options{ReadOnly: true})
	require.NoError(t, err)
	requireAnswers(t, want, readOnly)
	require.NoError(t, readOnly.Close())

	db := openDB(t, dir)
	requireAnswers(t, want, db)
	if want.Cut != "" {
		compared, err := db.CompareRelease(context.Background(), "next", nil)
		require.NoError(t, err)
		require.Len(t, compared.Decoders, 1)
		assert.Equal(t, 3, compared.Decoders[0].Recorded, "links since then: two are in flash.db, and one in the log")
	}
	checkAndClose(t, db)

	dir = filepath.Join(t.TempDir(), "restored.flash")
	_, err = flashdb.Restore(context.Background(), bytes.NewReader(stream), dir, nil)
	require.NoError(t, err)
	restored := openDB(t, dir)
	defer checkAndClose(t, restored)
	requireAnswers(t, want, restored)
	s, err := restored.Stats(context.Background())
	require.NoError(t, err)
	assert.Equal(t, uint64(1), s.Collections[0].Generation)
}

func versionOf(t *testing.T, dir string) (version string) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, "flash.db"), 0o600, &bolt.Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		version = fmt.Sprintf("v%d", binary.LittleEndian.Uint32(tx.Bucket([]byte("meta")).Get([]byte("format"))))
		return nil
	}))
	require.NoError(t, db.Close())
	return version
}

// TestEarlierFilesHaveNoLinksAcross: a database of an earlier version refuses what its flash.db
// cannot hold, and nothing else.
func TestEarlierFilesHaveNoLinksAcross(t *testing.T) {
	ctx := context.Background()
	stream, err := os.ReadFile(filepath.Join(frozenDir, "frozen-v2.zst"))
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "db")
	unpackTo(t, dir, stream)
	db := openDB(t, dir)
	papers, err := db.Collection("papers")
	require.NoError(t, err)
	users, err := db.CreateCollection("users", flashdb.Schema{Dim: 4})
	require.NoError(t, err)
	require.NoError(t, users.Upsert(ctx, flashdb.Node{Key: "ann", Embedding: []float32{1, 2, 3, 4}}))
	across := flashdb.Edge{SourceCollection: "users", Source: "ann", Target: "p1"}
	err = papers.Link(ctx, across)
	require.ErrorIs(t, err, flashdb.ErrVersion)
	require.ErrorContains(t, err, "is of version 2, and links to another collection need 3 or later")
	require.NoError(t, papers.Link(ctx, flashdb.Edge{Source: "p1", Target: "p9"}))
	forgotten, err := papers.Unlink(ctx, across)
	require.NoError(t, err)
	assert.Zero(t, forgotten)
	_, err = papers.Predict(ctx, "ann", 1, &flashdb.PredictOptions{SourceCollection: "users", Decoder: "cites"})
	require.NoError(t, err)
	checkAndClose(t, db)
}

func requireAnswers(t *testing.T, want frozenAnswers, db *flashdb.DB) {
	t.Helper()
	got := answersOf(t, db)
	require.Equal(t, asJSON(t, want), asJSON(t, got))
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	return string(b)
}

func answersOf(t *testing.T, db *flashdb.DB) frozenAnswers {
	t.Helper()
	contents, err := dbtest.ContentsOf(context.Background(), db)
	require.NoError(t, err)
	a := frozenAnswers{Contents: contents}
	a.Contents.Exact = nil // scores differ in their last digits from machine to machine
	c, err := db.Collection("papers")
	require.NoError(t, err)
	keys := func(o flashdb.PredictOptions) (keys []string) {
		o.Decoder = "cites"
		res, err := c.Predict(context.Background(), "p1", 10, &o)
		require.NoError(t, err)
		for _, h := range res.Hits {
			keys = append(keys, h.Key)
		}
		return keys
	}
	a.ByIndex = keys(flashdb.PredictOptions{Plan: &flashlight.Plan{PerRound: 100, Probes: index.Probes{Share: 1}}})
	a.Exact = keys(flashdb.PredictOptions{Exact: true})
	a.ByRelation = byRelation(t, db)
	if of, err := c.Get(context.Background(), "p1"); err == nil && of.Attributes != nil {
		a.Cheap = keys(flashdb.PredictOptions{Exact: true, Filter: `price > 20 and released < 2025-01-03 and brand in ("A", "B")`, IncludeLinked: true})
	}
	a.Releases, a.Staged, a.Cut = released(t, db)
	stats, err := db.Stats(context.Background())
	require.NoError(t, err)
	for _, s := range stats.Collections {
		if s.Name == "papers" {
			a.Segments = s.Segments
		}
	}
	return a
}

// released returns the releases with their states, what the staged one answers, and when its data
// was cut, if that is not when it was staged.
func released(t *testing.T, db *flashdb.DB) (all, staged []string, cut string) {
	t.Helper()
	ctx := context.Background()
	releases, err := db.Releases(ctx)
	require.NoError(t, err)
	for _, info := range releases {
		if info.Created.IsZero() {
			return nil, nil, "" // of a version without releases
		}
		all = append(all, info.Name+" "+info.State)
		if info.State != flashdb.ReleaseStaged {
			continue
		}
		if !info.Cut.Equal(info.Created) {
			cut = info.Cut.UTC().String()
		}
		r, err := db.Release(ctx, info.Name)
		require.NoError(t, err)
		c, err := r.Collection("papers")
		require.NoError(t, err)
		res, err := c.Predict(ctx, "p1", 5, &flashdb.PredictOptions{Decoder: "cites", Exact: true})
		require.NoError(t, err)
		for _, h := range res.Hits {
			staged = append(staged, h.Key)
		}
	}
	return all, staged, cut
}

// byRelation asks the decoder with relations, where there is one.
func byRelation(t *testing.T, db *flashdb.DB) map[string][]string {
	t.Helper()
	ctx := context.Background()
	users, err := db.Collection("users")
	if errors.Is(err, flashdb.ErrNotFound) {
		return nil
	}
	require.NoError(t, err)
	if names, err := users.Decoders(ctx); err != nil || len(names) == 0 {
		require.NoError(t, err)
		return nil
	}
	answers := map[string][]string{}
	for name, q := range map[string]struct {
		key string
		o   flashdb.PredictOptions
	}{
		"ann follows":     {"ann", flashdb.PredictOptions{Relation: "follows"}},
		"who follows ann": {"ann", flashdb.PredictOptions{Relation: "follows", Reverse: true}},
		"ann wrote":       {"ann", flashdb.PredictOptions{Relation: "wrote"}},
		"who wrote p7":    {"p7", flashdb.PredictOptions{SourceCollection: "papers", Relation: "wrote", Reverse: true}},
	} {
		q.o.Plan = &flashlight.Plan{PerRound: 100, Probes: index.Probes{Share: 1}}
		res, err := users.Predict(ctx, q.key, 5, &q.o)
		require.NoError(t, err)
		require.NotContains(t, res.Stats.Plan, "exact")
		for _, h := range res.Hits {
			answers[name] = append(answers[name], h.Key)
		}
	}
	return answers
}

// makeFrozen makes a database, packs it as a kill would leave it, and notes what it answers.
func makeFrozen(t *testing.T, packed, answers string) {
	t.Helper()
	const dim = 4
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "db")
	db, err := flashdb.Open(dir, &flashdb.Options{FlushBytes: 1 << 40})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(20, 26))
	c, err := db.CreateCollection("papers", flashdb.Schema{Dim: dim})
	require.NoError(t, err)
	var nodes []flashdb.Node
	for i := range 50 {
		nodes = append(nodes, flashdb.Node{
			Key: fmt.Sprintf("p%d", i), Embedding: randomVector(rng, dim), Tags: []string{[]string{"red", "green"}[i%2]}, Payload: []byte{byte(i)},
		})
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	require.NoError(t, c.Link(ctx, flashdb.Edge{Source: "p1", Target: "p2"}, flashdb.Edge{Source: "p1", Target: "p3"}))
	require.NoError(t, c.PutDecoder(ctx, "cites", randomMLP(t, rng, dim, 3)))
	require.NoError(t, c.SetMeta(ctx, "origin", "test"))
	_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 3})
	require.NoError(t, err)
	_, err = c.Delete(ctx, "p4", "p5")
	require.NoError(t, err)
	users, err := db.CreateCollection("users", flashdb.Schema{Dim: dim})
	require.NoError(t, err)
	for _, key := range []string{"ann", "bob", "cleo", "dan", "eve", "fay", "gus", "hal"} {
		require.NoError(t, users.Upsert(ctx, flashdb.Node{Key: key, Embedding: randomVector(rng, dim)}))
	}
	by := func(user, paper string) flashdb.Edge {
		return flashdb.Edge{SourceCollection: "users", Source: user, Target: paper}
	}
	wrote := func(user, paper string) flashdb.Edge {
		e := by(user, paper)
		e.Relation = "wrote"
		return e
	}
	follows := func(a, b string) flashdb.Edge { return flashdb.Edge{Source: a, Target: b, Relation: "follows"} }
	require.NoError(t, c.Link(ctx, by("ann", "p7"), by("ann", "p8"), by("bob", "p7"), wrote("ann", "p7"), wrote("bob", "p7"), wrote("dan", "p8")))
	require.NoError(t, users.Link(ctx, follows("ann", "bob"), follows("ann", "cleo"), follows("dan", "ann"), follows("eve", "ann")))
	names := []string{"follows", "wrote"}
	related, err := decoder.NewRelations(decoder.ComplEx, dim, names, randomVector(rng, len(names)*dim))
	require.NoError(t, err)
	require.NoError(t, users.PutDecoder(ctx, "knows", related))
	_, err = users.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 2})
	require.NoError(t, err)
	for i, key := range []string{"p1", "p2", "p3"} {
		require.NoError(t, c.SetAttributes(ctx, key, flashdb.Attributes{
			"price": 1.5 * float64(i), "brand": string(rune('A' + i)), "sold": i == 1, "released": time.Date(2025, 1, 1+i, 0, 0, 0, 0, time.UTC),
		}))
	}
	r, err := db.StageRelease(ctx, "next", "papers", "users")
	require.NoError(t, err)
	var next []flashdb.Node
	for _, n := range nodes[:40] {
		next = append(next, flashdb.Node{Key: n.Key, Embedding: randomVector(rng, dim)})
	}
	_, err = r.Put(ctx, "papers", append(next[:4:4], next[6:]...)...)
	require.NoError(t, err)
	require.NoError(t, r.PutDecoder(ctx, "papers", "cites", randomMLP(t, rng, dim, 3)))
	_, err = r.Build(ctx, &flashdb.RebuildOptions{Force: true, Lists: 3})
	require.NoError(t, err)
	require.NoError(t, r.SetCut(ctx, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)))
	time.Sleep(time.Second) // links are new to both from the next second on
	require.NoError(t, c.Link(ctx, flashdb.Edge{Source: "p7", Target: "p8"}, flashdb.Edge{Source: "p8", Target: "p7"}))
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "p9", Embedding: randomVector(rng, dim)}, flashdb.Node{Key: "segmented", Embedding: randomVector(rng, dim)}))
	_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{NewerOnly: true})
	require.NoError(t, err)
	require.NoError(t, db.Checkpoint(ctx))
	// From here on the log alone has it.
	require.NoError(t, c.SetAttributes(ctx, "p2", flashdb.Attributes{"price": 40, "sold": nil}))
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "new", Embedding: randomVector(rng, dim), Tags: []string{"blue"}}))
	require.NoError(t, c.Link(ctx, flashdb.Edge{Source: "new", Target: "p1"}, flashdb.Edge{Source: "p10", Target: "p1"}))
	_, err = c.Unlink(ctx, flashdb.Edge{Source: "p1", Target: "p3"})
	require.NoError(t, err)
	require.NoError(t, c.Link(ctx, by("bob", "new"), by("ann", "p6")))
	_, err = c.Unlink(ctx, by("ann", "p8"))
	require.NoError(t, err)
	require.NoError(t, c.Link(ctx, wrote("cleo", "p7"), wrote("cleo", "p6")))
	require.NoError(t, users.Link(ctx, follows("ann", "fay"), follows("fay", "ann")))
	_, err = c.Unlink(ctx, wrote("bob", "p7"))
	require.NoError(t, err)
	_, err = users.Unlink(ctx, follows("ann", "cleo"))
	require.NoError(t, err)
	_, err = users.Delete(ctx, "eve")
	require.NoError(t, err)
	_, err = c.Delete(ctx, "p6")
	require.NoError(t, err)
	killed := filepath.Join(t.TempDir(), "killed")
	require.NoError(t, os.CopyFS(killed, os.DirFS(dir)))
	require.NoError(t, os.WriteFile(answers, []byte(asJSON(t, answersOf(t, db))+"\n"), 0o644))
	require.NoError(t, db.Close())
	require.NoError(t, os.WriteFile(packed, packDir(t, killed), 0o644))
}

// packDir makes a stream of the files of a database directory.
func packDir(t *testing.T, dir string) []byte {
	t.Helper()
	var entries []backup.Entry
	var h backup.Header
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || name == "owner.pid" {
			return err
		}
		info, err := e.Info()
		entry := backup.Entry{Kind: backup.Store, Name: name, Size: uint64(info.Size())}
		switch filepath.Ext(name) {
		case ".log":
			entry.Kind = backup.Segment
		case ".ivf":
			entry.Kind = backup.Generation
		}
		entries = append(entries, entry)
		h.Entries++
		h.Bytes += entry.Size
		return err
	}))
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, h)
	require.NoError(t, err)
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name))
		require.NoError(t, err)
		require.NoError(t, w.Entry(e, f))
		require.NoError(t, f.Close())
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// unpackTo writes the files of a stream as they are.
func unpackTo(t *testing.T, dir string, stream []byte) {
	t.Helper()
	r, err := backup.NewReader(bytes.NewReader(stream), nil)
	require.NoError(t, err)
	defer r.Close()
	for {
		e, err := r.Next()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
		name := filepath.Join(dir, filepath.FromSlash(e.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, b, 0o600))
	}
}
