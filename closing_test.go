package flashdb_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestCallbacksCallWhileClosing makes calls inside callbacks of other calls while the database is
// closed, until it refuses them. Neither waits for the other.
func TestCallbacksCallWhileClosing(t *testing.T) {
	ctx := context.Background()
	for name, call := range map[string]func(d *testDB, c *flashdb.Collection, inside func()) error{
		"keys": func(_ *testDB, c *flashdb.Collection, inside func()) error {
			for _, err := range c.Keys(ctx) {
				if err != nil {
					return err
				}
				inside()
			}
			return nil
		},
		"batch": func(_ *testDB, c *flashdb.Collection, inside func()) error {
			var failed error
			for _, err := range c.PredictBatch(ctx, []string{"a", "b"}, 1, nil) {
				inside()
				failed = errors.Join(failed, err)
			}
			return failed
		},
		"rebuild": func(_ *testDB, c *flashdb.Collection, inside func()) error {
			_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Progress: func(string, int64, int64) { inside() }})
			assert.Error(t, err)
			return err
		},
		"backup": func(d *testDB, _ *flashdb.Collection, inside func()) error {
			_, err := d.Backup(ctx, io.Discard, &flashdb.BackupOptions{Progress: func(string, int64, int64) { inside() }})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDB(t)
			c := d.collection("c", smallDim)
			rng := rand.New(rand.NewPCG(41, 0))
			node := flashdb.Node{Key: "a", Embedding: randomVector(rng, smallDim)}
			require.NoError(t, c.Upsert(ctx, node, flashdb.Node{Key: "b", Embedding: node.Embedding}))
			require.NoError(t, c.PutDecoder(ctx, "dot", dotDecoder(t, smallDim)))
			var closed chan error
			err := call(d, c, func() {
				if closed != nil {
					return
				}
				closed = make(chan error, 1)
				go func() { closed <- d.Close() }()
				var err error
				for err == nil {
					err = c.Upsert(ctx, node)
				}
				assert.ErrorIs(t, err, flashdb.ErrClosed)
			})
			if err != nil {
				assert.ErrorIs(t, err, flashdb.ErrClosed)
			}
			require.NotNil(t, closed)
			require.NoError(t, <-closed)
			d.open()
		})
	}
}
