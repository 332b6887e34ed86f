package browse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/wire"
)

// keysIn returns the keys of a list of an answer.
func keysIn(t *testing.T, answer map[string]any, list string) (keys []string) {
	t.Helper()
	all, ok := answer[list].([]any)
	require.True(t, ok, "%v", answer)
	for _, one := range all {
		keys = append(keys, one.(map[string]any)["key"].(string))
	}
	return keys
}

func TestBadInput(t *testing.T) {
	c := serve(t, Options{Write: true})
	for _, bad := range []struct {
		call   string
		values []string
		status int
		want   string
	}{
		{"collection", nil, 400, "c is missing"},
		{"collection", []string{"c", "nobody"}, 404, "nobody"},
		{"keys", nil, 400, "c is missing"},
		{"keys", []string{"c", "nobody"}, 404, "nobody"},
		{"keys", []string{"c", "items", "n", "0"}, 400, "n is \"0\": want a whole number from 1 to 50"},
		{"keys", []string{"c", "items", "from", "-1"}, 400, "from is \"-1\""},
		{"keys", []string{"c", "items", "q", strings.Repeat("x", 1025)}, 400, "no key is longer"},
		{"node", []string{"c", "items"}, 400, "key is missing"},
		{"node", []string{"c", "items", "key", "nobody"}, 404, "nobody"},
		{"node", []string{"c", "items", "key", "base64:?"}, 400, "no base64"},
		{"links", []string{"c", "items", "key", "nobody"}, 404, "nobody"},
		{"links", []string{"c", "items", "key", "item 01", "reverse", "yes"}, 400, "reverse is \"yes\": want 1, or 0"},
		{"links", []string{"c", "items", "key", "item 01", "decoder", "none"}, 404, "none"},
		{"predict", []string{"c", "items", "key", "item 01", "diversity", "2"}, 400, "diversity is \"2\""},
		{"predict", []string{"c", "items", "key", "item 01", "per", "brand"}, 400, "at most brand: want a name and how many hits"},
		{"predict", []string{"c", "items", "key", "item 01", "per", "=2"}, 400, "at most =2: want a name"},
		{"predict", []string{"c", "items", "key", "item 01", "per", "tag=0"}, 400, "at most tag=0: want a name"},
		{"predict", []string{"c", "items", "key", "item 01", "per", "brand=2"}, 400, "brand"},
		{"predict", []string{"c", "items", "key", "item 01", "release", "none"}, 404, "none"},
		{"why", []string{"c", "items", "key", "item 01"}, 400, "hit is missing"},
		{"why", []string{"c", "items", "key", "item 01", "hit", "nobody", "decoder", "dot"}, 404, "nobody"},
		{"why", []string{"c", "items", "key", "item 01", "hit", "item 02", "decoder", "none"}, 404, "none"},
		{"predict", []string{"c", "items", "key", "nobody"}, 404, "nobody"},
		{"predict", []string{"c", "items", "key", "item 01", "to", "nobody"}, 404, "nobody"},
		{"predict", []string{"c", "items", "key", "item 01", "to", "other"}, 404, "decoder"},
		{"predict", []string{"c", "items", "key", "item 01", "decoder", "none"}, 404, "none"},
		{"predict", []string{"c", "items", "key", "item 01", "k", "201"}, 400, "from 1 to 200"},
		{"predict", []string{"c", "items", "key", "item 01", "k", "many"}, 400, "k is \"many\""},
		{"predict", []string{"c", "items", "key", "item 01", "recall", "2"}, 400, "recall is \"2\""},
		{"predict", []string{"c", "items", "key", "item 01", "recall", "NaN"}, 400, "recall is \"NaN\""},
		{"predict", []string{"c", "items", "key", "item 01", "filter", "a and"}, 400, "filter"},
		{"predict", []string{"c", "items", "key", "item 01", "relation", "r"}, 400, "relation"},
		{"nearest", []string{"c", "items", "key", "item 01", "by", "none"}, 400, "none"},
		{"nearest", []string{"c", "items", "key", "item 01", "filter", "("}, 400, "filter"},
		{"nearest", []string{"c", "items", "key", "item 01", "to", "other"}, 400, "2"},
		{"graph", []string{"c", "items", "key", "item 01", "n", "61"}, 400, "from 2 to 60"},
		{"graph", []string{"c", "items", "key", "nobody"}, 404, "nobody"},
		{"graph", []string{"c", "items", "key", "item 01", "exact", "yes"}, 400, "exact is \"yes\""},
		{"map", nil, 400, "c is missing"},
		{"map", []string{"c", "nobody"}, 404, "nobody"},
		{"health", nil, 400, "c is missing"},
		{"health", []string{"c", "nobody"}, 404, "nobody"},
		{"words", nil, 400, "c is missing"},
		{"words", []string{"c", "nobody"}, 404, "nobody"},
	} {
		status, answer := c.get(bad.call, bad.values...)
		assert.Equal(t, bad.status, status, "%s %v: %v", bad.call, bad.values, answer)
		assert.Contains(t, answer["error"], bad.want, "%s %v", bad.call, bad.values)
	}
	status, answer := c.read(c.do("GET", c.s.Path()+"api/keys?c=%zz", nil))
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, answer["error"], "cannot be read")
	for _, call := range []string{"place", "link", "unlink"} {
		for body, want := range map[string]int{"": 400, "[]": 400, `{"c":`: 400, `{}`: 400, `{"c":"nobody","key":"a","target":"b","source":"a"}`: 404, `{"c":"items","key":"base64:?","target":"b","source":"base64:?"}`: 400, `{"c":"items","key":"nobody","target":"item 01","source":"nobody"}`: 404, strings.Repeat(" ", maxBody+1): 413} {
			status, answer := c.post(call, body)
			assert.Equal(t, want, status, "%s %.60s: %v", call, body, answer)
		}
		status, _ := c.read(c.do("POST", c.s.Path()+"api/"+call, strings.NewReader("{}"), "Content-Type", "text/plain"))
		assert.Equal(t, http.StatusUnsupportedMediaType, status, "a form of another site could send that")
	}
}

