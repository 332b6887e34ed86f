package flashdb_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/control"
)

// openControlled opens a database that serves its control socket, with a
// client of it.
func openControlled(t *testing.T, dir string) (*testDB, *control.Client) {
	t.Helper()
	db, err := flashdb.Open(dir, &flashdb.Options{Control: true})
	require.NoError(t, err)
	d := &testDB{DB: db, t: t, dir: dir}
	client := control.NewClient(dir)
	t.Cleanup(func() {
		client.Close()
		d.checkAndClose()
	})
	return d, client
}

func TestControlSocketLivesAsLongAsItsOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	socket := filepath.Join(dir, control.SocketName)
	for range 2 {
		db, err := flashdb.Open(dir, &flashdb.Options{Control: true})
		require.NoError(t, err)
		info, err := os.Lstat(socket)
		require.NoError(t, err)
		if runtime.GOOS != "windows" {
			assert.Equal(t, fs.ModeSocket|0o600, info.Mode())
		}
		var owner control.Owner
		client := control.NewClient(dir)
		require.NoError(t, client.Call(context.Background(), control.CallOwner, nil, &owner, control.Reply{}))
		assert.Equal(t, os.Getpid(), owner.PID)
		client.Close()
		require.NoError(t, db.Close())
		assert.NoFileExists(t, socket)
	}
}

func TestDeadOwnersSocketIsSwept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	l, err := net.Listen("unix", filepath.Join(dir, control.SocketName))
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())

	held, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	assert.NoFileExists(t, filepath.Join(dir, control.SocketName), "even without Control")

	// A second Open does not own the directory, and leaves the socket alone.
	l, err = net.Listen("unix", filepath.Join(dir, control.SocketName))
	require.NoError(t, err)
	_, err = flashdb.Open(dir, &flashdb.Options{Control: true})
	require.ErrorIs(t, err, flashdb.ErrLocked)
	assert.FileExists(t, filepath.Join(dir, control.SocketName))
	require.NoError(t, l.Close())
	require.NoError(t, held.Close())
}

func TestControlThatCannotBeServedFailsOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, control.SocketName), nil, 0o600))
	_, err = flashdb.Open(dir, &flashdb.Options{Control: true})
	require.ErrorContains(t, err, "control.sock is not a socket")
	require.NoError(t, os.Remove(filepath.Join(dir, control.SocketName)))
	db, err = flashdb.Open(dir, &flashdb.Options{Control: true})
	require.NoError(t, err, "the failed Open let go of everything")
	require.NoError(t, db.Close())
}

// TestSentinelsKeepTheirIdentity asks for each sentinel error over the socket,
// or lists why none can come.
func TestSentinelsKeepTheirIdentity(t *testing.T) {
	ctx := context.Background()
	d, client := openControlled(t, filepath.Join(t.TempDir(), "db"))
	c := d.collection("c", 2)
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "a", Embedding: []float32{1, 0}}))
	in := control.In{Collection: "c"}
	for _, x := range []struct {
		name, call string
		request    any
		want       error
		text       string
	}{
		{"ErrNotFound", control.CallGet, control.Nodes{In: in, Keys: []string{"b"}}, flashdb.ErrNotFound, `node "b" not found in collection "c"`},
		{"no collection", control.CallCollection, control.In{Collection: "d"}, flashdb.ErrNotFound, `collection "d" not found`},
		{"ErrExists", control.CallCreate, control.Create[flashdb.Schema]{Collection: "c", Schema: flashdb.Schema{Dim: 2}}, flashdb.ErrExists, `create collection: collection "c" already exists, of dimension 2`},
		{"ErrDim", control.CallSearch, control.Search[flashdb.SearchOptions]{In: in, Vector: []float32{1}, K: 1}, flashdb.ErrDim, "wrong dimension"},
		{"ErrInvalid", control.CallSearch, control.Search[flashdb.SearchOptions]{In: in, Vector: []float32{1, 0}}, flashdb.ErrInvalid, "k is 0"},
		{"bad request", control.CallSearch, map[string]int{"kk": 1}, flashdb.ErrInvalid, "unknown field"},
		{"uneven edges", control.CallLink, control.Link{In: in, Sources: []string{"a"}}, flashdb.ErrInvalid, "1 sources and 0 targets"},
		{"uneven edges to forget", control.CallUnlink, control.Link{In: in, Targets: []string{"a"}}, flashdb.ErrInvalid, "unlink in \"c\": invalid argument: 0 sources and 1 targets"},
		{"nothing to drop", control.CallDrop, control.In{Collection: "d"}, flashdb.ErrNotFound, `drop collection: collection "d" not found`},
		{"ErrCorrupt", control.CallPutDecoder, control.Decoder{In: in, Name: "d", Blob: []byte("FLDC nonsense")}, flashdb.ErrCorrupt, "decoder"},
	} {
		t.Run(x.name, func(t *testing.T) {
			err := client.Call(ctx, x.call, x.request, nil, control.Reply{})
			require.ErrorIs(t, err, x.want)
			assert.ErrorContains(t, err, x.text)
			for _, other := range flashdb.Sentinels {
				assert.Equal(t, other == x.want, errorIs(err, other), "%v", other)
			}
		})
	}
}

func errorIs(err, target error) bool {
	is, ok := err.(interface{ Is(error) bool })
	return ok && is.Is(target)
}

