package flashdb

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/vfs"
	"github.com/flashdb/flashdb/storage"
)

// TestNamesWithoutCase has two collections, made by an earlier version, whose names differ only in
// case. On a file system that ignores case they share an index directory. What one does there must
// not change an answer of the other.
func TestNamesWithoutCase(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "d.flash")
	mem := vfs.NewFoldingMem()
	open := func() *DB {
		db, err := Open(dir, &Options{CalibrateTime: -1, disk: disk{system: mem, noSync: true}})
		require.NoError(t, err)
		return db
	}
	db := open()
	_, err := db.CreateCollection("Papers", Schema{Dim: 2})
	require.NoError(t, err)
	_, err = db.CreateCollection("papers", Schema{Dim: 2})
	require.ErrorIs(t, err, ErrInvalid)
	require.NoError(t, db.commit(ctx, func(r *record) error { // as an earlier version did
		return r.emit(storage.CreateCollection{UID: r.changes.NextUID(), Name: "papers", Schema: storage.Schema{Dim: 2}})
	}))
	for i, name := range []string{"Papers", "papers"} {
		c, err := db.Collection(name)
		require.NoError(t, err)
		for j := range 40 {
			v := []float32{float32(i + 1), float32(j)}
			require.NoError(t, c.Upsert(ctx, Node{Key: name + string(rune('a'+j)), Embedding: v}))
		}
	}
	right := func(db *DB, want ...string) {
		t.Helper()
		for _, name := range want {
			c, err := db.Collection(name)
			require.NoError(t, err)
			res, err := c.Search(ctx, []float32{0, 1}, 40, nil)
			require.NoError(t, err)
			require.Len(t, res.Hits, 40)
			for _, hit := range res.Hits {
				require.True(t, strings.HasPrefix(hit.Key, name), "%s answers %s", name, hit.Key)
			}
		}
	}
	both := []string{"Papers", "papers"}
	for range 3 {
		for _, name := range both {
			c, err := db.Collection(name)
			require.NoError(t, err)
			_, err = c.Rebuild(ctx, &RebuildOptions{Force: true})
			require.NoError(t, err)
			right(db, both...)
			require.NoError(t, db.Close())
			db = open()
			right(db, both...)
		}
	}
	require.NoError(t, db.DropCollection(ctx, "Papers"))
	right(db, "papers")
	require.NoError(t, db.Close())
	db = open()
	right(db, "papers")
	require.NoError(t, db.Close())
}
