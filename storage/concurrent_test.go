package storage_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/storage"
)

// The nodes of the concurrent test: all are put anew by every change n, with n in row and payload.
// "moving" is deleted and inserted again by each, so that its id is ever another one.
const (
	steadyNodes = 12
	moving      = "moving"
)

// stepOps returns what change n does, after it was done n-1 times.
func stepOps(n int, movingID uint32) []storage.Op {
	put := func(id uint32, key string) storage.PutNode {
		return storage.PutNode{
			UID: 1, ID: id, Key: key, Row: []float32{float32(n), float32(id)},
			Tags: []string{"all", fmt.Sprintf("mod%d", n%3)}, Payload: fmt.Append(nil, n),
		}
	}
	var ops []storage.Op
	if n == 1 {
		ops = append(ops, storage.CreateCollection{UID: 1, Name: "c", Schema: storage.Schema{Dim: 2}})
	} else {
		ops = append(ops, storage.DeleteNode{UID: 1, ID: movingID})
	}
	for id := range uint32(steadyNodes) {
		ops = append(ops, put(id, fmt.Sprintf("steady%d", id)))
	}
	ops = append(ops, put(uint32(steadyNodes+n-1), moving), storage.SetMeta{UID: 1, Name: "n", Value: fmt.Sprint(n)})
	return append(ops, storage.Unlink{UID: 1, Source: 0, Targets: []uint32{movingID}}, storage.Link{UID: 1, Source: 0, Targets: []uint32{uint32(steadyNodes + n - 1)}})
}

// checkStep requires that v shows the state after one change, all of it, and returns its number.
func checkStep(v *storage.View) (int, error) {
	var n int
	value, _ := v.Meta(1, "n")
	if _, err := fmt.Sscan(value, &n); err != nil {
		return 0, fmt.Errorf("meta %q: %w", value, err)
	}
	id, ok := v.ID(1, moving)
	if want := uint32(steadyNodes + n - 1); !ok || id != want {
		return n, fmt.Errorf("change %d: moving has id %d, want %d", n, id, want)
	}
	ids := []uint32{id}
	for id := range uint32(steadyNodes) {
		ids = append(ids, id)
	}
	row := make([]float32, 2)
	for _, id := range ids {
		node, ok := v.Node(1, id)
		if !ok || string(node.Payload) != value || !v.Row(row, 1, id) || row[0] != float32(n) || row[1] != float32(id) {
			return n, fmt.Errorf("change %d: node %d: %v %q, row %v", n, id, ok, node.Payload, row)
		}
	}
	if links := v.Links(1, 0, 1); links == nil || links.GetCardinality() != 1 || !links.Contains(id) {
		return n, fmt.Errorf("change %d: node 0 is linked to %v", n, links)
	}
	for mod := range 3 {
		var want uint64
		if mod == n%3 {
			want = steadyNodes + 1
		}
		if got := v.Tags(1)[fmt.Sprintf("mod%d", mod)]; got != want {
			return n, fmt.Errorf("change %d: %d nodes carry mod%d, want %d", n, got, mod, want)
		}
	}
	info, _ := v.Collection("c")
	tombs := v.Tombs(1)
	if info.Count != steadyNodes+1 || info.NextID != id+1 || (n > 1 && tombs.GetCardinality() != uint64(n-1)) {
		return n, fmt.Errorf("change %d: %+v, tombs %v", n, info, tombs)
	}
	return n, nil
}

// TestReadersSeeSnapshots lets readers, a writer, a flusher and a publisher of generations run into
// each other. Every View must show the state after one change, at least the last one acknowledged
// before it began, until it ends.
func TestReadersSeeSnapshots(t *testing.T) {
	const changes, readers = 150, 3
	s := open(t, newPath(t))
	var acknowledged atomic.Int64
	write := func(n int) {
		stage(t, s, uint64(n), stepOps(n, uint32(steadyNodes+n-2))...)
		if n%3 != 0 || n == changes { // sometimes two changes are published at once
			s.Publish()
			acknowledged.Store(int64(n))
		}
	}
	write(1)
	done := make(chan struct{})
	var wg sync.WaitGroup
	loop := func(fn func() error) {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := fn(); !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	for range readers {
		last := 0
		loop(func() error {
			least := int(acknowledged.Load())
			return s.View(func(v *storage.View) error {
				n, err := checkStep(v)
				if err == nil && (n < least || n < last) {
					err = fmt.Errorf("change %d is shown after %d was acknowledged and %d seen", n, least, last)
				}
				last = n
				if again, err := checkStep(v); err != nil || again != n {
					return fmt.Errorf("first change %d, then %d, %w", n, again, err)
				}
				return err
			})
		})
	}
	loop(func() error {
		_, err := s.Flush()
		return err
	})
	loop(func() error { return publishAndStream(t, s) })
	for n := 2; n <= changes; n++ {
		write(n)
	}
	close(done)
	wg.Wait()
	flush(t, s)
	require.NoError(t, s.View(func(v *storage.View) error {
		n, err := checkStep(v)
		assert.Equal(t, changes, n)
		return err
	}))
}

// publishAndStream publishes what is applied as a generation, and streams rows and dirty ids, which
// must be in order.
func publishAndStream(t *testing.T, s *storage.Store) error {
	if s.Applied() == 0 {
		return nil
	}
	if err := s.PublishGeneration(1, s.Applied(), s.Applied()); err != nil {
		return err
	}
	next := uint32(0)
	err := s.Dirty(1, func(id uint32, _ uint64) error {
		if id < next {
			return fmt.Errorf("dirty id %d comes late", id)
		}
		next = id + 1
		return nil
	})
	if err != nil {
		return err
	}
	return s.Rows(t.Context(), 1, 0, func(ids []uint32, rows []float32) error {
		for i, id := range ids {
			if rows[2*i+1] != float32(id) {
				return fmt.Errorf("id %d has row %v", id, rows[2*i:2*i+2])
			}
		}
		return nil
	})
}
