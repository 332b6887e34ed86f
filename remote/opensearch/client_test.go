package opensearch

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

// serve returns an engine over one server of this test.
func serve(t *testing.T, handler http.HandlerFunc) *Engine {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	e, err := New(Config{Addresses: []string{s.URL}})
	require.NoError(t, err)
	return e
}

// answers returns a handler that gives the answers for paths, each "STATUS BODY".
func answers(t *testing.T, byPath map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, ok := byPath[r.URL.Path]
		if !assert.True(t, ok, "%s %s", r.Method, r.URL.Path) {
			answer = "500 "
		}
		status := 0
		for _, digit := range answer[:3] {
			status = 10*status + int(digit-'0')
		}
		w.WriteHeader(status)
		_, err := w.Write([]byte(answer[4:]))
		assert.NoError(t, err)
	}
}

var name = remote.Name{Collection: "a", Version: "0123456789abcdef"}

// ours is the answer with the mapping of that version, of two dimensions.
func ours() string {
	m := newMapping(&remote.Version{Dim: 1, Norm: 1}, &Config{})
	return "200 " + string(encoded(map[string]any{"flashdb-a-0123456789abcdef": map[string]any{"mappings": m}}))
}

// TestErrors maps answers of nodes to errors.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		answer string
		is     error
		says   string
	}{
		{`404 {"error":{"type":"index_not_found_exception","reason":"no such index"},"status":404}`, flashdb.ErrNotFound, "no such index"},
		{`429 {"error":{"type":"circuit_breaking_exception","reason":"Data too large"},"status":429}`, remote.ErrUnavailable, "Data too large"},
		{`429 slow down`, remote.ErrUnavailable, "slow down"},
		{`502 <html>bad gateway</html>`, remote.ErrUnavailable, "bad gateway"},
		{`503 {"error":{"type":"cluster_manager_not_discovered_exception","reason":null},"status":503}`, remote.ErrUnavailable, "cluster_manager_not_discovered"},
		{`504 `, remote.ErrUnavailable, "HTTP status 504"},
		{`500 {"error":{"type":"node_closed_exception","reason":"node closed"},"status":500}`, remote.ErrUnavailable, "node closed"},
		{`500 {"error":{"type":"search_phase_execution_exception","reason":"all shards failed","failed_shards":[{"reason":{"type":"already_closed_exception","reason":"closed"}}]},"status":500}`, remote.ErrUnavailable, "all shards failed"},
		{`500 {"error":{"type":"null_pointer_exception","reason":"oops"},"status":500}`, nil, "oops"},
		{`400 {"error":{"root_cause":[{"type":"illegal_argument_exception","reason":"k is bad"}],"type":"search_phase_execution_exception","reason":"all shards failed"},"status":400}`, nil, "k is bad"},
		{`400 {"error":{"type":"illegal_argument_exception","reason":"unknown setting [index.knn]"},"status":400}`, nil, "lack the k-NN plugin"},
		{`401 Unauthorized`, nil, "access is denied"},
		{`403 {"error":{"type":"security_exception","reason":"no permissions"},"status":403}`, nil, "access is denied"},
		{`413 `, flashdb.ErrInvalid, "max_content_length"},
		{`302 `, nil, "redirects"},
		{`200 <html>a proxy</html>`, nil, "not that of OpenSearch"},
	} {
		e := serve(t, answers(t, map[string]string{"/x": c.answer}))
		var out struct{}
		err := e.client.do(t.Context(), &request{what: "ask", method: http.MethodGet, path: "/x"}, &out)
		require.ErrorContains(t, err, c.says, c.answer)
		assert.ErrorContains(t, err, "opensearch: ask: node 127.0.0.1:")
		for _, sentinel := range []error{flashdb.ErrNotFound, flashdb.ErrInvalid, remote.ErrUnavailable, remote.ErrForeign} {
			assert.Equal(t, c.is == sentinel, errors.Is(err, sentinel), "%s: %v", c.answer, sentinel)
		}
	}
}

