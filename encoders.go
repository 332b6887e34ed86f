package flashdb

import (
	"context"
	"fmt"

	"github.com/flashdb/flashdb/encoder"
	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/wire"
	"github.com/flashdb/flashdb/storage"
)

// The names of the meta values that hold the encoder of a collection.
const (
	metaEncoder    = "flashdb.encoder"      // the blob
	metaEncoderUse = "flashdb.encoder_uses" // an EncoderUse, encoded by package wire because the name of a decoder may be any bytes
)

// An EncoderUse says what the encoder of a collection is for: which decoder it was trained with,
// and how the links of a new node are read and stored. An empty name of a collection means the
// collection that the encoder is stored in.
type EncoderUse struct {
	// Decoder names the decoder that was trained with the encoder. The encoder cannot be used
	// without it. Targets is the collection of the decoder, whose nodes are predicted. Where
	// Targets is another collection, new nodes are sources.
	Decoder string `json:"decoder"`
	Targets string `json:"of"`
	// Neighbours is the collection of the nodes that new nodes are linked to.
	Neighbours string `json:"neighbours"`
	// Directed says that the encoder distinguishes links to a node from links from it. OneWay says
	// that a link is stored in its own direction only, and not in both. Both are for links within
	// one collection.
	Directed bool `json:"directed"`
	OneWay   bool `json:"one_way"`
	// Features is how many features a node of the collection has. The encoder takes the features of
	// two collections side by side: FirstFeature is the index of the first one of this collection.
	FirstFeature int `json:"first_feature,omitempty"`
	Features     int `json:"features,omitempty"`
}

// EmbedLinks are the links of a node to embed, as the keys of its neighbours. If links have no
// direction, or are between two collections, all of them are To.
type EmbedLinks struct {
	To   []string // nodes it links to
	From []string // nodes that link to it
}

// in returns u with its empty names set to collection, which has the encoder.
func (u EncoderUse) in(collection string) EncoderUse {
	if u.Targets == "" {
		u.Targets = collection
	}
	if u.Neighbours == "" {
		u.Neighbours = collection
	}
	return u
}

// Edges returns the links of a node as edges to store, and the collection on which to call Link
// with them. The node is of the collection that has the encoder.
func (u EncoderUse) Edges(collection, key string, l EmbedLinks) (through string, edges []Edge) {
	u = u.in(collection)
	through = u.Targets
	add := func(source, target string) {
		e := Edge{Source: source, Target: target}
		switch {
		case u.Neighbours == collection:
		case through == collection:
			e.SourceCollection = u.Neighbours
		default:
			e.SourceCollection = collection
		}
		edges = append(edges, e)
	}
	between := u.Neighbours != collection
	for _, other := range l.To {
		if between && through == collection {
			add(other, key)
			continue
		}
		add(key, other)
		if !between && !u.OneWay {
			add(other, key)
		}
	}
	for _, other := range l.From {
		add(other, key)
		if !between && !u.OneWay {
			add(key, other)
		}
	}
	return through, edges
}

// PutEncoder stores the encoder for nodes that come after training. It replaces an earlier one. A
// nil encoder removes it. See Collection.Embed.
func (c *Collection) PutEncoder(ctx context.Context, e *encoder.Encoder, use EncoderUse) error {
	if e != nil && e.Dim() != c.schema.Dim {
		return fmt.Errorf("put encoder into %q: %w", c.name, wrongEncoder(e, c.schema))
	}
	if err := c.writable(); err != nil {
		return fmt.Errorf("put encoder into %q: %w", c.name, err)
	}
	var b Batch
	b.PutEncoder(c.name, e, use)
	return c.db.Apply(ctx, &b)
}

func wrongEncoder(e *encoder.Encoder, s Schema) error {
	return fmt.Errorf("%w: the encoder makes embeddings of %d values, the collection holds %d", ErrDim, e.Dim(), s.Dim)
}

// PutEncoder is Collection.PutEncoder in a collection of that name. It counts as two writes. The
// width of the encoder is checked only when it is used.
func (b *Batch) PutEncoder(collection string, e *encoder.Encoder, use EncoderUse) {
	var blob, text []byte
	if e != nil {
		blob, _ = e.MarshalBinary() // neither can fail
		text, _ = wire.Encode(use)
	}
	b.SetMeta(collection, metaEncoder, string(blob))
	b.SetMeta(collection, metaEncoderUse, string(text))
}

// Encoder returns the stored encoder and its use, or ErrNotFound. No name of a collection in the
// use is empty.
func (c *Collection) Encoder(ctx context.Context) (e *encoder.Encoder, use EncoderUse, err error) {
	err = c.viewed(ctx, func(v *storage.View) error {
		e, use, err = c.encoder(v)
		return err
	})
	return e, use, err
}