// TestHostileKeys: each key comes back as it was asked for, and no label holds what cannot be seen.
func TestHostileKeys(t *testing.T) {
	c := serve(t, Options{})
	for _, key := range hostile {
		sent := wire.Quote(key)
		status, node := c.get("node", "c", "items", "key", sent)
		require.Equal(t, http.StatusOK, status, "%q: %v", key, node)
		assert.Equal(t, sent, node["key"])
		back, err := decodeKey(node["key"].(string))
		require.NoError(t, err)
		assert.Equal(t, key, back)
		label, ok := node["label"].(string)
		if !ok {
			label = node["key"].(string)
		}
		for _, text := range append(texts(node["tags"]), label, node["payload"].(map[string]any)["text"].(string)) {
			assert.False(t, strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }), "%q", text)
		}
		for _, call := range []string{"links", "predict", "nearest", "graph"} {
			status, answer := c.get(call, "c", "items", "key", sent)
			assert.Equal(t, http.StatusOK, status, "%s %q: %v", call, key, answer)
		}
		_, found := c.get("keys", "c", "items", "q", sent, "n", "50")
		assert.Contains(t, keysIn(t, found, "keys"), sent)
	}
	_, links := c.get("links", "c", "items", "key", "item 01")
	assert.Equal(t, []string{"item 02", hostile[0]}, keysIn(t, links, "links"))
}

func texts(list any) (out []string) {
	for _, one := range list.([]any) {
		out = append(out, one.(string))
	}
	return out
}

func TestKeys(t *testing.T) {
	c := serve(t, Options{})
	_, found := c.get("keys", "c", "items", "n", "3")
	assert.Equal(t, []string{"item 00", "item 01", "item 02"}, keysIn(t, found, "keys"), "the first ones")
	_, found = c.get("keys", "c", "items", "q", "item 2", "n", "50")
	assert.Len(t, keysIn(t, found, "keys"), 10)
	_, found = c.get("keys", "c", "items", "q", "EM 07")
	assert.Equal(t, []string{"item 07"}, keysIn(t, found, "keys"), "within, in another case")
	assert.NotContains(t, found, "next", "all rows were looked at")
	_, found = c.get("keys", "c", "items", "q", "EM", "n", "2")
	assert.Equal(t, []string{"item 00", "item 01"}, keysIn(t, found, "keys"))
	_, found = c.get("keys", "c", "items", "q", "EM", "n", "2", "from", fmt.Sprint(found["next"]))
	assert.Equal(t, []string{"item 02", "item 03"}, keysIn(t, found, "keys"), "it goes on")
	_, found = c.get("keys", "c", "other")
	assert.Empty(t, keysIn(t, found, "keys"))
}

