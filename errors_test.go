package flashdb_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
)

// smallCollection holds nodes a, b, c of two values and a dot decoder.
func smallCollection(t *testing.T) (*testDB, *flashdb.Collection) {
	t.Helper()
	d := openDB(t)
	c := d.collection("c", 2)
	require.NoError(t, c.Upsert(context.Background(),
		flashdb.Node{Key: "a", Embedding: []float32{1, 0}, Tags: []string{"t"}},
		flashdb.Node{Key: "b", Embedding: []float32{0, 1}},
		flashdb.Node{Key: "c", Embedding: []float32{1, 1}},
	))
	require.NoError(t, c.PutDecoder(context.Background(), "dot", dotDecoder(t, 2)))
	return d, c
}

func TestBadInput(t *testing.T) {
	ctx := context.Background()
	d, c := smallCollection(t)
	good := flashdb.Node{Key: "d", Embedding: []float32{1, 2}}
	nan := float32(math.NaN())
	inf := float32(math.Inf(1))
	upsert := func(n flashdb.Node) func() error {
		return func() error { return c.Upsert(ctx, good, n) }
	}
	predict := func(key string, k int, o *flashdb.PredictOptions) func() error {
		return func() error { _, err := c.Predict(ctx, key, k, o); return err }
	}
	vector := func(v ...float32) func() error {
		return func() error { _, err := c.PredictVector(ctx, v, 1, nil); return err }
	}
	tests := []struct {
		name string
		do   func() error
		is   error
		says string
	}{
		{"empty key", upsert(flashdb.Node{Embedding: []float32{1, 2}}), flashdb.ErrInvalid, "empty key"},
		{"over-long key", upsert(flashdb.Node{Key: strings.Repeat("k", 1025), Embedding: []float32{1, 2}}), flashdb.ErrInvalid, "1025 bytes"},
		{"NaN", upsert(flashdb.Node{Key: "x", Embedding: []float32{1, nan}}), flashdb.ErrInvalid, "value 1 is NaN"},
		{"infinity", upsert(flashdb.Node{Key: "x", Embedding: []float32{inf, 1}}), flashdb.ErrInvalid, "value 0 is +Inf"},
		{"short embedding", upsert(flashdb.Node{Key: "x", Embedding: []float32{1}}), flashdb.ErrDim, "1 values, the collection holds 2"},
		{"bad tag", upsert(flashdb.Node{Key: "x", Embedding: []float32{1, 2}, Tags: []string{"\xff"}}), flashdb.ErrInvalid, "UTF-8"},
		{"k of 0", predict("a", 0, nil), flashdb.ErrInvalid, "k is 0"},
		{"negative k", predict("a", -1, nil), flashdb.ErrInvalid, "k is -1"},
		{"unknown source", predict("nobody", 1, nil), flashdb.ErrNotFound, `"nobody"`},
		{"unknown decoder", predict("a", 1, &flashdb.PredictOptions{Decoder: "nope"}), flashdb.ErrNotFound, `"nope"`},
		{"unknown method", predict("a", 1, &flashdb.PredictOptions{Plan: &flashlight.Plan{Method: "fast"}}), flashdb.ErrInvalid, "flashlight, paper or exact"},
		{"exact by a plan", predict("a", 1, &flashdb.PredictOptions{Plan: &flashlight.Plan{Method: flashlight.MethodExact}}), flashdb.ErrInvalid, "PredictOptions.Exact"},
		{"another paper", predict("a", 1, &flashdb.PredictOptions{Plan: &flashlight.Plan{Method: flashlight.MethodPaper, Rounds: 4}}), flashdb.ErrInvalid, "method paper fixes"},
		{"negative rounds", predict("a", 1, &flashdb.PredictOptions{Plan: &flashlight.Plan{Rounds: -1}}), flashdb.ErrInvalid, "-1 rounds"},
		{"plan and recall", predict("a", 1, &flashdb.PredictOptions{Plan: &flashlight.Plan{}, Recall: .9}), flashdb.ErrInvalid, "leave exact and recall unset"},
		{"recall above 1", predict("a", 1, &flashdb.PredictOptions{Recall: 1.5}), flashdb.ErrInvalid, "recall 1.5"},
		{"NaN recall", predict("a", 1, &flashdb.PredictOptions{Recall: math.NaN()}), flashdb.ErrInvalid, "recall NaN"},
		{"unknown seed", predict("a", 1, &flashdb.PredictOptions{Plan: &flashlight.Plan{Seed: "zero"}}), flashdb.ErrInvalid, "zero"},
		{"unknown anchors", predict("a", 1, &flashdb.PredictOptions{Plan: &flashlight.Plan{AnchorsFrom: "none"}}), flashdb.ErrInvalid, "none"},
		{"plan and exact", predict("a", 1, &flashdb.PredictOptions{Exact: true, Plan: &flashlight.Plan{Rounds: 2}}), flashdb.ErrInvalid, "leave exact and recall unset"},
		{"filter", predict("a", 1, &flashdb.PredictOptions{Filter: "(t"}), flashdb.ErrInvalid, "expected )"},
		{"vector too long", vector(1, 2, 3), flashdb.ErrDim, "3 values"},
		{"NaN vector", vector(1, nan), flashdb.ErrInvalid, "value 1 is NaN"},
		{"link to nobody", func() error {
			return c.Link(ctx, flashdb.Edge{Source: "a", Target: "b"}, flashdb.Edge{Source: "a", Target: "nobody"})
		}, flashdb.ErrNotFound, `"nobody"`},
		{"decoder of another width", func() error { return c.PutDecoder(ctx, "wide", dotDecoder(t, 3)) }, flashdb.ErrDim, "3 values"},
		{"drop an unknown decoder", func() error { return c.DropDecoder(ctx, "nope") }, flashdb.ErrNotFound, `"nope"`},
		{"collection that exists", func() error { _, err := d.CreateCollection("c", flashdb.Schema{Dim: 2}); return err }, flashdb.ErrExists, `"c"`},
		{"collection name", func() error { _, err := d.CreateCollection("../c", flashdb.Schema{Dim: 2}); return err }, flashdb.ErrInvalid, "letters"},
		{"dim of 0", func() error { _, err := d.CreateCollection("z", flashdb.Schema{}); return err }, flashdb.ErrInvalid, "dim is 0"},
		{"unknown collection", func() error { _, err := d.Collection("z"); return err }, flashdb.ErrNotFound, `"z"`},
		{"unknown similarity", func() error {
			_, err := c.Search(ctx, []float32{1, 2}, 1, &flashdb.SearchOptions{Similarity: "hamming"})
			return err
		}, flashdb.ErrInvalid, "ip, cosine or l2"},
		{"bits", func() error { _, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Bits: 5}); return err }, flashdb.ErrInvalid, "4 or 8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.do()
			require.ErrorIs(t, err, tt.is)
			require.ErrorContains(t, err, tt.says)
			require.NotContains(t, err.Error(), "\n")
			_, err = c.Get(ctx, "d")
			require.ErrorIs(t, err, flashdb.ErrNotFound, "a refused batch must leave nothing behind")
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	other := filepath.Join(dir, "other")
	require.NoError(t, os.Mkdir(other, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(other, "letter.txt"), []byte("dear"), 0o600))
	garbage := filepath.Join(dir, "garbage")
	require.NoError(t, os.Mkdir(garbage, 0o700))
	noise := make([]byte, 1<<16)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	require.NoError(t, os.WriteFile(filepath.Join(garbage, "flash.db"), noise, 0o600))

	_, err := flashdb.Open(filepath.Join(dir, "missing"), &flashdb.Options{MustExist: true})
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	require.NoDirExists(t, filepath.Join(dir, "missing"))
	_, err = flashdb.Open(file, nil)
	require.ErrorIs(t, err, flashdb.ErrInvalid)
	_, err = flashdb.Open(other, nil)
	require.ErrorIs(t, err, flashdb.ErrInvalid)
	require.NoFileExists(t, filepath.Join(other, "flash.db"))
	_, err = flashdb.Open(garbage, nil)
	require.ErrorIs(t, err, flashdb.ErrCorrupt)
	_, err = flashdb.Open(dir, &flashdb.Options{Workers: -1, FlushBytes: -1})
	require.ErrorContains(t, err, "Workers")
	require.ErrorContains(t, err, "FlushBytes")
}

