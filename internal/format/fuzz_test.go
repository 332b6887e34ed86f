package format

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzReader drives a cursor over data by the reads that script names. Whatever comes, the cursor
// stays within the data, hands out no more than there is, and once it has failed it stays where it
// is.
func FuzzReader(f *testing.F) {
	var w Writer
	w.Uvarint(3)
	w.Blob([]byte("abc"))
	w.Uint64(1)
	w.String("text")
	f.Add([]byte{4, 5, 3, 6}, w.Data())
	f.Add([]byte{4, 4, 4}, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 200, 9}, make([]byte, 64))
	f.Fuzz(func(t *testing.T, script, data []byte) {
		r := NewReader("f", "s", 1000, data)
		for _, op := range script {
			before, failed := r.Offset(), r.Err()
			got := 0
			switch op % 10 {
			case 0:
				r.Uint8()
			case 1:
				r.Uint16()
			case 2:
				r.Float32()
			case 3:
				r.Uint64()
			case 4:
				r.Uvarint()
			case 5:
				got = len(r.Blob())
			case 6:
				got = len(r.String())
			case 7:
				got = len(r.Bytes(int(op) - 100))
			case 8:
				size := int(op)/10 + 1
				got = r.Count(size) * size
			case 9:
				got = len(r.Rest())
			}
			require.LessOrEqual(t, got, len(data))
			require.GreaterOrEqual(t, r.Offset(), before)
			require.LessOrEqual(t, r.Offset(), int64(1000+len(data)))
			require.Equal(t, int64(1000+len(data))-r.Offset(), int64(r.Len())+lost(r))
			if failed != nil {
				require.Same(t, failed, r.Err())
				require.Equal(t, before, r.Offset())
				require.Zero(t, got)
			}
		}
	})
}

// lost returns what is left behind the place where the cursor failed.
func lost(r *Reader) int64 {
	if r.Err() == nil {
		return 0
	}
	return int64(len(r.buf) - r.pos)
}
