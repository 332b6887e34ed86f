package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestTrainFeaturesOfTwoKinds trains on features of users and of items, and embeds a user and an
// item by theirs.
func TestTrainFeaturesOfTwoKinds(t *testing.T) {
	t.Chdir(t.TempDir())
	var likes, ofUsers, ofItems strings.Builder
	for i := range 12 {
		fmt.Fprintf(&ofUsers, "{\"key\": \"u%d\", \"embedding\": [%d]}\n", i, i%3)
		fmt.Fprintf(&ofItems, "{\"key\": \"i%d\", \"embedding\": [1, %d]}\n", i, i%3)
		for j := range 4 {
			fmt.Fprintf(&likes, "u%d\ti%d\n", i, i%3+3*j)
		}
	}
	for name, text := range map[string]string{"likes.tsv": likes.String(), "users.jsonl": ofUsers.String(), "items.jsonl": ofItems.String()} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	code, _, errText := runLine("train", "one", "c", "likes.tsv", "--source-features", "users.jsonl")
	require.Equal(t, 1, code)
	require.Contains(t, errText, "--source-features is for the nodes of --source-collection")
	code, _, errText = runLine("train", "bad", "items", "likes.tsv", "--source-collection", "users", "--features", "users.jsonl")
	require.Equal(t, 1, code)
	require.Contains(t, errText, `has no row for node "i0"`)
	require.NoDirExists(t, "bad")

	code, out, errText := runLine("train", "db", "items", "likes.tsv", "--source-collection", "users", "--dim", "8", "--epochs", "1",
		"--source-features", "users.jsonl", "--features", "items.jsonl", "--json")
	require.Zero(t, code, errText)
	require.Contains(t, out, `"features":3`)
	db, err := flashdb.Open("db", &flashdb.Options{ReadOnly: true})
	require.NoError(t, err)
	for name, want := range map[string][2]int{"users": {0, 1}, "items": {1, 2}} {
		c, err := db.Collection(name)
		require.NoError(t, err)
		_, use, err := c.Encoder(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, [2]int{use.FirstFeature, use.Features}, name)
	}
	require.NoError(t, db.Close())
	for _, line := range [][]string{
		{"embed", "db", "users", "zoe", "--features", "2"},
		{"embed", "db", "items", "dune", "--features", "1,2", "--links", "u1,zoe"},
	} {
		code, _, errText := runLine(line...)
		require.Zero(t, code, errText)
	}
	code, _, errText = runLine("embed", "db", "users", "tim", "--features", "1,2")
	require.Equal(t, 1, code)
	require.Contains(t, errText, `2 features are given, in training a node of "users" had 1`)
}
