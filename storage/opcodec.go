package storage

import (
	"math"

	"github.com/flashdb/flashdb/internal/format"
)

// Versions of the encoding of operations. The first byte is the lowest version that can express the
// operations.
const (
	opsVersion1   = 1
	opsVersion2   = 2 // SetPlans was added
	opsVersion3   = 3 // links across collections, SetTags and SetPayload were added
	opsVersion4   = 4 // links with a relation were added
	opsVersion5   = 5 // nodes with attributes and SetAttributes were added
	opsVersion6   = 6 // AddNode was added
	opsVersion7   = 7 // links with a time were added
	newestVersion = opsVersion7
)

// The first byte of each operation. These numbers are in log files: they never change their
// meaning.
const (
	kindCreateCollection = 1 + iota
	kindDropCollection
	kindPutNode
	kindDeleteNode
	kindLink
	kindUnlink
	kindPutDecoder
	kindDropDecoder
	kindSetMeta
	kindSetPlans   // from version 2 on
	kindLinkAcross // from version 3 on, as the next ones
	kindUnlinkAcross
	kindSetTags
	kindSetPayload
	kindLinkRelated // from version 4 on, as the next one
	kindUnlinkRelated
	kindPutAttributed // from version 5 on, as the next one
	kindSetAttributes
	kindAddNode      // from version 6 on
	kindLinkRecorded // from version 7 on
)

// flagNormalize is the bit of Schema.Normalize in the flags byte of a schema.
const flagNormalize = 1

// EncodeOps returns the bytes that DecodeOps reads:
//
//	version, 1 byte | number of operations, varint | operations
//
// An operation is its kind, 1 byte, the collection's UID, varint, and then
//
//	1 CreateCollection  name, string | dim, varint | flags, 1 byte: bit 0 normalize
//	2 DropCollection    nothing
//	3 PutNode           id, varint | key, string | dim, varint | dim x float32 | number of tags, varint | tags, strings | payload, blob
//	4 DeleteNode        id, varint
//	5 Link              source id, varint | number of targets, varint | target ids, varints
//	6 Unlink            as Link
//	7 PutDecoder        name, string | blob
//	8 DropDecoder       name, string
//	9 SetMeta           name, string | value, string
//	10 SetPlans         as PutDecoder; from version 2 on
//	11 Link             UID of the targets' collection, varint | as 5; from version 3 on, for another collection than the source's
//	12 Unlink           as 11; from version 3 on
//	13 SetTags          id, varint | number of tags, varint | tags, strings; from version 3 on
//	14 SetPayload       id, varint | payload, blob; from version 3 on
//	15 Link             UID of the targets' collection, varint | relation, string | as 5; from version 4 on
//	16 Unlink           as 15; from version 4 on
//	17 PutNode          as 3, and then attributes; from version 5 on, for a node that has some
//	18 SetAttributes    id, varint | attributes to set | number of names, varint | names to remove, strings; from version 5 on
//	19 AddNode          id, varint | key, string | number of tags, varint | tags, strings | payload, blob; from version 6 on
//	20 Link             time, varint, s since 1970 | as 15, where the relation may be empty; from version 7 on
//
// Attributes are their number, varint, and for each its name, string, and its value, blob: the
// kind, 1 byte, and 8 bytes or a text, as package internal/attr has them.
//
// Float32s are little-endian; a string or blob is its length as a varint and its bytes.
func EncodeOps(ops []Op) []byte {
	w := format.NewWriter(make([]byte, 0, encodedSize(ops)))
	w.Uint8(versionOf(ops))
	w.Uvarint(uint64(count(ops)))
	for _, op := range ops {
		op.encode(w)
	}
	return w.Data()
}

// count returns how many operations ops are in the log.
func count(ops []Op) int {
	n := len(ops)
	for _, op := range ops {
		if many, ok := op.(PutNodes); ok {
			n += len(many) - 1
		}
	}
	return n
}

