package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

func (r *trainRequest) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&r.sourceCollection, "source-collection", "", "the sources are nodes of this `collection`")
	fs.BoolVar(&r.directed, "directed", false, "an edge leads from source to target, and links are recorded so")
	fs.BoolVar(&r.undirected, "undirected", false, "an edge has no direction (default: found out)")
	r.edges.register(cmd)
	fs.StringVar(&r.keysFile, "keys", "", "`file` of all nodes: row numbers, keys and payloads")
	fs.BoolVar(&r.byRow, "ids", false, "the edges name nodes by their row number in the --keys file")
	fs.StringVar(&r.features, "features", "", "`file` of a row of features for each node, by key or by row number")
	fs.StringVar(&r.validFile, "valid", "", "`file` of edges that decide which epoch is kept")
	fs.StringVar(&r.testFile, "test", "", "`file` of edges to measure the model on; they are no known links")
	fs.StringVar(&r.split, "split", r.split, "which edges are held out: random, or time: the latest")
	fs.Var(&r.validShare, "valid-share", "share of the edges for validation (default 5%)")
	fs.Var(&r.testShare, "test-share", "share of the edges to measure on (default 5%, at most 10,000 edges)")
	fs.Var(&r.memory, "memory", "memory to use at most, such as 4GB (default most of what is free)")
	fs.StringVar(&r.opts.Checkpoint, "checkpoint", "", "save the state of the training in this `file`")
	fs.BoolVar(&r.opts.Resume, "resume", false, "go on from the --checkpoint, if it is there")
	fs.StringVar(&r.decoderName, "name", r.decoderName, "`name` of the decoder")
	fs.BoolVar(&r.replace, "replace", false, "drop what the collections hold, once the training has ended")
	fs.DurationVar(&r.calibrateTime, "calibrate-time", 0, "`time` to measure plans of queries (default 10s; negative: not at all)")
	fs.StringVar(&r.progressMode, "progress", "", "on stderr: bar, json, none (default: a bar on a terminal, else lines of text)")
	r.registerModel(cmd)
	completeWords(cmd, "split", "random", "time")
	completeWords(cmd, "progress", terminal.ProgressModes...)
}

// registerModel adds the flags of train.Options.
func (r *trainRequest) registerModel(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&r.encoder, "encoder", "", "hops, mf, gcn, sage or node2vec (default hops)")
	fs.StringVar(&r.decoder, "decoder", "", "hadamard_mlp, concat_mlp, bilinear, distmult or dot (default hadamard_mlp)")
	fs.IntVar(&r.opts.Dim, "dim", 0, "width of an embedding (default by the size of the graph)")
	fs.IntVar(&r.opts.Epochs, "epochs", 0, "`number` of epochs at most (default by the encoder)")
	fs.Float64Var(&r.opts.LearningRate, "lr", 0, "learning `rate` (default by the encoder)")
	fs.IntVar(&r.opts.BatchEdges, "batch", 0, "`edges` a step (default by the size of the graph)")
	fs.Float64Var(&r.opts.Dropout, "dropout", 0, "`share` of hidden values dropped while training")
	fs.Float64Var(&r.opts.WeightDecay, "weight-decay", 0, "weight decay of the networks (default by the encoder; negative: none)")
	fs.StringVar(&r.loss, "loss", "", "bce or plnlp (default bce)")
	fs.StringVar(&r.negatives, "negatives", "", "negatives are drawn uniform, batch or degree (default uniform)")
	fs.IntVar(&r.opts.Patience, "patience", 0, "stop after so many `validations` without a better one (default 5; negative: never)")
	fs.DurationVar(&r.opts.TimeBudget, "time", 0, "`time` to train at most")
	fs.Uint64Var(&r.opts.Seed, "seed", 0, "seed of all that is random: the same graph and seed give the same model")
	fs.IntVar(&r.opts.Cores, "workers", 0, "goroutines at most (default all cores)")
	completeWords(cmd, "encoder", "hops", "mf", "gcn", "sage", "node2vec")
	completeWords(cmd, "decoder", "hadamard_mlp", "concat_mlp", "bilinear", "distmult", "dot")
	completeWords(cmd, "loss", "bce", "plnlp")
	completeWords(cmd, "negatives", "uniform", "batch", "degree")
}

// validate checks what flags say together, before a long run.
func (r *trainRequest) validate(cmd *cobra.Command) error {
	r.opts.Encoder, r.opts.Decoder = train.EncoderKind(r.encoder), decoder.Kind(r.decoder)
	r.opts.Loss, r.opts.Negatives = train.LossKind(r.loss), train.NegativeKind(r.negatives)
	changed := cmd.Flags().Changed
	switch {
	case r.progressMode != "" && !slices.Contains(terminal.ProgressModes, r.progressMode):
		return fmt.Errorf("--progress %q: use %s", r.progressMode, strings.Join(terminal.ProgressModes, ", "))
	case r.sourceCollection == r.collection:
		return fmt.Errorf("--source-collection %s is COLLECTION itself: leave it out, or name another", r.collection)
	case r.split != "random" && r.split != "time":
		return fmt.Errorf("--split %q: use random or time", r.split)
	case r.split == "time" && (r.testFile != "" || r.validFile != ""):
		return errors.New("--split time and --test or --valid exclude each other: the files are the split")
	case r.byRow && r.keysFile == "":
		return errors.New("--ids is for edges by the row numbers of a --keys file: without one, the numbers are the keys")
	case r.keysFile != "" && r.sourceCollection != "":
		return errors.New("--keys is for one collection: with --source-collection the edges give the keys")
	case r.features != "" && r.sourceCollection != "":
		return errors.New("--features is for one collection")
	case (r.directed || r.undirected) && r.sourceCollection != "":
		return errors.New("--directed and --undirected are for one collection: between two, edges lead from sources to targets")
	case r.directed && r.undirected:
		return errors.New("--directed and --undirected exclude each other")
	case r.opts.Resume && r.opts.Checkpoint == "":
		return errors.New("--resume needs the file of --checkpoint")
	case r.validShare+r.testShare >= 1:
		return errors.New("--valid-share and --test-share leave no edges to train on")
	}
	for _, name := range []string{"dim", "epochs", "batch"} {
		if v, _ := cmd.Flags().GetInt(name); changed(name) && v < 1 {
			return fmt.Errorf("--%s is %d: want a positive number", name, v)
		}
	}
	if changed("lr") && !(r.opts.LearningRate > 0) {
		return fmt.Errorf("--lr is %v: want a positive number", r.opts.LearningRate)
	}
	return checkDuration("time", changed("time"), r.opts.TimeBudget)
}
