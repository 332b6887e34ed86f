package flashdb_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestDamagedIndexIsTold damages a row of an index, which only a checksum shows, and in another
// case removes the file. Stats and queries both report it until the index is rebuilt.
func TestDamagedIndexIsTold(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, file string)
	}{
		{"three bytes", func(t *testing.T, file string) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			at := bytes.Index(text, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}) // a row
			require.Positive(t, at)
			copy(text[at:], "bad")
			require.NoError(t, os.WriteFile(file, text, 0o600))
		}},
		{"lost", func(t *testing.T, file string) { require.NoError(t, os.Remove(file)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "db")
			db, err := flashdb.Open(dir, nil)
			require.NoError(t, err)
			made, err := db.CreateCollection("c", flashdb.Schema{Dim: 2})
			require.NoError(t, err)
			for _, key := range []string{"a", "b", "c", "d"} {
				require.NoError(t, made.Upsert(ctx, flashdb.Node{Key: key, Embedding: []float32{1, 2}, Tags: []string{"t"}}))
			}
			_, err = made.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
			require.NoError(t, err)
			require.NoError(t, db.Close())
			c.damage(t, filepath.Join(dir, "index", "c", "gen-000001.ivf"))

			db, err = flashdb.Open(dir, nil)
			require.NoError(t, err)
			defer func() { assert.NoError(t, db.Close()) }()
			of, err := db.Collection("c")
			require.NoError(t, err)
			damaged := func() (inStats, inQuery bool) {
				s, err := db.Stats(ctx)
				require.NoError(t, err)
				res, err := of.Search(ctx, []float32{1, 0}, 1, nil)
				require.NoError(t, err)
				assert.Len(t, res.Hits, 1)
				assert.Equal(t, !s.Collections[0].IndexDamaged, s.Collections[0].Generation != 0)
				return s.Collections[0].IndexDamaged, res.Stats.IndexDamaged
			}
			for range 2 { // before and after the first query
				inStats, inQuery := damaged()
				assert.True(t, inStats)
				assert.True(t, inQuery)
			}
			_, err = of.Rebuild(ctx, nil)
			require.NoError(t, err)
			inStats, inQuery := damaged()
			assert.False(t, inStats)
			assert.False(t, inQuery)
		})
	}
}

// TestUnknownTags filters by tags that no node has or no node has any more.
func TestUnknownTags(t *testing.T) {
	ctx := context.Background()
	db, err := flashdb.Open(filepath.Join(t.TempDir(), "db"), nil)
	require.NoError(t, err)
	defer func() { assert.NoError(t, db.Close()) }()
	c, err := db.CreateCollection("c", flashdb.Schema{Dim: 2})
	require.NoError(t, err)
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "a", Embedding: []float32{1, 0}, Tags: []string{"red"}},
		flashdb.Node{Key: "b", Embedding: []float32{1, 0}, Tags: []string{"gone"}}))
	_, err = c.Delete(ctx, "b")
	require.NoError(t, err)
	for filter, want := range map[string][]string{
		"":                            nil,
		"red":                         nil,
		"red and not gone":            {"gone"},
		"blue or (red and not blue)":  {"blue"},
		`red and not "a b" and green`: {"a b", "green"},
	} {
		res, err := c.Search(ctx, []float32{1, 0}, 1, &flashdb.SearchOptions{Filter: filter})
		require.NoError(t, err)
		assert.Equal(t, want, res.Stats.UnknownTags, filter)
	}
}
