package browse

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
)

// opened is an open database as the page asks for it, without what stands between in the command.
type opened struct{ db *flashdb.DB }

func (o opened) Collections(ctx context.Context) ([]string, error) { return o.db.Collections(ctx) }
func (o opened) Stats(ctx context.Context) (flashdb.Stats, error)  { return o.db.Stats(ctx) }
func (o opened) Collection(_ context.Context, name string) (Collection, error) {
	c, err := o.db.Collection(name)
	if err != nil {
		return nil, err
	}
	return here{c}, nil
}

func (o opened) Releases(ctx context.Context) ([]flashdb.ReleaseInfo, error) {
	return o.db.Releases(ctx)
}

func (o opened) ReleaseCollection(ctx context.Context, release, name string) (Collection, error) {
	r, err := o.db.Release(ctx, release)
	if err != nil {
		return nil, err
	}
	c, err := r.Collection(name)
	if err != nil {
		return nil, err
	}
	return here{c}, nil
}

type here struct{ *flashdb.Collection }

func (c here) Decoder(_ context.Context, name string) (decoder.Decoder, error) {
	return c.Collection.Decoder(name)
}

// Keys that try to leave where they are put.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'; alert(1); //`, "new\nline\r\n\tand tab", "\u202eright to left",
	"nul\x00byte", "not utf-8 \xff\xfe", "base64:AAAA", "</script><!--", "a&b=c#d?e%20f+g", strings.Repeat("long/", 204) + "1234", "שלום", "{{.Title}}", "../../etc/passwd",
}

