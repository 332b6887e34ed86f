package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
	"github.com/flashdb/flashdb/train/graph"
)

// triplesRecord is what a knowledge graph has.
type triplesRecord struct {
	Nodes     int `json:"nodes"`
	Relations int `json:"relations"`
	Train     int `json:"train"`
	Valid     int `json:"valid"`
	Test      int `json:"test"`
}

// relationRecord is how well a decoder with relations predicts, filtered, the mean of both ends of
// a triple.
type relationRecord struct {
	MRR  float64         `json:"mrr"`
	Hits map[int]float64 `json:"hits"` // by k
}

// relationKey names a decoder with relations among the records.
func relationKey(name string, kind decoder.Kind, seed int) string {
	return fmt.Sprintf("triples/%s/%s/%d", name, kind, seed)
}

// relationDecoders are the decoders of which one serves all relations.
var relationDecoders = []decoder.Kind{decoder.ComplEx, decoder.DistMult}

// relationHits are the k of the Hits@k that papers on knowledge graphs print.
var relationHits = []int{1, 3, 10}

// triplesFiles are the parts of a knowledge graph in its folder, of lines of head, relation, tail.
var triplesFiles = []struct {
	name string
	part graph.Part
}{{"train.txt", graph.Train}, {"valid.txt", graph.Valid}, {"test.txt", graph.Test}}

// chooseTriples returns the knowledge graphs that are named, or those of the data.
func (f *paperFlags) chooseTriples() ([]string, error) {
	var graphs []string
	if f.triples != "" {
		graphs = strings.Split(f.triples, ",")
	} else {
		for _, name := range []string{"umls", "kinships"} {
			if f.data != "" && isFolder(filepath.Join(f.data, name)) {
				graphs = append(graphs, name)
			}
		}
	}
	for _, name := range graphs {
		for _, file := range triplesFiles {
			if _, err := os.Stat(filepath.Join(f.data, name, file.name)); err != nil {
				return nil, fmt.Errorf("-triples: %w: want train.txt, valid.txt and test.txt in a folder of -data", err)
			}
		}
	}
	return graphs, nil
}

// readTriples reads a knowledge graph.
func readTriples(data, name string) (*graph.Graph, error) {
	b, err := graph.NewBuilder(&graph.Options{Direction: graph.Directed, Relations: true})
	if err != nil {
		return nil, err
	}
	for _, file := range triplesFiles {
		r, err := graph.Open(filepath.Join(data, name, file.name), &graph.ReadOptions{
			Format: "tsv", Columns: graph.Columns{Source: "1", Relation: "2", Target: "3"},
		})
		if err != nil {
			return nil, err
		}
		if err := b.Add(r, file.part); err != nil {
			return nil, err
		}
	}
	return b.Graph()
}

// triples trains the decoders with relations on a knowledge graph, and ranks its test triples.
func (r *paperRun) triples(ctx context.Context, name string, p *paperPage) error {
	var g *graph.Graph
	need := func() (err error) {
		if g == nil {
			g, err = readTriples(r.data, name)
		}
		return err
	}
	var err error
	p.triples[name], err = recorded(r.records, "triples/"+name, func() (triplesRecord, error) {
		if err := need(); err != nil {
			return triplesRecord{}, err
		}
		return triplesRecord{g.Nodes, g.Relations, len(g.Edges), len(g.Valid), len(g.Test)}, nil
	})
	if err != nil {
		return err
	}
	for _, kind := range relationDecoders {
		for seed := 1; seed <= r.settings.Seeds; seed++ {
			key := relationKey(name, kind, seed)
			p.related[key], err = recorded(r.records, key, func() (relationRecord, error) {
				if err := need(); err != nil {
					return relationRecord{}, err
				}
				return relate(ctx, g, kind, seed)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// relate trains one decoder by the defaults of package train, and ranks the test triples from both
// ends among all nodes that make no known triple.
func relate(ctx context.Context, g *graph.Graph, kind decoder.Kind, seed int) (relationRecord, error) {
	split := train.Split{Train: g.Edges, Valid: g.Valid, Test: g.Test}
	m, err := train.Run(ctx, &g.Graph, split, train.Options{Decoder: kind, Seed: uint64(seed)})
	if err != nil {
		return relationRecord{}, err
	}
	task := m.Task(g.Test)
	task.All, task.Known, task.Hits = true, slices.Concat(g.Edges, g.Valid), relationHits
	got, err := train.Evaluate(ctx, task)
	if err != nil {
		return relationRecord{}, err
	}
	return relationRecord{MRR: got.MRR, Hits: got.Hits}, nil
}

// relations writes the section about decoders with relations.
func (p *paperPage) relations(string) error {
	p.heading("Relations")
	if len(p.triples) == 0 {
		p.say("Decoders with relations were not measured: the run had no knowledge graph. The flag -triples names folders with train.txt, valid.txt and test.txt, as PyKEEN has them.")
		return nil
	}
	p.say(`The paper has no relations. Here one decoder serves all relations of a knowledge graph, by package
train with its defaults, and each test triple is ranked from both of its ends among all nodes that make no known triple
with it: the filtered MRR and Hits@k of papers on knowledge graphs. A tie counts half a place. UMLS and
Kinships are split as PyKEEN ships them.`)
	t := table{header: []string{"graph", "nodes", "relations", "training triples", "test", "decoder", "MRR"}}
	for _, k := range relationHits {
		t.header = append(t.header, metricName(hitsName(k)))
	}
	var poor []string // seeds that did not learn what others did
	for _, name := range p.settings.Triples {
		g := p.triples[name]
		for _, kind := range relationDecoders {
			cells := []string{name, grouped(int64(g.Nodes)), fmt.Sprint(g.Relations), grouped(int64(g.Train)), grouped(int64(g.Test)), string(kind)}
			mrr := p.bySeed(name, kind, func(r relationRecord) float64 { return r.MRR })
			cells = append(cells, spread3(mrr))
			if least := slices.Min(mrr); least < slices.Max(mrr)/2 {
				poor = append(poor, fmt.Sprintf("one seed of %s on %s has the MRR %.3f", kind, name, least))
			}
			for _, k := range relationHits {
				cells = append(cells, spread3(p.bySeed(name, kind, func(r relationRecord) float64 { return r.Hits[k] })))
			}
			t.add(cells...)
		}
	}
	p.table(t)
	p.say("Each figure is %s. DistMult scores a triple and its reverse alike, so that it cannot tell the two directions of a relation apart; ComplEx can.", p.seeds())
	if len(poor) > 0 {
		p.say("Not every training learned as much as others with the same options: %s.", strings.Join(poor, "; "))
	}
	return nil
}

// bySeed returns a figure of a decoder with relations, by seed.
func (p *paperPage) bySeed(name string, kind decoder.Kind, figure func(relationRecord) float64) (values []float64) {
	for seed := 1; seed <= p.settings.Seeds; seed++ {
		values = append(values, figure(p.related[relationKey(name, kind, seed)]))
	}
	return values
}
