package tests

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestWritesDuringARebuildAreServed does all kinds of writes between the steps of a rebuild: what
// they did is served beside the old generation and the new one, and after a reopen.
func TestWritesDuringARebuildAreServed(t *testing.T) {
	for _, opened := range []bool{false, true} {
		t.Run(fmt.Sprintf("queried before %v", opened), func(t *testing.T) {
			ctx := context.Background()
			dir := filepath.Join(t.TempDir(), "test.flash")
			db := openDB(t, dir)
			c, err := db.CreateCollection("c", flashdb.Schema{Dim: modelDim})
			require.NoError(t, err)
			dot := dotDecoder(t, modelDim)
			require.NoError(t, c.PutDecoder(ctx, "dot", dot))
			a := newGenerator("a/", 21)
			writes := func(n int) {
				for range n {
					write := a.next()
					require.NoError(t, write.do(ctx, c), write.name)
					a.applied(write)
				}
			}
			writes(60)
			_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 3})
			require.NoError(t, err)
			if opened {
				a.m.predicts(t, c, dot, "dot", 2)
			}
			steps := map[string]int{}
			res, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 4, Progress: func(stage string, _, _ int64) {
				steps[stage]++
				writes(5)
				if opened {
					a.m.predicts(t, c, dot, "dot", 2)
				}
				require.NoError(t, a.m.diff(ctx, c, a.prefix), stage)
			}})
			require.NoError(t, err)
			require.EqualValues(t, 2, res.Generation)
			require.Greater(t, len(steps), 2, "%v", steps)
			same := func() {
				t.Helper()
				require.NoError(t, a.m.diff(ctx, c, a.prefix))
				a.m.predicts(t, c, dot, "dot", 10)
				findings, err := db.Check(ctx)
				require.NoError(t, err)
				require.Empty(t, findings)
			}
			same()
			require.NoError(t, db.Close())
			db = openDB(t, dir)
			c, err = db.Collection("c")
			require.NoError(t, err)
			same()
			_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 4})
			require.NoError(t, err)
			same()
			checkAndClose(t, db)
		})
	}
}
