package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// paperSettings say what a run of the paper command trains and measures. The records of a run hold
// them.
type paperSettings struct {
	Recipe   int                      `json:"recipe"` // paperRecipe
	Quick    bool                     `json:"quick"`
	Graphs   []string                 `json:"graphs"` // on which models are trained
	Given    []string                 `json:"given"`  // whose folder's own embeddings and decoder are measured too
	Seeds    int                      `json:"seeds"`  // models per cell of table 2
	Encoders []train.EncoderKind      `json:"encoders"`
	Training map[string]paperTraining `json:"training"` // by graph
	Links    int                      `json:"links"`    // test links of a graph without a split of its own; 0: all
	Sources  int                      `json:"sources"`  // asked for a recall; the paper has 1,000
	Ablated  int                      `json:"ablated"`  // of them, asked for the ablation
	Timed    int                      `json:"timed"`    // sources asked for a speed
	Learned  int                      `json:"learned"`  // sources that learned seeds are made of
	Fit      paperFit                 `json:"fit"`
	Beyond   paperBeyond              `json:"beyond"`
	Triples  []string                 `json:"triples"` // knowledge graphs
	Probe    time.Duration            `json:"probe"`   // that a training of the full run is begun for, to tell its hours; 0: it is not
}

// paperTraining shapes the models of one graph.
type paperTraining struct {
	Dim     int     `json:"dim"`    // of an embedding and of the encoder's hidden layer
	Hidden  []int   `json:"hidden"` // layers of the decoder
	Epochs  int     `json:"epochs"`
	Batch   int     `json:"batch"` // links per step
	Rate    float64 `json:"rate"`
	Dropout float64 `json:"dropout"`
	Walks   int     `json:"walks"` // node2vec: walks per node
	One     bool    `json:"one"`   // the first encoder alone: the graph is large
}

// paperFit shapes what appendix A learns.
type paperFit struct {
	Dims    []int `json:"dims"`
	Samples []int `json:"samples"`
	Hidden  int   `json:"hidden"`
	Epochs  int   `json:"epochs"`
	Repeats int   `json:"repeats"`
}

// paperDecoders are the columns of table 2 that are trained, in the paper's order.
var paperDecoders = []decoder.Kind{decoder.Dot, decoder.Bilinear, decoder.ConcatMLP, decoder.HadamardMLP}

// The encoders of table 2, and what the page calls encoders and decoders.
var (
	paperEncoders = []train.EncoderKind{train.GCN, train.SAGE, train.Node2Vec}
	paperNames    = map[string]string{
		"gcn": "GCN", "sage": "SAGE", "node2vec": "node2vec", string(given): "given",
		"dot": "Dot", "bilinear": "Bilinear", "concat_mlp": "ConcatMLP", "hadamard_mlp": "HadamardMLP",
	}
)

// paperRecipe numbers what settings do not say of a training. Another one makes other models, so
// that a run does not go on with records of an earlier one. 2: with OGB's negatives Hits@k chooses
// the epoch, and both ends of a training negative are drawn. 3: a negative that is a link is drawn
// anew at both ends. 4: a GCN begins as OGB's example does. 5: it begins as a SAGE does again, and
// the relations of DistMult begin with any values.
const paperRecipe = 5

// fullSeeds is the number of models per cell of table 2 that a full run has by default.
const fullSeeds = 3

// paperK is the number of true best rows that all recalls but that of table 2 are shares of.
const paperK = 100

// newPaperSettings returns the settings of a quick or a full run.
func newPaperSettings(quick bool, graphs []string, encoders []train.EncoderKind, seeds int) paperSettings {
	s := paperSettings{
		Recipe: paperRecipe, Quick: quick, Graphs: graphs, Seeds: seeds, Encoders: encoders, Training: map[string]paperTraining{},
		Sources: 1000, Ablated: 1000, Timed: 200, Learned: 512,
		Fit: paperFit{Dims: []int{64, 128}, Samples: []int{1_000, 3_000, 10_000, 30_000}, Hidden: 64, Epochs: 50, Repeats: 5},
	}
	if quick {
		s.Probe = 8 * time.Second
		s.Links, s.Ablated, s.Timed, s.Learned = 1000, 200, 60, 256
		s.Fit = paperFit{Dims: []int{64, 128}, Samples: []int{300, 1_000, 3_000, 10_000}, Hidden: 32, Epochs: 20, Repeats: 5}
	}
	if seeds == 0 {
		s.Seeds = fullSeeds
		if quick {
			s.Seeds = 1
		}
	}
	for _, g := range graphs {
		s.Training[g] = newPaperTraining(quick, g)
	}
	return s
}

