package train

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/format"
)

// checkpointed returns a fresh run with a print, and the bytes of its checkpoint after an epoch.
func checkpointed(t testing.TB, encoder EncoderKind) (*fit, []byte) {
	g := ring(20, 0)
	o := Options{Encoder: encoder, Dim: 4, Cores: 1, DecoderHidden: []int{4}}
	o = o.withDefaults(g, len(g.Edges))
	f := newFit(g, g.distinct(g.Edges), Split{}, &o, time.Now())
	f.print = f.fingerprint(Split{})
	f.state.epoch, f.state.best, f.state.history = 1, 0, make([]Epoch, 1)
	f.keep(&f.state.kept)
	var b bytes.Buffer
	require.NoError(t, f.write(&b))
	require.EqualValues(t, f.size(1), b.Len())
	return f, b.Bytes()
}

// TestCheckpointVersion: version 1 is read, but of hops, which had other features.
func TestCheckpointVersion(t *testing.T) {
	for _, c := range []struct {
		encoder EncoderKind
		version byte
		want    string
	}{
		{MF, 1, ""},
		{MF, 2, ""},
		{Hops, 1, "whose encoder hops had other features: remove it, and train from the beginning"},
		{Hops, 2, ""},
		{Hops, 0, "checkpoint has format version 0"},
		{MF, 3, "checkpoint has format version 3, this program reads up to version 2: use a newer program"},
	} {
		run, data := checkpointed(t, c.encoder)
		data[4] = c.version
		data = binary.LittleEndian.AppendUint32(data[:len(data)-4], format.CRC(data[:len(data)-4]))
		err := run.read(bytes.NewReader(data), int64(len(data)))
		if c.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.want)
		}
		// The version is told before a shape that does not fit.
		if c.encoder == Hops && c.version == 1 {
			require.ErrorContains(t, run.read(bytes.NewReader(data[:200]), 200), c.want)
		}
	}
}

// A file that cannot be written is refused before the training.
func TestCheckpointNowhere(t *testing.T) {
	dir := t.TempDir()
	mine, text := filepath.Join(dir, "model.pt"), []byte("not a checkpoint, and worth keeping")
	require.NoError(t, os.WriteFile(mine, text, 0o600))
	began := func(Progress) { t.Error("the training began") }
	for path, want := range map[string]string{
		filepath.Join(dir, "none", "state"): "cannot be written",
		dir:                                 "is no regular file: name another",
		mine:                                "is no checkpoint, and would be overwritten",
	} {
		_, err := Run(t.Context(), ring(20, 0), Split{}, Options{Encoder: MF, Dim: 4, Checkpoint: path, Progress: began})
		require.ErrorContains(t, err, want)
	}
	kept, err := os.ReadFile(mine)
	require.NoError(t, err)
	require.Equal(t, text, kept)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left behind")
}

func FuzzCheckpoint(f *testing.F) {
	run, whole := checkpointed(f, MF)
	f.Add(whole[checkpointHeader-40 : len(whole)-4])
	f.Add(whole[checkpointHeader-40 : checkpointHeader])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		data := append(bytes.Clone(whole[:checkpointHeader-40]), body...) // a fuzzer can guess no fingerprint
		data = binary.LittleEndian.AppendUint32(data, format.CRC(data))
		if run.read(bytes.NewReader(data), int64(len(data))) == nil {
			require.Len(t, run.state.history, run.state.epoch)
			require.Less(t, run.state.best, run.state.epoch)
		}
	})
}
