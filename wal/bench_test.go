package wal

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/vfs"
)

// BenchmarkDurableWrites measures writes of 300 bytes, an upsert of a 64-dimensional row, on a real
// disk.
func BenchmarkDurableWrites(b *testing.B) {
	payload := noise(300)
	write := Write{Prepare: func(LSN) ([]byte, error) { return payload, nil }}
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			var syncs atomic.Int64
			fsys := vfs.Faulty(vfs.OS(), func(op vfs.Op) error {
				if op.Kind == vfs.OpSync {
					syncs.Add(1)
				}
				return nil
			})
			l, err := Open(fsys, filepath.Join(b.TempDir(), "wal"), nil)
			require.NoError(b, err)
			defer l.Close()
			_, err = l.Do(context.Background(), write)
			require.NoError(b, err)
			syncs.Store(0)
			b.SetBytes(int64(len(payload)))
			b.ResetTimer()
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := l.Do(context.Background(), write); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			b.ReportMetric(float64(b.N)/float64(max(syncs.Load(), 1)), "writes/sync")
		})
	}
}

// BenchmarkReplay measures reading a log of 64 MiB back.
func BenchmarkReplay(b *testing.B) {
	fsys := vfs.OS()
	path := filepath.Join(b.TempDir(), "wal")
	l, err := Open(fsys, path, nil)
	require.NoError(b, err)
	payload := noise(64 << 10)
	for range 1024 {
		_, err := l.Do(context.Background(), Write{Prepare: func(LSN) ([]byte, error) { return payload, nil }})
		require.NoError(b, err)
	}
	b.SetBytes(64 << 20)
	for b.Loop() {
		require.NoError(b, l.Replay(0, func(LSN, []byte) error { return nil }))
	}
	require.NoError(b, l.Close())
}
