package wal

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/vfs"
)

// tiny makes every group fill a segment.
var tiny = &Options{SegmentBytes: 1}

func TestSegmentsAreFilledByWholeGroups(t *testing.T) {
	fsys := newDir(t)
	l := mustOpen(t, fsys, tiny)
	assert.Empty(t, segmentNames(t, fsys), "made when needed")
	mustDo(t, l, "1")
	for _, err := range doGroup(l, record("2"), record("3"), record("4")) {
		require.NoError(t, err)
	}
	mustDo(t, l, "5")
	assert.Equal(t, []LSN{1, 2, 5}, segmentNames(t, fsys))
	require.NoError(t, l.Close())
	l = mustOpen(t, fsys, tiny)
	assert.Equal(t, []string{"1:1", "2:2", "3:3", "4:4", "5:5"}, replayed(t, l, 0))
	assert.Equal(t, []string{"4:4", "5:5"}, replayed(t, l, 3))
}

func TestSegmentGrowsToItsSize(t *testing.T) {
	fsys := newDir(t)
	l := mustOpen(t, fsys, &Options{SegmentBytes: headerSize + 2*small})
	for i := range 5 {
		mustDo(t, l, fmt.Sprint(i))
	}
	assert.Equal(t, []LSN{1, 3, 5}, segmentNames(t, fsys))
}

func TestDrop(t *testing.T) {
	tests := []struct {
		name string
		upTo LSN
		want []LSN // segments left
	}{
		{"nothing", 0, []LSN{1, 2, 5}},
		{"first", 1, []LSN{2, 5}},
		{"not a part of a segment", 3, []LSN{2, 5}},
		{"all but the active one", 4, []LSN{5}},
		{"all, and a new one begins", 5, []LSN{6}},
		{"more than there is", 99, []LSN{6}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := newDir(t)
			l := mustOpen(t, fsys, tiny)
			mustDo(t, l, "1")
			doGroup(l, record("2"), record("3"), record("4"))
			mustDo(t, l, "5")
			all := replayed(t, l, 0)
			require.NoError(t, l.Drop(tt.upTo))
			require.NoError(t, l.Drop(tt.upTo), "again")
			assert.Equal(t, tt.want, segmentNames(t, fsys))
			kept := min(tt.upTo, 5)
			assert.Equal(t, all[kept:], replayed(t, l, kept))
			require.NoError(t, l.Close())

			l = mustOpen(t, fsys, tiny)
			assert.Equal(t, LSN(5), l.Durable(), "numbers go on")
			assert.Equal(t, all[kept:], replayed(t, l, kept))
			assert.Equal(t, LSN(6), mustDo(t, l, "6"))
		})
	}
}

func TestDropOnAnEmptyLog(t *testing.T) {
	fsys := newDir(t)
	l := mustOpen(t, fsys, nil)
	require.NoError(t, l.Drop(5))
	assert.Empty(t, segmentNames(t, fsys))
	mustDo(t, l, "1")
	require.NoError(t, l.Drop(1))
	assert.Equal(t, []LSN{2}, segmentNames(t, fsys))
	require.NoError(t, l.Drop(1))
	assert.Equal(t, []LSN{2}, segmentNames(t, fsys), "an empty segment is not replaced")
}

func TestReplayMissesDroppedRecords(t *testing.T) {
	l := mustOpen(t, newDir(t), tiny)
	mustDo(t, l, "1")
	mustDo(t, l, "2")
	require.NoError(t, l.Drop(1))
	err := l.Replay(0, func(LSN, []byte) error { return nil })
	requireCorrupt(t, err, segmentPath(2), 0)
	assert.ErrorContains(t, err, "records 1 to 1 are missing")
	assert.Equal(t, []string{"2:2"}, replayed(t, l, 1))
}

