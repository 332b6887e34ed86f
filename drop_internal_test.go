package flashdb

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDropGivesUpItsWait drops a collection while a rebuild runs, with a context that ends
// meanwhile.
func TestDropGivesUpItsWait(t *testing.T) {
	db, err := Open(filepath.Join(t.TempDir(), "db"), nil)
	require.NoError(t, err)
	_, err = db.CreateCollection("c", Schema{Dim: 1})
	require.NoError(t, err)
	require.NoError(t, db.rebuilds.take(context.Background()))
	gone, hangUp := context.WithCancel(context.Background())
	dropped := make(chan error)
	go func() { dropped <- db.DropCollection(gone, "c") }()
	hangUp()
	require.ErrorIs(t, <-dropped, context.Canceled)
	db.rebuilds.pass()
	names, err := db.Collections(context.Background())
	require.NoError(t, err)
	assert.Equal(t, []string{"c"}, names)
	require.NoError(t, db.DropCollection(context.Background(), "c"))
	require.NoError(t, db.Close())
}