func TestPredict(t *testing.T) {
	c := serve(t, Options{})
	_, a := c.get("predict", "c", "items", "key", "item 01", "k", "3", "verify", "1", "filter", `"mod 2"`)
	assert.Equal(t, []string{"item 26", "item 29", "item 20"}, keysIn(t, a, "hits"), "by n + n mod 7 + 1")
	hit := a["hits"].([]any)[0].(map[string]any)
	assert.InDelta(t, 32, hit["score"], 1e-6)
	assert.InDelta(t, 1, hit["probability"], 1e-6)
	assert.Equal(t, map[string]any{"missed": []any{}, "ms": a["exact"].(map[string]any)["ms"]}, a["exact"])
	_, a = c.get("predict", "c", "items", "key", "item 01", "filter", "mod")
	assert.Empty(t, keysIn(t, a, "hits"))
	assert.Equal(t, []any{"no node has the tag mod"}, a["notes"])
	assert.NotEmpty(t, a["short"])
	_, a = c.get("predict", "c", "items", "key", "item 02", "k", "1")
	assert.NotContains(t, keysIn(t, a, "hits"), "item 27", "it is linked")
	_, a = c.get("predict", "c", "items", "key", "item 02", "k", "1", "linked", "1")
	assert.Equal(t, []string{"item 27"}, keysIn(t, a, "hits"))
	_, a = c.get("predict", "c", "users", "to", "items", "key", "ann", "k", "2", "exact", "1", "recall", "0.9")
	assert.Len(t, keysIn(t, a, "hits"), 2)
	_, a = c.get("nearest", "c", "items", "key", "item 02", "k", "1")
	assert.NotContains(t, keysIn(t, a, "hits"), "item 27", "as of a prediction")
	assert.NotContains(t, a["hits"].([]any)[0], "probability")
	_, health := c.get("health", "c", "items")
	assert.Len(t, health["queries"], 6)
}

func TestLinksAndGraph(t *testing.T) {
	c := serve(t, Options{})
	_, a := c.get("links", "c", "users", "to", "items", "key", "ann", "decoder", "dot")
	assert.Equal(t, []string{"item 03"}, keysIn(t, a, "links"))
	assert.Contains(t, a["links"].([]any)[0], "probability")
	_, a = c.get("graph", "c", "items", "key", "item 01", "decoder", "dot", "n", "10")
	assert.Len(t, a["nodes"], 10)
	assert.Equal(t, []string{"item 01", "item 02", hostile[0], "item 27"}, keysIn(t, a, "nodes")[:4])
	assert.Contains(t, a["edges"], map[string]any{"from": 0.0, "to": 1.0, "known": true})
	assert.Contains(t, a["edges"], map[string]any{"from": 0.0, "to": 3.0, "known": false})
	assert.Contains(t, a["edges"], map[string]any{"from": 1.0, "to": 3.0, "known": true}, "a known link between two drawn nodes")
	_, a = c.get("graph", "c", "users", "to", "items", "key", "ann")
	assert.Equal(t, []string{"ann", "item 03"}, keysIn(t, a, "nodes"), "without a decoder there are known links alone")
}

func TestCollection(t *testing.T) {
	c := serve(t, Options{})
	_, a := c.get("collection", "c", "users")
	assert.Equal(t, []string{"ann"}, keysIn(t, a, "first"))
	var targets []any
	for _, one := range a["targets"].([]any) {
		targets = append(targets, one.(map[string]any)["collection"])
	}
	assert.Equal(t, []any{"items", "users"}, targets, "the one with a decoder first; other has another width")
}

