package train

import "errors"

// Encoder embeds nodes that came after training, from the embeddings of the nodes they link to and from their own
// features. It is a small network fitted after the model: each node of the graph is embedded from a part of its links as
// if it were new, and scored by the trained decoder on the others. It needs nothing of the graph. Immutable, and safe for
// concurrent use.
type Encoder struct {
	Dim        int         // width of an embedding
	FeatureDim int         // features a node; 0: none
	Kind       EncoderKind // of the model it belongs to
}

// Newcomer is a node to embed.
type Newcomer struct {
	// To and From hold the embeddings of the nodes it links to and of those that link to it, row-major, any number of rows
	// of Dim values. Where links have no direction all of them are To.
	To, From []float32
	Features []float32 // FeatureDim values, or nil: unknown
}

// Embed writes the embedding of a node that was not in the graph to dst, Dim values. It fails if neither links nor
// features are given, and on lengths that do not fit.
func (e *Encoder) Embed(dst []float32, n Newcomer) error {
	return errors.New("train: not implemented")
}

// MarshalBinary returns the versioned blob of the encoder. Equal encoders give equal bytes.
func (e *Encoder) MarshalBinary() ([]byte, error) {
	return nil, errors.New("train: not implemented")
}

// UnmarshalBinary sets e to the encoder a blob holds. Damage gives an error that names the place, a newer version one that
// says so. The blob is not retained, and memory is allocated in proportion to it.
func (e *Encoder) UnmarshalBinary(blob []byte) error {
	return errors.New("train: not implemented")
}