// TestForeign refuses indexes that flashdb has not made.
func TestForeign(t *testing.T) {
	for says, mapping := range map[string]string{
		"no mark":                 `{"properties":{"vector":{"type":"knn_vector"}}}`,
		"field raw has type":      `{"_meta":{"flashdb":{"format":1}},"properties":{"key":{"type":"keyword"},"sum":{"type":"long"},"tags":{"type":"keyword"},"payload":{"type":"binary"},"version":{"type":"binary"},"vector":{"type":"knn_vector"}}}`,
		"0 dimensions":            `{"_meta":{"flashdb":{"format":1}},"properties":{"key":{"type":"keyword"},"sum":{"type":"long"},"tags":{"type":"keyword"},"payload":{"type":"binary"},"raw":{"type":"binary"},"version":{"type":"binary"},"vector":{"type":"knn_vector"}}}`,
		"cannot unmarshal string": `{"_meta":{"flashdb":"mine"}}`,
	} {
		e := serve(t, answers(t, map[string]string{"/flashdb-a-0123456789abcdef/_mapping": `200 {"flashdb-a-0123456789abcdef":{"mappings":` + mapping + `}}`}))
		_, err := e.Count(t.Context(), name)
		require.ErrorIs(t, err, remote.ErrForeign)
		require.ErrorContains(t, err, says)
		require.ErrorIs(t, e.Drop(t.Context(), name), remote.ErrForeign, "it is not deleted")
		require.ErrorIs(t, e.Publish(t.Context(), name), remote.ErrForeign)
		require.ErrorIs(t, e.Stage(t.Context(), "a", remote.Version{ID: name.Version, Dim: 1}), remote.ErrForeign)
	}
	e := serve(t, answers(t, map[string]string{"/flashdb-a-0123456789abcdef/_mapping": `200 {"other":{"mappings":{}}}`}))
	_, err := e.Count(t.Context(), name)
	require.ErrorIs(t, err, remote.ErrForeign, "an alias of our name")

	for says, doc := range map[string]string{
		"has no document":     `{"_index":"mine","_id":"version","found":false}`,
		"does not describe":   `{"_index":"mine","_id":"version","found":true,"_source":{"version":"eA=="}}`,
		"describes itself as": `{"_index":"mine","_id":"version","found":true,"_source":{"version":"e30="}}`,
	} {
		e := serve(t, answers(t, map[string]string{"/flashdb_live-a/_mget": `200 {"docs":[` + doc + `]}`}))
		_, err := e.Live(t.Context(), "a")
		require.ErrorIs(t, err, remote.ErrForeign)
		require.ErrorContains(t, err, says)
	}
}

// TestLiveWhilePublishing reads the alias on a node that still knows the former version alone.
func TestLiveWhilePublishing(t *testing.T) {
	for missing, want := range map[string]error{"flashdb-a-0123456789abcdef": remote.ErrUnavailable, "flashdb_live-a": flashdb.ErrNotFound} {
		doc := `{"_id":"version","error":{"type":"no_shard_available_action_exception","reason":"No shard available","caused_by":{"type":"index_not_found_exception","reason":"no such index [` + missing + `]"}}}`
		e := serve(t, answers(t, map[string]string{"/flashdb_live-a/_mget": `200 {"docs":[` + doc + `]}`}))
		_, err := e.Live(t.Context(), "a")
		for _, sentinel := range []error{flashdb.ErrNotFound, remote.ErrUnavailable} {
			assert.Equal(t, sentinel == want, errors.Is(err, sentinel), "%s: %v", missing, err)
		}
	}
}

