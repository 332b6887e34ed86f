package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// longRecord is one longer training of a GCN on ogbl-ddi, for a figure nearer to the paper's.
type longRecord struct {
	Training paperTraining      `json:"training"`
	Budget   string             `json:"budget"` // of time, as it was given
	Trained  trainedRecord      `json:"trained"`
	Indexed  map[string]float64 `json:"indexed"` // metrics by what Flashlight retrieves
}

// longPrefix begins the key of the longer training.
const longPrefix = "long/"

// budget writes the time without its zeros.
func (l *longRecord) budget() string { return strings.TrimSuffix(l.Budget, "0s") }

// longTraining is wide enough to learn from many epochs, and narrow enough for some minutes.
var longTraining = paperTraining{Dim: 64, Hidden: []int{64}, Epochs: 200, Batch: 1 << 15, Rate: .01}

// longTrained trains the model, from the checkpoint of an earlier run where there is one.
func (r *paperRun) longTrained(ctx context.Context, budget time.Duration) (*train.Model, error) {
	p, err := r.graph(ddiGraph)
	if err != nil {
		return nil, err
	}
	o := train.Options{Encoder: train.GCN, Decoder: decoder.HadamardMLP, Seed: 1, TimeBudget: budget}
	return trainPaper(ctx, p, longTraining, o, r.path("long", "checkpoint"), r.log)
}

// long measures the longer training.
func (r *paperRun) long(ctx context.Context, budget time.Duration) (longRecord, error) {
	return recorded(r.records, longPrefix+budget.String(), func() (record longRecord, err error) {
		record = longRecord{Training: longTraining, Budget: budget.String()}
		m, err := r.longTrained(ctx, budget)
		if err != nil {
			return record, err
		}
		path := r.path("long", "model")
		if err := savePaperModel(path, m); err != nil {
			return record, err
		}
		record.Trained = describeTraining(m)
		p := r.opened[ddiGraph]
		if record.Trained.Metrics, err = evaluatePaper(ctx, p, m.Task); err != nil {
			return record, err
		}
		kept, err := loadPaperModel(path)
		if err != nil {
			return record, err
		}
		s, err := servePaper(ctx, kept)
		if err != nil {
			return record, err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		found := flashlightRecord{Metrics: map[string]float64{}}
		if err := s.hits(ctx, p, &found); err != nil {
			return record, err
		}
		record.Indexed = found.Metrics
		return record, os.Remove(r.path("long", "checkpoint"))
	})
}
