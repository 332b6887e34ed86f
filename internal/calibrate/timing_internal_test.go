package calibrate

import (
	"context"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/index"
)

// slowRows takes a microsecond for each row that it passes on.
type slowRows struct {
	n   int
	now time.Time
}

func (s *slowRows) Dim() int { return 1 }

func (s *slowRows) Gather([]float32, []index.Candidate) error { panic("a scan gathers nothing") }

func (s *slowRows) Rows(_ context.Context, fn func(ids []uint32, rows []float32) error) error {
	const block = 1024
	for from := 0; from < s.n; from += block {
		ids := make([]uint32, min(block, s.n-from))
		for i := range ids {
			ids[i] = uint32(from + i)
		}
		if err := fn(ids, make([]float32, len(ids))); err != nil {
			return err
		}
		s.now = s.now.Add(time.Duration(len(ids)) * time.Microsecond)
	}
	return nil
}

// TestScanIsTimedInPart checks that the time of all rows is scaled from that of the first ones,
// also if some of these are excluded.
func TestScanIsTimedInPart(t *testing.T) {
	d, err := decoder.NewDot(1)
	require.NoError(t, err)
	for name, excluded := range map[string][]uint32{"none": nil, "one of the first": {7}, "one of the others": {1 << 17}} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1000, timedRows, timedRows + 1, 1 << 18} {
				rows := &slowRows{n: n}
				w := newWorker(Engine{Rows: rows}, d, n, func() time.Time { return rows.now })
				w.excluded = roaring.New()
				r := &run{Input: Input{Ks: []int{10}, Rows: n, Clock: w.clock}, workers: []*worker{w}}
				require.NoError(t, r.timeScan(context.Background(), &Source{Vector: []float32{1}, Excluded: excluded}))
				assert.InEpsilon(t, 1e-6*float64(n), r.exactSeconds(), .05, "%d rows", n)
			}
		})
	}
}
