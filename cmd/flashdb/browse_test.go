package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
	"github.com/flashdb/flashdb/decoder"
)

// browsable makes a database of a few linked nodes.
func browsable(t *testing.T) (dir string) {
	t.Helper()
	ctx := context.Background()
	dir = t.TempDir() + "/some.flash"
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	c, err := db.CreateCollection("c", flashdb.Schema{Dim: 2})
	require.NoError(t, err)
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "a", Embedding: []float32{1, 0}}, flashdb.Node{Key: "b", Embedding: []float32{1, 1}}, flashdb.Node{Key: "x", Embedding: []float32{0, 1}}))
	dot, err := decoder.NewDot(2)
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(ctx, "dot", dot))
	require.NoError(t, db.Close())
	return dir
}

// browsing starts browse and returns its address, which stands alone on its first line, and a
// function that interrupts it.
func browsing(t *testing.T, args ...string) (address string, interrupt func() (code int, out, errOut string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, w := io.Pipe()
	var errOut bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"browse"}, args...), strings.NewReader(""), w, &errOut)
		_ = w.Close()
	}()
	lines := bufio.NewReader(r)
	address, err := lines.ReadString('\n')
	require.NoError(t, err, "it ended at once")
	return strings.TrimSuffix(address, "\n"), func() (int, string, string) {
		cancel()
		rest, err := io.ReadAll(lines)
		require.NoError(t, err)
		return <-done, string(rest), errOut.String()
	}
}

// fetch returns the status and the body of an address.
func fetch(t *testing.T, address, body string) (status int, text string) {
	t.Helper()
	var resp *http.Response
	var err error
	if body == "" {
		resp, err = http.Get(address)
	} else {
		resp, err = http.Post(address, "application/json", strings.NewReader(body))
	}
	require.NoError(t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, string(b)
}

func TestBrowse(t *testing.T) {
	dir := browsable(t)
	address, interrupt := browsing(t, dir, "--no-open")
	require.Regexp(t, regexp.MustCompile(`^http://127\.0\.0\.1:\d+/[A-Z2-7]{26,}/$`), address)
	status, page := fetch(t, address, "")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, page, "<title>some.flash · flashdb</title>")
	status, _ = fetch(t, address[:strings.LastIndex(address[:len(address)-1], "/")+1], "")
	assert.Equal(t, http.StatusForbidden, status, "without the token")
	_, text := fetch(t, address+"api/predict?c=c&key=a", "")
	assert.Contains(t, text, `"key":"b"`)
	status, text = fetch(t, address+"api/node?c=c&key=nobody", "")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Equal(t, `{"error":"node \"nobody\" not found in collection \"c\""}`, text, "in plain words")
	status, _ = fetch(t, address+"api/link", `{"c":"c","key":"a","target":"b"}`)
	assert.Equal(t, http.StatusForbidden, status, "it only looks")
	code, out, errOut := interrupt()
	assert.Zero(t, code)
	assert.Empty(t, out)
	assert.Empty(t, errOut)
	_, err := net.Dial("tcp", strings.Split(address, "/")[2])
	require.Error(t, err, "nobody listens any more")
	code, _, errOut = runLine("check", dir)
	assert.Zero(t, code, errOut)
}

// TestBrowseBesideAnOwner: the page asks the process that has the database open.
func TestBrowseBesideAnOwner(t *testing.T) {
	dir := browsable(t)
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	defer db.Close()
	_, err = control.Serve(db, nil)
	require.NoError(t, err)
	address, interrupt := browsing(t, dir, "--no-open", "--write")
	status, text := fetch(t, address+"api/link", `{"c":"c","key":"a","target":"b"}`)
	require.Equal(t, http.StatusOK, status, text)
	c, err := db.Collection("c")
	require.NoError(t, err)
	linked, err := c.Linked(context.Background(), flashdb.Edge{Source: "a"})
	require.NoError(t, err)
	assert.Equal(t, []string{"b"}, linked)
	for _, call := range []string{"collection?c=c", "keys?c=c&q=b", "links?c=c&key=a&decoder=dot", "graph?c=c&key=a&decoder=dot", "nearest?c=c&key=a", "map?c=c", "health?c=c", "words?c=c"} {
		status, text := fetch(t, address+"api/"+call, "")
		assert.Equal(t, http.StatusOK, status, "%s: %s", call, text)
	}
	code, _, errOut := interrupt()
	assert.Zero(t, code)
	assert.Contains(t, errOut, "asked it through control.sock")
}

// TestBrowseAndWrite: with --write other commands are answered meanwhile.
func TestBrowseAndWrite(t *testing.T) {
	dir := browsable(t)
	address, interrupt := browsing(t, dir, "--write", "--json", "--no-open")
	var said struct{ Address string }
	require.NoError(t, json.Unmarshal([]byte(address), &said))
	status, text := fetch(t, said.Address+"api/link", `{"c":"c","key":"a","target":"x"}`)
	require.Equal(t, http.StatusOK, status, text)
	code, out, errOut := runLine("get", dir, "c", "a")
	assert.Zero(t, code, errOut)
	assert.Contains(t, out, "links      1: x")
	code, _, errOut = interrupt()
	assert.Zero(t, code, errOut)
}

func TestBrowseAddresses(t *testing.T) {
	dir := browsable(t)
	for _, bad := range []string{":8080", "0.0.0.0:0", "192.0.2.1:80", "[::]:0", "example.com:80", "127.0.0.1", "localhost.example.com:1", "x"} {
		code, out, errOut := runLine("browse", dir, "--no-open", "--addr", bad)
		assert.Equal(t, exitFailed, code, bad)
		assert.Empty(t, out)
		assert.Contains(t, errOut, "want a port of this machine, such as 127.0.0.1:8080", bad)
	}
	l, err := listenHere("127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	code, _, errOut := runLine("browse", dir, "--no-open", "--addr", l.Addr().String())
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errOut, "--addr: ", "the port is taken")
	code, _, errOut = runLine("browse", dir+"-none", "--no-open")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errOut, "there is no such directory")
}
