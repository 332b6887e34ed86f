package flashdb

import (
	"fmt"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/format"
)

// batchVersion is the first byte of an encoded batch.
//
// 2 added CreateCollection and DropCollection, 3 relations of edges, 4 attributes.
const batchVersion = 4

// MarshalBinary returns b as bytes, so that another process can apply it: see package control. The
// bytes are not a file format. A program of another version may refuse them with ErrVersion.
//
//	version, 1 byte | number of writes, varint | writes
//
// A write is its kind (1 byte), the name of its collection, and all of its fields in this order:
// nodes (key, embedding, tags, payload, attributes), keys, tags, payload, attributes, edges
// (collection of the source, source, target, relation), name, blob of the decoder, value, schema
// (dim as a varint, and 1 byte that is 1 for normalize). A list is its length as a varint and its
// elements. A string or blob is its length as a varint and its bytes.
func (b *Batch) MarshalBinary() ([]byte, error) {
	if err := b.fits(MaxBatchBytes); err != nil {
		return nil, fmt.Errorf("encode batch: %w", err)
	}
	var out format.Writer
	out.Uint8(batchVersion)
	out.Uvarint(uint64(len(b.writes)))
	for i := range b.writes {
		w := &b.writes[i]
		if w.kind == writeDecoder && w.decoder == nil {
			return nil, fmt.Errorf("encode batch: %w", b.failed(i, fmt.Errorf("%w: decoder %q is nil", ErrInvalid, w.name)))
		}
		if err := w.encode(&out); err != nil {
			return nil, fmt.Errorf("encode batch: %w", b.failed(i, err))
		}
	}
	return out.Data(), nil
}

func (w *write) encode(out *format.Writer) error {
	out.Uint8(uint8(w.kind))
	out.String(w.collection)
	out.Uvarint(uint64(len(w.nodes)))
	for i := range w.nodes {
		n := &w.nodes[i]
		out.String(n.Key)
		out.Uvarint(uint64(len(n.Embedding)))
		out.Bytes(format.Float32Bytes(n.Embedding))
		encodeStrings(out, n.Tags)
		out.Blob(n.Payload)
		if err := encodeAttributes(out, n.Attributes); err != nil {
			return fmt.Errorf("node %q: %w", n.Key, err)
		}
	}
	encodeStrings(out, w.keys)
	encodeStrings(out, w.tags)
	out.Blob(w.payload)
	if err := encodeAttributes(out, w.attributes); err != nil {
		return err
	}
	out.Uvarint(uint64(len(w.edges)))
	for _, e := range w.edges {
		out.String(e.SourceCollection)
		out.String(e.Source)
		out.String(e.Target)
		out.String(e.Relation)
	}
	out.String(w.name)
	var weights []byte
	if w.decoder != nil {
		weights = decoder.Marshal(w.decoder)
	}
	out.Blob(weights)
	out.String(w.value)
	out.Uvarint(uint64(w.schema.Dim))
	normalize := uint8(0)
	if w.schema.Normalize {
		normalize = 1
	}
	out.Uint8(normalize)
	return nil
}

func encodeStrings(out *format.Writer, texts []string) {
	out.Uvarint(uint64(len(texts)))
	for _, s := range texts {
		out.String(s)
	}
}

// UnmarshalBinary sets b to the batch that MarshalBinary encoded as data. It keeps no reference to
// data. An error matches ErrCorrupt or ErrVersion, and b is then empty.
func (b *Batch) UnmarshalBinary(data []byte) error {
	b.writes = nil
	r := format.NewReader("", "batch", 0, data)
	version := r.Uint8()
	if r.Err() == nil {
		if err := format.CheckVersion("batch", uint32(version), batchVersion); err != nil {
			return err
		}
	}
	var writes []write
	for range r.Count(13) { // a write has at least its kind, ten lengths and a schema
		w := decodeWrite(r)
		if r.Err() != nil {
			break
		}
		writes = append(writes, w)
	}
	if err := r.End(); err != nil {
		return err
	}
	b.writes = writes
	return nil
}

// decodeWrite reads one write. Slices grow as their elements are read, so that a false count
// allocates nothing.
func decodeWrite(r *format.Reader) write {
	w := write{kind: writeKind(r.Uint8()), collection: r.String()}
	if r.Err() == nil && (w.kind < 1 || w.kind > writeKinds) {
		r.Fail("write of unknown kind %d", w.kind)
	}
	for range r.Count(5) {
		n := Node{Key: r.String()}
		n.Embedding = append([]float32(nil), format.Float32s(r.Bytes(4*r.Count(4)))...)
		n.Tags = decodeStrings(r)
		n.Payload = append([]byte(nil), r.Blob()...)
		n.Attributes = decodeAttributes(r)
		if r.Err() != nil {
			return write{}
		}
		w.nodes = append(w.nodes, n)
	}
	w.keys, w.tags = decodeStrings(r), decodeStrings(r)
	w.payload = append([]byte(nil), r.Blob()...)
	w.attributes = decodeAttributes(r)
	for range r.Count(4) {
		e := Edge{SourceCollection: r.String(), Source: r.String(), Target: r.String(), Relation: r.String()}
		if r.Err() != nil {
			return write{}
		}
		w.edges = append(w.edges, e)
	}
	w.name = r.String()
	weights := r.Blob()
	w.value = r.String()
	w.schema.Dim = int(min(r.Uvarint(), maxDim+1)) // Apply refuses what is too wide
	w.schema.Normalize = r.Uint8() != 0
	if r.Err() != nil {
		return write{}
	}
	decodeWeights(r, &w, weights)
	return w
}

// decodeWeights checks that w has the fields its kind needs, and decodes its decoder.
func decodeWeights(r *format.Reader, w *write, weights []byte) {
	if (w.kind == writeTags || w.kind == writePayload || w.kind == writeAttributes) && len(w.keys) != 1 {
		r.Fail("%d keys of a write to one node", len(w.keys))
		return
	}
	if w.kind != writeDecoder {
		return
	}
	d, err := decoder.Unmarshal(weights)
	if err != nil {
		r.Fail("decoder %q: %w", w.name, err)
		return
	}
	w.decoder = d
}

func decodeStrings(r *format.Reader) (texts []string) {
	for range r.Count(1) {
		s := r.String()
		if r.Err() != nil {
			return nil
		}
		texts = append(texts, s)
	}
	return texts
}
