package wal

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/format"
)

// openHostile opens a log of one segment with any bytes. It must fail with a located error, or give
// a log that works.
func openHostile(t *testing.T, data []byte) {
	fsys := newDir(t)
	write(t, fsys, segmentPath(1), data)
	checked := Check(fsys, dir)
	l, err := Open(fsys, dir, nil)
	if err != nil {
		require.Error(t, checked)
		require.True(t, errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrVersion), "%v", err)
		require.Equal(t, len(data), len(content(t, fsys, segmentPath(1))), "nothing is changed")
		return
	}
	var count LSN
	err = l.Replay(0, func(lsn LSN, payload []byte) error {
		count++
		require.Equal(t, count, lsn)
		require.LessOrEqual(t, len(payload), maxRatio*(len(data)+1))
		return nil
	})
	require.Equal(t, err == nil, checked == nil, "Replay and Check agree")
	if err != nil {
		require.ErrorIs(t, err, format.ErrCorrupt)
	} else {
		require.Equal(t, count, l.Durable())
	}
	lsn := mustDo(t, l, "next")
	require.NoError(t, l.Close())
	l, err = Open(fsys, dir, nil)
	require.NoError(t, err)
	require.Nil(t, l.Torn())
	require.Equal(t, lsn, l.Durable())
	require.NoError(t, l.Close())
}

// FuzzSegment reads any bytes as a segment.
func FuzzSegment(f *testing.F) {
	sound, err := os.ReadFile(frozen)
	require.NoError(f, err)
	f.Add(sound)
	for _, cut := range []int{0, 10, headerSize, headerSize + 5, len(sound) - 1} {
		f.Add(sound[:cut])
	}
	for _, at := range []int{0, 9, 22, 30, 50, 60, len(sound) - 3} {
		f.Add(flip(sound, at))
	}
	f.Add(make([]byte, 100))
	f.Add(header(magic, 2, 1))
	f.Fuzz(func(t *testing.T, data []byte) { openHostile(t, data) })
}

// FuzzFrames reads any frames whose checksums are right, which FuzzSegment would hardly ever find:
// data is cut into the fixed parts and payloads that it describes.
func FuzzFrames(f *testing.F) {
	sound, err := os.ReadFile(frozen)
	require.NoError(f, err)
	f.Add(sound[headerSize:])
	f.Add(fr(1, 0))
	f.Add(append(fr(1, 0), fr(2, 1)...))
	f.Add(append(fr(1, 0), fr(3, 0)...))
	f.Add(flagged(1, flagS2, "\x80\x80\x80\x80\x04"))
	f.Add(flagged(1, 9, "x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		segment := appendHeader(nil, 1)
		for len(data) >= frameSize {
			n := frameSize + int(parseFrame(data).length)
			n = min(n, len(data))
			frame := append([]byte(nil), data[:n]...)
			binary.LittleEndian.PutUint32(frame[4:], uint32(n-frameSize))
			binary.LittleEndian.PutUint32(frame, format.CRC(frame[4:]))
			segment = append(segment, frame...)
			data = data[n:]
		}
		openHostile(t, append(segment, data...))
	})
}
