package flashdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// BenchmarkDurableUpsert upserts single nodes, each acknowledged when it is durable, from several
// goroutines, whose writes share syncs.
func BenchmarkDurableUpsert(b *testing.B) {
	for _, writers := range []int{1, 2, 4, 8, 16, 32, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			const dim = 128
			ctx := context.Background()
			db, err := flashdb.Open(filepath.Join(b.TempDir(), "bench.flash"), nil)
			require.NoError(b, err)
			c, err := db.CreateCollection("c", flashdb.Schema{Dim: dim})
			require.NoError(b, err)
			row := randomVector(rand.New(rand.NewPCG(1, 1)), dim)
			var next atomic.Int64
			b.ResetTimer()
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for {
						n := next.Add(1)
						if n > int64(b.N) {
							return
						}
						assert.NoError(b, c.Upsert(ctx, flashdb.Node{Key: fmt.Sprint(n), Embedding: row}))
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "upserts/s")
			require.NoError(b, db.Close())
		})
	}
}