// trainedOn returns the encoders that are trained on a graph.
func (s *paperSettings) trainedOn(graph string) []train.EncoderKind {
	switch {
	case !slices.Contains(s.Graphs, graph):
		return nil
	case s.Training[graph].One:
		return s.Encoders[:1]
	}
	return s.Encoders
}

// encodersOf returns what a graph has models of: those that are trained, and the one that is given.
func (s *paperSettings) encodersOf(graph string) []train.EncoderKind {
	encoders := slices.Clone(s.trainedOn(graph))
	if slices.Contains(s.Given, graph) {
		encoders = append(encoders, given)
	}
	return encoders
}

// seedsOf returns how many models per cell of table 2 there are.
func (s *paperSettings) seedsOf(encoder train.EncoderKind) int {
	if encoder == given {
		return 1
	}
	return s.Seeds
}

// all returns the graphs of the run, trained or given.
func (s *paperSettings) all() []string {
	graphs := slices.Clone(s.Graphs)
	for _, g := range s.Given {
		if !slices.Contains(graphs, g) {
			graphs = append(graphs, g)
		}
	}
	return graphs
}

// served returns the models whose queries are measured: of each graph that of the first encoder,
// and the one that is given.
func (s *paperSettings) served() (models []paperServing) {
	for _, g := range s.all() {
		for _, e := range s.encodersOf(g) {
			if e == s.Encoders[0] || e == given {
				models = append(models, paperServing{g, e})
			}
		}
	}
	return models
}

// newPaperTraining returns how models of a graph are trained. The full runs of OGB's data sets have
// the widths, rates, dropout and epochs of OGB's examples.
func newPaperTraining(quick bool, graph string) paperTraining {
	t := paperTraining{Dim: 256, Hidden: []int{256, 256}, Epochs: 100, Batch: 1 << 16, Rate: .001, Walks: 10}
	switch {
	case quick && graph == ddiGraph:
		return paperTraining{Dim: 32, Hidden: []int{32}, Epochs: 4, Batch: 1 << 15, Rate: .03, Dropout: .5, Walks: 30}
	case quick && graph == "genes":
		return paperTraining{Dim: 32, Hidden: []int{32, 32}, Epochs: 3, Batch: 1 << 16, Rate: .01, Walks: 1, One: true}
	case quick && graph == "debian":
		return paperTraining{Dim: 32, Hidden: []int{32, 32}, Epochs: 5, Batch: 1 << 13, Rate: .01, Walks: 1}
	case quick:
		return paperTraining{Dim: 32, Hidden: []int{32, 32}, Epochs: 5, Batch: 1 << 12, Rate: .01, Walks: 2}
	case graph == ddiGraph:
		t.Hidden, t.Epochs, t.Rate, t.Dropout = []int{256}, 200, .005, .5
	case graph == "ogbl-collab":
		t.Epochs = 400
	case graph == "ogbl-ppa":
		t.Epochs, t.Rate = 20, .01
	case graph == "ogbl-citation2":
		t.Epochs, t.Rate = 50, .0005
	case graph == "go-stdlib" || graph == "debian":
		t.Dim, t.Hidden, t.Batch, t.Rate = 128, []int{128, 128}, 1<<13, .005
	case graph == "genes":
		t.Dim, t.Hidden, t.Epochs = 64, []int{128, 128}, 20
	}
	return t
}

// parseEncoders reads a list of encoders with commas between them.
func parseEncoders(names []string) ([]train.EncoderKind, error) {
	var kinds []train.EncoderKind
	for _, name := range names {
		kind := train.EncoderKind(name)
		if !slices.Contains(paperEncoders, kind) {
			return nil, fmt.Errorf("-encoders: %q: use gcn, sage or node2vec", name)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}
