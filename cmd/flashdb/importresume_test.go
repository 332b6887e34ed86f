package main

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/control"
	"github.com/flashdb/flashdb/internal/codec"
)

// A dyingCollection fails its Upsert after a number of them, as if the process were killed there.
type dyingCollection struct {
	collection
	left, stored int
}

var errKilled = errors.New("killed")

func (c *dyingCollection) Upsert(ctx context.Context, nodes ...flashdb.Node) error {
	if c.left == 0 {
		return errKilled
	}
	c.left--
	c.stored += len(nodes)
	return c.collection.Upsert(ctx, nodes...)
}

// An import that was killed goes on behind the last whole batch, and ends as one that was not: the
// same nodes, and row numbers known.
func TestImportGoesOn(t *testing.T) {
	const n = 3*batchRows + 5
	dir := t.TempDir()
	file := filepath.Join(dir, "rows.fvecs")
	var b []byte
	names := &strings.Builder{}
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, 1)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i)))
		names.WriteString(strconv.Itoa(i) + "\tnode " + strconv.Itoa(i) + "\n")
	}
	require.NoError(t, os.WriteFile(file, b, 0o600))
	keys := filepath.Join(dir, "names.tsv")
	require.NoError(t, os.WriteFile(keys, []byte(names.String()), 0o600))

	db, err := flashdb.Open(filepath.Join(dir, "db"), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ctx := context.Background()
	c, err := control.Local(db).CreateCollection(ctx, "c", flashdb.Schema{Dim: 1})
	require.NoError(t, err)
	var messages strings.Builder
	a := &app{err: &messages}
	run := func(file string, batches int) (*dyingCollection, int64, error) {
		in, err := a.openInput(file, "")
		require.NoError(t, err)
		im := &importer{file: in}
		require.NoError(t, im.use(keys, nil))
		d := &dyingCollection{collection: c, left: batches}
		im.upsert = d.Upsert
		rows, err := a.importRows(ctx, c, im)
		return d, rows, err
	}

	_, _, err = run(file, 2)
	require.ErrorIs(t, err, errKilled)
	assert.Empty(t, messages.String())
	d, rows, err := run(file, 100)
	require.NoError(t, err)
	assert.EqualValues(t, n, rows)
	assert.Equal(t, n-2*batchRows, d.stored, "what two batches stored is not stored again")
	assert.Equal(t, "continuing after 20,000 rows that an earlier run stored\n", messages.String())

	first, known, err := rowSpan(ctx, c)
	require.NoError(t, err)
	assert.Equal(t, []int64{0, n}, []int64{first, known}, "rows are numbered as if nothing had happened")
	node, err := c.Get(ctx, "node 25000")
	require.NoError(t, err)
	assert.Equal(t, []float32{25000}, node.Embedding)
	left, err := c.Meta(ctx, metaImport)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing is left to go on with")

	// Another file, or the same one again, begins at its first row.
	_, _, err = run(file, 1)
	require.ErrorIs(t, err, errKilled)
	other := filepath.Join(dir, "other.fvecs")
	require.NoError(t, os.WriteFile(other, b[:len(b)-8], 0o600))
	d, rows, err = run(other, 100)
	require.NoError(t, err)
	assert.EqualValues(t, n-1, rows)
	assert.Equal(t, n-1, d.stored)
}

// endless says that it has more rows than anybody waits for, and has none.
type endless struct{ codec.RowReader }

func (endless) Dim() int                          { return 128 }
func (endless) Count() int64                      { return 2 << 20 }
func (endless) Next([]float32) (codec.Row, error) { return codec.Row{}, errKilled }
func (endless) Position() string                  { return "row 0" }
func (endless) Close() error                      { return nil }

// How much is to come is said before the first row is read, and once: of the rows that are
// imported.
func TestImportAnnounces(t *testing.T) {
	for _, tt := range []struct {
		start, count int64
		want         string
	}{
		{0, 0, "x.npz: 2,097,152 rows of 128 values, 1.1 GB\n"},
		{0, 3 << 20, "x.npz: 2,097,152 rows of 128 values, 1.1 GB\n"},
		{1 << 20, 0, "x.npz: 1,048,576 rows of 128 values, 0.5 GB\n"},
		{1 << 20, 1 << 19, "x.npz: 524,288 rows of 128 values, 0.3 GB\n"},
		{1 << 20, 1000, ""},
		{3 << 20, 0, ""},
	} {
		var notes strings.Builder
		im := &importer{name: "x.npz", notes: &notes, start: tt.start, count: tt.count, schema: flashdb.Schema{Dim: 128}}
		im.open = func() (codec.RowReader, error) { return endless{}, nil }
		for range 2 {
			_, err := im.check(context.Background(), terminal.NewProgress(&notes), nil)
			require.ErrorIs(t, err, errKilled)
		}
		assert.Equal(t, tt.want, notes.String(), "--start %d --count %d", tt.start, tt.count)
	}
}
