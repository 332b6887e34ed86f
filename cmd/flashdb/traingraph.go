package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/codec"
	"github.com/flashdb/flashdb/train"
	"github.com/flashdb/flashdb/train/graph"
)

const (
	defaultHeldOut = 0.05   // share of the edges for validation, and for the test
	mostTest       = 10_000 // edges: more cost time and hardly change a mean
)

// readGraph reads the files and deals the edges.
func (t *trainRun) readGraph(ctx context.Context) error {
	opts := graph.Options{
		TwoKinds:    t.r.sourceCollection != "",
		Direction:   t.r.direction(),
		Relations:   t.r.opts.Decoder == decoder.DistMult || t.r.opts.Decoder == decoder.ComplEx || t.r.opts.Decoder == "",
		Times:       t.r.split == "time",
		MemoryBytes: t.r.memory.orFree(),
		Progress:    func(file string, lines int64) { t.r.progress.Update("read "+file, lines, 0) },
	}
	t.r.opts.MemoryBytes = opts.MemoryBytes
	isOGB := graph.IsOGB(t.r.edges.file)
	if isOGB {
		if err := t.r.validateOGB(); err != nil {
			return err
		}
	}
	var err error
	if t.r.keysFile != "" {
		if opts.Nodes, err = t.readKeys(); err != nil {
			return err
		}
		opts.ByNumber = t.r.byRow || t.r.edges.isNumbered()
	}
	if isOGB {
		t.g, err = graph.ReadOGB(t.r.edges.file, &opts)
	} else {
		t.g, err = t.readFiles(ctx, &opts)
	}
	if err != nil {
		return err
	}
	if t.g.Relations > 0 && t.r.opts.Decoder == "" {
		t.r.opts.Decoder = decoder.ComplEx
	}
	if t.r.sourceFeatures != "" {
		if err := t.readFeatures(t.r.sourceFeatures, t.g.SetSourceFeatures); err != nil {
			return err
		}
		t.sourceFeatureDim = t.g.FeatureDim
	}
	if t.r.features != "" {
		if err := t.readFeatures(t.r.features, t.g.SetFeatures); err != nil {
			return err
		}
	}
	return t.deal()
}

// direction is what the flags say of edges.
func (r *trainRequest) direction() graph.Direction {
	switch {
	case r.directed:
		return graph.Directed
	case r.undirected:
		return graph.Undirected
	}
	return graph.FindOut
}

// readFiles reads the edges to train on, and those held out by files of their own.
func (t *trainRun) readFiles(ctx context.Context, opts *graph.Options) (*graph.Graph, error) {
	b, err := graph.NewBuilder(opts)
	if err != nil {
		return nil, err
	}
	for _, of := range []struct {
		file string
		part graph.Part
	}{{t.r.edges.file, graph.Train}, {t.r.validFile, graph.Valid}, {t.r.testFile, graph.Test}} {
		if of.file == "" {
			continue
		}
		s := t.r.edges
		s.file = of.file
		if of.part != graph.Train {
			s.format = "" // a file of its own has a name of its own
			if l := b.Layout(); s.columns == (graph.Columns{}) && !l.Header && l.Columns.Relation != "" {
				s.columns = l.Columns // too few lines may not show which is the relation
			}
		}
		if err := t.addFile(b, s, of.part); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return b.Graph()
}

func (t *trainRun) addFile(b *graph.Builder, s edgeSource, part graph.Part) (err error) {
	if info, err := os.Stat(s.file); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory, and not one of OGB, which has split/*/test.pt: name a file of edges", show.Text(s.file))
	}
	byTime := t.r.split == "time" && part == graph.Train
	r, remove, err := t.openEdgeSource(s, byTime)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if byTime && r.Layout().Columns.Time == "" {
		return errors.Join(fmt.Errorf("%s has no column of times that --split time could find: --time-column names one", s.name()), r.Close())
	}
	err = b.Add(r, part)
	if unknown := (*graph.UnknownNode)(nil); errors.As(err, &unknown) {
		return fmt.Errorf("%w: --keys %s has all nodes; if edges name them by their row number, say --ids", err, show.Text(t.r.keysFile))
	}
	return err
}

// A featureSetter is a method of graph.Graph.
type featureSetter func(name string, dim int, next func(dst []float32) (key string, ok bool, err error)) (unused int, err error)

// readFeatures gives nodes the features of a file.
func (t *trainRun) readFeatures(path string, set featureSetter) (err error) {
	file, err := t.openInput(path, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.remove()) }()
	rows, err := file.rows(codec.Columns{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if need := 4 * int64(t.g.Nodes) * int64(t.g.FeatureDim+rows.Dim()); t.r.opts.MemoryBytes > 0 && need > t.r.opts.MemoryBytes {
		return fmt.Errorf("%s: %s of %s take %s, more than the memory allowed", file.name,
			show.Count(t.g.Nodes, "row"), show.Count(rows.Dim(), "feature"), show.Bytes(need))
	}
	row := 0
	unused, err := set(file.name, rows.Dim(), func(dst []float32) (string, bool, error) {
		meta, err := rows.Next(dst)
		if errors.Is(err, io.EOF) {
			return "", false, nil
		}
		if err != nil {
			return "", false, err
		}
		key := meta.Key
		if !meta.HasKey && t.named && row < len(t.g.Keys) {
			key = t.g.Keys[row] // a row of the --keys file
		}
		row++
		return key, true, nil
	})
	t.report.UnusedFeatures += unused
	return err
}

// deal splits the edges.
func (t *trainRun) deal() (err error) {
	if t.r.newNodes > 0 {
		if t.cold, err = newColdStart(t, float64(t.r.newNodes)); err != nil {
			return err
		}
	}
	valid, test := defaultHeldOut, min(defaultHeldOut, float64(mostTest)/float64(len(t.g.Edges)))
	if t.r.validShare > 0 {
		valid = float64(t.r.validShare)
	}
	if t.r.testShare > 0 {
		test = float64(t.r.testShare)
	}
	seed := t.r.opts.Seed
	switch {
	case t.r.split == "time":
		t.split, err = t.g.SplitByTime(valid, test)
		t.report.Split.How = "the latest edges"
	case t.r.testFile != "" || t.r.validFile != "" || t.g.Test != nil:
		t.report.Split.How = "given"
		if t.r.validFile != "" && len(t.g.Valid) == 0 {
			return fmt.Errorf("--valid: %s", t.noneLeft(t.r.validFile))
		}
		if t.g.Valid != nil {
			valid = 0
		}
		if t.r.testFile != "" || t.g.Test != nil {
			test = 0
		}
		t.split = train.RandomSplit(&t.g.Graph, valid, test, seed)
		if t.g.Valid != nil {
			t.split.Valid, t.split.ValidNegatives, t.split.ValidCandidates = t.g.Valid, t.g.ValidNegatives, t.g.ValidCandidates
			t.r.opts.ValidHits = t.g.HitsAt
		}
		if test == 0 {
			t.split.Test = t.g.Test
		}
	default:
		t.report.Split.How = "random"
		t.split = train.RandomSplit(&t.g.Graph, valid, test, seed)
	}
	if err != nil {
		return err
	}
	s := t.split
	if len(s.Train) == 0 {
		return fmt.Errorf("all edges are held out, %s for validation and %s to measure: hold out a smaller share",
			show.Number(len(s.Valid)), show.Number(len(s.Test)))
	}
	t.report.Split.Train, t.report.Split.Valid, t.report.Split.Test = len(s.Train), len(s.Valid), len(s.Test)
	return nil
}