// versionOf returns the version of the encoding of ops: the lowest that can express them.
func versionOf(ops []Op) uint8 {
	version := uint8(opsVersion1)
	for _, op := range ops {
		switch op := op.(type) {
		case SetPlans:
			version = max(version, opsVersion2)
		case Link:
			version = max(version, linkVersion(op.links(), op.Relation))
			if op.Recorded != 0 {
				version = max(version, opsVersion7)
			}
		case Unlink:
			version = max(version, linkVersion(op.links(), op.Relation))
		case SetTags, SetPayload:
			version = max(version, opsVersion3)
		case PutNode:
			version = max(version, op.version())
		case PutNodes:
			for i := range op {
				version = max(version, op[i].version())
			}
		case SetAttributes:
			version = max(version, opsVersion5)
		case AddNode:
			version = max(version, opsVersion6)
		}
	}
	return version
}

// version is versionOf one PutNode.
func (o *PutNode) version() uint8 {
	if len(o.Attributes) > 0 {
		return opsVersion5
	}
	return opsVersion1
}

// linkVersion is versionOf one Link or Unlink.
func linkVersion(k linkKey, relation string) uint8 {
	switch {
	case relation != "":
		return opsVersion4
	case k.across():
		return opsVersion3
	}
	return opsVersion1
}

// encodedSize guesses how long the encoding will be, so that a batch of rows is written without
// growing the buffer.
func encodedSize(ops []Op) int {
	n := 16 + 16*len(ops)
	for _, op := range ops {
		switch op := op.(type) {
		case PutNode:
			n += op.encodedSize()
		case PutNodes:
			for i := range op {
				n += 16 + op[i].encodedSize()
			}
		case PutDecoder:
			n += len(op.Blob)
		case SetPlans:
			n += len(op.Blob)
		case SetPayload:
			n += len(op.Payload)
		}
	}
	return n
}

func (o *PutNode) encodedSize() int {
	return len(o.Key) + 4*len(o.Row) + 16*len(o.Tags) + 32*len(o.Attributes) + len(o.Payload)
}

func (o CreateCollection) encode(w *format.Writer) {
	w.Uint8(kindCreateCollection)
	w.Uvarint(uint64(o.UID))
	w.String(o.Name)
	encodeSchema(w, o.Schema)
}

func (o DropCollection) encode(w *format.Writer) {
	w.Uint8(kindDropCollection)
	w.Uvarint(uint64(o.UID))
}

func (o PutNode) encode(w *format.Writer) {
	kind := uint8(kindPutNode)
	if len(o.Attributes) > 0 {
		kind = kindPutAttributed
	}
	w.Uint8(kind)
	w.Uvarint(uint64(o.UID))
	w.Uvarint(uint64(o.ID))
	w.String(o.Key)
	w.Uvarint(uint64(len(o.Row)))
	w.Bytes(format.Float32Bytes(o.Row))
	encodeTags(w, o.Tags)
	w.Blob(o.Payload)
	if kind == kindPutAttributed {
		encodeAttributes(w, o.Attributes)
	}
}

func encodeTags(w *format.Writer, tags []string) {
	w.Uvarint(uint64(len(tags)))
	for _, tag := range tags {
		w.String(tag)
	}
}

func (o DeleteNode) encode(w *format.Writer) {
	w.Uint8(kindDeleteNode)
	w.Uvarint(uint64(o.UID))
	w.Uvarint(uint64(o.ID))
}

func (o Link) encode(w *format.Writer) {
	if o.Recorded != 0 {
		w.Uint8(kindLinkRecorded)
		w.Uvarint(uint64(o.UID))
		w.Uvarint(uint64(o.Recorded))
		w.Uvarint(uint64(o.links().to))
		w.String(o.Relation)
		encodeEdges(w, o.Source, o.Targets)
		return
	}
	encodeLinks(w, o.links(), [3]uint8{kindLink, kindLinkAcross, kindLinkRelated}, o.Relation, o.Targets)
}

