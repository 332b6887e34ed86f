package control

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/encoder"
)

// open opens a new database until the test ends.
func open(t *testing.T) *flashdb.DB {
	t.Helper()
	db, err := flashdb.Open(filepath.Join(t.TempDir(), "db"), &flashdb.Options{CalibrateTime: -1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// openServed serves a new database, and returns it with a client of it.
func openServed(t *testing.T) (*flashdb.DB, *Client) {
	t.Helper()
	db := open(t)
	_, err := Serve(db, nil)
	require.NoError(t, err)
	c, err := Dial(db.Dir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return db, c
}

// noteAsked has every handler note that it was called.
func noteAsked(t *testing.T) (asked func(path string) bool) {
	var mu sync.Mutex
	seen := map[string]bool{}
	before := maps.Clone(calls)
	for path, answer := range before {
		calls[path] = func(ctx context.Context, db *flashdb.DB, collection string, body []byte, s *stream) (any, error) {
			mu.Lock()
			seen[path] = true
			mu.Unlock()
			return answer(ctx, db, collection, body, s)
		}
	}
	t.Cleanup(func() { maps.Copy(calls, before) })
	return func(path string) bool {
		mu.Lock()
		defer mu.Unlock()
		return seen[path]
	}
}

const binary = "\xff\x00key"

// A transcript is what every method answers, by its name.
type transcript map[string]any

// ask makes every call on a new database.
func ask(t *testing.T, c *Client) transcript {
	t.Helper()
	ctx := context.Background()
	said := transcript{}
	ok := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	pid, err := c.Owner(ctx)
	ok(err)
	assert.Equal(t, os.Getpid(), pid)
	made, err := c.CreateCollection(ctx, "c", flashdb.Schema{Dim: 2})
	ok(err)
	assert.Equal(t, flashdb.Schema{Dim: 2}, made.Schema())
	in, err := c.Collection(ctx, "c")
	ok(err)
	assert.Equal(t, "c", in.Name())
	names, err := c.Collections(ctx)
	ok(err)
	assert.Equal(t, []string{"c"}, names)

	ok(in.Upsert(
		ctx,
		flashdb.Node{Key: "a", Embedding: []float32{1, 0}, Tags: []string{"t"}, Payload: []byte{0, 255}, Attributes: flashdb.Attributes{"price": 1.5, "sold": true, "brand": "A", "at": time.Unix(1e9, 5000).UTC()}},
		flashdb.Node{Key: binary, Embedding: []float32{0, 1}},
		flashdb.Node{Key: "base64:", Embedding: []float32{3e38, 3e38}},
		flashdb.Node{Key: "gone", Embedding: []float32{1, 1}},
	))
	said["get"], err = in.Get(ctx, "a")
	ok(err)
	ok(in.SetTags(ctx, binary, []string{"u", "t"}))
	ok(in.SetPayload(ctx, binary, []byte{255, 0}))
	ok(in.SetAttributes(ctx, binary, flashdb.Attributes{"price": 2, "at": time.Unix(2e9, 0), "never": nil}))
	said["set"], err = in.Get(ctx, binary)
	ok(err)
	from, err := c.CreateCollection(ctx, "from", flashdb.Schema{Dim: 2})
	ok(err)
	ok(from.Upsert(ctx, flashdb.Node{Key: binary, Embedding: []float32{1, 2}}))
	askBatch(t, c, in, said)
	said["delete"], err = in.Delete(ctx, "gone", "nobody")
	ok(err)
	ok(in.Link(ctx, flashdb.Edge{Source: "a", Target: binary}, flashdb.Edge{Source: "a", Target: "base64:"}))
	said["unlink"], err = in.Unlink(ctx, flashdb.Edge{Source: "a", Target: "base64:"}, flashdb.Edge{Source: "a", Target: "a"})
	ok(err)
	said["linked"], err = in.Linked(ctx, flashdb.Edge{Source: "a"})
	ok(err)
	ok(in.Link(ctx, flashdb.Edge{SourceCollection: "from", Source: binary, Target: "a"}))
	said["linked across"], err = in.Linked(ctx, flashdb.Edge{SourceCollection: "from", Source: binary})
	ok(err)
	var links []flashdb.Edge
	for e, err := range in.Links(ctx) {
		ok(err)
		links = append(links, e)
	}
	assert.Len(t, links, 2)
	said["links"] = links
	for range in.Links(ctx) {
		break
	}
	unlinked, err := in.Linked(ctx, flashdb.Edge{Source: "base64:"})
	ok(err)
	assert.Empty(t, unlinked)
	var all []string
	for key, err := range in.Keys(ctx) {
		ok(err)
		all = append(all, key)
	}
	said["keys"] = all
	for range in.Keys(ctx) {
		break
	}
	said["rowkeys"], err = in.RowKeys(ctx, 1, 77)
	ok(err)
	said["prefix"], err = in.KeysWithPrefix(ctx, "b", 5)
	ok(err)
	ok(in.SetMeta(ctx, "name", binary))
	said["meta"], err = in.Meta(ctx, "name")
	ok(err)
	said["no meta"], err = in.Meta(ctx, "other")
	ok(err)

	dot, err := decoder.NewDot(2)
	ok(err)
	ok(in.PutDecoder(ctx, binary, dot))
	ok(in.PutDecoder(ctx, "other", dot))
	ok(in.DropDecoder(ctx, "other"))
	said["decoders"], err = in.Decoders(ctx)
	ok(err)
	d, err := in.Decoder(ctx, binary)
	ok(err)
	said["decoder"] = decoder.Marshal(d)
	askQuestions(t, in, said)
	askUpkeep(t, c, in, said)
	askReleases(t, c, said)

	require.NoError(t, c.DropCollection(ctx, "c"))
	said["dropped"], err = c.Collections(ctx)
	ok(err)
	return said
}

// askReleases stages, fills, builds, compares, publishes, rolls back and drops a release.
func askReleases(t *testing.T, c *Client, said transcript) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, c.StageRelease(ctx, "next", "c", "from"))
	cut := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	require.NoError(t, c.SetCut(ctx, "next", cut))
	require.ErrorIs(t, c.SetCut(ctx, "none", cut), flashdb.ErrNotFound)
	require.ErrorIs(t, c.SetCut(ctx, "next", time.Now().Add(time.Hour)), flashdb.ErrInvalid)
	dot, err := decoder.NewDot(2)
	require.NoError(t, err)
	var b flashdb.Batch
	b.Upsert("c", flashdb.Node{Key: "a", Embedding: []float32{2, 0}}, flashdb.Node{Key: "added\xff", Embedding: []float32{2, 2}, Tags: []string{"x"}})
	b.Upsert("from", flashdb.Node{Key: binary, Embedding: []float32{2, 4}})
	b.PutDecoder("c", binary, dot)
	b.PutEncoder("c", meanEncoder(t), flashdb.EncoderUse{Decoder: binary, Directed: true})
	said["release added"], err = c.FillRelease(ctx, "next", &b)
	require.NoError(t, err)
	told := false
	tell := func(string, int64, int64) { told = true }
	built, err := c.BuildRelease(ctx, "next", &flashdb.RebuildOptions{Force: true, Progress: tell})
	require.NoError(t, err)
	require.Len(t, built, 2)
	assert.True(t, told)
	said["release built"] = built[0].Built
	staged, err := c.ReleaseCollection(ctx, "next", "c")
	require.NoError(t, err)
	found, err := staged.Predict(ctx, "a", 2, &flashdb.PredictOptions{Decoder: binary, IncludeLinked: true})
	require.NoError(t, err)
	require.NotEmpty(t, found.Hits)
	assert.Contains(t, []string{found.Hits[0].Key, found.Hits[1].Key}, "added\xff", "the live release has no embedding of it")
	said["release predicts"] = found.Hits
	require.ErrorIs(t, staged.Upsert(ctx, flashdb.Node{Key: "z", Embedding: []float32{1, 1}}), flashdb.ErrInvalid)
	_, err = c.ReleaseCollection(ctx, "none", "c")
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	_, err = c.ReleaseCollection(ctx, "next", "none")
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	edges := map[string][]flashdb.Edge{"c": {{Source: "a", Target: "added\xff"}}}
	compared, err := c.CompareRelease(ctx, "next", &flashdb.CompareOptions{Edges: edges, Progress: tell})
	require.NoError(t, err)
	for i := range compared.Decoders { // whether a plan by the index is the cheapest is a matter of time
		of := &compared.Decoders[i]
		of.Indexed, of.LiveRecall, of.StagedRecall = false, 0, 0
	}
	require.False(t, compared.Since.IsZero())
	compared.Since = time.Time{}
	said["release compared"] = compared
	res, err := c.Publish(ctx, "next", &flashdb.PublishOptions{Force: true, Compare: flashdb.CompareOptions{Progress: tell}})
	require.NoError(t, err)
	said["release former"] = res.Former
	said["release rolled back"], err = c.Rollback(ctx)
	require.NoError(t, err)
	all, err := c.Releases(ctx)
	require.NoError(t, err)
	require.True(t, all[1].Cut.Equal(cut))
	for i := range all {
		all[i].Created, all[i].Cut, all[i].Published = time.Time{}, time.Time{}, time.Time{}
	}
	said["releases"] = all
	require.NoError(t, c.DropRelease(ctx, "next"))
	require.ErrorIs(t, c.DropRelease(ctx, "next"), flashdb.ErrNotFound)
}

// askBatch makes one write of many.
func askBatch(t *testing.T, c *Client, in *Collection, said transcript) {
	t.Helper()
	ctx := context.Background()
	dot, err := decoder.NewDot(2)
	require.NoError(t, err)
	var b flashdb.Batch
	b.Upsert("c", flashdb.Node{Key: "late\xff", Embedding: []float32{2, 2}, Tags: []string{"x"}, Payload: []byte{0}})
	b.Link("c", flashdb.Edge{SourceCollection: "from", Source: binary, Target: "late\xff"})
	b.PutDecoder("c", "late", dot)
	b.SetMeta("c", "late", binary)
	b.PutEncoder("c", meanEncoder(t), flashdb.EncoderUse{Decoder: "late", Directed: true})
	require.NoError(t, c.Apply(ctx, &b))
	said["late"], err = in.Get(ctx, "late\xff")
	require.NoError(t, err)
	said["late links"], err = in.Linked(ctx, flashdb.Edge{SourceCollection: "from", Source: binary})
	require.NoError(t, err)
	require.Len(t, said["late links"], 1)
	said["late meta"], err = in.Meta(ctx, "late")
	require.NoError(t, err)
	said["encoder"], err = in.EncoderUse(ctx)
	require.NoError(t, err)
	said["embed"], err = in.Embed(ctx, flashdb.EmbedLinks{To: []string{"late\xff"}, From: []string{binary}}, nil)
	require.NoError(t, err)
	require.Equal(t, []float32{1, 1.5}, said["embed"], "the mean of (2, 2) and (0, 1)")
	b = flashdb.Batch{}
	b.DropDecoder("c", "late")
	b.Delete("c", "late\xff")
	b.SetTags("c", "nobody", nil)
	err = c.Apply(ctx, &b)
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	require.ErrorContains(t, err, `apply batch: write 3 of 3, set tags in "c": node "nobody" not found`)
	_, err = in.Get(ctx, "late\xff")
	require.NoError(t, err, "nothing of it took place")
	b = flashdb.Batch{}
	b.DropDecoder("c", "late")
	b.Delete("c", "late\xff")
	require.NoError(t, c.Apply(ctx, &b))
}

// meanEncoder embeds a node as the mean of its neighbours.
func meanEncoder(t *testing.T) *encoder.Encoder {
	t.Helper()
	in := encoder.Input{Dim: 2}
	e, err := encoder.New("mf", in, encoder.Weights{
		Hidden: make([]float32, in.Width()), HiddenBias: make([]float32, 1),
		Output: make([]float32, in.Dim), OutputBias: make([]float32, in.Dim),
	})
	require.NoError(t, err)
	return e
}

// timeless is a result without what differs from one call to the next.
func timeless(r flashdb.Result) flashdb.Result {
	r.Stats.Elapsed = 0
	return r
}

func askQuestions(t *testing.T, in *Collection, said transcript) {
	t.Helper()
	ctx := context.Background()
	opts := &flashdb.PredictOptions{Exclude: []string{binary}, IncludeLinked: true, Filter: "not t", WithNode: true}
	res, err := in.Predict(ctx, "a", 5, opts)
	require.NoError(t, err)
	require.Len(t, res.Hits, 1)
	said["predict"] = timeless(res)
	res, err = in.PredictVector(ctx, []float32{3e38, 3e38}, 5, nil)
	require.NoError(t, err)
	require.True(t, math.IsInf(float64(res.Hits[0].Score), 1), "JSON has no number for it")
	said["vector"] = timeless(res)
	var many []flashdb.Result
	for res, err := range in.PredictBatch(ctx, []string{"a", "nobody", binary}, 5, nil) {
		if res.Source == "nobody" {
			require.ErrorIs(t, err, flashdb.ErrNotFound)
			require.ErrorContains(t, err, `node "nobody" not found`)
		} else {
			require.NoError(t, err)
		}
		many = append(many, timeless(res))
	}
	said["batch"] = many
	for range in.PredictBatch(ctx, []string{"a", binary}, 5, nil) {
		break
	}
	res, err = in.Predict(ctx, binary, 5, &flashdb.PredictOptions{SourceCollection: "from"})
	require.NoError(t, err)
	require.Len(t, res.Hits, 2, "all but the one it is linked to")
	said["across"] = timeless(res)
	said["score across"], err = in.Score(ctx, binary, []string{"a"}, &flashdb.ScoreOptions{SourceCollection: "from"})
	require.NoError(t, err)
	many = nil
	for res, err := range in.PredictVectors(ctx, [][]float32{{1, 0}, {3e38, 3e38}}, 5, nil) {
		require.NoError(t, err)
		many = append(many, timeless(res))
	}
	said["vectors"] = many
	said["score"], err = in.Score(ctx, "a", []string{binary, "base64:"}, nil)
	require.NoError(t, err)
	said["why"], err = in.Why(ctx, "a", []string{"base64:", binary}, &flashdb.WhyOptions{Named: 2})
	require.NoError(t, err)
	require.Equal(t, []string{"base64:", binary}, []string{said["why"].([]flashdb.Reason)[0].Key, said["why"].([]flashdb.Reason)[1].Key})
	res, err = in.Search(ctx, []float32{0, 1}, 2, &flashdb.SearchOptions{Similarity: flashdb.SimilarityL2})
	require.NoError(t, err)
	said["search"] = timeless(res)
}

func askUpkeep(t *testing.T, c *Client, in *Collection, said transcript) {
	t.Helper()
	ctx := context.Background()
	stages := map[string]bool{}
	tell := func(stage string, _, _ int64) { stages[stage] = true }
	built, err := in.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Progress: tell})
	require.NoError(t, err)
	said["rebuild"] = built.Generation
	assert.NotEmpty(t, stages)
	measured, err := in.Calibrate(ctx, &flashdb.CalibrateOptions{Progress: tell})
	require.NoError(t, err)
	stored, err := in.Calibrations(ctx)
	require.NoError(t, err)
	assert.Equal(t, measured, stored)
	assert.Len(t, stored, 1)
	require.NoError(t, c.Checkpoint(ctx))
	_, err = c.Compact(ctx, nil)
	require.NoError(t, err)

	var stream bytes.Buffer
	told := false
	res, err := c.Backup(ctx, &stream, &flashdb.BackupOptions{Progress: func(string, int64, int64) { told = true }})
	require.NoError(t, err)
	assert.True(t, told)
	verified, err := flashdb.VerifyBackup(ctx, &stream, nil)
	require.NoError(t, err)
	assert.Equal(t, res.LSN, verified.LSN)

	findings, err := c.Check(ctx)
	require.NoError(t, err)
	assert.Empty(t, findings)
	said["strays"], err = c.Strays(ctx)
	require.NoError(t, err)
	stats, err := c.Stats(ctx)
	require.NoError(t, err)
	said["stats"] = stats.Collections[0].Nodes
	metrics, err := c.Metrics(ctx)
	require.NoError(t, err)
	assert.NotZero(t, metrics)
}

