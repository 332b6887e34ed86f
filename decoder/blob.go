package decoder

import (
	"maps"
	"slices"

	"github.com/flashdb/flashdb/internal/format"
)

// The blob of a decoder, little-endian:
//
//	+--------+-----------+------------------+-----------------+----------------+----------+
//	| "fdec" | version   | spec             | tensors         | tensor ...     | CRC32C   |
//	| 4      | uint32    | uvarint n, n     | uvarint count   |                | uint32   |
//	+--------+-----------+------------------+-----------------+----------------+----------+
//
//	tensor:  key (uvarint n, n bytes), dimensions (uvarint count, then a uvarint each), values (float32 each)
//
// The spec is its JSON form. Tensors are those the spec names, by its keys, in ascending order of
// key. Values are row-major. The CRC covers everything before it. What is derived (folded, packed)
// is not kept: New derives it again.
//
// A blob states the version of the first program that can read it: 2 of a decoder of kind mol, 3 of
// one of kind complex or with relations, 4 of one with a gated linear unit, since their specs have
// what older programs do not know, and 1 of all others.
const (
	blobMagic      = "fdec"
	plainVersion   = 1
	mixtureVersion = 2
	relateVersion  = 3
	gatedVersion   = 4
	blobVersion    = gatedVersion // the newest
)

// versionOf returns the version that a blob of the decoder states.
func versionOf(s *Spec) uint32 {
	switch {
	case s.Kind == ComplEx || len(s.Relations) > 0:
		return relateVersion
	case s.Mixture.gated():
		return gatedVersion
	case s.Kind == MoL:
		return mixtureVersion
	}
	return plainVersion
}

// Marshal returns the blob of a decoder. Equal decoders give equal bytes.
func Marshal(d Decoder) []byte {
	spec, tensors := d.Spec(), d.Tensors()
	w := format.NewWriter(nil)
	w.Bytes([]byte(blobMagic))
	w.Uint32(versionOf(&spec))
	w.Blob(spec.encode())
	w.Uvarint(uint64(len(tensors)))
	for _, key := range slices.Sorted(maps.Keys(tensors)) {
		t := tensors[key]
		w.String(key)
		w.Uvarint(uint64(len(t.Shape)))
		for _, size := range t.Shape {
			w.Uvarint(uint64(size))
		}
		w.Bytes(format.Float32Bytes(t.Data))
	}
	w.CRC(0)
	return w.Data()
}

// Unmarshal returns the decoder a blob holds. Damage gives an error that matches format.ErrCorrupt,
// a newer version one that matches format.ErrVersion. The blob is not retained.
func Unmarshal(blob []byte) (Decoder, error) {
	const headerSize, crcSize = len(blobMagic) + 4, 4
	if len(blob) < headerSize+crcSize || string(blob[:len(blobMagic)]) != blobMagic {
		return nil, format.Corrupt("", "decoder", 0, "no decoder: %d bytes that do not begin with %q", len(blob), blobMagic)
	}
	body := blob[:len(blob)-crcSize]
	r := format.NewReader("", "decoder", int64(len(blobMagic)), body[len(blobMagic):])
	if err := format.CheckVersion("decoder", r.Uint32(), blobVersion); err != nil {
		return nil, err
	}
	stored := format.NewReader("", "decoder", int64(len(body)), blob[len(body):]).Uint32()
	if sum := format.CRC(body); sum != stored {
		return nil, format.Corrupt("", "decoder", int64(len(body)), "checksum is %08x, stored is %08x", sum, stored)
	}
	encoded := r.Blob()
	tensors := readTensors(r)
	if err := r.End(); err != nil {
		return nil, err
	}
	spec, err := ParseSpec(encoded)
	if err != nil {
		return nil, format.Corrupt("", "decoder", int64(headerSize), "%w", err)
	}
	d, err := New(spec, tensors)
	if err != nil {
		return nil, format.Corrupt("", "decoder", int64(headerSize), "%w", err)
	}
	return d, nil
}

// readTensors reads the count of tensors and each of them. The values are copied.
func readTensors(r *format.Reader) map[string]Tensor {
	const smallest = 2 // bytes of a tensor: an empty key and no dimensions
	count := r.Count(smallest)
	tensors := map[string]Tensor{} // a false count takes no room
	for range count {
		key := r.String()
		shape := make([]int, r.Count(1))
		for i := range shape {
			size := r.Uvarint()
			if size > uint64(r.Len()) {
				r.Fail("tensor %q has shape %v %d ...: more values than there are bytes", key, shape[:i], size)
			}
			shape[i] = int(size)
		}
		n := elements(shape)
		if n < 0 || n > r.Len()/4 {
			r.Fail("tensor %q has shape %v: more values than there are bytes", key, shape)
		}
		values := r.Bytes(4 * n)
		if r.Err() != nil {
			return nil
		}
		tensors[key] = Tensor{Shape: shape, Data: slices.Clone(format.Float32s(values))}
	}
	return tensors
}
