package encoder

import (
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/format"
)

// The blob of an encoder, little-endian:
//
//	+--------+---------+--------+---------------------------+--------+--------+---------+----------+
//	| "fenc" | version | model  | dim, features, hidden     | pooled | center | weights | CRC32C   |
//	| 4      | uint32  | string | uvarint each              | uvarint| spread |         | uint32   |
//	+--------+---------+--------+---------------------------+--------+--------+---------+----------+
//
// A string is its length (uvarint) and its bytes. Model names the encoder of the model, such as
// "hops". Center and spread are float32 values, one per feature; weights those of the first layer
// (hidden x width, row-major), its bias, those of the second (dim x hidden) and its bias. The CRC
// covers everything before it.
const (
	magic   = "fenc"
	version = 1
)

// MarshalBinary returns the versioned blob of the encoder. Equal encoders give equal bytes.
func (e *Encoder) MarshalBinary() ([]byte, error) {
	w := format.NewWriter(nil)
	w.Bytes([]byte(magic))
	w.Uint32(version)
	w.String(e.model)
	pooled := uint64(0)
	if e.in.Pooled {
		pooled = 1
	}
	for _, v := range []uint64{uint64(e.in.Dim), uint64(e.FeatureDim()), uint64(e.hidden), pooled} {
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
	w := &e.weights
	return []*[]float32{&e.in.Center, &e.in.Spread, &w.Hidden, &w.HiddenBias, &w.Output, &w.OutputBias}
}

// lengths are those of vectors.
func lengths(dim, features, hidden int) []int {
	return []int{features, features, hidden * width(dim, features), hidden, dim * hidden, dim}
}

// UnmarshalBinary sets e to the encoder a blob holds. Damage gives an error that names the place, a
// newer version one that says so; e is unchanged then. The blob is not retained, and memory is
// allocated in proportion to it.
func (e *Encoder) UnmarshalBinary(blob []byte) error {
	const header, crc = len(magic) + 4, 4
	if len(blob) < header+crc || string(blob[:len(magic)]) != magic {
		return format.Corrupt("", "encoder", 0, "no encoder: %d bytes that do not begin with %q", len(blob), magic)
	}
	body := blob[:len(blob)-crc]
	r := format.NewReader("", "encoder", int64(len(magic)), body[len(magic):])
	if err := format.CheckVersion("encoder", r.Uint32(), version); err != nil {
		return err
	}
	stored := format.NewReader("", "encoder", int64(len(body)), blob[len(body):]).Uint32()
	if sum := format.CRC(body); sum != stored {
		return format.Corrupt("", "encoder", int64(len(body)), "checksum %08x, want %08x", sum, stored)
	}
	n := Encoder{model: r.String()}
	dim, features, hidden, pooled := r.Uvarint(), r.Uvarint(), r.Uvarint(), r.Uvarint()
	if err := r.Err(); err != nil {
		return err
	}
	if dim < 1 || dim > decoder.MaxDim || hidden < 1 || hidden > maxHidden || features > maxFeatures || pooled > 1 {
		return format.Corrupt("", "encoder", int64(header), "impossible sizes: dim %d, features %d, hidden %d, pooled %d", dim, features, hidden, pooled)
	}
	n.in.Dim, n.hidden, n.in.Pooled = int(dim), int(hidden), pooled == 1
	vectors := n.vectors()
	for i, length := range lengths(int(dim), int(features), int(hidden)) {
		*vectors[i] = append([]float32(nil), format.Float32s(r.Bytes(4*length))...)
	}
	if err := r.End(); err != nil {
		return err
	}
	if err := n.check(); err != nil {
		return format.Corrupt("", "encoder", int64(header), "%w", err)
	}
	n.pack()
	*e = n
	return nil
}
