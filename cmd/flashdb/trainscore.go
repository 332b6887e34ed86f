package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/wire"
)

// metaScore is the name of what train measured of a model, beside the collection of its decoder.
const metaScore = reserved + "score"

// A storedScore is what train measured of a decoder on edges held out. It is stored by package
// wire: the name of a decoder may be any bytes.
type storedScore struct {
	Decoder  string          `json:"decoder"`
	Weights  uint32          `json:"weights"` // checksum: another decoder of that name has no score
	Text     string          `json:"text"`
	HeldOut  json.RawMessage `json:"held_out"`
	Dot      json.RawMessage `json:"dot"`
	NewNodes json.RawMessage `json:"new_nodes,omitempty"`
}

func checksumOf(d decoder.Decoder) uint32 { return crc32.ChecksumIEEE(decoder.Marshal(d)) }

// score is the stored score of the model, "" where nothing was measured.
func (t *trainRun) score() (string, error) {
	r := t.report
	if r.HeldOut == nil {
		return "", nil
	}
	s := storedScore{Decoder: t.r.decoderName, Weights: checksumOf(t.model.Decoder)}
	s.Text = fmt.Sprintf("%s, of %s held out, ranked among %s; inner product %s",
		r.HeldOut.line(), show.Count(r.HeldOut.Edges, "edge"), r.HeldOut.Against, r.Dot.line())
	var err error
	for _, part := range []struct {
		of   *jsonMetrics
		into *json.RawMessage
	}{{r.HeldOut, &s.HeldOut}, {r.Dot, &s.Dot}, {r.NewNodes, &s.NewNodes}} {
		if part.of == nil {
			continue
		}
		whole := *part.of
		whole.Degrees = nil
		if *part.into, err = json.Marshal(&whole); err != nil {
			return "", err
		}
	}
	text, err := wire.Encode(s)
	return string(text), err
}

// line is the scores with commas between them.
func (s scores) line() string { return strings.ReplaceAll(s.text(), "\t", ", ") }

// first is the first of the metrics.
func (s *storedScore) first() string {
	metric, _, _ := strings.Cut(s.Text, ",")
	return metric
}

// scoreOf returns what train measured of a decoder of a collection that is still there, or nil.
func scoreOf(ctx context.Context, c collection) (*storedScore, error) {
	text, err := c.Meta(ctx, metaScore)
	if err != nil || text == "" {
		return nil, err
	}
	s := new(storedScore)
	if wire.Decode([]byte(text), s, false) != nil {
		return nil, nil // of a later version
	}
	d, err := c.Decoder(ctx, s.Decoder)
	switch {
	case errors.Is(err, flashdb.ErrNotFound):
		return nil, nil // it has gone
	case err != nil:
		return nil, err
	case checksumOf(d) != s.Weights:
		return nil, nil // it has changed
	}
	return s, nil
}
