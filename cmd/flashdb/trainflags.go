package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
	"github.com/flashdb/flashdb/train/graph"
)

func (r *trainRequest) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&r.sourceCollection, "source-collection", "", "the sources are nodes of this `collection`")
	fs.BoolVar(&r.directed, "directed", false, "an edge leads from source to target, and is recorded as a link that way only")
	fs.BoolVar(&r.undirected, "undirected", false, "an edge has no direction (default: detected)")
	r.edges.register(cmd)
	fs.StringVar(&r.keysFile, "keys", "", "`file` of all nodes: row numbers, keys, tags, attributes and payloads")
	r.nodes.registerColumns(cmd)
	fs.BoolVar(&r.byRow, "ids", false, "the edges name nodes by their row number in the --keys file")
	fs.StringVar(&r.features, "features", "", "`file` of features for each node, by key or by row number")
	fs.StringVar(&r.sourceFeatures, "source-features", "", "with --source-collection: `file` of features for each source")
	fs.StringVar(&r.validFile, "valid", "", "`file` of edges that decide which epoch is kept")
	fs.StringVar(&r.testFile, "test", "", "`file` of edges to measure the model on; they are not stored as known links")
	fs.StringVar(&r.split, "split", r.split, "which edges are held out: random, or time for the latest")
	fs.Var(&r.validShare, "valid-share", "share of the edges for validation (default 5%)")
	fs.Var(&r.testShare, "test-share", "share of the edges to measure on (default 5%, at most 10,000 edges)")
	fs.Var(&r.newNodes, "new-nodes", "hold out this share of the nodes, and measure them as new nodes")
	fs.Var(&r.memory, "memory", "memory to use at most, such as 4GB (default most of what is free)")
	fs.StringVar(&r.opts.Checkpoint, "checkpoint", "", "save the state of the training in this `file` after every epoch")
	fs.BoolVar(&r.opts.Resume, "resume", false, "continue from the --checkpoint file, if it exists")
	fs.StringVar(&r.decoderName, "name", r.decoderName, "`name` of the decoder")
	fs.BoolVar(&r.replace, "replace", false, "replace what the collections hold, or the staged --release")
	fs.StringVar(&r.release, "release", "", "publish the model as a release of this `name`, unless it is worse")
	fs.DurationVar(&r.calibrateTime, "calibrate-time", 0, "`time` to calibrate the decoder (default 10s to 2m; negative: not at all)")
	fs.StringVar(&r.progressMode, "progress", "", "on stderr: bar, json, none (default: a bar on a terminal, else lines of text)")
	r.registerModel(cmd)
	completeWords(cmd, "split", "random", "time")
	completeWords(cmd, "progress", terminal.ProgressModes...)
}

