package calibrate_test

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/internal/calibrate"
	"github.com/flashdb/flashdb/internal/format"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// grown is a sample with every kind of growth.
func grown() calibrate.Calibration {
	c := sample()
	c.Frontiers[0].Points[0].Plan.Growth = 1
	c.Frontiers[0].Points[1].Plan.Growth = 200
	return c
}

// seeded is grown with a plan and seeds that were learned.
func seeded() calibrate.Calibration {
	c := grown()
	c.Frontiers[1].Points[0].Plan.Seed = flashlight.SeedLearned
	c.Seeds = flashlight.NewSeeds(2, []flashlight.Prototype{
		{ID: 7, Source: []float32{3, 4}, Gradient: []float32{1, -2}},
		{ID: 9, Source: []float32{0, 2}, Gradient: []float32{.5, 8}},
	})
	return c
}

// tailed is seeded with a plan that stops at its tail and has two query vectors.
func tailed() calibrate.Calibration {
	c := seeded()
	c.Frontiers[1].Points[0].Plan.Tail = .03
	c.Frontiers[1].Points[0].Plan.AnchorsFrom = flashlight.AnchorsRoundOnes
	c.Frontiers[1].Points[0].Plan.Seed = flashlight.SeedLearnedOnes
	return c
}

// related is tailed with a plan whose seed is components, and with the relation of lowest recall.
func related() calibrate.Calibration {
	c := tailed()
	c.Frontiers[0].Points[0].Plan.Seed = flashlight.SeedComponents
	c.Frontiers[0].Points[1].Relation, c.Frontiers[0].Points[1].RelationMean = "is part of", .75
	return c
}

// TestFormatIsFrozen compares what is written with stored bytes of the current version.
func TestFormatIsFrozen(t *testing.T) {
	set := calibrate.Set{related(), grown()}
	blob := set.Marshal()
	path := filepath.Join("testdata", "v5.hex")
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

// TestOlderVersionsAreRead reads stored bytes of the older versions. Plans of version 1 had no
// growth, version 2 had no seeds, plans of version 3 no tail, and those of version 4 no relation.
func TestOlderVersionsAreRead(t *testing.T) {
	for name, want := range map[string]calibrate.Set{
		"v1.hex": {sample()}, "v2.hex": {grown()}, "v3.hex": {seeded(), grown()}, "v4.hex": {tailed(), grown()},
	} {
		got, err := calibrate.Unmarshal(dumped(t, name))
		require.NoError(t, err)
		assert.Equal(t, want, got, name)
	}
}

// dumped returns the bytes of which a file is the hex dump.
func dumped(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	var blob []byte
	for line := range strings.Lines(string(text)) {
		const from, to = 10, 58 // the columns of the bytes
		b, err := hex.DecodeString(strings.ReplaceAll(line[from:to], " ", ""))
		require.NoError(t, err)
		blob = append(blob, b...)
	}
	return blob
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
		{"seeds that are none", seedsOf(1, 0, 0), format.ErrCorrupt, "without prototypes"},
		{"seeds of another dim", seedsOf(1, 2, 1), format.ErrCorrupt, "dim 2"},
		{"more seeds than there are bytes", seedsOf(1, 1, 1<<20), format.ErrCorrupt, "prototypes"},
		{"seeds wider than the blob", seedsOf(1<<20, 1<<20, 1), format.ErrCorrupt, "bytes"},
		{"too many calibrations", resealed(func(b []byte) { b[8] = 100 }), format.ErrCorrupt, "elements"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := calibrate.Unmarshal(tt.blob)
			require.ErrorIs(t, err, tt.is)
			assert.ErrorContains(t, err, tt.text)
		})
	}
}

// seedsOf returns a set whose only calibration ends with seeds of these numbers.
func seedsOf(dim, stored, prototypes uint32) []byte {
	blob := calibrate.Set{{}}.Marshal()
	w := format.NewWriter(blob[:len(blob)-5]) // without the dim, which is 0, and the checksum
	w.Uvarint(uint64(dim))
	w.Uint32(stored)
	w.Uint32(prototypes)
	w.CRC(0)
	return w.Data()
}

func FuzzUnmarshal(f *testing.F) {
	for _, s := range []calibrate.Set{{}, {sample()}, {grown(), {}}, {related(), grown()}} {
		f.Add(s.Marshal())
	}
	f.Add(dumped(f, "v1.hex"))
	f.Add(dumped(f, "v2.hex"))
	f.Add(dumped(f, "v3.hex"))
	f.Add(dumped(f, "v4.hex"))
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

// TestFrontierWithoutK checks that a frontier with k = 0 is refused: plans are scaled by k.
func TestFrontierWithoutK(t *testing.T) {
	_, err := calibrate.Unmarshal(calibrate.Set{{Frontiers: []calibrate.Frontier{{K: 0}}}}.Marshal())
	require.ErrorIs(t, err, format.ErrCorrupt)
	require.ErrorContains(t, err, "a frontier of k 0")
}
