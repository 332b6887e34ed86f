package storage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/storage"
)

// TestPinStaysAsItWas: whatever is written, flushed, published, released and compacted, each of
// several pins shows what there was when it was made.
func TestPinStaysAsItWas(t *testing.T) {
	const n = 80
	s := openWith(t, newPath(t), storage.SmallMapping())
	bulk(t, s, n)
	rng := rand.New(rand.NewPCG(3, 4))
	type pinned struct {
		*storage.Pin
		want string
		rows []float32
	}
	var pins []pinned
	next, lsn := uint32(n), uint64(2)
	live := rng.Perm(n)
	releases := 0
	write := func() {
		var ops []storage.Op
		for range 4 {
			row := make([]float32, compactDim)
			row[0] = float32(lsn)
			gone := live[0]
			live = append(live[1:], int(next))
			ops = append(ops,
				storage.PutNode{UID: 1, ID: next, Key: fmt.Sprintf("new%d", next), Row: row, Tags: []string{"new"}, Payload: make([]byte, 20_000)},
				storage.DeleteNode{UID: 1, ID: uint32(gone)},
				storage.Link{UID: 1, Source: next, Targets: []uint32{next - 1}})
			next++
		}
		commit(t, s, lsn, append(ops, storage.PutDecoder{UID: 1, Name: "d", Blob: fmt.Append(nil, lsn)})...)
		lsn++
	}
	steps := []func(){
		write, write, write,
		func() { flush(t, s) },
		func() {
			flush(t, s)
			require.NoError(t, s.PublishGeneration(1, lsn, s.Applied()))
		},
		func() {
			flush(t, s)
			releases++
			name := fmt.Sprintf("r%d", releases)
			require.NoError(t, s.StageRelease(name, []uint32{1}, when))
			require.NoError(t, s.PutStagedRows(name, 1, []storage.IDRow{{ID: next - 1, Row: make([]float32, compactDim)}}))
			require.NoError(t, s.PublishRelease(name, when))
			require.NoError(t, s.Purge())
			require.NoError(t, s.Forget())
		},
	}
	if runtime.GOOS != "windows" {
		steps = append(steps, func() {
			flush(t, s)
			_, _, err := s.Compact(context.Background(), nil, nil)
			require.NoError(t, err)
		})
	}
	for range 40 {
		if p, err := s.Pin(); assert.NoError(t, err) && len(pins) < 6 {
			pins = append(pins, pinned{Pin: p, want: dump(t, s), rows: flushedRows(t, p)})
		} else {
			require.NoError(t, p.Close())
		}
		steps[rng.IntN(len(steps))]()
		if i := rng.IntN(len(pins)); rng.IntN(8) == 0 {
			require.NoError(t, pins[i].Close())
			assert.ErrorIs(t, pins[i].View(nil), storage.ErrClosed)
			assert.ErrorIs(t, pins[i].Close(), storage.ErrClosed)
			pins = append(pins[:i], pins[i+1:]...)
		}
		for _, p := range pins {
			require.Equal(t, p.want, dump(t, p))
		}
	}
	for _, p := range pins {
		assert.Equal(t, p.rows, flushedRows(t, p.Pin))
		require.NoError(t, p.Close())
	}
	assertClean(t, s)
}

// flushedRows returns the first values of the rows that a pin streams, and their ids.
func flushedRows(t *testing.T, p *storage.Pin) (all []float32) {
	t.Helper()
	err := p.Rows(context.Background(), 1, 0, func(ids []uint32, rows []float32) error {
		for i, id := range ids {
			all = append(all, float32(id), rows[i*compactDim])
		}
		return nil
	})
	require.NoError(t, err)
	return all
}

// TestPinStopsNobody: a file that is mapped anew, as it has grown, does not wait for a pin.
func TestPinStopsNobody(t *testing.T) {
	s := openWith(t, newPath(t), storage.SmallMapping())
	bulk(t, s, 100)
	p, err := s.Pin()
	require.NoError(t, err)
	want := dump(t, p)
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				assert.NoError(t, p.View(func(v *storage.View) error {
					_, ok := v.ID(1, "k7")
					assert.True(t, ok)
					return nil
				}))
				assert.NoError(t, s.View(func(*storage.View) error { return nil }))
			}
		})
	}
	for i := range uint32(200) {
		put := storage.PutNode{UID: 1, ID: 100 + i, Key: fmt.Sprint("new", i), Row: make([]float32, compactDim), Payload: make([]byte, 1<<16)}
		commit(t, s, 2+uint64(i), put, storage.DeleteNode{UID: 1, ID: i + 20})
		flush(t, s)
	}
	close(done)
	readers.Wait()
	assert.Equal(t, want, dump(t, p))
	require.NoError(t, p.Close())
	assertClean(t, s)
}