// fill makes a collection of ordinary and hostile nodes, and one of users.
func fill(t *testing.T) *flashdb.DB {
	t.Helper()
	ctx := context.Background()
	db, err := flashdb.Open(t.TempDir()+"/db", nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	c, err := db.CreateCollection("items", flashdb.Schema{Dim: 3})
	require.NoError(t, err)
	var nodes []flashdb.Node
	for i := range 30 {
		nodes = append(nodes, flashdb.Node{
			Key: fmt.Sprintf("item %02d", i), Embedding: []float32{float32(i), float32(i % 7), 1},
			Tags: []string{"all", fmt.Sprintf("mod %d", i%3)}, Payload: fmt.Appendf(nil, `{"n":%d}`, i),
		})
	}
	for i, key := range hostile {
		nodes = append(nodes, flashdb.Node{Key: key, Embedding: []float32{-1, float32(i), 2}, Tags: []string{"<b>tag</b>", "\u202etag"}, Payload: []byte("</pre><script>alert(2)</script>\u202e")})
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	dot, err := decoder.NewDot(3)
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(ctx, "dot", dot))
	require.NoError(t, c.Link(ctx, flashdb.Edge{Source: "item 01", Target: "item 02"}, flashdb.Edge{Source: "item 01", Target: hostile[0]}, flashdb.Edge{Source: "item 02", Target: "item 27"}))
	users, err := db.CreateCollection("users", flashdb.Schema{Dim: 3})
	require.NoError(t, err)
	require.NoError(t, users.Upsert(ctx, flashdb.Node{Key: "ann", Embedding: []float32{1, 2, 3}}))
	require.NoError(t, c.Link(ctx, flashdb.Edge{SourceCollection: "users", Source: "ann", Target: "item 03"}))
	_, err = db.CreateCollection("other", flashdb.Schema{Dim: 2})
	require.NoError(t, err)
	return db
}

// A client asks a Server as a browser does.
type client struct {
	t *testing.T
	s *Server
}

func serve(t *testing.T, opts Options) client {
	t.Helper()
	return client{t, New(opened{fill(t)}, opts)}
}

func (c client) do(method, target string, body io.Reader, header ...string) *httptest.ResponseRecorder {
	c.t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:1234"+target, body)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	c.s.ServeHTTP(w, r)
	return w
}

// get asks a call and returns its status and answer.
func (c client) get(call string, values ...string) (status int, answer map[string]any) {
	c.t.Helper()
	q := url.Values{}
	for i := 0; i < len(values); i += 2 {
		q.Set(values[i], values[i+1])
	}
	return c.read(c.do("GET", c.s.Path()+"api/"+call+"?"+q.Encode(), nil))
}

func (c client) post(call, body string) (status int, answer map[string]any) {
	c.t.Helper()
	return c.read(c.do("POST", c.s.Path()+"api/"+call, strings.NewReader(body)))
}

func (c client) read(w *httptest.ResponseRecorder) (status int, answer map[string]any) {
	c.t.Helper()
	assert.Equal(c.t, "application/json; charset=utf-8", w.Header().Get("Content-Type"))
	assert.Equal(c.t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	for _, bad := range []string{"<", ">"} {
		assert.False(c.t, strings.Contains(w.Body.String(), bad), "an answer holds what HTML could take for a tag: %s", bad)
	}
	require.NoError(c.t, json.Unmarshal(w.Body.Bytes(), &answer), w.Body.String())
	return w.Code, answer
}

func TestToken(t *testing.T) {
	c := serve(t, Options{})
	token := strings.Trim(c.s.Path(), "/")
	require.GreaterOrEqual(t, len(token), 26, "128 bits")
	wrong := strings.Repeat("A", len(token))
	for _, path := range []string{"/", "/" + token, "/" + wrong + "/", "/" + token[:25] + "/", "/" + token + "x/", "//" + token + "/x", "/x/" + token + "/", "/api/keys?c=items", "/" + wrong + "/api/keys?c=items", "/style.css", "/favicon.ico", "/?token=" + token} {
		w := c.do("GET", path, nil)
		assert.Equal(t, http.StatusForbidden, w.Code, path)
		assert.NotContains(t, w.Body.String(), token)
		assert.NotContains(t, w.Body.String(), "items")
	}
	assert.Equal(t, http.StatusOK, c.do("GET", c.s.Path(), nil).Code)
	assert.NotEqual(t, c.s.Path(), New(c.s.db, Options{}).Path(), "each run has its own")
}

func TestTicket(t *testing.T) {
	c := serve(t, Options{})
	assert.Equal(t, http.StatusForbidden, c.do("GET", "/", nil).Code, "no ticket is given out")
	ticket := c.s.Ticket()
	assert.NotContains(t, c.s.Path(), ticket[1:])
	assert.Equal(t, http.StatusForbidden, c.do("GET", ticket, nil, "Host", "evil.example").Code)
	w := c.do("GET", ticket, nil)
	assert.Equal(t, http.StatusSeeOther, w.Code)
	assert.Equal(t, c.s.Path(), w.Header().Get("Location"))
	assert.Equal(t, http.StatusForbidden, c.do("GET", ticket, nil).Code, "it leads there once")
	assert.Equal(t, http.StatusForbidden, c.do("GET", "/", nil).Code)
}

func TestHostAndOrigin(t *testing.T) {
	c := serve(t, Options{Write: true})
	for host, want := range map[string]int{
		"127.0.0.1:80": 200, "localhost": 200, "LOCALHOST:9": 200, "[::1]:80": 200, "127.9.9.9": 200,
		"evil.example": 403, "evil.example:80": 403, "127.0.0.1.evil.example": 403, "localhost.evil.example:1": 403, "10.0.0.1": 403, "0.0.0.0": 403, "": 403, "[::1": 200, "::ffff:8.8.8.8": 403,
	} {
		assert.Equal(t, want, c.do("GET", c.s.Path(), nil, "Host", host).Code, host)
	}
	link := `{"c":"items","key":"item 05","target":"item 06"}`
	for _, header := range [][]string{{"Origin", "http://evil.example"}, {"Origin", "null"}, {"Origin", "http://127.0.0.1:99"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		assert.Equal(t, http.StatusForbidden, c.do("POST", c.s.Path()+"api/link", strings.NewReader(link), header...).Code, header)
	}
	assert.Equal(t, http.StatusForbidden, c.do("GET", c.s.Path()+"app.js", nil, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors").Code)
	assert.Equal(t, http.StatusOK, c.do("GET", c.s.Path(), nil, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate").Code, "a link that was followed")
	assert.Equal(t, http.StatusOK, c.do("POST", c.s.Path()+"api/link", strings.NewReader(link), "Origin", "http://127.0.0.1:1234", "Sec-Fetch-Site", "same-origin").Code)
}

func TestHeaders(t *testing.T) {
	c := serve(t, Options{Title: "a \"title\" </title><script>alert(1)</script>"})
	for path, kind := range map[string]string{"": "text/html; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		w := c.do("GET", c.s.Path()+path, nil)
		require.Equal(t, http.StatusOK, w.Code, path)
		h := w.Header()
		assert.Equal(t, kind, h.Get("Content-Type"))
		assert.Equal(t, "no-store", h.Get("Cache-Control"))
		assert.Equal(t, "DENY", h.Get("X-Frame-Options"))
		assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		assert.Equal(t, "no-referrer", h.Get("Referrer-Policy"), "which would hold the token")
		csp := h.Get("Content-Security-Policy")
		assert.Contains(t, csp, "default-src 'none'; script-src 'self'; style-src '"+hashOf(style)+"';")
		assert.NotContains(t, csp, "unsafe")
	}
	page := c.do("GET", c.s.Path(), nil).Body.String()
	assert.NotContains(t, page, "<script>", "the title is text")
	assert.Contains(t, page, "<style>"+string(style)+"</style>")
	page = strings.ReplaceAll(page, "<style>"+string(style)+"</style>", "")
	for _, inline := range []string{"<style", " style=", "onclick=", "onload=", "javascript:", "http://", "https://"} {
		assert.NotContains(t, page, inline)
	}
	for _, path := range []string{"nothing", "style.css", "page.html", "page/page.html", "../browse.go", "%2e%2e/browse.go", "."} {
		assert.Equal(t, http.StatusNotFound, c.do("GET", c.s.Path()+path, nil).Code, path)
	}
	assert.Equal(t, http.StatusMethodNotAllowed, c.do("POST", c.s.Path(), strings.NewReader("")).Code)
}

// TestNothingFromElsewhere holds what is served to this package: no address of another host, and no
// way to make HTML of text.
func TestNothingFromElsewhere(t *testing.T) {
	entries, err := files.ReadDir("page")
	require.NoError(t, err)
	for _, e := range entries {
		b, err := files.ReadFile("page/" + e.Name())
		require.NoError(t, err)
		text := strings.ReplaceAll(string(b), "http://www.w3.org/2000/svg", "")
		for _, bad := range []string{"http://", "https://", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc", "@import", "DOMParser"} {
			assert.NotContains(t, text, bad, e.Name())
		}
	}
}

func TestCallsThatAreNone(t *testing.T) {
	c := serve(t, Options{})
	status, answer := c.get("nothing")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Equal(t, "there is no such call", answer["error"])
	for method, call := range map[string]string{"POST": "keys", "GET": "place", "DELETE": "node", "PUT": "link"} {
		w := c.do(method, c.s.Path()+"api/"+call, nil)
		assert.Equal(t, http.StatusMethodNotAllowed, w.Code, call)
		assert.NotEmpty(t, w.Header().Get("Allow"))
	}
}
