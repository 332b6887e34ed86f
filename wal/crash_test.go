package wal

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/vfs"
)

var seedFlag = flag.Uint64("seed", 0, "run the random histories with this seed only")

// history is a random run of a log on a disk that loses power, beside the list of what must be in
// it.
type history struct {
	t       *testing.T
	rng     *rand.Rand
	opt     *Options
	mem     *vfs.Mem
	log     *Log
	acked   []string // payload of LSN i+1: acknowledged, must survive
	pending []string // payloads of the group under way, which follow: may survive, but each whole and in order
	applied LSN      // records up to here are in the imagined store, and may be dropped
	crashes int
	alive   int // changes until the process is killed
}

var errKilled = errors.New("killed")

// TestCrashAnywhere crashes random histories before every operation that changes the disk, checks
// what is left, and sometimes continues from there.
func TestCrashAnywhere(t *testing.T) {
	seeds := []uint64{*seedFlag}
	if *seedFlag == 0 {
		seeds = nil
		for range 60 {
			seeds = append(seeds, rand.Uint64())
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			h := &history{t: t, rng: rand.New(rand.NewPCG(seed, 0)), mem: newDir(t)}
			h.opt = &Options{SegmentBytes: []int64{1, 200, 2000, 1 << 20}[h.rng.IntN(4)]}
			h.reopen()
			for range 25 {
				h.step()
			}
			require.NoError(t, h.log.Close())
			h.verify(h.mem)
			require.Positive(t, h.crashes)
			attempts.Count(t, h.crashes, "states of the disk")
		})
	}
}

func (h *history) step() {
	switch h.rng.IntN(10) {
	case 0:
		require.NoError(h.t, h.log.Close())
		h.reopen()
	case 1, 2:
		h.applied += LSN(h.rng.Uint64N(uint64(len(h.acked)) - uint64(h.applied) + 1))
		require.NoError(h.t, h.log.Drop(h.applied))
	case 3:
		h.applied = LSN(len(h.acked))
		require.NoError(h.t, h.log.Drop(h.applied))
	case 4, 5:
		h.end()
	default:
		require.NoError(h.t, h.group())
	}
	h.lose()
}

// group logs a few writes of all sizes as one group.
func (h *history) group() error {
	var writes []Write
	for range 1 + h.rng.IntN(5) {
		payload := h.payload()
		writes = append(writes, record(payload))
		h.pending = append(h.pending, payload)
	}
	if err := errors.Join(doGroup(h.log, writes...)...); err != nil {
		return err
	}
	h.acked, h.pending = append(h.acked, h.pending...), nil
	return nil
}

func (h *history) payload() string {
	id := fmt.Sprintf("%d-%d.", len(h.acked)+len(h.pending)+1, h.rng.IntN(1000))
	switch h.rng.IntN(8) {
	case 0:
		return ""
	case 1:
		return strings.Repeat(id, h.rng.IntN(300)) // compresses
	case 2:
		return id + string(noise(h.rng.IntN(6000)))
	default:
		return id
	}
}

// disk returns the file system that the log under test sees. It crashes a clone before every
// change.
func (h *history) disk() vfs.FS {
	return vfs.Faulty(h.mem, func(op vfs.Op) error {
		if !op.Kind.Changes() {
			return nil
		}
		if h.alive--; h.alive < 0 {
			return errKilled
		}
		h.lose()
		return nil
	})
}

// lose looks at what a crash at this moment could leave.
func (h *history) lose() {
	h.crashes++
	h.verify(h.mem.CrashClone(h.rng))
}

// end lets the process be killed, by itself or with the power, at a random operation of a random
// step.
func (h *history) end() {
	h.alive = h.rng.IntN(8)
	if h.rng.IntN(3) == 0 {
		h.applied = LSN(len(h.acked))
		_ = h.log.Drop(h.applied)
	} else {
		_ = h.group()
	}
	if h.rng.IntN(2) == 0 {
		h.mem = h.mem.CrashClone(h.rng)
	}
	h.reopen()
}

// reopen opens the log on h.mem. What is found there beyond what was acknowledged is part of the
// history from now on.
func (h *history) reopen() {
	h.alive = math.MaxInt
	l, err := Open(h.disk(), dir, h.opt)
	require.NoError(h.t, err)
	h.acked = append(h.acked, h.check(l)...)
	h.pending = nil
	h.log = l
}

// check compares what is in l with the history, and returns the pending records that survived.
func (h *history) check(l *Log) (survived []string) {
	l.SetNext(h.applied)
	next := h.applied
	require.NoError(h.t, l.Replay(h.applied, func(lsn LSN, payload []byte) error {
		next++
		require.Equal(h.t, next, lsn, "order and numbers")
		i := int(lsn) - 1
		if i < len(h.acked) {
			require.Equal(h.t, h.acked[i], string(payload), "record %d", lsn)
			return nil
		}
		i -= len(h.acked)
		require.Less(h.t, i, len(h.pending), "record %d was never written", lsn)
		require.Equal(h.t, h.pending[i], string(payload), "record %d, not acknowledged", lsn)
		survived = append(survived, string(payload))
		return nil
	}))
	require.GreaterOrEqual(h.t, int(next), len(h.acked), "acknowledged records are gone")
	require.Equal(h.t, next, l.Durable())
	return survived
}

// verify opens a copy of the log and compares it with the history; then the copy must take another
// record.
func (h *history) verify(mem *vfs.Mem) {
	l, err := Open(mem, dir, h.opt)
	require.NoError(h.t, err)
	h.check(l)
	require.NoError(h.t, Check(mem, dir))
	lsn := mustDo(h.t, l, "afterwards")
	require.NoError(h.t, l.Close())

	l, err = Open(mem.CrashClone(h.rng), dir, h.opt)
	require.NoError(h.t, err)
	require.Nil(h.t, l.Torn())
	require.Equal(h.t, lsn, l.Durable())
	require.NoError(h.t, l.Close())
}