func (o Unlink) encode(w *format.Writer) {
	encodeLinks(w, o.links(), [3]uint8{kindUnlink, kindUnlinkAcross, kindUnlinkRelated}, o.Relation, o.Targets)
}

func (o PutDecoder) encode(w *format.Writer) {
	w.Uint8(kindPutDecoder)
	w.Uvarint(uint64(o.UID))
	w.String(o.Name)
	w.Blob(o.Blob)
}

func (o DropDecoder) encode(w *format.Writer) {
	w.Uint8(kindDropDecoder)
	w.Uvarint(uint64(o.UID))
	w.String(o.Name)
}

func (o SetMeta) encode(w *format.Writer) {
	w.Uint8(kindSetMeta)
	w.Uvarint(uint64(o.UID))
	w.String(o.Name)
	w.String(o.Value)
}

func (o SetPlans) encode(w *format.Writer) {
	w.Uint8(kindSetPlans)
	w.Uvarint(uint64(o.UID))
	w.String(o.Name)
	w.Blob(o.Blob)
}

func encodeSchema(w *format.Writer, s Schema) {
	w.Uvarint(uint64(s.Dim))
	var flags uint8
	if s.Normalize {
		flags |= flagNormalize
	}
	w.Uint8(flags)
}

// encodeLinks writes one of three kinds: within a collection, across, or with a relation.
func encodeLinks(w *format.Writer, k linkKey, kinds [3]uint8, relation string, targets []uint32) {
	switch {
	case relation != "":
		w.Uint8(kinds[2])
		w.Uvarint(uint64(k.uid))
		w.Uvarint(uint64(k.to))
		w.String(relation)
	case k.across():
		w.Uint8(kinds[1])
		w.Uvarint(uint64(k.uid))
		w.Uvarint(uint64(k.to))
	default:
		w.Uint8(kinds[0])
		w.Uvarint(uint64(k.uid))
	}
	encodeEdges(w, k.id, targets)
}

func encodeEdges(w *format.Writer, source uint32, targets []uint32) {
	w.Uvarint(uint64(source))
	w.Uvarint(uint64(len(targets)))
	for _, t := range targets {
		w.Uvarint(uint64(t))
	}
}