// TestRelations: a decoder that has relations answers for one of them, in both directions.
func TestRelations(t *testing.T) {
	ctx := context.Background()
	db := fill(t)
	c, err := db.Collection("items")
	require.NoError(t, err)
	d, err := decoder.NewRelations(decoder.DistMult, 3, []string{"likes", "<hates>"}, []float32{1, 0, 0, -1, 0, 0})
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(ctx, "graph", d))
	require.NoError(t, c.Link(ctx, flashdb.Edge{Source: "item 10", Target: "item 29", Relation: "likes"}))
	p := client{t, New(opened{db}, Options{Write: true})}
	_, a := p.get("collection", "c", "items")
	decoders := a["targets"].([]any)[0].(map[string]any)["decoders"].([]any)
	assert.Equal(t, []any{"likes", "<hates>"}, decoders[1].(map[string]any)["relations"])
	status, a := p.get("predict", "c", "items", "key", "item 10", "decoder", "graph")
	assert.Equal(t, http.StatusBadRequest, status, "%v", a)
	_, a = p.get("predict", "c", "items", "key", "item 10", "decoder", "graph", "relation", "likes", "k", "1")
	assert.Equal(t, []string{"item 28"}, keysIn(t, a, "hits"), "item 29 is liked already")
	_, a = p.get("predict", "c", "items", "key", "item 10", "decoder", "graph", "relation", "<hates>", "k", "1")
	assert.Equal(t, []string{hostile[0]}, keysIn(t, a, "hits"))
	for relation, nearest := range map[string]string{"likes": "item 27", "<hates>": "item 29"} {
		_, a = p.get("nearest", "c", "items", "key", "item 10", "relation", relation, "k", "1")
		assert.Equal(t, []string{nearest}, keysIn(t, a, "hits"), "as a prediction, without the links of this relation: %s", relation)
	}
	_, a = p.get("links", "c", "items", "key", "item 10", "relation", "likes", "decoder", "graph")
	assert.Equal(t, []string{"item 29"}, keysIn(t, a, "links"))
	for _, call := range []string{"links", "graph"} {
		_, a = p.get(call, "c", "items", "key", "item 29", "relation", "likes", "decoder", "graph", "reverse", "1")
		list := map[string]string{"links": "links", "graph": "nodes"}[call]
		assert.Contains(t, keysIn(t, a, list), "item 10", call)
	}
	status, _ = p.post("unlink", `{"c":"items","key":"item 10","target":"item 29","relation":"likes"}`)
	assert.Equal(t, http.StatusOK, status)
	_, a = p.get("links", "c", "items", "key", "item 10", "relation", "likes")
	assert.Empty(t, keysIn(t, a, "links"))
}

