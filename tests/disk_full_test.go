package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// fillUp upserts batches until one is refused, which it returns with the error.
func fillUp(c *flashdb.Collection, m *model, rng *rand.Rand) (refused write, err error) {
	for i := 0; ; i++ {
		a := batch(rng, fmt.Sprint(i))
		if err := a.do(context.Background(), c); err != nil {
			return a, err
		}
		a.on(m)
	}
}

// batch upserts a few nodes that take 8 KiB.
func batch(rng *rand.Rand, name string) write {
	var nodes []flashdb.Node
	for i := range 4 {
		n := flashdb.Node{Key: fmt.Sprintf("%s/%d", name, i), Embedding: randomVector(rng, modelDim), Payload: make([]byte, 2<<10)}
		for j := range n.Payload {
			n.Payload[j] = byte(rng.Uint32())
		}
		nodes = append(nodes, n)
	}
	return upsertWrite(nodes...)
}

// TestDiskFull writes until a small file system is full: the error is clear, the database is
// read-only until it is reopened, and what was acknowledged is there, with the disk still full and
// when there is room again.
func TestDiskFull(t *testing.T) {
	for _, flushBytes := range []int64{1 << 12, 1 << 40} { // what is written most is the bbolt file, or the log
		root := smallDisk(t)
		ballast := filepath.Join(root, "ballast")
		require.NoError(t, os.WriteFile(ballast, make([]byte, 6<<20), 0o600))
		ctx := context.Background()
		dir := filepath.Join(root, "test.flash")
		open := func() (*flashdb.DB, *flashdb.Collection) {
			db, err := flashdb.Open(dir, &flashdb.Options{FlushBytes: flushBytes})
			require.NoError(t, err)
			c, err := db.Collection("c")
			if errors.Is(err, flashdb.ErrNotFound) {
				c, err = db.CreateCollection("c", flashdb.Schema{Dim: modelDim})
			}
			require.NoError(t, err)
			return db, c
		}
		db, c := open()
		d := dotDecoder(t, modelDim)
		require.NoError(t, c.PutDecoder(ctx, "z", d))
		rng := rand.New(rand.NewPCG(21, 0))
		m := newModel()
		m.decoders["z"] = d
		refused, err := fillUp(c, m, rng)
		require.ErrorIs(t, err, flashdb.ErrReadOnly)
		require.ErrorContains(t, err, "no space left on device")
		require.Greater(t, len(m.nodes), 100)
		require.NoError(t, m.diff(ctx, c, ""), "reads go on")
		m.predicts(t, c, d, "z", 3)
		_ = db.Close() // it may have found no room either

		db, c = open() // still full
		if m.diff(ctx, c, "") != nil {
			refused.on(m) // not acknowledged, and there all the same
		}
		require.NoError(t, m.diff(ctx, c, ""))
		m.predicts(t, c, d, "z", 3)
		_ = db.Close()

		require.NoError(t, os.Remove(ballast))
		db, c = open()
		more := batch(rng, "more")
		require.NoError(t, more.do(ctx, c))
		more.on(m)
		require.NoError(t, m.diff(ctx, c, ""))
		findings, err := db.Check(ctx)
		require.NoError(t, err)
		require.Empty(t, findings)
		require.NoError(t, db.Close())
	}
}
