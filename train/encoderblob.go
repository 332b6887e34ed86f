package train

import (
	"fmt"
	"math"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/format"
)

// The blob of an encoder, little-endian:
//
//	+--------+---------+--------+---------------------------+--------+--------+---------+----------+
//	| "fenc" | version | kind   | dim, features, hidden     | pooled | center | weights | CRC32C   |
//	| 4      | uint32  | string | uvarint each              | uvarint| spread |         | uint32   |
//	+--------+---------+--------+---------------------------+--------+--------+---------+----------+
//
// A string is its length (uvarint) and its bytes. Center and spread are float32 values, one a
// feature; weights those of the first layer (hidden x width, row-major), its bias, those of the
// second (dim x hidden) and its bias. The CRC covers everything before it.
const (
	encoderMagic   = "fenc"
	encoderVersion = 1
	mostHidden     = 1 << 16
)

// MarshalBinary returns the versioned blob of the encoder. Equal encoders give equal bytes.
func (e *Encoder) MarshalBinary() ([]byte, error) {
	w := format.NewWriter(nil)
	w.Bytes([]byte(encoderMagic))
	w.Uint32(encoderVersion)
	w.String(string(e.kind))
	pooled := uint64(0)
	if e.pooled {
		pooled = 1
	}
	for _, v := range []uint64{uint64(e.dim), uint64(e.features), uint64(e.hidden), pooled} {
		w.Uvarint(v)
	}
	for _, values := range e.vectors() {
		w.Bytes(format.Float32Bytes(*values))
	}
	w.CRC(0)
	return w.Data(), nil
}

// vectors lists all values in the order of the blob.
func (e *Encoder) vectors() []*[]float32 {
	v := []*[]float32{&e.center, &e.spread}
	for i := range e.weights {
		v = append(v, &e.weights[i])
	}
	return v
}

// lengths are those of vectors.
func (e *Encoder) lengths() []int {
	return []int{e.features, e.features, e.hidden * e.width(), e.hidden, e.dim * e.hidden, e.dim}
}

// UnmarshalBinary sets e to the encoder a blob holds. Damage gives an error that names the place, a
// newer version one that says so; e is unchanged then. The blob is not retained, and memory is
// allocated in proportion to it.
func (e *Encoder) UnmarshalBinary(blob []byte) error {
	const header, crc = len(encoderMagic) + 4, 4
	if len(blob) < header+crc || string(blob[:len(encoderMagic)]) != encoderMagic {
		return format.Corrupt("", "encoder", 0, "no encoder: %d bytes that do not begin with %q", len(blob), encoderMagic)
	}
	body := blob[:len(blob)-crc]
	r := format.NewReader("", "encoder", int64(len(encoderMagic)), body[len(encoderMagic):])
	if err := format.CheckVersion("encoder", r.Uint32(), encoderVersion); err != nil {
		return err
	}
	stored := format.NewReader("", "encoder", int64(len(body)), blob[len(body):]).Uint32()
	if sum := format.CRC(body); sum != stored {
		return format.Corrupt("", "encoder", int64(len(body)), "checksum %08x, want %08x", sum, stored)
	}
	n := Encoder{kind: EncoderKind(r.Blob())}
	dim, features, hidden, pooled := r.Uvarint(), r.Uvarint(), r.Uvarint(), r.Uvarint()
	if err := r.Err(); err != nil {
		return err
	}
	if dim < 1 || dim > decoder.MaxDim || hidden < 1 || hidden > mostHidden || features > mostFeatures || pooled > 1 {
		return format.Corrupt("", "encoder", int64(header), "impossible sizes: dim %d, features %d, hidden %d, pooled %d", dim, features, hidden, pooled)
	}
	n.dim, n.features, n.hidden, n.pooled = int(dim), int(features), int(hidden), pooled == 1
	vectors := n.vectors()
	for i, length := range n.lengths() {
		*vectors[i] = append([]float32(nil), format.Float32s(r.Bytes(4*length))...)
	}
	if err := r.End(); err != nil {
		return err
	}
	if err := n.checkValues(); err != nil {
		return format.Corrupt("", "encoder", int64(header), "%w", err)
	}
	n.pack()
	*e = n
	return nil
}

// mostFeatures bounds the features of a node.
const mostFeatures = 1 << 20

// checkValues reports values no training leaves.
func (e *Encoder) checkValues() error {
	for _, values := range e.vectors() {
		for _, x := range *values {
			if x-x != 0 {
				return fmt.Errorf("a weight is %v", x)
			}
		}
	}
	for i, x := range e.spread {
		if !(x > 0) || x > math.MaxFloat32 {
			return fmt.Errorf("the spread of feature %d is %v", i, x)
		}
	}
	return nil
}
