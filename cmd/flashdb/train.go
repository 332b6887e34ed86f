package main

import (
	"bytes"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/internal/attr"
	"github.com/flashdb/flashdb/train"
	"github.com/flashdb/flashdb/train/graph"
)

// trainedDecoder is the name of a trained decoder, unless another is given.
const trainedDecoder = "links"

// A trainRequest is what train's flags say.
type trainRequest struct {
	dir, collection  string
	sourceCollection string
	edges            edgeSource
	keysFile         string
	nodes            importer             // reads keysFile
	kinds            map[string]attr.Kind // types of attributes that nodes of a release keep
	features         string               // of the nodes of collection
	sourceFeatures   string               // of those of sourceCollection
	byRow            bool
	directed         bool // a link has one direction
	undirected       bool // it has none

	validFile, testFile   string
	split                 string // random or time
	validShare, testShare shareFlag
	dropout               shareFlag
	newNodes              shareFlag // held out with all of their edges, to measure the encoder

	opts          train.Options
	hidden        []string // widths of the decoder's hidden layers
	encoder       string   // opts has these four as types of their own
	decoder       string
	loss          string
	negatives     string
	memory        sizeFlag
	decoderName   string
	replace       bool
	release       string // to make of the model; empty: it is stored in the collections
	calibrateTime time.Duration
	progressMode  string
	progress      *terminal.Progress
}

func (a *app) trainCommand() *cobra.Command {
	r := trainRequest{split: "random", decoderName: trainedDecoder}
	cmd := &cobra.Command{
		Use:        "train DIR COLLECTION EDGES [--source-collection C]",
		SuggestFor: []string{"learn", "fit"},
		Short:      "Train embeddings and a decoder on a list of edges, and store them",
		Long: `Train reads a graph, learns an embedding of every node and a decoder that scores pairs of
them, stores both with the known links, builds the index and calibrates it. It makes DIR and
the collection if need be. Part of the edges is held out, and the summary says how well these
are predicted.

EDGES is a file of two columns, source and target: text with any usual separator, .jsonl,
.parquet, or row numbers in .npy or .pt (edge_index). Each may be compressed with zstd or gzip.
It may also be a folder of OGB, whose split is used. Separator, header and columns are
detected; the --...-column flags name other columns, by the header or by their number from 1.
docs/train.md has the details.

With --source-collection there are two kinds of nodes: sources go to that collection, targets
to COLLECTION. With one collection, an edge has no direction if the file lists the edges as
undirected graphs are listed: half of them or more in both directions, or each of them once with
the lower key first, node after node, or either way at random. Otherwise it leads from source to
target. The summary says which, and --directed and --undirected decide it instead. Links are
recorded both ways; with --directed, from source to target only.

The --keys file lists all nodes, also those without edges, with tags, attributes and payloads. It
is read as import reads it, by the same flags.

Nothing is stored before the training ends. After one Ctrl-C train stops and stores the best
model so far; after a second it ends at once and stores nothing. --checkpoint FILE saves the
state after every epoch, and --resume continues from it.`,
		Example: `  flashdb train my.flash packages edges.tsv
  flashdb train shop.flash items likes.csv --source-collection users
  flashdb train shop.flash items bought.tsv --keys items.csv --attributes price,brand,released:time
  flashdb train papers.flash papers cites.npy --keys nodes.tsv --ids --features words.npy
  flashdb train ddi.flash drugs ogbl_ddi --encoder sage --epochs 200 --checkpoint ddi.state`,
		Args: usage.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.dir, r.collection, r.edges.file = args[0], args[1], args[2]
			if err := r.validate(cmd); err != nil {
				return err
			}
			r.progress = terminal.NewProgress(a.err)
			if r.progressMode != "" {
				r.progress = terminal.NewProgressAs(r.progressMode, a.err)
			}
			return a.train(cmd.Context(), &r)
		},
	}
	r.register(cmd)
	return cmd
}

// train is the command.
func (a *app) train(ctx context.Context, r *trainRequest) error {
	defer r.progress.Clear()
	t := trainRun{app: a, r: r}
	if err := t.whole(ctx); err != nil {
		return err
	}
	r.progress.Clear()
	if a.json {
		return a.emit(t.report)
	}
	return t.print()
}

// whole reads, trains, measures and stores.
func (t *trainRun) whole(ctx context.Context) (err error) {
	start := time.Now()
	if t.mostBytes, err = t.mayTrain(ctx, t.r); err != nil {
		return err
	}
	t.cut = time.Now()
	if err := t.readGraph(ctx); err != nil {
		return err
	}
	if err := t.fits(); err != nil {
		return err
	}
	if err := t.run(ctx); err != nil {
		return err
	}
	// What is trained is stored, even if training was interrupted.
	ctx = context.WithoutCancel(ctx)
	if err := t.measure(ctx); err != nil {
		return err
	}
	if err := t.publish(ctx); err != nil {
		return err
	}
	t.report.Seconds = time.Since(start).Seconds()
	return nil
}

// A trainRun is one run of the command.
type trainRun struct {
	*app
	r      *trainRequest
	g      *graph.Graph
	named  bool         // there is a --keys file: see node
	notes  bytes.Buffer // to be told once the training begins: what is refused says only why
	split  train.Split
	cold   *coldStart // nil without --new-nodes
	model  *train.Model
	report trainReport
	cut    time.Time // when it began to read the edges

	sourceFeatureDim int // of the features of a node, those that only sources have
	namedBytes       int // of tags, attributes and payloads
	mostBytes        int // of the model, where it is stored as one batch; 0: no limit
}
