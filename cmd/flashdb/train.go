package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
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
	features         string
	byRow            bool
	directed         bool // a link has one direction
	undirected       bool // it has none

	validFile, testFile   string
	split                 string // random or time
	validShare, testShare shareFlag

	opts          train.Options
	encoder       string // opts has these four as types of their own
	decoder       string
	loss          string
	negatives     string
	memory        sizeFlag
	decoderName   string
	replace       bool
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
the collection if need be. A part of the edges is held out: the summary says how well they
are predicted.

EDGES is a file of two columns, source and target: text of any usual separator, .jsonl,
.parquet, or row numbers in .npy or .pt (edge_index); each also compressed with zstd or gzip;
or a folder of OGB, with its split. Header and columns are found out; the --...-column flags
name others, by the header or by their number from 1. docs/train.md has the details.

With --source-collection the columns are nodes of two kinds: sources go to that collection,
targets to COLLECTION. Otherwise an edge leads from source to target, or has no direction where
half of the edges or more are there in both directions; either way its ends are known to each
other. --directed and --undirected say so themselves; --directed records links one way alone.

Nothing is stored before the training ends. Interrupted once, train keeps the best model so
far; a second time, it gives up. With --checkpoint FILE the state is saved, and --resume goes
on from it.`,
		Example: `  flashdb train my.flash packages edges.tsv
  flashdb train shop.flash items likes.csv --source-collection users
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

// train is the whole command.
func (a *app) train(ctx context.Context, r *trainRequest) error {
	defer r.progress.Clear()
	start := time.Now()
	if err := a.mayTrain(ctx, r); err != nil {
		return err
	}
	t := trainRun{app: a, r: r}
	if err := t.readGraph(ctx); err != nil {
		return err
	}
	if err := t.run(ctx); err != nil {
		return err
	}
	// What is trained is stored, even if training was interrupted.
	ctx = context.WithoutCancel(ctx)
	if err := t.evaluate(ctx); err != nil {
		return err
	}
	if err := t.publish(ctx); err != nil {
		return err
	}
	t.report.Seconds = time.Since(start).Seconds()
	r.progress.Clear()
	if a.json {
		return a.emit(t.report)
	}
	return t.print()
}

// A trainRun is one run of the command.
type trainRun struct {
	*app
	r        *trainRequest
	g        *graph.Graph
	payloads []string // of the nodes, by number; nil without --keys
	split    train.Split
	model    *train.Model
	report   trainReport
}
