package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
)

// TestRowSpanOfEarlierVersions: what they remembered under names of the user's namespace is found,
// until it is set anew.
func TestRowSpanOfEarlierVersions(t *testing.T) {
	db, err := flashdb.Open(filepath.Join(t.TempDir(), "db"), nil)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.CreateCollection("c", flashdb.Schema{Dim: 1})
	require.NoError(t, err)
	c, err := control.Local(db).Collection(t.Context(), "c")
	require.NoError(t, err)
	require.NoError(t, c.SetMeta(t.Context(), "first_row", "7"))
	require.NoError(t, c.SetMeta(t.Context(), "row_count", "9"))
	first, rows, err := rowSpan(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, []int64{7, 9}, []int64{first, rows})

	require.NoError(t, setRowSpan(t.Context(), c, 1, 2))
	first, rows, err = rowSpan(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 2}, []int64{first, rows})
	own, err := c.Meta(t.Context(), "first_row")
	require.NoError(t, err)
	assert.Equal(t, "7", own, "a user's name is left alone")
}
