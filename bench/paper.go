package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// paperFlags are what the paper command takes.
type paperFlags struct {
	data, graphs, given, encoders, beyond, triples string
	quick                                          bool
	seeds                                          int
	long                                           time.Duration
	dir, records, out                              string
}

// A paperRun reproduces the Flashlight paper: it trains models, measures, and writes a page.
type paperRun struct {
	settings paperSettings
	data     string
	dir      string // models, checkpoints and indexes
	records  *paperRecords
	log      io.Writer
	opened   map[string]*paperGraph

	serving   *paperServed // the model that is kept behind an index, or nil
	servingAt paperServing
}

func paperCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var f paperFlags
	fs := newFlags("paper", stderr)
	fs.StringVar(&f.data, "data", os.Getenv("FLASHDB_DATA"), "`folder` that holds one folder per graph, OGB's as OGB lays them out (default $FLASHDB_DATA; "+demoGraph+" needs none)")
	fs.StringVar(&f.graphs, "graphs", "", "`names` of graphs, with commas between them (default go-stdlib and ogbl-ddi; without -quick OGB's four, or what stands in for those that are not there)")
	fs.StringVar(&f.given, "given", "", "`names` of graphs whose folder's own embeddings and decoder are measured too, with commas between them, or "+noGiven+" (default go-stdlib; without -quick debian and genes too, where they are)")
	fs.StringVar(&f.encoders, "encoders", "gcn,sage,node2vec", "`names` of encoders, with commas between them")
	fs.StringVar(&f.beyond, "beyond", defaultBeyond, "`decoders` that the paper does not have, with commas between them: mol, or layers x width")
	fs.StringVar(&f.triples, "triples", "", "`names` of knowledge graphs, with commas between them: folders of -data with train.txt, valid.txt and test.txt (default umls and kinships, where they are)")
	fs.BoolVar(&f.quick, "quick", false, "small models, few epochs, fewer sources: some minutes in place of days")
	fs.IntVar(&f.seeds, "seeds", 0, "models per cell of table 2 (default 3, with -quick 1)")
	fs.DurationVar(&f.long, "long", 0, "train a GCN on ogbl-ddi for so `long` beside the others, for a figure nearer to the paper's")
	fs.StringVar(&f.dir, "dir", "", "`folder` of models and checkpoints; a run that was killed goes on from there (default: one in the temporary folder)")
	fs.StringVar(&f.records, "records", "", "`file` of what is finished: the same command goes on behind it (default: beside the page)")
	fs.StringVar(&f.out, "out", filepath.Join("..", "docs", "paper.md"), "Markdown `file` to write; plots go to img beside it")
	if err := parse(fs, args); err != nil {
		return err
	}
	r, err := newPaperRun(&f, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.release(), r.records.Close()) }()
	if err := r.records.belongs(r.settings); err != nil {
		return err
	}
	page, err := r.measure(ctx, f.long)
	if err != nil {
		return err
	}
	if err := page.write(f.out); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "wrote %s\n", f.out)
	return nil
}

// newPaperRun checks the flags and opens the records.
func newPaperRun(f *paperFlags, log io.Writer) (*paperRun, error) {
	if f.seeds < 0 || f.seeds > 100 {
		return nil, fmt.Errorf("-seeds is %d: want 1 to 100", f.seeds)
	}
	if f.long != 0 && (f.long < 0 || !hasGraph(f.data, ddiGraph)) {
		return nil, fmt.Errorf("-long is %v: want a time, and a folder %s of -data or FLASHDB_DATA", f.long, ddiGraph)
	}
	encoders, err := parseEncoders(strings.Split(f.encoders, ","))
	if err != nil {
		return nil, err
	}
	beyond := strings.FieldsFunc(f.beyond, func(c rune) bool { return c == ',' })
	if err := parseBeyond(beyond); err != nil {
		return nil, err
	}
	graphs, err := f.chooseGraphs()
	if err != nil {
		return nil, err
	}
	own, err := f.chooseGiven()
	if err != nil {
		return nil, err
	}
	triples, err := f.chooseTriples()
	if err != nil {
		return nil, err
	}
	r := &paperRun{
		settings: newPaperSettings(f.quick, graphs, encoders, f.seeds),
		data:     f.data, dir: f.dir, log: log, opened: map[string]*paperGraph{},
	}
	r.settings.Given, r.settings.Triples = own, triples
	r.settings.Beyond = paperBeyond{Graph: beyondGraph(graphs), Models: beyond}
	if r.dir == "" {
		r.dir = filepath.Join(os.TempDir(), "flashdb-paper")
		if f.quick {
			r.dir += "-quick"
		}
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return nil, err
	}
	if f.records == "" {
		f.records = strings.TrimSuffix(f.out, ".md") + "-data.jsonl"
	}
	r.records, err = openPaperRecords(f.records, log)
	return r, err
}

