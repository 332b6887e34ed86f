package train

import (
	"time"

	"github.com/flashdb/flashdb/decoder"
)

// EncoderKind names how embeddings are made.
type EncoderKind string

// The encoders there are.
const (
	// Hops is a two-layer network on fixed features of a node and of its surroundings (powers of the normalised
	// adjacency), plus a free embedding. The default.
	Hops EncoderKind = "hops"
	// MF is matrix factorisation: a free embedding a node.
	MF EncoderKind = "mf"
	// GCN is a graph convolutional network on free embeddings or given features.
	GCN EncoderKind = "gcn"
	// SAGE is GraphSAGE with mean aggregation on free embeddings or given features.
	SAGE EncoderKind = "sage"
	// Node2Vec is skip-gram with negative sampling on biased random walks; the decoder is trained on its embeddings.
	Node2Vec EncoderKind = "node2vec"
)

// LossKind names what is minimised.
type LossKind string

// The losses there are.
const (
	BCE   LossKind = "bce"   // binary cross-entropy of links and sampled negatives, the default
	PLNLP LossKind = "plnlp" // pairwise squared hinge, sum of (1 - (link - negative))^2 (Wang et al., arXiv 2112.02936, eq. 5)
)

// NegativeKind names where the negatives of a link come from.
type NegativeKind string

// The distributions of negatives there are. With two kinds of nodes all of them draw among the targets.
const (
	Uniform NegativeKind = "uniform" // any candidate, the default
	Batch   NegativeKind = "batch"   // the targets of other links of the batch
	Degree  NegativeKind = "degree"  // candidates in proportion to degree^0.75
)

// Options shape a run. The zero value of a field means its default.
type Options struct {
	Encoder EncoderKind  // default Hops
	Decoder decoder.Kind // default decoder.HadamardMLP
	Dim     int          // width of an embedding; default 64, or 128 from 40,000 edges on up to 400,000 nodes

	DecoderHidden []int   // widths of the decoder's hidden layers; default two of 2*Dim
	DecoderNorm   bool    // layer norm before each activation of the decoder
	EncoderHidden int     // width of the encoder's hidden layers; default 256 for Hops, Dim for the others
	EncoderLayers int     // GCN and SAGE: number of layers; default 2
	Dropout       float64 // share of hidden values dropped in training, 0 to 0.9; default 0. Negative means none

	Loss         LossKind     // default BCE
	Negatives    NegativeKind // default Uniform
	PerLink      int          // negatives a link; default 4
	LearningRate float64      // of Adam; default by encoder
	WeightDecay  float64      // of the networks' weights, decoupled (AdamW). Negative means none
	BatchEdges   int          // links a step; default by the number of links

	Epochs     int           // at most; default by encoder
	Patience   int           // validations without a better one before the run ends; default 5. Negative means never
	TimeBudget time.Duration // the run ends after the step in which it is used up; 0 means none
	Seed       uint64

	WalkReturn, WalkInOut float64 // Node2Vec: p and q; default 1
	WalkLength            int     // Node2Vec: nodes a walk; default 40
	WalksPerNode          int     // Node2Vec: default 10

	Cores       int   // goroutines; default all processors. It changes the time and not the result
	MemoryBytes int64 // Run refuses what Estimate puts above this; 0 means no bound

	// Checkpoint is the path of a file that holds the state of the run, replaced after every validation and when the run
	// ends. With Resume, a run whose checkpoint exists goes on from it; graph, split and options must be those it began
	// with, but for Epochs, Patience, TimeBudget, Cores and MemoryBytes.
	Checkpoint string
	Resume     bool

	// Progress, if set, is called after every validation, and about once a second between them, by the goroutine that
	// called Run.
	Progress func(Progress)
}

// Progress says how far a run is.
type Progress struct {
	Stage   string        // "features", "walks", "train" or "newcomers"
	Epoch   int           // from 1
	Epochs  int           // at most
	Share   float64       // of the stage that is done, 0 to 1
	Loss    float64       // mean a link, since the epoch began
	Valid   float64       // MRR of the last validation; 0 before the first
	Best    float64       // the best so far
	Elapsed time.Duration // since Run began
	Left    time.Duration // until the last epoch at this pace; 0 when unknown
}
