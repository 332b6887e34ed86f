package flashdb

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestScoreIsOfOneBatch checks that Score does not use the decoder in memory with rows of a batch
// that has reached the store but not yet the memory: that batch may replace the decoder too. Score
// tries again until its context ends.
func TestScoreIsOfOneBatch(t *testing.T) {
	db, c := ring(t, filepath.Join(t.TempDir(), "db"), 3)
	defer db.Close()
	done, cancel := context.WithCancel(context.Background())
	cancel() // only looked at before another try
	score := func() ([]Hit, error) { return c.score(done, "node 1", []string{"node 2"}, ScoreOptions{}) }

	hits, err := score()
	require.NoError(t, err)
	assert.Equal(t, float32(3), hits[0].Score)
	at, _ := c.served.applied()
	applied := at.lsn
	for _, other := range []uint64{applied - 1, applied + 1} {
		c.served.lsn = other
		_, err = score()
		require.ErrorIs(t, err, context.Canceled, "the store is as of %d, the memory as of %d", applied, other)
	}
	c.served.lsn = applied
	_, err = score()
	require.NoError(t, err)
}