func TestSetNext(t *testing.T) {
	fsys := newDir(t)
	l := mustOpen(t, fsys, tiny)
	l.SetNext(0)
	l.SetNext(10)
	assert.Equal(t, LSN(10), l.Durable())
	assert.Empty(t, replayed(t, l, 10))
	assert.Equal(t, LSN(11), mustDo(t, l, "a"))
	l.SetNext(10)
	l.SetNext(11)
	assert.Equal(t, LSN(12), mustDo(t, l, "b"), "it never goes back")
	assert.Equal(t, []LSN{11, 12}, segmentNames(t, fsys))

	// The store is ahead of what is left of the log: these records are not needed, and a hole would
	// look like a loss.
	l.SetNext(20)
	assert.Equal(t, LSN(20), l.Durable())
	assert.Empty(t, replayed(t, l, 20))
	require.NoError(t, l.Close())
	l = mustOpen(t, fsys, tiny)
	assert.Equal(t, LSN(12), l.Durable(), "nothing was written yet")
	l.SetNext(20)
	assert.Equal(t, LSN(21), mustDo(t, l, "c"))
	assert.Equal(t, []LSN{21}, segmentNames(t, fsys))
	require.NoError(t, l.Close())
	l = mustOpen(t, fsys, tiny)
	assert.Equal(t, []string{"21:c"}, replayed(t, l, 20))
}

func TestSetNextThenDrop(t *testing.T) {
	fsys := newDir(t)
	l := mustOpen(t, fsys, tiny)
	mustDo(t, l, "1")
	mustDo(t, l, "2")
	l.SetNext(20)
	require.NoError(t, l.Drop(20))
	assert.Equal(t, []LSN{21}, segmentNames(t, fsys))
	assert.Equal(t, LSN(21), mustDo(t, l, "x"))
}

func TestOtherFilesAreLeftAlone(t *testing.T) {
	fsys := newDir(t)
	write(t, fsys, filepath.Join(dir, "notes.log"), []byte("mine"))
	write(t, fsys, filepath.Join(dir, segmentName(1)+".bak"), []byte("mine too"))
	l := mustOpen(t, fsys, tiny)
	mustDo(t, l, "1")
	mustDo(t, l, "2")
	require.NoError(t, l.Drop(2))
	assert.Equal(t, "mine", string(content(t, fsys, filepath.Join(dir, "notes.log"))))
	assert.Len(t, snapshot(t, fsys), 3)
}

func TestCheckNeedsTheDirectory(t *testing.T) {
	assert.Error(t, Check(newDir(t), dir))
	assert.NoError(t, newDir(t).MkdirAll(dir))
}

// TestReadErrorsAreNotCorruption checks that Open cuts nothing off if the disk cannot be read.
func TestReadErrorsAreNotCorruption(t *testing.T) {
	fsys := newDir(t)
	l := mustOpen(t, fsys, nil)
	mustDo(t, l, "1")
	mustDo(t, l, "2")
	require.NoError(t, l.Close())
	before := snapshot(t, fsys)
	broken := errors.New("I/O error")
	reads := 0
	for n := int64(1); ; n++ {
		failed := false
		faulty := vfs.Faulty(fsys, vfs.FailNth(n, broken, func(op vfs.Op) bool { return op.Kind == vfs.OpRead }))
		l, err := Open(faulty, dir, nil)
		if err == nil {
			err = l.Replay(0, func(LSN, []byte) error { return nil })
			require.NoError(t, l.Close())
		}
		if failed = err != nil; !failed {
			break
		}
		reads++
		assert.ErrorIs(t, err, broken)
		assert.Equal(t, before, snapshot(t, fsys))
		assert.ErrorIs(t, Check(vfs.Faulty(fsys, vfs.FailNth(n, broken, func(op vfs.Op) bool { return op.Kind == vfs.OpRead })), dir), broken)
	}
	assert.GreaterOrEqual(t, reads, 4, "header and frames, by Open and by Replay")
}

func TestSegmentCutWhileOpen(t *testing.T) {
	fsys := newDir(t)
	l := mustOpen(t, fsys, nil)
	mustDo(t, l, "1")
	write(t, fsys, segmentPath(1), content(t, fsys, segmentPath(1))[:headerSize+3])
	err := l.Replay(0, func(LSN, []byte) error { return nil })
	requireCorrupt(t, err, segmentPath(1), headerSize+3)
}
