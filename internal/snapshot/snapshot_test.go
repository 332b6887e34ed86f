package snapshot

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/format"
)

// small is the list of the golden file.
func small() *List {
	return &List{LSN: 77, Files: []File{
		{Name: "index/c/gen-000001.ivf", Size: 3, CRC: 0xf130f21e},
		{Name: Store, Size: 5, CRC: 0x55cd7b68},
	}}
}

// The golden file is written out by hand: a change of layout is a new version.
func TestGolden(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "v1.hex"))
	require.NoError(t, err)
	golden := regexp.MustCompile(`(?m)#.*$|\s`).ReplaceAllString(string(text), "")
	assert.Equal(t, golden, hex.EncodeToString(Marshal(small())))
	b, err := hex.DecodeString(golden)
	require.NoError(t, err)
	list, err := Unmarshal("f", b)
	require.NoError(t, err)
	assert.Equal(t, small(), list)
}

// TestEveryDamageIsNoticed cuts a list at every byte, and flips every bit of it.
func TestEveryDamageIsNoticed(t *testing.T) {
	whole := Marshal(small())
	for n := range whole {
		_, err := Unmarshal("f", whole[:n])
		require.ErrorIs(t, err, format.ErrCorrupt, "cut at %d", n)
		for bit := range 8 {
			b := slices.Clone(whole)
			b[n] ^= 1 << bit
			_, err := Unmarshal("f", b)
			require.Error(t, err, "bit %d of byte %d", bit, n)
		}
	}
	_, err := Unmarshal("f", append(whole, 0))
	require.ErrorIs(t, err, format.ErrCorrupt)
}

func TestUnmarshalRefuses(t *testing.T) {
	named := func(names ...string) []byte {
		l := &List{}
		for _, name := range names {
			l.Files = append(l.Files, File{Name: name, Size: 1})
		}
		return Marshal(l)
	}
	summed := func(b []byte) []byte { // with the right checksum at its end
		w := format.NewWriter(withoutSum(b))
		w.CRC(0)
		return w.Data()
	}
	with := func(b []byte, at int, v byte) []byte {
		b[at] = v
		return summed(b)
	}
	for name, b := range map[string][]byte{
		"up":         named("../x"),
		"absolute":   named("/x"),
		"unclean":    named("a//b"),
		"empty":      named(""),
		"twice":      named("a", "a"),
		"descending": named("b", "a"),
		"count":      with(named("a"), 12, 2),
		"bytes":      with(named("a"), 16, 2),
		"too many":   with(named("a"), 15, 0xff),
		"more":       summed(append(named("a"), 1)),
	} {
		_, err := Unmarshal("f", b)
		assert.ErrorIs(t, err, format.ErrCorrupt, name)
	}
}

func withoutSum(b []byte) []byte { return b[:len(b)-crcSize] }

func FuzzUnmarshal(f *testing.F) {
	f.Add(withoutSum(Marshal(small())))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = Unmarshal("f", b)
		w := format.NewWriter(slices.Clone(b))
		w.CRC(0) // or no input would come further
		list, err := Unmarshal("f", w.Data())
		if err == nil {
			assert.Equal(t, w.Data(), Marshal(list))
		}
	})
}
