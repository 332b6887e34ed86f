package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/wire"
)

// TestScoreOf: a score without its decoder is none, and a decoder that cannot be read is an error.
func TestScoreOf(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "db")
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	_, err = db.CreateCollection("c", flashdb.Schema{Dim: 2})
	require.NoError(t, err)
	c, err := control.Local(db).Collection(ctx, "c")
	require.NoError(t, err)
	measured, err := decoder.NewDistMult([]float32{1, 2})
	require.NoError(t, err)
	other, err := decoder.NewDistMult([]float32{3, 4})
	require.NoError(t, err)

	score, err := scoreOf(ctx, c)
	require.NoError(t, err)
	require.Nil(t, score, "nothing was measured")

	const name = "\xffd" // which JSON alone would change
	text, err := wire.Encode(storedScore{Decoder: name, Weights: checksumOf(measured), Text: "MRR 0.5"})
	require.NoError(t, err)
	require.NoError(t, c.SetMeta(ctx, metaScore, string(text)))
	score, err = scoreOf(ctx, c)
	require.NoError(t, err)
	require.Nil(t, score, "the decoder has gone")

	require.NoError(t, c.PutDecoder(ctx, name, other))
	score, err = scoreOf(ctx, c)
	require.NoError(t, err)
	require.Nil(t, score, "it is another decoder")

	require.NoError(t, c.PutDecoder(ctx, name, measured))
	score, err = scoreOf(ctx, c)
	require.NoError(t, err)
	require.Equal(t, "MRR 0.5", score.Text)

	require.NoError(t, db.Close())
	path, blob := filepath.Join(dir, "flash.db"), decoder.Marshal(measured)
	stored, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(stored), string(blob))
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(stored, blob, make([]byte, len(blob))), 0o600))
	db, err = flashdb.Open(dir, nil)
	require.NoError(t, err)
	c, err = control.Local(db).Collection(ctx, "c")
	require.NoError(t, err)
	_, err = scoreOf(ctx, c)
	require.ErrorIs(t, err, flashdb.ErrCorrupt)
}
