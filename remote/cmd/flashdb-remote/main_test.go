package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/dbtest"
	"github.com/flashdb/flashdb/remote"
	"github.com/flashdb/flashdb/remote/memory"
)

// A shared engine outlives the databases over it, as a server does.
type shared struct{ *memory.Engine }

func (shared) Close() error { return nil }

// runner runs commands over one engine.
type runner struct {
	t      *testing.T
	engine shared
}

func (r *runner) run(args ...string) (code int, out string, err error) {
	r.t.Helper()
	var stdout bytes.Buffer
	cmd := newCommand(func(_ context.Context, address string) (remote.Engine, error) {
		if scheme(address) != "memory" {
			return openEngine(context.Background(), address)
		}
		return r.engine, nil
	})
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	if err = cmd.ExecuteContext(context.Background()); err != nil {
		code = exitCode(err)
	}
	return code, stdout.String(), err
}

// ok runs a command that must succeed.
func (r *runner) ok(args ...string) string {
	r.t.Helper()
	_, out, err := r.run(append([]string{"--engine", "memory://"}, args...)...)
	require.NoError(r.t, err)
	return out
}

// papers makes a database with 300 nodes, links and a decoder.
func papers(t *testing.T, dir string) *flashdb.Collection {
	t.Helper()
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(1, 1))
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	c, err := db.CreateCollection("papers", flashdb.Schema{Dim: 8})
	require.NoError(t, err)
	var nodes []flashdb.Node
	for i := range 300 {
		nodes = append(nodes, flashdb.Node{
			Key: fmt.Sprint("n", i), Embedding: dbtest.RandomVector(rng, 8), Tags: []string{fmt.Sprint("mod", i%3)},
		})
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	require.NoError(t, c.Link(ctx, flashdb.Edge{Source: "n1", Target: "n2"}))
	d, err := dbtest.RandomMLP(rng, 8, 16)
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(ctx, "mlp", d))
	return c
}

func TestCommands(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "papers.flash"), filepath.Join(dir, "papers.remote")
	var want flashdb.Result
	t.Run("embedded", func(t *testing.T) { // which closes the database at its end
		var err error
		want, err = papers(t, from).Predict(context.Background(), "n1", 5, &flashdb.PredictOptions{Exact: true, Filter: "mod0 or mod1"})
		require.NoError(t, err)
	})
	r := &runner{t: t, engine: shared{&memory.Engine{}}}
	assert.Contains(t, r.ok("push", from, to, "papers"), "300 rows in ")
	assert.Contains(t, r.ok("stats", to, "papers"), "decoder mlp: not calibrated")
	assert.Contains(t, r.ok("calibrate", to, "papers", "--sources", "20", "--training", "20"), "at least")
	assert.Contains(t, r.ok("stats", to, "papers"), "decoder mlp: calibrated")

	var got struct {
		Source string
		Hits   []struct {
			Key   string
			Score float32
		}
		Plan string
	}
	out := r.ok("predict", to, "papers", "n1", "-k", "5", "--filter", "mod0 or mod1", "--exact", "--json")
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	assert.Equal(t, "n1", got.Source)
	require.Len(t, got.Hits, 5)
	for i, h := range want.Hits {
		assert.Equal(t, h.Key, got.Hits[i].Key)
		assert.InDelta(t, h.Score, got.Hits[i].Score, 1e-5)
	}
	text := r.ok("predict", to, "papers", "n1", "n3")
	assert.Contains(t, text, "n1\n")
	assert.Contains(t, text, "n3\n")
	assert.Contains(t, text, "rows scored")

	var eval map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.ok("eval", to, "papers", "--sources", "10", "-k", "10", "--json")), &eval))
	assert.EqualValues(t, 10, eval["sources"])
	assert.Greater(t, eval["recall_mean"], .8)

	r.ok("drop", to, "papers")
	code, _, err := r.run("--engine", "memory://", "stats", to, "papers")
	assert.Equal(t, 1, code)
	require.ErrorIs(t, err, flashdb.ErrNotFound)
}

func TestMistakes(t *testing.T) {
	t.Setenv("FLASHDB_ENGINE", "")
	r := &runner{t: t, engine: shared{&memory.Engine{}}}
	dir := t.TempDir()
	for _, c := range []struct {
		args string
		want string
	}{
		{"stats " + dir + " papers", "no engine is named: use --engine or set FLASHDB_ENGINE"},
		{"--engine nothing://host stats " + dir + " papers", "want http://, https:// or postgres://"},
		{"--engine memory:// stats papers", "want a directory and a collection: flashdb-remote stats DIR COLLECTION"},
		{"--engine memory:// predict " + dir, "want a directory, a collection and keys"},
		{"--engine memory:// predict " + dir + " papers n1 --recal .9", "unknown flag: --recal"},
		{"--engine http://me:secret@host stats " + dir + " papers", "OPENSEARCH_PASSWORD"},
		{"--engine postgres://me:secret@host/db stats " + dir + " papers", "PGPASSWORD"},
	} {
		code, out, err := r.run(strings.Fields(c.args)...)
		assert.Equal(t, 2, code, c.args)
		assert.Empty(t, out)
		require.ErrorContains(t, err, c.want)
		assert.NotContains(t, err.Error(), "secret")
	}
	assert.Equal(t, 1, exitCode(errors.New("any other")))
}
