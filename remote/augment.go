package remote

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/flashdb/flashdb"
)

// castagnoli is the table of the checksums of rows.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// extended returns an embedding with one more value, which makes it norm long. A longer embedding
// gets 0. It is then harder to find than it should be, but no score depends on that value.
func extended(embedding []float32, norm float32) []float32 {
	v := make([]float32, len(embedding)+1)
	copy(v, embedding)
	v[len(embedding)] = float32(math.Sqrt(max(0, float64(norm)*float64(norm)-squares(embedding))))
	return v
}

// asked sets dst to a query vector that finds the rows of highest inner product with q. Its
// additional value is 0, so that of a row does not count. It is norm long, because distances to a
// much longer vector are rounded too coarsely. Any positive factor leaves the order of rows alone.
func asked(dst, q []float32, norm float32) []float32 {
	dst = append(append(dst[:0], q...), 0)
	length := math.Sqrt(squares(q))
	if length == 0 || norm == 0 {
		return dst
	}
	factor := float64(norm) / length
	for i, x := range q {
		dst[i] = float32(float64(x) * factor)
	}
	return dst
}

// squares is the squared Euclidean length of v.
func squares(v []float32) (sum float64) {
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return sum
}

// checksum is the Sum of a row of a version.
func checksum(version, key string, vector []float32) uint32 {
	sum := crc32.Update(0, castagnoli, []byte(version))
	sum = crc32.Update(sum, castagnoli, []byte(key))
	var b [4]byte
	for _, x := range vector {
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(x))
		sum = crc32.Update(sum, castagnoli, b[:])
	}
	return sum
}

// NewRow returns the row of a version for a node. The key must be UTF-8 without a zero byte, as not
// every engine stores other bytes. The embedding must be finite and of the version's Dim. A version
// with Normalize has it scaled to length 1. Attributes must be among the version's, and of its
// types.
func (v *Version) NewRow(n flashdb.Node) (Row, error) {
	if len(n.Key) == 0 || len(n.Key) > 1024 || !utf8.ValidString(n.Key) || strings.ContainsRune(n.Key, 0) {
		return Row{}, fmt.Errorf("node %q: %w: an engine takes keys of 1 to 1024 bytes of UTF-8 without a zero byte", n.Key, flashdb.ErrInvalid)
	}
	if len(n.Embedding) != v.Dim {
		return Row{}, fmt.Errorf("node %q: %w: its embedding has %d values, the version holds %d", n.Key, flashdb.ErrDim, len(n.Embedding), v.Dim)
	}
	for i, x := range n.Embedding {
		if x-x != 0 {
			return Row{}, fmt.Errorf("node %q: %w: embedding value %d is %v, want a finite number", n.Key, flashdb.ErrInvalid, i, x)
		}
	}
	tags, err := v.tagsOf(&n)
	if err != nil {
		return Row{}, err
	}
	embedding := n.Embedding
	if v.Normalize {
		length := math.Sqrt(squares(embedding))
		if length == 0 {
			return Row{}, fmt.Errorf("node %q: %w: its embedding is all zero and cannot be normalized", n.Key, flashdb.ErrInvalid)
		}
		embedding = make([]float32, len(n.Embedding))
		for i, x := range n.Embedding {
			embedding[i] = float32(float64(x) / length)
		}
	}
	r := Row{Key: n.Key, Vector: extended(embedding, v.Norm), Tags: tags, Payload: n.Payload}
	r.Sum = checksum(v.ID, r.Key, r.Vector)
	return r, nil
}

// verify returns ErrForeign for a row that is not of this version.
func (v *Version) verify(r *Row) error {
	if len(r.Vector) != v.Dim+1 {
		return fmt.Errorf("row %q: %w: its vector has %d values, want %d", r.Key, ErrForeign, len(r.Vector), v.Dim+1)
	}
	if sum := checksum(v.ID, r.Key, r.Vector); sum != r.Sum {
		return fmt.Errorf("row %q: %w: its checksum is %08x, want %08x: push the collection again", r.Key, ErrForeign, r.Sum, sum)
	}
	return nil
}
