package train

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/format"
)

// checkpointed returns a fresh run with a print, and the bytes of its checkpoint after an epoch.
func checkpointed(t testing.TB) (*fit, []byte) {
	g := ring(20, 0)
	o := Options{Encoder: MF, Dim: 4, Cores: 1, DecoderHidden: []int{4}}
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

func FuzzCheckpoint(f *testing.F) {
	run, whole := checkpointed(f)
	f.Add(whole[checkpointHeader-40 : len(whole)-4])
	f.Fuzz(func(t *testing.T, body []byte) {
		data := append(bytes.Clone(whole[:checkpointHeader-40]), body...) // a fuzzer can guess no fingerprint
		data = binary.LittleEndian.AppendUint32(data, format.CRC(data))
		if run.read(bytes.NewReader(data), int64(len(data))) == nil {
			require.Len(t, run.state.history, run.state.epoch)
			require.Less(t, run.state.best, run.state.epoch)
		}
	})
}