func TestSecondOpenIsRefused(t *testing.T) {
	d := openDB(t)
	_, err := flashdb.Open(d.dir, nil)
	require.ErrorIs(t, err, flashdb.ErrLocked)
	require.ErrorContains(t, err, "process ")
}

func TestClosed(t *testing.T) {
	ctx := context.Background()
	d, c := smallCollection(t)
	require.NoError(t, d.Close())
	_, err := c.Predict(ctx, "a", 1, nil)
	require.ErrorIs(t, err, flashdb.ErrClosed)
	require.ErrorIs(t, c.Upsert(ctx, flashdb.Node{Key: "x", Embedding: []float32{1, 2}}), flashdb.ErrClosed)
	_, err = d.CreateCollection("z", flashdb.Schema{Dim: 2})
	require.ErrorIs(t, err, flashdb.ErrClosed)
	require.ErrorIs(t, d.Close(), flashdb.ErrClosed)
	d.open()
}

func TestDroppedCollection(t *testing.T) {
	ctx := context.Background()
	d, c := smallCollection(t)
	_, err := c.Predict(ctx, "a", 1, nil)
	require.NoError(t, err)
	require.NoError(t, d.DropCollection(ctx, "c"))
	_, err = c.Predict(ctx, "a", 1, nil)
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	require.ErrorIs(t, c.Upsert(ctx, flashdb.Node{Key: "x", Embedding: []float32{1, 2}}), flashdb.ErrNotFound)
	names, err := d.Collections(ctx)
	require.NoError(t, err)
	require.Empty(t, names)

	again := d.collection("c", 3)
	_, err = again.Get(ctx, "a")
	require.ErrorIs(t, err, flashdb.ErrNotFound, "a new collection of the name is empty")
	d.reopen()
	names, err = d.Collections(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"c"}, names)
}

