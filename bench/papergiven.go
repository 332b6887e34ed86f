package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// given stands where an encoder is named, for the embeddings and the decoder in a graph's own
// folder. They were trained for longer than a quick run trains.
const given train.EncoderKind = "given"

// A paperServing is a model whose queries are measured.
type paperServing struct {
	graph   string
	encoder train.EncoderKind
}

// key names the model among the records.
func (s paperServing) key() string { return s.graph + "/" + string(s.encoder) }

// String names the model on the page.
func (s paperServing) String() string {
	return s.graph + " (" + paperNames[string(s.encoder)] + ")"
}

// plot is the file of one of the model's plots.
func (s paperServing) plot(kind string) string {
	if s.encoder == given {
		return "paper-" + kind + "-" + s.graph + "-given.svg"
	}
	return "paper-" + kind + "-" + s.graph + ".svg"
}

// hasGiven reports whether the folder of a graph has a model of its own.
func hasGiven(data, name string) bool {
	if !hasGraph(data, name) {
		return false
	}
	_, err := os.Stat((&dataset{dir: paperFolder(data, name)}).path("decoder.json"))
	return err == nil
}

// noGiven is the value of -given for no graph.
const noGiven = "none"

// chooseGiven returns the graphs whose own models are measured. Those that are named must be there.
func (f *paperFlags) chooseGiven() ([]string, error) {
	switch f.given {
	case noGiven:
		return nil, nil
	case "":
		names := []string{demoGraph}
		if !f.quick {
			names = append(names, "debian", "genes")
		}
		return slices.DeleteFunc(names, func(name string) bool { return !hasGiven(f.data, name) }), nil
	}
	graphs := strings.Split(f.given, ",")
	for _, name := range graphs {
		if !hasGiven(f.data, name) {
			return nil, fmt.Errorf("-given: no embeddings and decoder.json in folder %q: name the folder that holds it by -data or FLASHDB_DATA", paperFolder(f.data, name))
		}
	}
	return graphs, nil
}

// givenModel reads the model in a graph's folder.
func (r *paperRun) givenModel(ctx context.Context, graph string) (*paperModel, error) {
	d, err := openDataset(r.data, graph)
	if err != nil {
		return nil, err
	}
	m := &paperModel{Dim: d.info.Dim, Sources: int(d.info.CandidatesFrom), Blob: decoder.Marshal(d.decoder), decoder: d.decoder}
	m.Embeddings = make([]float32, 0, int(d.info.Nodes)*d.info.Dim)
	err = d.rows(ctx, 0, d.info.Nodes, func(_ int64, values []float32) error {
		m.Embeddings = append(m.Embeddings, values...)
		return nil
	})
	return m, err
}

// task returns what ranks edges by the model's embeddings and a decoder.
func (m *paperModel) task(d decoder.Decoder) func([]train.Edge) *train.Task {
	return func(edges []train.Edge) *train.Task {
		return &train.Task{Decoders: []decoder.Decoder{d}, Dim: m.Dim, Embeddings: m.Embeddings, Sources: m.Sources, Edges: edges}
	}
}

// givenDecoders are the columns of table 2 that a given model has: its own decoder, and the inner
// product of the same embeddings.
var givenDecoders = []decoder.Kind{decoder.Dot, decoder.HadamardMLP}

// givenScore returns how well a given model predicts.
func (r *paperRun) givenScore(ctx context.Context, graph string, kind decoder.Kind) (trainedRecord, error) {
	return recorded(r.records, "train/"+modelKey(graph, given, kind, 1), func() (record trainedRecord, err error) {
		p, err := r.graph(graph)
		if err != nil {
			return record, err
		}
		m, err := r.givenModel(ctx, graph)
		if err != nil {
			return record, err
		}
		d := m.decoder
		if kind == decoder.Dot {
			if d, err = decoder.NewDot(m.Dim); err != nil {
				return record, err
			}
		}
		record.Metrics, err = evaluatePaper(ctx, p, m.task(d))
		return record, err
	})
}