func (c *Collection) encoder(v *storage.View) (*encoder.Encoder, EncoderUse, error) {
	var use EncoderUse
	blob, _ := v.Meta(c.uid, metaEncoder)
	text, _ := v.Meta(c.uid, metaEncoderUse)
	if blob == "" || text == "" {
		return nil, use, fmt.Errorf("collection %q: encoder %w: training stores one", c.name, ErrNotFound)
	}
	if err := wire.Decode([]byte(text), &use, false); err != nil {
		return nil, use, format.Corrupt("", fmt.Sprintf("encoder of collection %q", c.name), 0, "what it is for: %w", err)
	}
	use = use.in(c.name)
	e := new(encoder.Encoder)
	if err := e.UnmarshalBinary([]byte(blob)); err != nil {
		return nil, use, fmt.Errorf("encoder of collection %q: %w", c.name, err)
	}
	if e.Dim() != c.schema.Dim {
		return nil, use, fmt.Errorf("collection %q: %w", c.name, wrongEncoder(e, c.schema))
	}
	if n := e.FeatureDim(); use.FirstFeature < 0 || use.FirstFeature > n || use.Features < 0 || use.Features > n-use.FirstFeature {
		return nil, use, format.Corrupt("", fmt.Sprintf("encoder of collection %q", c.name), 0, "%d features from %d on, of %d", use.Features, use.FirstFeature, n)
	}
	targets, ok := v.Collection(use.Targets)
	if ok {
		_, ok = v.Decoder(targets.UID, use.Decoder)
	}
	if !ok {
		return nil, use, fmt.Errorf("encoder of collection %q: decoder %q of collection %q %w: the encoder is of no use without it", c.name, use.Decoder, use.Targets, ErrNotFound)
	}
	return e, use, nil
}

// Embed returns the embedding of a node that came after training, from its links, its features, or
// both. It stores nothing. The embedding is the mean of the neighbours' embeddings plus the output
// of a small network, which reads that mean, the number of neighbours and the features. Training
// fits the network in the same way for every kind of model. Features are nil where they are
// unknown.
//
// Embed fails with ErrNotFound if no encoder is stored, if its decoder was dropped, or if a
// neighbour does not exist. It fails with ErrInvalid if there are neither links nor features, or if
// the number of features is not that of training.
func (c *Collection) Embed(ctx context.Context, links EmbedLinks, features []float32) (embedding []float32, err error) {
	err = c.viewed(ctx, func(v *storage.View) error {
		embedding, err = c.embed(v, links, features)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	return embedding, nil
}

func (c *Collection) embed(v *storage.View, links EmbedLinks, features []float32) ([]float32, error) {
	e, use, err := c.encoder(v)
	if err != nil {
		return nil, err
	}
	return c.embedWith(v, e, use, links, features)
}

// embedWith is embed with the encoder of the collection.
func (c *Collection) embedWith(v *storage.View, e *encoder.Encoder, use EncoderUse, links EmbedLinks, features []float32) (row []float32, err error) {
	between := use.Neighbours != c.name
	if len(links.From) > 0 && (between || !use.Directed) {
		return nil, fmt.Errorf("%w: the links of this model have no two directions: give all of them as To", ErrInvalid)
	}
	var n encoder.Node
	if n.To, err = c.rowsOf(v, use.Neighbours, links.To); err != nil {
		return nil, err
	}
	if n.From, err = c.rowsOf(v, use.Neighbours, links.From); err != nil {
		return nil, err
	}
	if between && use.Targets == c.name { // links of a target come from its neighbours
		n.To, n.From = nil, n.To
	}
	if features != nil && len(features) != use.Features {
		return nil, fmt.Errorf("%w: %d features are given, in training a node of %q had %d", ErrInvalid, len(features), c.name, use.Features)
	}
	if len(n.To)+len(n.From)+len(features) == 0 {
		return nil, fmt.Errorf("%w: a node without links and without features cannot be embedded: give one of them", ErrInvalid)
	}
	if features != nil || use.Features == 0 && e.FeatureDim() > 0 { // features of the other collection are zeros
		n.Features = make([]float32, e.FeatureDim())
		copy(n.Features[use.FirstFeature:], features)
	}
	embedding := make([]float32, e.Dim())
	if err := e.Embed(embedding, n); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return embedding, nil
}

// rowsOf returns the embeddings of nodes of a collection, one after the other.
func (c *Collection) rowsOf(v *storage.View, collection string, keys []string) ([]float32, error) {
	info, ok := v.Collection(collection)
	if !ok {
		return nil, fmt.Errorf("collection %q %w", collection, ErrNotFound)
	}
	if info.Schema.Dim != c.schema.Dim {
		return nil, fmt.Errorf("%w: embeddings of %q have %d values, those of %q %d", ErrDim, collection, info.Schema.Dim, c.name, c.schema.Dim)
	}
	dim := c.schema.Dim
	rows := make([]float32, dim*len(keys))
	for i, key := range keys {
		id, ok := v.ID(info.UID, key)
		if !ok {
			return nil, noNodeIn(collection, key)
		}
		if !v.Row(rows[i*dim:(i+1)*dim], info.UID, id) {
			return nil, c.db.noRowIn(v, info, id, key)
		}
	}
	return rows, nil
}
