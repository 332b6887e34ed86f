package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// paperBeyond says which decoders are measured that the paper does not have.
type paperBeyond struct {
	Graph  string   `json:"graph"`
	Models []string `json:"models"` // mol, or layers x width: see deepModel
}

// beyondRecord is the recall of one decoder by the number of rows scored.
type beyondRecord struct {
	Model    string        `json:"model"`
	Decoder  string        `json:"decoder"`
	Weights  int           `json:"weights"`
	Training paperTraining `json:"training"`
	Encoder  string        `json:"encoder"`
	Trained  trainedRecord `json:"trained"`
	Sources  int           `json:"sources"` // asked
	Stored   int           `json:"stored"`  // others, which the learned seeds are made of
	ExactMS  float64       `json:"exact_ms"`
	Rows     []budgetRow   `json:"rows"`
}

// molModel names the mixture of logits.
const molModel = "mol"

// defaultBeyond is the default of -beyond.
const defaultBeyond = molModel + ",5x256"

// deepModel matches the name of a network: its number of layers, the last of which is the logit,
// and the width of the others. It has layer norms, and residuals between layers of one width.
var deepModel = regexp.MustCompile(`^([2-9]|[1-5][0-9])x([1-9][0-9]{0,3})$`)

// parseBeyond checks names of models.
func parseBeyond(names []string) error {
	for _, name := range names {
		if name != molModel && !deepModel.MatchString(name) {
			return fmt.Errorf("-beyond: %q: use %s, or layers x width such as 5x256", name, molModel)
		}
	}
	return nil
}

// beyondGraph is the graph on which they are measured: that of the demo, else the first.
func beyondGraph(graphs []string) string {
	if slices.Contains(graphs, demoGraph) {
		return demoGraph
	}
	return graphs[0]
}

// beyondModel returns how a model is trained, and on how many sources it is measured. A score of
// the widest networks costs as much as thousands of others, so that fewer sources are asked.
func (s *paperSettings) beyondModel(name string, seed int) (t paperTraining, o train.Options, sources, stored int) {
	t = s.Training[s.Beyond.Graph]
	o = train.Options{Encoder: s.Encoders[0], Seed: uint64(seed)}
	parts := deepModel.FindStringSubmatch(name)
	if parts == nil {
		o.Decoder, t.Hidden = decoder.MoL, []int{2 * t.Dim}
		return t, o, min(60, s.Timed), min(256, s.Learned)
	}
	layers, _ := strconv.Atoi(parts[1])
	width, _ := strconv.Atoi(parts[2])
	o.Decoder, o.DecoderNorm, o.DecoderResidual = decoder.HadamardMLP, true, true
	t.Hidden, t.Rate, t.Epochs = nil, min(t.Rate, .003), min(t.Epochs, 20)
	sources, stored = min(20, s.Timed), min(96, s.Learned)
	for range layers - 1 {
		t.Hidden = append(t.Hidden, width)
	}
	if t.wide() {
		t.Epochs, sources, stored = min(t.Epochs, 2), 8, 32
		if s.Quick {
			t.Epochs = 1
		}
	}
	return t, o, sources, stored
}

// A decoder of more weights than wideWeights is measured on fewer links.
const (
	wideWeights = 1 << 21
	wideLinks   = 200
)

// wide reports whether a score of the decoder costs so much that fewer are computed.
func (t paperTraining) wide() bool { return len(t.Hidden)*t.Hidden[0]*t.Hidden[0] > wideWeights }

// fewer returns the graph with what one metric needs, the MRR where there is one, and with fewer
// held-out links for a wide decoder.
func (p *paperGraph) fewer(t paperTraining) *paperGraph {
	q := *p
	if q.lists != nil {
		q.negatives = nil
	}
	if t.wide() {
		q.split.Valid = q.split.Valid[:min(wideLinks, len(q.split.Valid))]
		if q.split.ValidCandidates != nil {
			q.split.ValidCandidates = q.split.ValidCandidates[:len(q.split.Valid)]
		}
		q.split.Test = q.split.Test[:min(wideLinks, len(q.split.Test))]
		if q.lists != nil {
			q.lists = q.lists[:len(q.split.Test)]
		}
	}
	return &q
}

// beyond trains one decoder with the first encoder, and measures it: rows are found by exact inner
// products, without an index.
func (r *paperRun) beyond(ctx context.Context, name string) (beyondRecord, error) {
	return recorded(r.records, "beyond/"+r.settings.Beyond.Graph+"/"+name, func() (beyondRecord, error) {
		t, o, sources, stored := r.settings.beyondModel(name, 1)
		record := beyondRecord{Model: name, Training: t, Encoder: string(o.Encoder), Sources: sources, Stored: stored}
		p, err := r.graph(r.settings.Beyond.Graph)
		if err != nil {
			return record, err
		}
		p = p.fewer(t)
		m, err := r.trainKept(ctx, p, "beyond/"+r.settings.Beyond.Graph+"/"+name, t, o)
		if err != nil {
			return record, err
		}
		record.Trained, record.Decoder = describeTraining(m), fmt.Sprint(m.Decoder)
		for _, tensor := range m.Decoder.Tensors() {
			record.Weights += len(tensor.Data)
		}
		if record.Trained.Metrics, err = evaluatePaper(ctx, p, m.Task); err != nil {
			return record, err
		}
		b, err := newBudgetBench(ctx, m.Decoder, m.Embeddings, paperK, sources, 1)
		if err != nil {
			return record, err
		}
		record.Sources, record.Stored = len(b.asked), min(stored, len(b.others))
		record.ExactMS = b.exactTime.Seconds() * 1000
		record.Rows, err = b.measure(ctx, stored)
		return record, err
	})
}

// row returns the recalls of one way to find rows, nil where it was not measured.
func (b *beyondRecord) row(name string) *budgetRow {
	for i := range b.Rows {
		if b.Rows[i].Name == name {
			return &b.Rows[i]
		}
	}
	return nil
}