// registerModel adds the flags of train.Options.
func (r *trainRequest) registerModel(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&r.encoder, "encoder", "", "hops, mf, gcn, sage or node2vec (default hops; mf with relations)")
	fs.StringVar(&r.decoder, "decoder", "", "hadamard_mlp (default), concat_mlp, mol, bilinear, distmult, complex or dot")
	fs.IntVar(&r.opts.Dim, "dim", 0, "width of an embedding (default 64; 128 for relations and social graphs)")
	fs.StringSliceVar(&r.hidden, "hidden", nil, "`widths` of the decoder's hidden layers: 256,128 or none (default two of 2*dim)")
	fs.BoolVar(&r.opts.DecoderNorm, "layer-norm", false, "layer norm before each activation of the decoder")
	fs.BoolVar(&r.opts.DecoderResidual, "residual", false, "add its input to each hidden layer of the decoder that keeps the width")
	fs.IntVar(&r.opts.Components, "components", 0, "of decoder mol: components of each side (default 4)")
	fs.IntVar(&r.opts.EncoderLayers, "layers", 0, "number of layers of gcn and sage (default 2)")
	fs.Float64Var(&r.opts.WalkReturn, "walk-p", 0, "`p` of node2vec: more makes a walk return less (default 1)")
	fs.Float64Var(&r.opts.WalkInOut, "walk-q", 0, "`q` of node2vec: more keeps a walk near its start (default 1)")
	fs.IntVar(&r.opts.WalksPerNode, "walks", 0, "`number` of walks of node2vec that begin at each node (default 10)")
	fs.IntVar(&r.opts.WalkLength, "walk-length", 0, "`nodes` of a walk of node2vec (default 20)")
	fs.IntVar(&r.opts.WalkWindow, "walk-window", 0, "most `steps` of a walk between two nodes that node2vec pairs (default 5)")
	fs.IntVar(&r.opts.Epochs, "epochs", 0, "`number` of epochs at most (default 2 to 30, fewer for more edges)")
	fs.Float64Var(&r.opts.LearningRate, "lr", 0, "learning `rate` of Adam (default 0.006)")
	fs.Float64Var(&r.opts.FreeLinks, "free-links", 0, "hops: free embeddings learn at d/(d+`number`) of the rate, for d links (default 0)")
	fs.IntVar(&r.opts.Folds, "folds", 0, "learn edges in this `number` of parts, each without itself (default 10 for hops)")
	fs.IntVar(&r.opts.BatchEdges, "batch", 0, "`edges` per step (default by the number of edges)")
	fs.Var(&r.dropout, "dropout", "`share` of hidden values dropped while training, 90% at most")
	fs.Float64Var(&r.opts.WeightDecay, "weight-decay", 0, "weight `decay`: more makes queries faster (default 0, 1 or 3; -1: none)")
	fs.StringVar(&r.loss, "loss", "", "bce, plnlp or softmax (default bce; softmax for relations)")
	fs.StringVar(&r.negatives, "negatives", "", "how negatives are drawn: uniform, batch, degree or pairs (default uniform)")
	fs.IntVar(&r.opts.PerLink, "negatives-per-edge", 0, "`number` of negatives for each edge (default 4; 1,024 for relations)")
	fs.IntVar(&r.opts.Patience, "patience", 0, "stop after this many `validations` without a better one (default 5 to 15; -1: no)")
	fs.DurationVar(&r.opts.TimeBudget, "time", 0, "`time` to train at most")
	fs.Uint64Var(&r.opts.Seed, "seed", 0, "seed of random numbers: the same graph and seed give the same model")
	fs.IntVar(&r.opts.Cores, "workers", 0, "goroutines at most (default all cores)")
	completeWords(cmd, "encoder", "hops", "mf", "gcn", "sage", "node2vec")
	completeWords(cmd, "decoder", "hadamard_mlp", "concat_mlp", "mol", "bilinear", "distmult", "complex", "dot")
	completeWords(cmd, "loss", "bce", "plnlp", "softmax")
	completeWords(cmd, "negatives", "uniform", "batch", "degree", "pairs")
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
	case r.keysFile == "" && slices.ContainsFunc(columnFlags, changed):
		return fmt.Errorf("--%s are for the columns of a --keys file: give one", strings.Join(columnFlags, ", --"))
	case r.keysFile != "" && r.sourceCollection != "":
		return errors.New("--keys is for one collection: with --source-collection the edges give the keys")
	case r.sourceFeatures != "" && r.sourceCollection == "":
		return errors.New("--source-features is for the nodes of --source-collection: for one collection, say --features")
	case (r.directed || r.undirected) && r.sourceCollection != "":
		return errors.New("--directed and --undirected are for one collection: between two, edges lead from sources to targets")
	case r.directed && r.undirected:
		return errors.New("--directed and --undirected exclude each other")
	case r.inputsFromStandard() > 1:
		return errors.New("- is standard input, which can be read once: name the other file")
	case r.opts.Resume && r.opts.Checkpoint == "":
		return errors.New("--resume needs the file of --checkpoint")
	case r.validShare+r.testShare >= 1:
		return errors.New("--valid-share and --test-share leave no edges to train on")
	}
	var err error
	if r.opts.DecoderHidden, err = parseWidths(r.hidden); err != nil {
		return err
	}
	for _, name := range []string{"dim", "epochs", "batch", "folds", "layers", "negatives-per-edge", "walks", "walk-length", "walk-window"} {
		if v, _ := cmd.Flags().GetInt(name); changed(name) && v < 1 {
			return fmt.Errorf("--%s is %d: want a positive number", name, v)
		}
	}
	if r.opts.Dropout = float64(r.dropout); r.opts.Dropout > 0.9 {
		return fmt.Errorf("--dropout is %v: want at most 90%%", &r.dropout)
	}
	if lr := r.opts.LearningRate; changed("lr") && !(lr > 0 && lr <= 10) {
		return fmt.Errorf("--lr is %v: want a number above 0, at most 10", lr)
	}
	for _, name := range []string{"walk-p", "walk-q"} {
		if v, _ := cmd.Flags().GetFloat64(name); changed(name) && !(v > 0 && v <= 1e6) {
			return fmt.Errorf("--%s is %v: want a number above 0, at most 1000000", name, v)
		}
	}
	if n := r.opts.FreeLinks; !(n >= 0 && n <= 1e6) {
		return fmt.Errorf("--free-links is %v: want a number of 0 to 1000000", n)
	}
	if decay := r.opts.WeightDecay; !(decay <= 100) {
		return fmt.Errorf("--weight-decay is %v: want at most 100", decay)
	}
	return checkDuration("time", changed("time"), r.opts.TimeBudget)
}

// inputsFromStandard counts the files that are standard input, which can be read once.
func (r *trainRequest) inputsFromStandard() (count int) {
	for _, file := range []string{r.edges.file, r.keysFile, r.features, r.sourceFeatures, r.validFile, r.testFile} {
		if file == standardInput {
			count++
		}
	}
	return count
}

// validateOGB refuses what a folder of OGB has no use for: it brings its nodes and its split.
func (r *trainRequest) validateOGB() error {
	dir := show.Text(r.edges.file)
	switch {
	case r.validFile != "" || r.testFile != "" || r.validShare > 0 || r.testShare > 0 || r.split == "time":
		return fmt.Errorf("%s is a folder of OGB, which brings its split: leave out --valid, --test, --split and the shares", dir)
	case r.keysFile != "" || r.sourceCollection != "":
		return fmt.Errorf("%s is a folder of OGB, whose nodes are of one kind and have numbers: leave out --keys and --source-collection", dir)
	case r.edges.format != "" || r.edges.columns != (graph.Columns{}):
		return fmt.Errorf("%s is a folder of OGB: leave out --format and the --...-column flags", dir)
	}
	return nil
}

// parseWidths reads --hidden. Nil means the default, and the word none no hidden layer.
func parseWidths(words []string) ([]int, error) {
	if len(words) == 1 && words[0] == "none" {
		return []int{}, nil
	}
	var widths []int
	for _, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > 1<<16 {
			return nil, fmt.Errorf("--hidden %s: %q is no width: want numbers of 1 to %d with commas between them, or none", strings.Join(words, ","), word, 1<<16)
		}
		widths = append(widths, n)
	}
	return widths, nil
}