// TestNamesOfAClosedDatabase checks that calls which list names fail rather than return an empty
// list.
func TestNamesOfAClosedDatabase(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", 3)
	done, cancel := context.WithCancel(ctx)
	cancel()
	refused := func(ctx context.Context, want error) {
		_, err := d.Collections(ctx)
		require.ErrorIs(t, err, want)
		_, err = c.Decoders(ctx)
		require.ErrorIs(t, err, want)
		_, err = c.RowKeys(ctx, 0, 1)
		require.ErrorIs(t, err, want)
		_, _, err = c.Meta(ctx, "m")
		require.ErrorIs(t, err, want)
	}
	refused(done, context.Canceled)
	require.NoError(t, d.Close())
	refused(ctx, flashdb.ErrClosed)
	d.open()
}

// TestOpenCollection creates a collection once and finds it afterwards, with the same schema only.
func TestOpenCollection(t *testing.T) {
	d := openDB(t)
	for range 2 {
		c, err := d.OpenCollection("c", flashdb.Schema{Dim: 3})
		require.NoError(t, err)
		require.Equal(t, flashdb.Schema{Dim: 3}, c.Schema())
	}
	_, err := d.OpenCollection("c", flashdb.Schema{Dim: 3, Normalize: true})
	require.ErrorIs(t, err, flashdb.ErrExists)
	require.ErrorContains(t, err, `"c" already exists with dimension 3, and not dimension 3, normalized`)
	_, err = d.OpenCollection("d", flashdb.Schema{})
	require.ErrorIs(t, err, flashdb.ErrInvalid)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := d.OpenCollection("together", flashdb.Schema{Dim: 4})
			assert.NoError(t, err)
		})
	}
	all.Wait()
	require.ErrorIs(t, d.collection("e", 2).PutDecoder(t.Context(), "links", nil), flashdb.ErrInvalid)
}

// The documentation of an alias shows no fields: errors.go lists those of CorruptError.
var _ = struct {
	File    string
	Section string
	Offset  int64
	Cause   error
}(flashdb.CorruptError{})
