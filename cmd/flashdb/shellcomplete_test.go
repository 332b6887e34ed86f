package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/shell"
	"github.com/flashdb/flashdb/control"
	"github.com/flashdb/flashdb/decoder"
)

func TestShellCompletes(t *testing.T) {
	ctx := context.Background()
	db, err := flashdb.Open(filepath.Join(t.TempDir(), "db"), nil)
	require.NoError(t, err)
	defer func() { assert.NoError(t, db.Close()) }()
	c, err := db.CreateCollection("papers", flashdb.Schema{Dim: 1})
	require.NoError(t, err)
	people, err := db.CreateCollection("people", flashdb.Schema{Dim: 1})
	require.NoError(t, err)
	require.NoError(t, people.Upsert(ctx, flashdb.Node{Key: "ann", Embedding: []float32{1}}))
	for _, key := range []string{"alpha", "al\tpine", "-dash", "beta"} {
		require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: key, Embedding: []float32{1}, Tags: []string{"new", "net"}}))
	}
	dot, err := decoder.NewDot(1)
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(ctx, "cites", dot))
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("dir", 0o700))
	require.NoError(t, os.WriteFile("data.npy", nil, 0o600))

	s := &session{dir: "db", db: control.Local(db), collection: "papers", in: &bytes.Buffer{}, out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	for line, want := range map[string][]string{
		"pre":                                {"predict"},
		"ser":                                nil, // serve has no place in a shell
		"use p":                              {"papers", "people"},
		".mode ":                             {"csv", "json", "table", "tsv"},
		".timer o":                           {"off", "on"},
		".read d":                            {"data.npy", "dir/"},
		"help sc":                            {"score"},
		"decoder ":                           {"add", "list", "remove", "show"},
		"decoder show ":                      {"cites"},
		"decoder add x da":                   {"data.npy"},
		"export decoder cites da":            {"data.npy"},
		"unlink da":                          {"data.npy"},
		"drop p":                             {"papers", "people"},
		"get al":                             {"al\tpine", "alpha"},
		"get alpha b":                        {"beta"},
		"get -- -":                           {"-dash"},
		"search alpha b":                     nil, // one key
		"predict alpha --mode ":              {"auto", "exact", "paper"},
		"predict alpha --mode=e":             {"--mode=exact"},
		"predict --mo":                       {"--mode"},
		"predict --mode exact be":            {"beta"},
		"predict --explain be":               {"beta"},
		"predict alpha -o da":                {"data.npy"},
		"predict alpha --rounds ":            nil,
		"predict alpha --decoder ":           {"cites"},
		"predict alpha --source-collection ": {"papers", "people"},

		"predict --source-collection people a":    {"ann"},
		"score ann --source-collection=people al": {"al\tpine", "alpha"},
		"predict alpha --exclude be":              {"beta"},
		"predict alpha --filter n":                {"net", "new"},
		"predict alpha --filter 'new and (n":      {"new and (net", "new and (new"},
		"import data.npy --format pa":             {"parquet"},
		"stats --color ":                          {"always", "auto", "never"},
		"nonsense ":                               nil,
		"decoder nonsense ":                       nil,
	} {
		assert.Equal(t, want, append([]string(nil), s.complete(ctx, shell.SplitPartial(line))...), line)
	}
	many := make([]flashdb.Node, mostKeys+1)
	for i := range many {
		many[i] = flashdb.Node{Key: fmt.Sprintf("many/%04d", i), Embedding: []float32{1}}
	}
	require.NoError(t, c.Upsert(ctx, many...))
	assert.Empty(t, s.complete(ctx, shell.SplitPartial("get m")), "what they have in common is not known")
	assert.Len(t, s.complete(ctx, shell.SplitPartial("get many/00")), 100)
	s.collection = "gone"
	assert.Empty(t, s.complete(ctx, shell.SplitPartial("get al")))
}
