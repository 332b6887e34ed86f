package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
)

func TestCheckpointAsksTheDatabase(t *testing.T) {
	db, err := flashdb.Open(filepath.Join(t.TempDir(), "db"), nil)
	require.NoError(t, err)
	c, err := db.CreateCollection("c", flashdb.Schema{Dim: 1})
	require.NoError(t, err)
	for range 49 {
		require.NoError(t, c.Upsert(t.Context(), flashdb.Node{Key: "a", Embedding: []float32{1}}))
	}
	var out bytes.Buffer
	a := &app{out: &out, shared: control.Local(db)}
	require.NoError(t, a.checkpoint(t.Context(), "db"))
	assert.Regexp(t, `^checkpointed db in .*: up to write 50 in the store, log 24 B\n$`, out.String())
	require.NoError(t, db.Checkpoint(t.Context()), "what is shared stays open")

	out.Reset()
	require.NoError(t, db.Close())
	require.ErrorIs(t, a.checkpoint(t.Context(), "db"), flashdb.ErrClosed)
	assert.Empty(t, out.String())
}
