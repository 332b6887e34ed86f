package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
)

const (
	demoCollection = "stdlib"
	demoDecoderAs  = "mentions"
	demoHits       = 5
	demoSources    = 100 // asked for the recall
	demoCases      = 100 // logits of PyTorch that the decoder must reproduce

	demoCalibrateTime = 2 * time.Second
)

// demoSymbols are declarations that many readers know.
var demoSymbols = []string{
	"net/http.ListenAndServe",
	"crypto/tls.Dial",
	"sync.(*Mutex).Lock",
	"html/template.New",
	"bytes.Buffer",
}

func (a *app) demoCommand() *cobra.Command {
	var dir string
	var train bool
	cmd := &cobra.Command{
		Use:   "demo [--dir DIR] [--train]",
		Short: "Predict links in Go's standard library, which needs no data",
		Long: `Demo builds a database of the 33,445 declarations of Go's standard library and what they
mention, with a decoder trained on it, and predicts new neighbours of a few well-known
symbols. It needs neither network nor files, and leaves the database behind.

With --train it also trains a model of its own on the same edges, which takes two cores about
15 seconds, and shows its predictions beside.`,
		Args: usage.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.demo(cmd.Context(), dir, train)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "build the database in this new or empty `directory` (default: a temporary one)")
	cmd.Flags().BoolVar(&train, "train", false, "train a model on the same edges, and show its predictions too")
	return cmd
}

func (a *app) demo(ctx context.Context, dir string, train bool) error {
	dir, err := demoDir(dir)
	if err != nil {
		return err
	}
	d := demo{app: a, report: demoReport{Dir: dir, Collection: demoCollection}}
	d.printIntro()
	if err := d.build(ctx); err != nil {
		return err
	}
	if train {
		if err := d.train(ctx); err != nil {
			return err
		}
	}
	// Opened again, from disk, with one worker: queries use one thread, and so must the exact scan
	// they are compared with.
	err = a.withCollection(ctx, dir, demoCollection, flashdb.Options{Workers: 1}, func(db database, c collection) error {
		if err := d.predict(ctx, db, c); err != nil {
			return err
		}
		return d.measure(ctx, c)
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(d.report)
	}
	return d.printNext()
}

// demoDir returns a directory for the database: a given one that is empty or not there yet, or a
// temporary one.
func demoDir(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "flashdb-demo-")
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("--dir %s is not empty: name a new directory", dir)
	}
	return dir, nil
}

// A demo is one run of the demo. It prints as it goes, and fills its report.
type demo struct {
	*app
	report demoReport
}

// A demoReport is what `demo --json` prints.
type demoReport struct {
	Dir        string       `json:"dir"`
	Collection string       `json:"collection"`
	Nodes      int64        `json:"nodes"`
	Links      int          `json:"links"` // in both directions
	Decoder    jsonDecoder  `json:"decoder"`
	Lists      int          `json:"lists"`
	IndexBytes int64        `json:"index_bytes"`
	BuildMS    float64      `json:"build_ms"`
	Symbols    []demoSymbol `json:"symbols"`
	Eval       evalReport   `json:"eval"`
	Trained    *trainReport `json:"trained,omitempty"` // the model of --train
}

// build makes the database.
func (d *demo) build(ctx context.Context) error {
	start := time.Now()
	if err := d.createCollection(ctx, d.report.Dir, demoCollection, flashdb.Schema{Dim: 64}); err != nil {
		return err
	}
	err := d.withCollection(ctx, d.report.Dir, demoCollection, flashdb.Options{CalibrateTime: demoCalibrateTime}, func(_ database, c collection) error {
		return d.load(ctx, c)
	})
	d.report.BuildMS = show.Millis(time.Since(start))
	return err
}

