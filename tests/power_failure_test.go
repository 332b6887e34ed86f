package tests

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/vfs"
)

// A powerFailure is what the disk may hold when the power fails before an operation: of what was
// not synced, a random part.
type powerFailure struct {
	ledger
	before string
	fs     *vfs.Mem
	store  []byte // the bbolt file; nil if there is none
}

// failures takes them during a trial, whose log and index are in memory. The bbolt file is real.
// bbolt writes pages, syncs, writes a header, and syncs; and while it does, the trial does nothing
// else.
type failures struct {
	t       *testing.T
	trial   *trial
	mem     *vfs.Mem
	rng     *rand.Rand
	durable []byte       // the bbolt file as of its last sync
	pending []storeWrite // since
	taken   []powerFailure
}

type storeWrite struct {
	off  int64
	data []byte
}

// headers is where the pages of bbolt begin that are not headers, with pages of the size that
// package storage makes.
const headers = 2 * 8 << 10

func (f *failures) operation(op vfs.Op) error {
	f.pending = nil // all synced: bbolt is at rest
	var err error
	if f.durable, err = os.ReadFile(filepath.Join(f.trial.dir, "flash.db")); err != nil {
		require.ErrorIs(f.t, err, os.ErrNotExist)
	}
	f.take(op.String())
	return nil
}

func (f *failures) write(off int64, b []byte) error {
	header := off < headers
	if header || len(f.pending) > 0 && f.pending[len(f.pending)-1].off < headers {
		for _, w := range f.pending {
			f.durable = w.apply(f.durable)
		}
		f.pending = nil
	}
	f.take(fmt.Sprintf("a write to the bbolt file at %d", off))
	f.pending = append(f.pending, storeWrite{off, append([]byte(nil), b...)})
	if header {
		f.take("the sync of bbolt's header")
	}
	return nil
}

func (w storeWrite) apply(file []byte) []byte {
	if end := int(w.off) + len(w.data); end > len(file) {
		file = append(file, make([]byte, end-len(file))...)
	}
	copy(file[w.off:], w.data)
	return file
}

func (f *failures) take(before string) {
	store := append([]byte(nil), f.durable...)
	const sector = 512
	for _, w := range f.pending {
		for at := 0; at < len(w.data); at += sector {
			if f.rng.IntN(2) == 0 {
				store = storeWrite{w.off + int64(at), w.data[at:min(at+sector, len(w.data))]}.apply(store)
			}
		}
	}
	f.taken = append(f.taken, powerFailure{f.trial.ledger, before, f.mem.CrashClone(f.rng), store})
}

// TestPowerFailure opens what the disk may hold if the power fails before any operation of a run
// that does a bit of everything.
func TestPowerFailure(t *testing.T) {
	const seed = 5
	dir := filepath.Join(t.TempDir(), "test.flash")
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll(dir))
	for d := dir; d != filepath.Dir(d); d = filepath.Dir(d) {
		require.NoError(t, mem.SyncDir(filepath.Dir(d)))
	}
	r := newTrial(t, dir, mem)
	f := &failures{t: t, trial: r, mem: mem, rng: rand.New(rand.NewPCG(seed, 0))}
	r.inject, r.store = f.operation, f.write
	require.NoError(t, r.run())

	taken := some(f.taken)
	for i := range taken {
		p := &taken[i]
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.MkdirAll(dir, 0o700))
		if p.store != nil {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "flash.db"), p.store, 0o600))
		}
		ok := t.Run(fmt.Sprintf("%d before %s", i, filepath.Base(p.before)), func(t *testing.T) { p.verify(t, dir, p.fs) })
		require.True(t, ok, "power failure before %s", p.before)
	}
	attempts.Count(t, len(taken), "states of the disk")
}
