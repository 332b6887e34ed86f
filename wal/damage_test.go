package wal

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/format"
)

// smallLog writes a log of the given groups of records into one segment, and returns the segment
// and the offset where each record's frame ends; ends[0] is the end of the header.
func smallLog(t *testing.T, groups [][]string) (data []byte, ends []int) {
	fsys := newDir(t)
	l := mustOpen(t, fsys, nil)
	ends = []int{headerSize}
	for _, group := range groups {
		var writes []Write
		for _, payload := range group {
			writes = append(writes, record(payload))
		}
		for _, err := range doGroup(l, writes...) {
			require.NoError(t, err)
		}
	}
	data = content(t, fsys, segmentPath(1))
	for off := headerSize; off < len(data); {
		off += frameSize + int(parseFrame(data[off:]).length)
		ends = append(ends, off)
	}
	return data, ends
}

// small: a group of one, a group of three, an empty record and a compressed one.
var smallGroups = [][]string{{"one"}, {"two", "three", "four"}, {""}, {string(bytes.Repeat([]byte("six "), 30))}}

func TestTruncationAtEveryByte(t *testing.T) {
	data, ends := smallLog(t, smallGroups)
	for cut := range len(data) + 1 {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			whole := -1 // records that are whole; -1: not even the header
			for _, end := range ends {
				if end <= cut {
					whole++
				}
			}
			fsys := newDir(t)
			write(t, fsys, segmentPath(1), data[:cut])
			require.NoError(t, Check(fsys, dir))
			l := mustOpen(t, fsys, nil)
			switch {
			case whole < 0:
				require.NotNil(t, l.Torn())
				assert.Equal(t, int64(0), l.Torn().Offset)
				assert.Equal(t, int64(cut), l.Torn().Bytes)
				assert.Empty(t, segmentNames(t, fsys))
			case ends[whole] < cut:
				require.NotNil(t, l.Torn())
				assert.Equal(t, int64(ends[whole]), l.Torn().Offset)
				assert.Equal(t, int64(cut-ends[whole]), l.Torn().Bytes)
				assert.Equal(t, data[:ends[whole]], content(t, fsys, segmentPath(1)))
			default:
				assert.Nil(t, l.Torn())
			}
			whole = max(whole, 0)
			assert.Equal(t, LSN(whole), l.Durable())
			assert.Len(t, replayed(t, l, 0), whole)
			assert.Equal(t, LSN(whole+1), mustDo(t, l, "next"))
			require.NoError(t, l.Close())

			// The same cut in a segment that is not the last is no torn write, unless nothing is
			// missing.
			fsys = newDir(t)
			write(t, fsys, segmentPath(1), data[:cut])
			write(t, fsys, segmentPath(LSN(len(ends))), appendHeader(nil, LSN(len(ends))))
			_, err := Open(fsys, dir, nil)
			if cut == len(data) {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, format.ErrCorrupt)
			}
		})
	}
	attempts.Count(t, len(data)+1, "cuts")
}

// TestDamageAtEveryByte flips every byte of a log. Only damage to the last group may be taken for a
// torn write, and no damage may go unnoticed.
func TestDamageAtEveryByte(t *testing.T) {
	data, ends := smallLog(t, smallGroups)
	lastGroup := ends[len(ends)-2]
	for at := range data {
		for _, mask := range []byte{0x01, 0x80, 0xff} {
			damaged := bytes.Clone(data)
			damaged[at] ^= mask
			fsys := newDir(t)
			write(t, fsys, segmentPath(1), damaged)
			l, err := Open(fsys, dir, nil)
			if at < lastGroup {
				require.ErrorIs(t, err, format.ErrCorrupt, "byte %d ^ %#x", at, mask)
				require.ErrorIs(t, Check(fsys, dir), format.ErrCorrupt, "byte %d ^ %#x", at, mask)
				require.Equal(t, damaged, content(t, fsys, segmentPath(1)), "nothing is changed")
				continue
			}
			require.NoError(t, err, "byte %d ^ %#x", at, mask)
			require.NotNil(t, l.Torn(), "byte %d ^ %#x", at, mask)
			require.Equal(t, int64(lastGroup), l.Torn().Offset)
			require.NoError(t, l.Close())
		}
	}
	attempts.Count(t, 3*len(data), "bytes damaged")
}

// TestLookalikes fills a tail with bytes that look like ever more overlapping frames: Open must
// neither take long over them nor take them for a torn write.
func TestLookalikes(t *testing.T) {
	data := appendHeader(nil, 1)
	tail := make([]byte, 400_000)
	for i := 0; i+frameSize <= len(tail); i += frameSize {
		f := appendFrame(nil, LSN(2+i/frameSize), 0, nil)
		f[4], f[5], f[6] = 0, 0, 2 // 128 KiB of payload
		copy(tail[i:], f)
	}
	fsys := newDir(t)
	write(t, fsys, segmentPath(1), append(data, tail...))
	_, err := Open(fsys, dir, nil)
	requireCorrupt(t, err, segmentPath(1), headerSize)
	assert.ErrorContains(t, err, "too much after it")
}
