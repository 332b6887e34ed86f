package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/format"
)

// seg is a segment to be written by hand.
type seg struct {
	first  LSN
	frames [][]byte
}

func (s seg) bytes() []byte {
	return append(appendHeader(nil, s.first), bytes.Join(s.frames, nil)...)
}

// fr returns a frame. Its payload is as long as the LSN's, so that every frame of small LSNs has 25
// bytes.
func fr(lsn LSN, group uint32) []byte {
	return appendFrame(nil, lsn, group, []byte(fmt.Sprint(lsn)))
}

// flagged returns a frame that has unusual flags and a good checksum.
func flagged(lsn LSN, flags uint32, payload string) []byte {
	f := appendFrame(nil, lsn, 0, []byte(payload))
	binary.LittleEndian.PutUint32(f[16:], flags)
	binary.LittleEndian.PutUint32(f, format.CRC(f[4:]))
	return f
}

// flip returns a copy of a frame with one bit of the given byte changed.
func flip(frame []byte, at int) []byte {
	frame = bytes.Clone(frame)
	frame[at] ^= 0x10
	return frame
}

const small = frameSize + 1 // bytes of a frame made by fr with a one-digit LSN

func TestFrameSequences(t *testing.T) {
	const (
		atCRC     = 0
		atLength  = 6 // makes the frame longer than the file
		atLSN     = 8
		atPayload = frameSize
	)
	tests := []struct {
		name     string
		segments []seg
		want     string // records that Replay gives
		torn     int64  // where Open cuts the last segment; 0: nowhere
		corrupt  int64  // offset of the damage; 0: the log opens
		file     LSN    // segment of the damage
		replay   bool   // the damage is found by Replay, not by Open
	}{
		{name: "no segment"},
		{name: "no frame", segments: []seg{{first: 1}}},
		{name: "no frame, later", segments: []seg{{first: 7}}},
		{name: "groups", segments: []seg{{1, [][]byte{fr(1, 0), fr(2, 0), fr(3, 1), fr(4, 0)}}}, want: "1 2 3 4"},
		{name: "segments", segments: []seg{{1, [][]byte{fr(1, 0), fr(2, 1)}}, {3, [][]byte{fr(3, 0)}}}, want: "1 2 3"},
		{name: "older segments dropped", segments: []seg{{5, [][]byte{fr(5, 0)}}, {6, [][]byte{fr(6, 0)}}}, want: "5 6"},
		{name: "last segment empty", segments: []seg{{1, [][]byte{fr(1, 0)}}, {2, nil}}, want: "1"},

		{name: "torn: first frame", segments: []seg{{1, [][]byte{flip(fr(1, 0), atPayload)}}}, torn: headerSize},
		{name: "torn: last frame", segments: []seg{{1, [][]byte{fr(1, 0), flip(fr(2, 0), atPayload)}}}, want: "1", torn: headerSize + small},
		{name: "torn: last frame, its checksum", segments: []seg{{1, [][]byte{fr(1, 0), flip(fr(2, 0), atCRC)}}}, want: "1", torn: headerSize + small},
		{name: "torn: last frame, its length", segments: []seg{{1, [][]byte{fr(1, 0), flip(fr(2, 0), atLength)}}}, want: "1", torn: headerSize + small},
		{name: "torn: zeros", segments: []seg{{1, [][]byte{fr(1, 0), make([]byte, 4096)}}}, want: "1", torn: headerSize + small},
		{name: "torn: a few bytes", segments: []seg{{1, [][]byte{fr(1, 0), {1, 2, 3}}}}, want: "1", torn: headerSize + small},
		{name: "torn: first of a group, the rest is whole", segments: []seg{{1, [][]byte{fr(1, 0), flip(fr(2, 0), atPayload), fr(3, 1), fr(4, 2)}}}, want: "1", torn: headerSize + small},
		{name: "torn: middle of a group", segments: []seg{{1, [][]byte{fr(1, 0), flip(fr(2, 1), atPayload), fr(3, 2)}}}, want: "1", torn: headerSize + small},
		{name: "torn: several frames", segments: []seg{{1, [][]byte{fr(1, 0), flip(fr(2, 0), atLSN), flip(fr(3, 1), atLSN)}}}, want: "1", torn: headerSize + small},
		{name: "torn: second segment", segments: []seg{{1, [][]byte{fr(1, 0)}}, {2, [][]byte{fr(2, 0), fr(3, 0)[:9]}}}, want: "1 2", torn: headerSize + small},
		{name: "torn: a record that holds an old frame", segments: []seg{{1, [][]byte{fr(1, 0), fr(2, 0), flip(appendFrame(nil, 3, 0, fr(2, 0)), atCRC)}}}, want: "1 2", torn: headerSize + 2*small},

		{name: "bad frame, later group", segments: []seg{{1, [][]byte{fr(1, 0), flip(fr(2, 0), atPayload), fr(3, 0)}}}, corrupt: headerSize + small, file: 1},
		{name: "bad length, later group", segments: []seg{{1, [][]byte{fr(1, 0), flip(fr(2, 0), atLength), fr(3, 0)}}}, corrupt: headerSize + small, file: 1},
		{name: "bad first frame, later group", segments: []seg{{1, [][]byte{flip(fr(1, 0), atCRC), fr(2, 0)}}}, corrupt: headerSize, file: 1},
		{name: "bad frame, later group behind its own", segments: []seg{{1, [][]byte{flip(fr(1, 0), atCRC), fr(2, 1), fr(3, 0)}}}, corrupt: headerSize, file: 1},
		{name: "two bad frames, later group", segments: []seg{{1, [][]byte{flip(fr(1, 0), atCRC), flip(fr(2, 0), atCRC), fr(3, 0)}}}, corrupt: headerSize, file: 1},
		{name: "zeros in the middle", segments: []seg{{1, [][]byte{fr(1, 0), make([]byte, small), fr(3, 0)}}}, corrupt: headerSize + small, file: 1},
		{name: "bytes lost in the middle", segments: []seg{{1, [][]byte{fr(1, 0), fr(2, 0)[:5], fr(3, 0)}}}, corrupt: headerSize + small, file: 1},
		{name: "bad frame, far from a later group", segments: []seg{{1, [][]byte{flip(fr(1, 0), atCRC), appendFrame(nil, 2, 1, noise(300_000)), fr(3, 0)}}}, corrupt: headerSize, file: 1},
		{name: "earlier segment torn", segments: []seg{{1, [][]byte{fr(1, 0), fr(2, 0)[:9]}}, {3, nil}}, corrupt: headerSize + small, file: 1},
		{name: "earlier segment bad", segments: []seg{{1, [][]byte{flip(fr(1, 0), atLSN)}}, {2, [][]byte{fr(2, 0)}}}, corrupt: headerSize, file: 1},
		{name: "earlier segment bad, last torn", segments: []seg{{1, [][]byte{flip(fr(1, 0), atLSN)}}, {2, [][]byte{{0}}}}, corrupt: headerSize, file: 1},
		{name: "LSN skipped", segments: []seg{{1, [][]byte{fr(1, 0), fr(3, 0)}}}, corrupt: headerSize + small, file: 1},
		{name: "LSN repeated", segments: []seg{{1, [][]byte{fr(1, 0), fr(1, 0)}}}, corrupt: headerSize + small, file: 1},
		{name: "first LSN wrong", segments: []seg{{1, [][]byte{fr(2, 0)}}}, corrupt: headerSize, file: 1},
		{name: "group without a beginning", segments: []seg{{1, [][]byte{fr(1, 1)}}}, corrupt: headerSize, file: 1},
		{name: "group skips", segments: []seg{{1, [][]byte{fr(1, 0), fr(2, 2)}}}, corrupt: headerSize + small, file: 1},
		{name: "unknown flag", segments: []seg{{1, [][]byte{flagged(1, 4, "x")}}}, corrupt: headerSize, file: 1},
		{name: "no S2 block", segments: []seg{{1, [][]byte{fr(1, 0), flagged(2, flagS2, "\xff")}}}, corrupt: headerSize + small, file: 1, replay: true},
		{name: "segment missing", segments: []seg{{1, [][]byte{fr(1, 0)}}, {3, [][]byte{fr(3, 0)}}}, corrupt: -1, file: 3},
		{name: "segment missing before an empty one", segments: []seg{{1, [][]byte{fr(1, 0)}}, {3, nil}}, corrupt: -1, file: 3},
		{name: "segments overlap", segments: []seg{{1, [][]byte{fr(1, 0), fr(2, 0)}}, {2, [][]byte{fr(2, 0)}}}, corrupt: -1, file: 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := newDir(t)
			require.NoError(t, fsys.MkdirAll(dir))
			for _, s := range tt.segments {
				write(t, fsys, segmentPath(s.first), s.bytes())
			}
			before := snapshot(t, fsys)
			checked := Check(fsys, dir)
			assert.Equal(t, before, snapshot(t, fsys), "Check changes nothing")

			l, err := Open(fsys, dir, nil)
			if tt.corrupt != 0 {
				if tt.replay {
					require.NoError(t, err)
					err = l.Replay(0, func(LSN, []byte) error { return nil })
					require.NoError(t, l.Close())
				}
				offset := max(tt.corrupt, 0)
				requireCorrupt(t, err, segmentPath(tt.file), offset)
				requireCorrupt(t, checked, segmentPath(tt.file), offset)
				assert.Equal(t, before, snapshot(t, fsys), "nothing is changed")
				return
			}
			require.NoError(t, err)
			defer l.Close()
			require.NoError(t, checked, "a torn write is no finding")
			if tt.torn == 0 {
				assert.Nil(t, l.Torn())
				assert.Equal(t, before, snapshot(t, fsys))
			} else {
				last := tt.segments[len(tt.segments)-1]
				require.NotNil(t, l.Torn())
				assert.Equal(t, tt.torn, l.Torn().Offset)
				assert.Equal(t, segmentPath(last.first), l.Torn().File)
				assert.Equal(t, int64(len(last.bytes()))-tt.torn, l.Torn().Bytes)
				assert.Error(t, l.Torn().Cause)
				assert.Len(t, content(t, fsys, segmentPath(last.first)), int(tt.torn))
			}
			after := LSN(0)
			if len(tt.segments) > 0 {
				after = tt.segments[0].first - 1
			}
			want := []string{}
			for _, lsn := range strings.Fields(tt.want) {
				want = append(want, lsn+":"+lsn)
			}
			assert.Equal(t, want, replayed(t, l, after))

			next := l.Durable() + 1
			assert.Equal(t, next, mustDo(t, l, "next"))
			require.NoError(t, l.Close())
			again, err := Open(fsys, dir, nil)
			require.NoError(t, err)
			assert.Nil(t, again.Torn(), "what was cut off is gone")
			assert.Equal(t, next, again.Durable())
			require.NoError(t, again.Close())
		})
	}
}
