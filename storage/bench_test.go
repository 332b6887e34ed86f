package storage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkLoad puts nodes of 64 float32s in batches of 10,000, each a batch with its own Publish,
// flushing as the root package does, and reports how long a node takes and how large the file gets.
func BenchmarkLoad(b *testing.B) {
	for _, pageSize := range []int{4 << 10, 8 << 10, 16 << 10, 32 << 10} {
		b.Run(fmt.Sprintf("page=%d", pageSize), func(b *testing.B) {
			const nodes, dim, batch = 100_000, 64, 10_000
			for b.Loop() {
				path := filepath.Join(b.TempDir(), "flash.db")
				s, err := Open(path, &Options{PageSize: pageSize})
				require.NoError(b, err)
				loadNodes(b, s, nodes, dim, batch)
				require.NoError(b, s.Close())
				info, err := os.Stat(path)
				require.NoError(b, err)
				b.ReportMetric(float64(info.Size())/nodes, "file-B/node")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/nodes, "ns/node")
		})
	}
}

// BenchmarkOpen opens a file of close to 64 MiB, up to which Open verifies every page, and the same
// file with bytes added so that it is larger.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "flash.db")
	s, err := Open(path, &Options{NoSync: true})
	require.NoError(b, err)
	loadNodes(b, s, 80_000, 96, 4000)
	_, _, err = s.Compact(context.Background(), nil, nil)
	require.NoError(b, err)
	require.NoError(b, s.Close())
	info, err := os.Stat(path)
	require.NoError(b, err)
	require.LessOrEqual(b, info.Size(), int64(wholeBytes))
	for _, size := range []int64{info.Size(), wholeBytes + defaultPageSize} {
		require.NoError(b, os.Truncate(path, size))
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			for b.Loop() {
				s, err := Open(path, &Options{NoSync: true})
				require.NoError(b, err)
				require.NoError(b, s.Close())
			}
		})
	}
}

// loadNodes creates collection 1 and puts nodes with one tag each in batches.
func loadNodes(tb testing.TB, s *Store, nodes, dim, batch int) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	lsn := s.Applied() + 1
	c := s.Begin()
	require.NoError(tb, c.Apply(CreateCollection{UID: 1, Name: "c", Schema: Schema{Dim: dim}}, lsn))
	s.Stage(c)
	row := make([]float32, dim)
	for from := 0; from < nodes; from += batch {
		lsn++
		c := s.Begin()
		for id := from; id < from+batch; id++ {
			for i := range row {
				row[i] = rng.Float32()
			}
			key := fmt.Sprintf("node/%08x", uint32(id)*2654435761) // distinct, in no order
			if _, ok := c.ID(1, key); ok {
				tb.Fatal("key in use")
			}
			require.NoError(tb, c.Apply(PutNode{UID: 1, ID: uint32(id), Key: key, Row: row, Tags: []string{"all"}}, lsn))
		}
		s.Stage(c)
		s.Publish()
		if s.Pending() > 32<<20 {
			_, err := s.Flush()
			require.NoError(tb, err)
		}
	}
	_, err := s.Flush()
	require.NoError(tb, err)
}

// BenchmarkResolve looks up batches of 10,000 keys in a file of 200,000 nodes: keys that are there,
// new ones of which each lies between two others, and new ones beyond the last.
func BenchmarkResolve(b *testing.B) {
	const nodes, batch = 200_000, 10_000
	s, err := Open(filepath.Join(b.TempDir(), "flash.db"), &Options{NoSync: true})
	require.NoError(b, err)
	loadNodes(b, s, nodes, 4, 10_000)
	known := func(i int) string { return fmt.Sprintf("node/%08x", uint32(i*(nodes/batch))*2654435761) }
	for _, tt := range []struct {
		name string
		key  func(i int) string
	}{
		{"known", known},
		{"between", func(i int) string { return known(i) + "+" }},
		{"beyond", func(i int) string { return fmt.Sprintf("z%08d", i) }},
	} {
		b.Run(tt.name, func(b *testing.B) {
			puts := make([]PutNode, batch)
			for i := range puts {
				puts[i].Key = tt.key(i)
			}
			c := s.Begin()
			for b.Loop() {
				require.NoError(b, c.Resolve(1, puts))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/key")
		})
	}
	require.NoError(b, s.Close())
}

// BenchmarkPutNodes applies a batch of 200,000 nodes, all of them new, or one in 65 known: that
// makes as many short runs of new ones as a batch of this length can have.
func BenchmarkPutNodes(b *testing.B) {
	const batch = 200_000
	s, err := Open(filepath.Join(b.TempDir(), "flash.db"), &Options{NoSync: true})
	require.NoError(b, err)
	loadNodes(b, s, 10_000, 4, 10_000)
	for _, every := range []int{batch, 65} {
		b.Run(fmt.Sprintf("runs=%d", batch/every), func(b *testing.B) {
			puts := make(PutNodes, batch)
			next := uint32(10_000)
			for i := range puts {
				puts[i] = PutNode{UID: 1, ID: next, Key: fmt.Sprintf("z%08d", i), Row: make([]float32, 4)}
				if every < batch && i%every == every-1 {
					id := uint32(i / every)
					puts[i].ID, puts[i].Key = id, fmt.Sprintf("node/%08x", id*2654435761)
					continue
				}
				next++
			}
			lsn := s.state.Load().lsn + 1
			for b.Loop() {
				require.NoError(b, s.Begin().Apply(puts, lsn))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/node")
		})
	}
	require.NoError(b, s.Close())
}