func TestWrite(t *testing.T) {
	pair := `{"c":"items","key":"item 05","target":` + string(must(json.Marshal(wire.Quote("not utf-8 \xff\xfe")))) + `}`
	c := serve(t, Options{})
	for _, call := range []string{"link", "unlink"} {
		status, a := c.post(call, pair)
		assert.Equal(t, http.StatusForbidden, status)
		assert.Contains(t, a["error"], "--write")
	}
	c = serve(t, Options{Write: true})
	status, _ := c.post("link", pair)
	require.Equal(t, http.StatusOK, status)
	_, a := c.get("links", "c", "items", "key", "item 05")
	assert.Equal(t, []string{wire.Quote("not utf-8 \xff\xfe")}, keysIn(t, a, "links"))
	_, a = c.post("unlink", pair)
	assert.InDelta(t, 1, a["unlinked"], 0)
	_, a = c.get("links", "c", "items", "key", "item 05")
	assert.Empty(t, keysIn(t, a, "links"))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestMap(t *testing.T) {
	db := fill(t)
	c := client{t, New(opened{db}, Options{})}
	_, a := c.get("map", "c", "items")
	points := a["points"].([]any)
	assert.Len(t, points, 30+len(hostile))
	assert.Equal(t, []any{"all", "<b>tag</b>", `"\u202etag"`}, a["tags"].([]any)[:3])
	_, placed := c.post("place", `{"c":"items","from":"users","source":"ann","keys":["item 00"]}`)
	both := placed["points"].([]any)
	require.Len(t, both, 2)
	first, again := points[0].(map[string]any), both[1].(map[string]any)
	assert.Equal(t, []any{first["x"], first["y"]}, []any{again["x"], again["y"]})
	_, cached := c.get("map", "c", "items")
	assert.Equal(t, a["ms"], cached["ms"], "it is made once")
	status, a := c.get("map", "c", "other")
	assert.Equal(t, http.StatusOK, status)
	assert.Empty(t, a["points"], "nobody is there")
	status, a = c.post("place", `{"c":"other","from":"users","source":"ann","keys":[]}`)
	assert.Equal(t, http.StatusBadRequest, status, "%v", a)
	assert.Contains(t, a["error"], "3 values")
	other, err := db.Collection("other")
	require.NoError(t, err)
	require.NoError(t, other.Upsert(context.Background(), flashdb.Node{Key: "first", Embedding: []float32{1, 2}}))
	c.s.sizes.at = time.Time{} // counts are kept for a while
	_, a = c.get("map", "c", "other")
	assert.Len(t, a["points"], 1, "an empty map is not kept")
}

// TestPrincipal compares the plane with rows whose directions are known.
func TestPrincipal(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var rows [][]float32
	for range 500 {
		a, b, c := rng.NormFloat64()*9, rng.NormFloat64()*3, rng.NormFloat64()*0.1
		rows = append(rows, []float32{float32(a) + 5, float32((b + c) / math.Sqrt2), float32((b-c)/math.Sqrt2) - 7})
	}
	p := principal(rows, 3)
	assert.InDelta(t, 1, math.Abs(p.axes[0][0]), 1e-2)
	assert.InDelta(t, 1, math.Abs(p.axes[1][1]+p.axes[1][2])/math.Sqrt2, 1e-2)
	assert.InDelta(t, 1, p.share, 1e-3)
	x, y := principal([][]float32{{1, 2}, {1, 2}}, 2).place([]float32{3, 4})
	assert.Equal(t, [2]float64{}, [2]float64{x, y}, "rows that do not vary")
	huge := principal([][]float32{{math.MaxFloat32, 0}, {-math.MaxFloat32, 1}}, 2)
	x, _ = huge.place([]float32{1, 1})
	assert.False(t, math.IsNaN(x))
}

func TestPayload(t *testing.T) {
	for _, c := range []struct{ in, kind, want string }{
		{"", "none", ""},
		{`{"b":1,"a":[1,2]}`, "json", "{\n  \"b\": 1,\n  \"a\": [\n    1,\n    2\n  ]\n}"},
		{"plain\ttext\n", "text", "plain\ttext\n"},
		{"\u202eturned\x1b[31m", "text", `\u202eturned\x1b[31m`},
		{"\xff\xfe", "binary", "00000000  ff fe                                             |..|\n"},
	} {
		p := showPayload([]byte(c.in))
		assert.Equal(t, payloadShown{Bytes: len(c.in), Kind: c.kind, Text: c.want}, p)
	}
	long := showPayload([]byte(strings.Repeat("é", maxPayload)))
	assert.True(t, long.Cut)
	assert.LessOrEqual(t, len(long.Text), maxPayload)
	assert.Equal(t, "text", long.Kind, "it is not cut within a character")
}

func TestNumbers(t *testing.T) {
	for f, want := range map[number]string{1.5: "1.5", number(math.Inf(1)): `"Infinity"`, number(math.Inf(-1)): `"-Infinity"`, number(math.NaN()): `"NaN"`} {
		b, err := json.Marshal(f)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(b))
	}
}

// TestConcurrent asks everything at once: a page does, and there may be several.
func TestConcurrent(t *testing.T) {
	c := serve(t, Options{Write: true})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for _, call := range []string{"collection", "keys", "health", "words", "map", "node", "links", "predict", "nearest", "graph"} {
				w := c.do("GET", c.s.Path()+"api/"+call+"?c=items&key=item+01&again=1&decoder=dot", nil)
				assert.Equal(t, http.StatusOK, w.Code, "%s: %s", call, w.Body)
			}
			for _, call := range []string{"link", "place", "unlink"} {
				w := c.do("POST", c.s.Path()+"api/"+call, strings.NewReader(`{"c":"items","key":"item 03","target":"item 04","source":"item 01","keys":["item 02"]}`))
				assert.Equal(t, http.StatusOK, w.Code, "%s: %s", call, w.Body)
			}
		})
	}
	group.Wait()
}

func TestErrorText(t *testing.T) {
	db := fill(t)
	s := New(opened{db}, Options{ErrorText: func(err error) string {
		if errors.Is(err, flashdb.ErrNotFound) {
			return "plain words"
		}
		return err.Error()
	}})
	_, a := client{t, s}.get("node", "c", "items", "key", "nobody")
	assert.Equal(t, "plain words", a["error"])
}

func FuzzKey(f *testing.F) {
	for _, key := range hostile {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		back, err := decodeKey(wire.Quote(key))
		require.NoError(t, err)
		require.Equal(t, key, back)
		b, err := json.Marshal(wire.Quote(key))
		require.NoError(t, err)
		var sent string
		require.NoError(t, json.Unmarshal(b, &sent))
		require.Equal(t, wire.Quote(key), sent)
		_, _ = decodeKey(key)
		_ = showPayload([]byte(key))
	})
}