// TestPublishAgain goes on with a Publish that ended before it dropped the former version.
func TestPublishAgain(t *testing.T) {
	const old = "flashdb-a-fedcba9876543210"
	var dropped []string
	others := answers(t, map[string]string{
		"/flashdb-a-0123456789abcdef/_mapping":        ours(),
		"/flashdb-a-0123456789abcdef/_refresh":        `200 {"_shards":{"total":1,"successful":1}}`,
		"/flashdb-a-0123456789abcdef/_flush":          `200 {"_shards":{"total":1,"successful":1}}`,
		"/_cluster/health":                            `200 {"number_of_data_nodes":1}`,
		"/flashdb-a-0123456789abcdef/_settings":       `200 {"acknowledged":true}`,
		"/_cluster/health/flashdb-a-0123456789abcdef": `200 {"status":"green"}`,
		"/_alias/flashdb_live-a":                      `200 {"flashdb-a-0123456789abcdef":{"aliases":{"flashdb_live-a":{}}}}`,
		"/_alias/flashdb_was-a":                       `200 {"` + old + `":{"aliases":{"flashdb_was-a":{}}}}`,
		"/" + old + "/_mapping":                       strings.Replace(ours(), name.Version, "fedcba9876543210", 1),
		"/" + old:                                     `200 {"acknowledged":true}`,
	})
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			dropped = append(dropped, r.URL.Path)
		}
		others(w, r)
	})
	require.NoError(t, e.Publish(t.Context(), name))
	assert.Equal(t, []string{"/" + old}, dropped)
}

// TestPartial gives answers of which a part is missing.
func TestPartial(t *testing.T) {
	const (
		index = "/flashdb-a-0123456789abcdef"
		short = `"_shards":{"total":3,"successful":2,"failed":1,"failures":[{"reason":{"type":"node_disconnected_exception","reason":"node2 left"}}]}`
	)
	e := serve(t, answers(t, map[string]string{
		index + "/_mapping":                    ours(),
		index + "/_msearch":                    `200 {"responses":[{` + short + `,"hits":{"hits":[]}}]}`,
		index + "/_refresh":                    `200 {` + short + `}`,
		index + "/_count":                      `200 {"count":5,` + short + `}`,
		index + "/_search":                     `200 {"_scroll_id":"s",` + short + `,"hits":{"total":{"value":5},"hits":[]}}`,
		index + "/_mget":                       `200 {"docs":[{"_id":"kx","error":{"type":"no_shard_available_action_exception","reason":"none"}}]}`,
		"/_search/scroll":                      `200 {}`,
		"/flashdb_to-a-0123456789abcdef/_bulk": `200 {"errors":true,"items":[{"index":{"result":"created","status":201}},{"index":{"status":429,"error":{"type":"opensearch_rejected_execution_exception","reason":"queue is full"}}}]}`,
	}))
	ctx := t.Context()
	a, err := e.Search(ctx, name, &remote.Query{Vectors: [][]float32{{1, 2}}, N: 1})
	require.NoError(t, err)
	assert.Equal(t, "1 of 3 shards did not answer: node2 left", a.Missing)
	require.ErrorIs(t, e.Refresh(ctx, name), remote.ErrUnavailable)
	_, err = e.Count(ctx, name)
	require.ErrorIs(t, err, remote.ErrUnavailable)
	err = e.Scan(ctx, name, nil, func([]remote.Row) error { return nil })
	require.ErrorIs(t, err, remote.ErrUnavailable)
	require.ErrorContains(t, err, "0 of 5 rows")
	_, err = e.Get(ctx, name, []string{"x"})
	require.ErrorIs(t, err, remote.ErrUnavailable)
	rows := []remote.Row{{Key: "x", Vector: []float32{1, 2}}, {Key: "y", Vector: []float32{1, 2}}}
	err = e.Put(ctx, name, rows)
	require.ErrorIs(t, err, remote.ErrUnavailable)
	require.ErrorContains(t, err, `1 of 2 rows failed, the first: row "y"`)
	rows[1].Vector = rows[1].Vector[:1]
	require.ErrorIs(t, e.Put(ctx, name, rows), flashdb.ErrDim)
	_, err = e.Search(ctx, name, &remote.Query{Vectors: [][]float32{{1}}, N: 1})
	require.ErrorIs(t, err, flashdb.ErrDim)
}