// DecodeOps reads the bytes of EncodeOps. The operations share memory with b. An error matches
// format.ErrCorrupt, or format.ErrVersion if a newer program wrote b.
func DecodeOps(b []byte) ([]Op, error) {
	r := format.NewReader("", "operations", 0, b)
	version := r.Uint8()
	if r.Err() == nil {
		if err := format.CheckVersion("operations", uint32(version), newestVersion); err != nil {
			return nil, err
		}
	}
	n := r.Count(2)         // an operation has at least a kind and a UID
	const trusted = 1 << 12 // a false count allocates no more than this
	ops := make([]Op, 0, min(n, trusted))
	for range n {
		op := decodeOp(r)
		if r.Err() != nil {
			break
		}
		ops = append(ops, op)
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	return ops, nil
}

func decodeOp(r *format.Reader) Op {
	kind := r.Uint8()
	uid := uvarint32(r)
	switch kind {
	case kindCreateCollection:
		return CreateCollection{UID: uid, Name: decodeCollectionName(r), Schema: decodeSchema(r)}
	case kindDropCollection:
		return DropCollection{UID: uid}
	case kindPutNode:
		return decodePutNode(r, uid)
	case kindDeleteNode:
		return DeleteNode{UID: uid, ID: uvarint32(r)}
	case kindLink:
		source, targets := decodeEdges(r)
		return Link{UID: uid, Source: source, Targets: targets}
	case kindUnlink:
		source, targets := decodeEdges(r)
		return Unlink{UID: uid, Source: source, Targets: targets}
	case kindPutDecoder:
		return PutDecoder{UID: uid, Name: r.String(), Blob: r.Blob()}
	case kindDropDecoder:
		return DropDecoder{UID: uid, Name: r.String()}
	case kindSetMeta:
		return SetMeta{UID: uid, Name: r.String(), Value: r.String()}
	case kindSetPlans:
		return SetPlans{UID: uid, Name: r.String(), Blob: r.Blob()}
	case kindLinkAcross:
		to := uvarint32(r)
		source, targets := decodeEdges(r)
		return Link{UID: uid, Source: source, To: to, Targets: targets}
	case kindUnlinkAcross:
		to := uvarint32(r)
		source, targets := decodeEdges(r)
		return Unlink{UID: uid, Source: source, To: to, Targets: targets}
	case kindLinkRelated:
		to, relation := uvarint32(r), decodeRelation(r)
		source, targets := decodeEdges(r)
		return Link{UID: uid, Source: source, To: to, Relation: relation, Targets: targets}
	case kindUnlinkRelated:
		to, relation := uvarint32(r), decodeRelation(r)
		source, targets := decodeEdges(r)
		return Unlink{UID: uid, Source: source, To: to, Relation: relation, Targets: targets}
	case kindSetTags:
		return SetTags{UID: uid, ID: uvarint32(r), Tags: decodeTags(r)}
	case kindSetPayload:
		return SetPayload{UID: uid, ID: uvarint32(r), Payload: r.Blob()}
	case kindPutAttributed:
		o := decodePutNode(r, uid)
		o.Attributes = decodeAttributes(r)
		return o
	case kindSetAttributes:
		return SetAttributes{UID: uid, ID: uvarint32(r), Set: decodeAttributes(r), Remove: decodeTags(r)}
	case kindAddNode:
		return AddNode{UID: uid, ID: uvarint32(r), Key: r.String(), Tags: decodeTags(r), Payload: r.Blob()}
	case kindLinkRecorded:
		at := r.Uvarint()
		if at == 0 || at > maxSeconds {
			r.Fail("link recorded at %d, want 1 to %d", at, int64(maxSeconds))
		}
		to, relation := uvarint32(r), r.String()
		source, targets := decodeEdges(r)
		return Link{UID: uid, Source: source, To: to, Relation: relation, Targets: targets, Recorded: int64(at)}
	}
	r.Fail("operation of unknown kind %d", kind)
	return nil
}

func decodePutNode(r *format.Reader, uid uint32) PutNode {
	o := PutNode{UID: uid, ID: uvarint32(r), Key: r.String()}
	o.Row = format.Float32s(r.Bytes(4 * r.Count(4)))
	o.Tags = decodeTags(r)
	o.Payload = r.Blob()
	return o
}

func decodeTags(r *format.Reader) []string {
	n := r.Count(1)
	if n == 0 {
		return nil
	}
	const trusted = 64 // a false count allocates no more than this
	tags := make([]string, 0, min(n, trusted))
	for range n {
		tag := r.String()
		if r.Err() != nil {
			break
		}
		tags = append(tags, tag)
	}
	return tags
}

func decodeSchema(r *format.Reader) Schema {
	dim := uvarint32(r)
	if r.Err() == nil && (dim == 0 || dim > maxDim) {
		r.Fail("dim %d, want 1 to %d", dim, maxDim)
	}
	flags := r.Uint8()
	if flags&^flagNormalize != 0 {
		r.Fail("unknown schema flags %#x", flags)
	}
	return Schema{Dim: int(dim), Normalize: flags&flagNormalize != 0}
}

// decodeRelation reads the name of a relation, which is not empty.
func decodeRelation(r *format.Reader) string {
	name := r.String()
	if r.Err() == nil && name == "" {
		r.Fail("a relation without a name")
	}
	return name
}

func decodeEdges(r *format.Reader) (source uint32, targets []uint32) {
	source = uvarint32(r)
	targets = make([]uint32, r.Count(1))
	for i := range targets {
		targets[i] = uvarint32(r)
	}
	return source, targets
}

// uvarint32 reads a varint that must fit 32 bits.
func uvarint32(r *format.Reader) uint32 {
	v := r.Uvarint()
	if v > math.MaxUint32 {
		r.Fail("number %d does not fit 32 bits", v)
		return 0
	}
	return uint32(v)
}