// TestAnswersAreTheSame makes every call on a database directly and over its socket, and compares
// the answers.
func TestAnswersAreTheSame(t *testing.T) {
	asked := noteAsked(t)
	local := Local(open(t))
	want := ask(t, local)
	assert.NotNil(t, local.DB())
	for path := range calls {
		assert.False(t, asked(path), "%s went over a socket", path)
	}
	_, remote := openServed(t)
	assert.Nil(t, remote.DB())
	got := ask(t, remote)
	for name := range want {
		if !assert.ObjectsAreEqual(want[name], got[name]) {
			assert.Equal(t, want[name], got[name], name)
		}
	}
	for path := range calls {
		assert.True(t, asked(path), "no method asks %s, or the test does not", path)
	}
}

// TestSentinelsKeepTheirIdentity checks that sentinel errors match over the socket.
func TestSentinelsKeepTheirIdentity(t *testing.T) {
	ctx := context.Background()
	db, c := openServed(t)
	made, err := db.CreateCollection("c", flashdb.Schema{Dim: 2})
	require.NoError(t, err)
	require.NoError(t, made.Upsert(ctx, flashdb.Node{Key: "a", Embedding: []float32{1, 0}}))
	in, err := c.Collection(ctx, "c")
	require.NoError(t, err)
	raw := func(path, body string) error {
		return c.conn.call(ctx, path, plainJSON(body), &none{}, parts{})
	}
	for _, x := range []struct {
		name string
		err  error
		want error
		text string
	}{
		{"ErrNotFound", second(in.Get(ctx, "b")), flashdb.ErrNotFound, `node "b" not found in collection "c"`},
		{"no collection", second(c.Collection(ctx, "d")), flashdb.ErrNotFound, `collection "d" not found`},
		{"ErrExists", second(c.CreateCollection(ctx, "c", flashdb.Schema{Dim: 2})), flashdb.ErrExists, `create collection: collection "c" already exists`},
		{"ErrDim", second(in.Search(ctx, []float32{1}, 1, nil)), flashdb.ErrDim, "wrong dimension"},
		{"ErrInvalid", second(in.Search(ctx, []float32{1, 0}, 0, nil)), flashdb.ErrInvalid, "k is 0"},
		{"bad request", raw("c/search", `{"kk": 1}`), flashdb.ErrInvalid, "unknown field"},
		{"a function", raw("c/rebuild", `{"Progress": 1}`), flashdb.ErrInvalid, "Progress"},
		{"no weights", raw("c/putdecoder", `{"name": "d"}`), flashdb.ErrInvalid, "no weights"},
		{"nothing to drop", c.DropCollection(ctx, "d"), flashdb.ErrNotFound, `drop collection: collection "d" not found`},
		{"ErrCorrupt", raw("c/putdecoder", `{"name": "d", "decoder": "RkxEQyBub25zZW5zZQ=="}`), flashdb.ErrCorrupt, "decoder"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var f *failure
			require.ErrorAs(t, x.err, &f)
			assert.ErrorContains(t, x.err, x.text)
			for _, s := range sentinels {
				assert.Equal(t, s.err == x.want, f.Is(s.err), "%v", s.err)
			}
		})
	}
	for _, path := range []string{"nothing", "c/nothing", "c/predict/a", "predict", ""} {
		assert.ErrorContains(t, raw(path, "{}"), "knows no call /v2/"+path)
	}
}

// plainJSON is written as it is.
type plainJSON string

func (p plainJSON) MarshalJSON() ([]byte, error) { return []byte(p), nil }

func second[T any](_ T, err error) error { return err }

// TestEverySentinelTravels demands that what errors.go declares is in the list of errors that keep
// their identity over the socket.
func TestEverySentinelTravels(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "errors.go"), nil, 0)
	require.NoError(t, err)
	declared := 0
	for _, decl := range file.Decls {
		if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, spec := range g.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if strings.HasPrefix(name.Name, "Err") {
						declared++
					}
				}
			}
		}
	}
	texts := map[string]bool{}
	for _, s := range sentinels {
		assert.False(t, texts[s.err.Error()], "two sentinels have the text %q, and texts are their codes", s.err)
		texts[s.err.Error()] = true
	}
	const ofContext = 2 // context.Canceled, context.DeadlineExceeded
	assert.Len(t, sentinels, declared+ofContext, "add the new sentinel to the list in frame.go")
}
