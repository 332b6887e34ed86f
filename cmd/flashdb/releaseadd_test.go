package main

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
)

// An add that was killed goes on behind the last whole batch. Another file, and another release of
// the name, begin at the first row.
func TestReleaseAddGoesOn(t *testing.T) {
	const n = 3*batchRows + 5
	ctx := context.Background()
	dir := t.TempDir()
	write := func(name string, rows int) string {
		var b []byte
		for i := range rows {
			b = binary.LittleEndian.AppendUint32(b, 1)
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i)))
		}
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return path
	}
	file, other := write("rows.fvecs", n), write("other.fvecs", n-1)
	db, err := flashdb.Open(filepath.Join(dir, "db"), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	local := control.Local(db)
	c, err := local.CreateCollection(ctx, "c", flashdb.Schema{Dim: 1})
	require.NoError(t, err)
	stage := func() *flashdb.Release {
		r, err := db.StageRelease(ctx, "night", "c")
		require.NoError(t, err)
		return r
	}
	var messages, out strings.Builder
	a := &app{err: &messages, out: &out}
	run := func(file string, batches int) (calls int, err error) {
		in, err := a.openInput(file, "")
		require.NoError(t, err)
		im := &importer{file: in}
		require.NoError(t, im.use("", nil))
		messages.Reset()
		out.Reset()
		im.apply = func(ctx context.Context, release string, b *flashdb.Batch) (int, error) {
			if calls == batches {
				return 0, errKilled
			}
			calls++
			return local.FillRelease(ctx, release, b)
		}
		err = a.releaseAdd(ctx, local, c, "night", im)
		return calls, err
	}

	r := stage()
	_, err = run(file, 2)
	require.ErrorIs(t, err, errKilled)
	assert.Empty(t, messages.String())
	calls, err := run(file, 100)
	require.NoError(t, err)
	assert.Equal(t, 2, calls, "what two batches stored is not stored again")
	assert.Equal(t, "continuing after 20,000 rows that an earlier run stored\n", messages.String())
	assert.Contains(t, out.String(), "added 30,005 rows of c to release night")
	left, err := c.Meta(ctx, metaAdd)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing is left to go on with")
	of, err := r.Collection("c")
	require.NoError(t, err)
	for _, key := range []string{"0", "25000", "30004"} {
		node, err := of.Get(ctx, key)
		require.NoError(t, err)
		assert.Len(t, node.Embedding, 1, key)
	}

	_, err = run(file, 1)
	require.ErrorIs(t, err, errKilled)
	calls, err = run(other, 100)
	require.NoError(t, err)
	assert.Equal(t, 4, calls, "another file")

	_, err = run(file, 1)
	require.ErrorIs(t, err, errKilled)
	require.NoError(t, r.Drop(ctx))
	stage()
	calls, err = run(file, 100)
	require.NoError(t, err)
	assert.Equal(t, 4, calls, "another release of that name")
	all, err := db.Releases(ctx)
	require.NoError(t, err)
	assert.EqualValues(t, n, all[1].Collections[0].Rows)
}
