package calibrate_test

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/calibrate"
	"github.com/flashdb/flashdb/internal/format"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// TestFormatIsFrozen holds the bytes of version 1, which must be readable for ever.
func TestFormatIsFrozen(t *testing.T) {
	set := calibrate.Set{sample()}
	blob := set.Marshal()
	path := filepath.Join("testdata", "v1.hex")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(hex.Dump(blob)), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), hex.Dump(blob))
	got, err := calibrate.Unmarshal(blob)
	require.NoError(t, err)
	assert.Equal(t, set, got)
}

func TestUnmarshalRefuses(t *testing.T) {
	good := calibrate.Set{sample()}.Marshal()
	resealed := func(change func(b []byte)) []byte {
		b := append([]byte{}, good[:len(good)-4]...)
		change(b)
		w := format.NewWriter(b)
		w.CRC(0)
		return w.Data()
	}
	for _, tt := range []struct {
		name string
		blob []byte
		is   error
		text string
	}{
		{"nothing", nil, format.ErrCorrupt, "no calibration"},
		{"another blob", []byte("fdec and so on, and on"), format.ErrCorrupt, "no calibration"},
		{"a flipped bit", func() []byte { b := append([]byte{}, good...); b[30] ^= 1; return b }(), format.ErrCorrupt, "checksum"},
		{"cut", good[:len(good)-9], format.ErrCorrupt, "checksum"},
		{"a newer version", resealed(func(b []byte) { b[4] = 9 }), format.ErrVersion, "version 9"},
		{"too many calibrations", resealed(func(b []byte) { b[8] = 100 }), format.ErrCorrupt, "elements"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := calibrate.Unmarshal(tt.blob)
			require.ErrorIs(t, err, tt.is)
			assert.ErrorContains(t, err, tt.text)
		})
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, s := range []calibrate.Set{{}, {sample()}, {sample(), {}}} {
		f.Add(s.Marshal())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4 { // with a checksum that holds, so that what is behind it is met
			w := format.NewWriter(append([]byte{}, b[:len(b)-4]...))
			w.CRC(0)
			b = w.Data()
		}
		set, err := calibrate.Unmarshal(b)
		if err != nil {
			return
		}
		again, err := calibrate.Unmarshal(set.Marshal())
		require.NoError(t, err)
		require.Equal(t, set, again)
	})
}