// TestNodeFails asks another node when a connection fails, and leaves that node alone for a while.
func TestNodeFails(t *testing.T) {
	var asked atomic.Int64
	well := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte("{}"))
	}))
	defer well.Close()
	var dropped atomic.Int64
	dying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // in the middle of an answer
		dropped.Add(1)
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("{"))
		panic(http.ErrAbortHandler)
	}))
	defer dying.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := "http://" + listener.Addr().String()
	require.NoError(t, listener.Close())

	e, err := New(Config{Addresses: []string{closed, dying.URL, well.URL}})
	require.NoError(t, err)
	ask := func(ctx context.Context) error {
		return e.client.do(ctx, &request{what: "ask", method: http.MethodGet, path: "/"}, &struct{}{})
	}
	for range 9 {
		require.NoError(t, ask(t.Context()))
	}
	assert.EqualValues(t, 9, asked.Load())
	assert.EqualValues(t, 1, dropped.Load(), "it rests")
	e.client.nodes[1].until.Store(0)
	for range 3 {
		require.NoError(t, ask(t.Context()))
	}
	assert.EqualValues(t, 2, dropped.Load(), "it is tried again")

	well.Close()
	err = ask(t.Context())
	require.ErrorIs(t, err, remote.ErrUnavailable)
	assert.NotContains(t, err.Error(), "Get \"", "the cause alone")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	err = ask(cancelled)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, remote.ErrUnavailable)
}

// TestNodeHangs asks another node when one falls silent, and waits for one that is slow.
func TestNodeHangs(t *testing.T) {
	release, pinged, hangs := make(chan struct{}), make(chan struct{}, 10), atomic.Bool{}
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case hangs.Load():
			<-release
		case r.Method == http.MethodHead:
			pinged <- struct{}{}
		default:
			<-pinged
		}
		_, _ = w.Write([]byte(`{"count":1}`))
	}))
	defer slow.Close()
	defer close(release)
	well := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"count":2}`)) }))
	defer well.Close()
	e, err := New(Config{Addresses: []string{well.URL, slow.URL}})
	require.NoError(t, err)
	ask := func() int {
		var answer struct {
			Count int `json:"count"`
		}
		limited, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		require.NoError(t, e.client.do(limited, &request{what: "ask", method: http.MethodGet, path: "/"}, &answer))
		return answer.Count
	}
	e.client.silence = time.Second
	assert.Equal(t, 1, ask(), "it has given a sign of life")
	hangs.Store(true)
	for range 4 {
		assert.Equal(t, 2, ask())
	}
	assert.Positive(t, e.client.nodes[1].failures.Load())
	assert.LessOrEqual(t, e.client.nodes[1].failures.Load(), int64(2), "it rests")
}

// TestDeadline ends a call that takes longer than its context.
func TestDeadline(t *testing.T) {
	release := make(chan struct{})
	e := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := e.Count(ctx, name)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestCredentials sends them to the node, over TLS, and nowhere else.
func TestCredentials(t *testing.T) {
	var sent atomic.Value
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Store(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(block), 0o600))
	for want, c := range map[string]Config{
		"Basic bWU6aGlkZGVu": {Username: "me", Password: "hidden"},
		"ApiKey hidden":      {APIKey: "hidden"},
	} {
		c.Addresses, c.CAFile = []string{s.URL}, ca
		e, err := New(c)
		require.NoError(t, err)
		_, err = e.Count(t.Context(), name)
		require.ErrorContains(t, err, "access is denied")
		assert.NotContains(t, err.Error(), "hidden")
		assert.Equal(t, want, sent.Load())
	}
	e, err := New(Config{Addresses: []string{s.URL}})
	require.NoError(t, err)
	_, err = e.Count(t.Context(), name)
	require.ErrorContains(t, err, envCAFile, "an authority that is not known")
	require.NotErrorIs(t, err, remote.ErrUnavailable)
}