// chooseGraphs returns the graphs of the run. Those that are named must be there.
func (f *paperFlags) chooseGraphs() ([]string, error) {
	if f.graphs != "" {
		graphs := strings.Split(f.graphs, ",")
		for _, name := range graphs {
			if !hasGraph(f.data, name) {
				return nil, fmt.Errorf("-graphs: no folder %q: name the folder that holds it by -data or FLASHDB_DATA", paperFolder(f.data, name))
			}
		}
		return graphs, nil
	}
	choices := [][]string{{demoGraph}, {ddiGraph}}
	if !f.quick {
		choices = [][]string{{"ogbl-collab", "go-stdlib"}, {ddiGraph}, {"ogbl-ppa", "debian"}, {"ogbl-citation2", "genes"}}
	}
	var graphs []string
	for _, names := range choices {
		at := slices.IndexFunc(names, func(name string) bool { return hasGraph(f.data, name) })
		if at >= 0 {
			graphs = append(graphs, names[at])
		}
	}
	if len(graphs) == 0 {
		return nil, fmt.Errorf("-data: %s holds none of %s", f.data, strings.Join(slices.Concat(choices...), ", "))
	}
	return graphs, nil
}

// graph returns a graph, which is read when it is first needed.
func (r *paperRun) graph(name string) (*paperGraph, error) {
	if p, ok := r.opened[name]; ok {
		return p, nil
	}
	fmt.Fprintf(r.log, "%s: reading\n", name)
	p, err := openPaperGraph(r.data, name, r.settings.Links)
	if err == nil {
		r.opened[name] = p
	}
	return p, err
}

// train trains a model of table 2.
func (r *paperRun) train(ctx context.Context, graph string, encoder train.EncoderKind, d decoder.Kind, seed int) (*train.Model, error) {
	p, err := r.graph(graph)
	if err != nil {
		return nil, err
	}
	o := train.Options{Encoder: encoder, Decoder: d, Seed: uint64(seed)}
	return r.trainKept(ctx, p, modelKey(graph, encoder, d, seed), r.settings.Training[graph], o)
}

// trainKept trains a model, from the checkpoint of a run that was killed where there is one.
func (r *paperRun) trainKept(ctx context.Context, p *paperGraph, key string, t paperTraining, o train.Options) (*train.Model, error) {
	path := r.path(key, "checkpoint")
	m, err := trainPaper(ctx, p, t, o, path, r.log)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	return m, nil
}

// path is that of a file of the run.
func (r *paperRun) path(key, kind string) string {
	return filepath.Join(r.dir, strings.ReplaceAll(key, "/", "-")+"."+kind)
}

// trained returns how well a model predicts: from the records, or of one trained now. Models with a
// HadamardMLP are kept for what is measured later.
func (r *paperRun) trained(ctx context.Context, graph string, encoder train.EncoderKind, d decoder.Kind, seed int) (trainedRecord, error) {
	key := modelKey(graph, encoder, d, seed)
	return recorded(r.records, "train/"+key, func() (trainedRecord, error) {
		m, err := r.train(ctx, graph, encoder, d, seed)
		if err != nil {
			return trainedRecord{}, err
		}
		if d == decoder.HadamardMLP {
			if err := savePaperModel(r.path(key, "model"), m); err != nil {
				return trainedRecord{}, err
			}
		}
		t := describeTraining(m)
		t.Metrics, err = evaluatePaper(ctx, r.opened[graph], m.Task)
		return t, err
	})
}

// model returns the model with a HadamardMLP, trained anew where its file is gone, or the one that
// is given.
func (r *paperRun) model(ctx context.Context, graph string, encoder train.EncoderKind, seed int) (*paperModel, error) {
	if encoder == given {
		return r.givenModel(ctx, graph)
	}
	path := r.path(modelKey(graph, encoder, decoder.HadamardMLP, seed), "model")
	m, err := loadPaperModel(path)
	if m != nil || err != nil {
		return m, err
	}
	trained, err := r.train(ctx, graph, encoder, decoder.HadamardMLP, seed)
	if err != nil {
		return nil, err
	}
	if err := savePaperModel(path, trained); err != nil {
		return nil, err
	}
	return loadPaperModel(path)
}
