package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/failpoint"
)

// What tells a child process to write the failpoints it reaches to a file, and at which of them, by
// its number from 1, to die as by kill -9.
const (
	envReached = "FLASHDB_TEST_REACHED"
	envKillAt  = "FLASHDB_TEST_KILL_AT"
)

func hookFailpoints() {
	path := os.Getenv(envReached)
	if path == "" {
		return
	}
	at, _ := strconv.Atoi(os.Getenv(envKillAt))
	f, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	n := 0
	failpoint.Hook(func(p failpoint.Point) {
		fmt.Fprintln(f, p)
		if n++; n == at {
			_ = f.Sync()
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			if err != nil {
				panic(err)
			}
			select {} // until it is dead
		}
	})
}

// trainAt runs train in a process of its own that dies at a failpoint, 0 for none. It returns those
// that it reached, and how it ended.
func trainAt(t *testing.T, at int, args ...string) (reached []string, output string, err error) {
	t.Helper()
	program, err := exec.LookPath("flashdb") // this one: see TestMain
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "reached")
	cmd := exec.Command(program, append([]string{"train"}, args...)...)
	cmd.Env = append(os.Environ(), envReached+"="+file, envKillAt+"="+strconv.Itoa(at))
	out, err := cmd.CombinedOutput()
	text, ferr := os.ReadFile(file)
	require.NoError(t, ferr)
	return strings.Fields(string(text)), string(out), err
}

// modelIn returns all nodes, links and decoders of the collections users and items, as text, once
// the database has been checked.
func modelIn(t *testing.T, dir string) string {
	t.Helper()
	ctx := context.Background()
	db, err := flashdb.Open(dir, &flashdb.Options{MustExist: true})
	require.NoError(t, err)
	findings, err := db.Check(ctx)
	require.NoError(t, err)
	require.Empty(t, findings)
	var b strings.Builder
	names, err := db.Collections(ctx)
	require.NoError(t, err)
	for _, name := range names {
		c, err := db.Collection(name)
		require.NoError(t, err)
		fmt.Fprintln(&b, name, c.Schema())
		for n, err := range c.Nodes(ctx) {
			require.NoError(t, err)
			fmt.Fprintln(&b, n.Key, n.Embedding)
		}
		for e, err := range c.Links(ctx) {
			require.NoError(t, err)
			fmt.Fprintln(&b, e)
		}
		decoders, err := c.Decoders(ctx)
		require.NoError(t, err)
		fmt.Fprintln(&b, decoders)
		_, use, err := c.Encoder(ctx)
		require.NoError(t, err)
		fmt.Fprintln(&b, use)
	}
	items, err := db.Collection("items")
	require.NoError(t, err)
	users, err := db.Collection("users")
	require.NoError(t, err)
	keys, err := users.KeysWithPrefix(ctx, "n", 1)
	require.NoError(t, err)
	source, err := users.Get(ctx, keys[0])
	require.NoError(t, err)
	_, err = items.PredictVector(ctx, source.Embedding, 5, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	return b.String()
}

// TestTrainReplaceKilled kills a training that replaces two collections at each of the last
// failpoints that it reaches: from the opening of the database that is written to. The database
// then holds the old model or the new one, whole.
func TestTrainReplaceKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("TestTrainKilled kills the same processes under the race detector, fewer of them")
	}
	edges := groupedEdges(t, 600)
	base := t.TempDir()
	old := filepath.Join(base, "old")
	args := func(dir string, more ...string) []string {
		return append([]string{dir, "items", edges, "--source-collection", "users", "--epochs", "1", "--calibrate-time", "-1s"}, more...)
	}
	_, out, err := trainAt(t, 0, args(old, "--dim", "16")...)
	require.NoError(t, err, out)
	before := modelIn(t, old)

	copied := func(name string) string {
		dir := filepath.Join(base, name)
		require.NoError(t, os.CopyFS(dir, os.DirFS(old)))
		return dir
	}
	whole := copied("whole")
	reached, out, err := trainAt(t, 0, args(whole, "--dim", "8", "--replace")...)
	require.NoError(t, err, out)
	after := modelIn(t, whole)
	require.NotEqual(t, before, after)
	require.Greater(t, len(reached), 20, "%v", reached)

	seen := map[string]int{}
	first := len(reached) // the append to the log that stores the model
	for first > 0 && !strings.HasSuffix(reached[first-1], "wal.append") {
		first--
	}
	for at := max(1, first); at <= len(reached); at++ {
		dir := copied(strconv.Itoa(at))
		_, out, err := trainAt(t, at, args(dir, "--dim", "8", "--replace")...)
		require.Error(t, err, "%s", out)
		switch now := modelIn(t, dir); now {
		case before:
			seen["old"]++
			assert.Zero(t, seen["new"], "killed at %d, %s: the old model is there after the new one", at, reached[at-1])
		case after:
			seen["new"]++
		default:
			t.Fatalf("killed at %d, %s: the database holds neither model:\n%s", at, reached[at-1], now)
		}
		require.NoError(t, os.RemoveAll(dir))
	}
	assert.Positive(t, seen["old"])
	assert.Positive(t, seen["new"])
	t.Logf("killed from the last wal.append of %v on: the old model %d times, the new one %d times", reached, seen["old"], seen["new"])
}

// groupedEdges writes the edges of a graph of groups, and returns the file.
func groupedEdges(t *testing.T, edges int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for range edges {
		group := rng.IntN(10)
		fmt.Fprintf(&b, "n%d\tn%d\n", group*40+rng.IntN(40), group*40+rng.IntN(40))
	}
	file := filepath.Join(t.TempDir(), "edges.tsv")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	return file
}
