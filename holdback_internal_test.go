package flashdb

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/failpoint"
	"github.com/flashdb/flashdb/internal/vfs"
)

// A writer that is faster than the flush waits for it, so memory use stays near a limit.
func TestWritersWaitForTheFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, c := holdBackDB(t, 1<<16)
		release := make(chan struct{})
		failpoint.Hook(func(p failpoint.Point) {
			if p == failpoint.FlushWrite {
				<-release
			}
		})
		defer failpoint.Hook(nil)

		done := make(chan error, 1)
		stored := 0
		for waits := false; !waits; {
			go func() { done <- c.Upsert(context.Background(), holdBackNodes(stored)...) }()
			synctest.Wait() // until every goroutine is blocked
			select {
			case err := <-done:
				require.NoError(t, err)
				stored++
			default:
				waits = true
			}
			require.Less(t, stored, 1000)
		}
		require.Positive(t, stored)
		one := db.store.Pending() / int64(stored)
		assert.Less(t, db.store.Pending(), maxPending*db.opts.FlushBytes+2*one)

		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, c.Upsert(ctx, holdBackNodes(0)...), context.Canceled, "a wait ends with its context")
		close(release)
		require.NoError(t, <-done)
		require.NoError(t, db.Close())
	})
}

// A Compact keeps flushes from running. Its callback can write nevertheless.
func TestWritingInACompact(t *testing.T) {
	db, c := holdBackDB(t, 1)
	require.NoError(t, c.Upsert(t.Context(), holdBackNodes(0)...))
	written := 0
	_, err := db.Compact(t.Context(), &CompactOptions{Progress: func(string, int64, int64) {
		for range 3 {
			written++
			require.NoError(t, c.Upsert(t.Context(), holdBackNodes(written)...))
		}
	}})
	require.NoError(t, err)
	assert.Positive(t, written)
	require.NoError(t, db.Close())
}

func holdBackDB(t *testing.T, flushBytes int64) (*DB, *Collection) {
	t.Helper()
	db, err := Open(t.TempDir(), &Options{FlushBytes: flushBytes, disk: disk{system: vfs.OS(), noSync: true}})
	require.NoError(t, err)
	c, err := db.CreateCollection("c", Schema{Dim: 16})
	require.NoError(t, err)
	return db, c
}

func holdBackNodes(batch int) []Node {
	nodes := make([]Node, 100)
	for i := range nodes {
		nodes[i] = Node{Key: fmt.Sprint(batch, "/", i), Embedding: make([]float32, 16)}
	}
	return nodes
}
