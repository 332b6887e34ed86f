package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
)

// TestLargeCollectionWithoutIndex says at every turn that a rebuild is due.
func TestLargeCollectionWithoutIndex(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "db")
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	c, err := db.CreateCollection("c", flashdb.Schema{Dim: 1})
	require.NoError(t, err)
	nodes := make([]flashdb.Node, indexFrom)
	for i := range nodes {
		nodes[i] = flashdb.Node{Key: strconv.Itoa(i), Embedding: []float32{float32(i)}}
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	var errOut bytes.Buffer
	a := app{err: &errOut}
	local := control.Local(db)
	asked, err := local.Collection(ctx, "c")
	require.NoError(t, err)
	require.NoError(t, a.remarkOnIndex(ctx, local, asked))
	assert.Equal(t, "flashdb: c has 20,000 nodes and no index, so that queries scan: run `flashdb rebuild`\n", errOut.String())
	require.NoError(t, db.Close())

	_, out, _ := runLine("stats", dir)
	assert.Contains(t, out, "none: queries scan every node exactly; run `flashdb rebuild`, which makes them faster")
	_, out, _ = runLine("search", dir, "c", "7", "-k", "1", "--json")
	assert.Contains(t, out, "no index (20000 nodes): a rebuild makes one")
}
