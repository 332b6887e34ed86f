package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/train"
)

// What train leaves beside a collection, so that nodes that come later get an embedding from their
// links.
const (
	metaEncoder     = reserved + "encoder"      // the blob of train.Encoder
	metaEncoderUses = reserved + "encoder_uses" // an encoderUses
)

// encoderUses says what a collection's encoder is for.
type encoderUses struct {
	Decoder    string `json:"decoder"`    // that it was trained with, and is of no use without
	Of         string `json:"of"`         // collection of that decoder
	Neighbours string `json:"neighbours"` // collection of the nodes that links lead to, or come from
	Role       string `json:"role"`       // sources or targets of links to the neighbours, or both
	Directed   bool   `json:"directed"`   // both: whether the encoder tells links to a node from links of it
	OneWay     bool   `json:"one_way"`    // both: whether a link is recorded at its source alone
}

const (
	roleSources = "sources"
	roleTargets = "targets"
	roleBoth    = "both"
)

// encodersOf are the uses of a trained encoder, by collection.
func (t *trainRun) encodersOf() map[string]encoderUses {
	uses := encoderUses{Decoder: t.decoderName(0), Of: t.r.collection, Neighbours: t.r.collection, Role: roleBoth, Directed: t.g.Directed, OneWay: !t.bothWays()}
	if t.r.sourceCollection == "" {
		return map[string]encoderUses{t.r.collection: uses}
	}
	targets, sources := uses, uses
	targets.Role, targets.Neighbours = roleTargets, t.r.sourceCollection
	sources.Role = roleSources
	return map[string]encoderUses{t.r.collection: targets, t.r.sourceCollection: sources}
}

// storeEncoder stores the encoder beside a collection.
func (t *trainRun) storeEncoder(ctx context.Context, c collection) error {
	if t.model.Encoder == nil {
		return nil
	}
	blob, err := t.model.Encoder.MarshalBinary()
	if err != nil {
		return err
	}
	uses, err := json.Marshal(t.encodersOf()[c.Name()])
	if err != nil {
		return err
	}
	if err := c.SetMeta(ctx, metaEncoder, string(blob)); err != nil {
		return err
	}
	return c.SetMeta(ctx, metaEncoderUses, string(uses))
}

// readEncoder returns the encoder of a collection and what it is for.
func (a *app) readEncoder(ctx context.Context, db database, c collection) (*train.Encoder, encoderUses, error) {
	var uses encoderUses
	text, err := c.Meta(ctx, metaEncoderUses)
	if err != nil {
		return nil, uses, err
	}
	blob, err := c.Meta(ctx, metaEncoder)
	if err != nil {
		return nil, uses, err
	}
	if text == "" || blob == "" {
		return nil, uses, fmt.Errorf("collection %s has no encoder, which %s stores: %s --embedding stores a node whose embedding is known", c.Name(), a.verb("train"), a.verb("put"))
	}
	if err := json.Unmarshal([]byte(text), &uses); err != nil {
		return nil, uses, fmt.Errorf("what is stored of the encoder of %s is damaged: %w", c.Name(), err)
	}
	of, err := collectionOf(ctx, db, uses.Of)
	if err == nil {
		_, err = of.Decoder(ctx, uses.Decoder)
	}
	if errors.Is(err, flashdb.ErrNotFound) {
		return nil, uses, fmt.Errorf("the encoder of %s is of no use without decoder %s, which is gone: %w", c.Name(), uses.Decoder, err)
	}
	if err != nil {
		return nil, uses, err
	}
	e := new(train.Encoder)
	if err := e.UnmarshalBinary([]byte(blob)); err != nil {
		return nil, uses, fmt.Errorf("encoder of %s: %w", c.Name(), err)
	}
	if e.Dim() != c.Schema().Dim {
		return nil, uses, fmt.Errorf("encoder of %s: %w: it makes embeddings of %d values, the collection holds %d", c.Name(), flashdb.ErrDim, e.Dim(), c.Schema().Dim)
	}
	return e, uses, nil
}