func (d *demo) load(ctx context.Context, c collection) (err error) {
	start := time.Now()
	step := func(format string, args ...any) {
		d.printStep(fmt.Sprintf(format, args...), time.Since(start))
		start = time.Now()
	}
	if d.report.Nodes, err = d.importRows(ctx, c, demoImporter()); err != nil {
		return err
	}
	step("imported %s, embeddings of %d dimensions", show.Count(d.report.Nodes, "declaration"), c.Schema().Dim)

	links, err := d.readLinks(ctx, c, c, demoTable("train.tsv.zst"), edgeFlags{byRow: true, undirected: true})
	if err != nil {
		return err
	}
	if err := d.inBatches(ctx, "link", links, c.Link); err != nil {
		return err
	}
	d.report.Links = len(links.pairs)
	step("linked   %s, in both directions", show.Count(links.edges, "reference"))

	dec, err := demoDecoder()
	if err != nil {
		return err
	}
	checked, err := d.selfCheck(ctx, c, dec)
	if err != nil {
		return err
	}
	if err := c.PutDecoder(ctx, demoDecoderAs, dec); err != nil {
		return err
	}
	d.report.Decoder = newJSONDecoder(demoDecoderAs, dec, &checked)
	step("added    decoder %s: %d logits equal PyTorch's", dec, checked)

	res, err := rebuildWith(ctx, c, flashdb.RebuildOptions{Workers: runtime.GOMAXPROCS(0)}, terminal.NewBar(d.err))
	if err != nil {
		return err
	}
	d.report.Lists, d.report.IndexBytes = res.Lists, res.Bytes
	step("built    the index, %s, %s; measured plans on %s", show.Count(res.Lists, "list"), show.Bytes(res.Bytes), show.Count(sourcesOf(res), "source"))
	return nil
}

// sourcesOf is how many sources a rebuild calibrated with.
func sourcesOf(res flashdb.RebuildResult) (n int) {
	for _, of := range res.Calibrations {
		n = of.Sources
	}
	return n
}

// selfCheck compares the decoder with logits that PyTorch computed.
func (d *demo) selfCheck(ctx context.Context, c collection, dec decoder.Decoder) (int, error) {
	lines, err := readOracle(demoTable("oracle.jsonl.zst"), 1, demoCases)
	if err != nil {
		return 0, err
	}
	nodes, err := newNodeIndex(ctx, c)
	if err != nil {
		return 0, err
	}
	embedding := func(row int64) ([]float32, error) {
		id, err := nodes.byRow(row)
		if err != nil {
			return nil, err
		}
		n, err := c.Get(ctx, nodes.keys[id])
		return n.Embedding, err
	}
	cases := make([]weights.Case, len(lines))
	for i, l := range lines {
		at := i % len(l.Top) // high scores and lower ones
		source, err := embedding(l.Source)
		if err != nil {
			return 0, err
		}
		candidate, err := embedding(l.Top[at])
		if err != nil {
			return 0, err
		}
		cases[i] = weights.Case{Source: source, Candidate: candidate, Logit: l.Logit[at]}
	}
	return len(cases), weights.SelfCheck(dec, cases, 0)
}

// measure compares many answers with the exact ones shipped with the demo.
func (d *demo) measure(ctx context.Context, c collection) error {
	lines, err := readOracle(demoTable("oracle.jsonl.zst"), 100, demoSources)
	if err != nil {
		return err
	}
	e := evaluation{
		target: c, sourcesFrom: c, k: 100, exactSources: 5,
		opts: flashdb.PredictOptions{IncludeLinked: true}, // the oracle counts linked nodes
	}
	questions, err := e.ask(ctx, lines)
	if err != nil {
		return err
	}
	p := terminal.NewBar(d.err)
	defer p.Clear()
	if d.report.Eval, err = e.run(ctx, questions, p); err != nil {
		return err
	}
	p.Clear()
	if d.json {
		return nil
	}
	d.printMeasure()
	return d.printEval(d.report.Eval, "", "the exact answer by PyTorch in float64")
}