// TestEverySentinelTravels demands that what errors.go declares is in the list
// of errors that keep their identity over the socket.
func TestEverySentinelTravels(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
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
	for _, s := range flashdb.Sentinels {
		assert.False(t, texts[s.Error()], "two sentinels have the text %q, and texts are their codes", s)
		texts[s.Error()] = true
	}
	const ofContext = 2 // context.Canceled, context.DeadlineExceeded
	assert.Len(t, flashdb.Sentinels, declared+ofContext, "add the new sentinel to the list in control.go")
}

func TestControlAnswersAsTheDatabaseDoes(t *testing.T) {
	ctx := context.Background()
	d, client := openControlled(t, filepath.Join(t.TempDir(), "db"))
	c := d.collection("c", 2)
	in := control.In{Collection: "c"}
	const binary = "\xff\x00key"
	ask := func(call string, request, result any) {
		t.Helper()
		require.NoError(t, client.Call(ctx, call, request, result, control.Reply{}))
	}
	ask(control.CallUpsert, control.Upsert{In: in, Nodes: []control.Node{
		{Key: "a", Embedding: []float32{1, 0}, Tags: []string{"t"}, Payload: []byte{0, 255}},
		{Key: binary, Embedding: []float32{0, 1}},
		{Key: "base64:", Embedding: []float32{1, 1}},
	}}, nil)
	n, err := c.Get(ctx, "a")
	require.NoError(t, err)
	assert.Equal(t, flashdb.Node{Key: "a", Embedding: []float32{1, 0}, Tags: []string{"t"}, Payload: []byte{0, 255}}, n)
	ask(control.CallLink, control.Link{In: in, Sources: []string{"a"}, Targets: []string{binary}}, nil)
	linked, err := c.Linked(ctx, "a")
	require.NoError(t, err)
	assert.Equal(t, []string{binary}, linked)
	ask(control.CallLink, control.Link{In: in, Sources: []string{"a"}, Targets: []string{"base64:"}}, nil)
	var unlinked control.Unlinked
	ask(control.CallUnlink, control.Link{In: in, Sources: []string{"a", "a", "a"}, Targets: []string{"base64:", "a", "base64:"}}, &unlinked)
	assert.Equal(t, 1, unlinked.Links)
	linked, err = c.Linked(ctx, "a")
	require.NoError(t, err)
	assert.Equal(t, []string{binary}, linked)

	require.NoError(t, c.PutDecoder(ctx, binary, dotDecoder(t, 2)))
	opts := &flashdb.PredictOptions{Decoder: binary, Exclude: []string{binary}, IncludeLinked: true, Filter: "not t", WithNode: true}
	want, err := c.Predict(ctx, "a", 5, opts)
	require.NoError(t, err)
	var got []flashdb.Result
	err = client.Call(ctx, control.CallPredict, control.Predict[flashdb.PredictOptions]{In: in, Keys: []string{"a", "nobody"}, K: 5, Options: opts}, nil, control.Reply{
		Item: func(decode func(any) error) error {
			var a control.Answer[flashdb.Result]
			err := decode(&a)
			got = append(got, a.Result)
			if len(got) == 2 {
				require.NotNil(t, a.Error)
				assert.ErrorIs(t, a.Error, flashdb.ErrNotFound)
			}
			return err
		},
	})
	require.NoError(t, err)
	require.Len(t, got, 2)
	want.Stats.Elapsed, got[0].Stats.Elapsed = 0, 0
	assert.Equal(t, want, got[0])
	assert.Equal(t, "nobody", got[1].Source)

	wantStats, err := d.Stats(ctx)
	require.NoError(t, err)
	var stats flashdb.Stats
	ask(control.CallStats, nil, &stats)
	assert.Equal(t, wantStats, stats)
	ask(control.CallCheckpoint, nil, nil)
	var compacted flashdb.CompactResult
	ask(control.CallCompact, nil, &compacted)
	assert.Positive(t, compacted.After.Store)
	var findings control.Findings
	ask(control.CallCheck, nil, &findings)
	assert.Empty(t, findings.Findings)
	ask(control.CallDrop, in, nil)
	names, err := d.Collections(t.Context())
	require.NoError(t, err)
	assert.Empty(t, names)
}

// TestCloseEndsARebuildOverTheSocket closes the database while a client waits
// for a rebuild that reports its progress.
func TestCloseEndsARebuildOverTheSocket(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "db")
	db, err := flashdb.Open(dir, &flashdb.Options{Control: true})
	require.NoError(t, err)
	c, err := db.CreateCollection("c", flashdb.Schema{Dim: 2})
	require.NoError(t, err)
	nodes := make([]flashdb.Node, 3000)
	for i := range nodes {
		nodes[i] = flashdb.Node{Key: string(rune('a' + i)), Embedding: []float32{float32(i), 1}}
	}
	require.NoError(t, c.Upsert(ctx, nodes...))

	client := control.NewClient(dir)
	defer client.Close()
	closed := make(chan error, 1)
	once := false
	var res flashdb.RebuildResult
	request := control.Rebuild[flashdb.RebuildOptions]{In: control.In{Collection: "c"}, Options: &flashdb.RebuildOptions{Force: true}}
	err = client.Call(ctx, control.CallRebuild, request, &res, control.Reply{Progress: func(decode func(any) error) error {
		var p control.Progress
		if !once {
			once = true
			go func() { closed <- db.Close() }()
		}
		return decode(&p)
	}})
	assert.True(t, once, "there was progress")
	if err == nil {
		assert.True(t, res.Built, "it was done before Close")
	} else {
		assert.ErrorIs(t, err, flashdb.ErrClosed)
	}
	require.NoError(t, <-closed)
	assert.NoFileExists(t, filepath.Join(dir, control.SocketName))
}
