package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// A paperModel is a trained model as it is kept in a file.
type paperModel struct {
	Dim        int
	Sources    int
	Embeddings []float32 // row-major, a row for each node
	Blob       []byte    // of decoder.Marshal
	decoder    decoder.Decoder
}

// trainedRecord is what became of one training, and how well the model predicts.
type trainedRecord struct {
	Epochs  int                `json:"epochs"` // run
	Best    int                `json:"best"`   // the epoch that was kept
	Stopped string             `json:"stopped"`
	Valid   float64            `json:"valid"`   // MRR among 100 negatives, or with negatives of the data set's own its official Hits@k
	Metrics map[string]float64 `json:"metrics"` // "hits@20", "mrr"
}

// modelKey names a model among the records and files.
func modelKey(graph string, encoder train.EncoderKind, d decoder.Kind, seed int) string {
	return fmt.Sprintf("%s/%s/%s/%d", graph, encoder, d, seed)
}

// trainPaper trains one model with the settings of the graph. A run that was interrupted goes on
// from its checkpoint, a file at path; whoever calls removes it.
func trainPaper(ctx context.Context, p *paperGraph, t paperTraining, o train.Options, path string, log io.Writer) (*train.Model, error) {
	t.apply(&o, p)
	o.Checkpoint, o.Resume = path, true
	told := time.Now()
	o.Progress = func(at train.Progress) {
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Fprintf(log, "%s: %s, epoch %d of %d, loss %.3f, %s of the validation %.3f\n", filepath.Base(path), at.Stage, at.Epoch, at.Epochs, at.Loss, at.Metric, at.Valid)
		}
	}
	m, err := train.Run(ctx, p.g, p.split, o)
	if err == nil {
		err = ctx.Err() // Run returns the best so far of a cancelled run
	}
	return m, err
}

// apply sets the options of a training on a graph.
func (t paperTraining) apply(o *train.Options, p *paperGraph) {
	o.Dim, o.EncoderHidden, o.DecoderHidden = t.Dim, t.Dim, t.Hidden
	o.Epochs, o.BatchEdges, o.LearningRate, o.Dropout, o.WalksPerNode = t.Epochs, t.Batch, t.Rate, t.Dropout, t.Walks
	o.PerLink, o.WeightDecay = 1, -1 // one negative and no decay, as in OGB's examples
	if p.official && len(p.rule.Hits) > 0 {
		o.Negatives = train.Pairs // as there
	}
	o.Patience, o.ValidHits = 20, p.hitsAt()
}

// evaluatePaper ranks the test links by the rule of the graph, with the decoder alone, which the
// tasks of rank have.
func evaluatePaper(ctx context.Context, p *paperGraph, rank func([]train.Edge) *train.Task) (map[string]float64, error) {
	metrics := map[string]float64{}
	if p.negatives != nil {
		task := rank(p.split.Test)
		task.NegativeEdges, task.Hits = p.negatives, p.rule.Hits
		got, err := train.Evaluate(ctx, task)
		if err != nil {
			return nil, err
		}
		for _, k := range p.rule.Hits {
			metrics[hitsName(k)] = got.Hits[k]
		}
	}
	if p.lists != nil {
		task := rank(p.split.Test)
		task.Candidates = p.lists
		got, err := train.Evaluate(ctx, task)
		if err != nil {
			return nil, err
		}
		metrics[mrrName] = got.MRR
	}
	return metrics, nil
}

// mrrName and hitsName name metrics in records.
const mrrName = "mrr"

func hitsName(k int) string { return fmt.Sprintf("hits@%d", k) }

// describeTraining sums a training up.
func describeTraining(m *train.Model) trainedRecord {
	r := trainedRecord{Epochs: len(m.Epochs), Stopped: m.Stopped}
	if m.Best >= 0 && m.Best < len(m.Epochs) {
		r.Best, r.Valid = m.Epochs[m.Best].Epoch, m.Epochs[m.Best].Valid
	}
	return r
}

// savePaperModel writes a model so that the file is there whole or not at all.
func savePaperModel(path string, m *train.Model) error {
	var text bytes.Buffer
	kept := paperModel{Dim: m.Dim, Sources: m.Sources, Embeddings: m.Embeddings, Blob: decoder.Marshal(m.Decoder)}
	if err := gob.NewEncoder(&text).Encode(kept); err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", text.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// loadPaperModel reads a model. It returns nil where there is none.
func loadPaperModel(path string) (*paperModel, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &paperModel{}
	err = errors.Join(gob.NewDecoder(f).Decode(m), f.Close())
	if err == nil {
		m.decoder, err = decoder.Unmarshal(m.Blob)
	}
	if err == nil && (m.Dim != m.decoder.Dim() || len(m.Embeddings)%m.Dim != 0) {
		err = fmt.Errorf("%d values and a decoder of %d dimensions do not fit together", len(m.Embeddings), m.decoder.Dim())
	}
	if err != nil {
		return nil, fmt.Errorf("model %s: %w: remove it, and it is trained anew", path, err)
	}
	return m, nil
}
