package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
)

// demoTrained is the collection of the model that --train makes.
const demoTrained = "trained"

// demoEpochs take two cores about 15 s. Twice as many, the default of this graph, predict better:
// see docs/train.md. Tests take fewer.
var demoEpochs = 6

// train runs the train command on the edges of the demo, into a collection beside the first.
func (d *demo) train(ctx context.Context) (err error) {
	files, err := os.MkdirTemp("", "flashdb-demo-edges-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(files)) }()
	for _, name := range []string{"train.tsv.zst", "nodes.tsv.zst", "test.tsv.zst"} {
		b, err := demoFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(files, name), b, 0o600); err != nil {
			return err
		}
	}
	d.printTrain()
	r := trainRequest{
		dir: d.report.Dir, collection: demoTrained, split: "random", decoderName: trainedDecoder,
		keysFile: filepath.Join(files, "nodes.tsv.zst"), byRow: true, testFile: filepath.Join(files, "test.tsv.zst"),
		calibrateTime: demoCalibrateTime, progress: terminal.NewBar(d.err),
	}
	r.edges.file, r.opts.Epochs = filepath.Join(files, "train.tsv.zst"), demoEpochs
	defer r.progress.Clear()
	t := trainRun{app: d.app, r: &r}
	if err := t.whole(ctx); err != nil {
		return err
	}
	d.report.Trained = &t.report
	if d.json {
		return nil
	}
	return t.print()
}

// printTrain says what is trained, as the command that does the same.
func (d *demo) printTrain() {
	d.printf(`
training a model of its own on the same edges, as this command does:
  %s train %s %s train.tsv.zst --keys nodes.tsv.zst --ids --test test.tsv.zst --epochs %d

`, programName(), show.Word(d.report.Dir), demoTrained, demoEpochs)
}

// predictTrained asks the model that --train made for the new neighbours of a symbol.
func (d *demo) predictTrained(ctx context.Context, c collection, s *demoSymbol, heldOut func(a, b string) bool) error {
	res, err := c.Predict(ctx, s.Source, demoHits, &flashdb.PredictOptions{Decoder: trainedDecoder})
	if err != nil {
		return fmt.Errorf("predict by the model just trained: %w", err)
	}
	for i, j := range newJSONHits(res.Hits) {
		s.Trained = append(s.Trained, demoHit{j, heldOut(s.Source, res.Hits[i].Key)})
	}
	return nil
}
