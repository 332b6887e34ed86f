package train

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"time"

	"github.com/flashdb/flashdb/decoder"
)

// EncoderKind names a way to make embeddings.
type EncoderKind string

// The encoders.
const (
	// Hops is a two-layer network on fixed features of a node and of its surroundings (powers of
	// the normalised adjacency), plus a free embedding. The default.
	Hops EncoderKind = "hops"
	// MF is matrix factorisation: a free embedding per node.
	MF EncoderKind = "mf"
	// GCN is a graph convolutional network on free embeddings or given features.
	GCN EncoderKind = "gcn"
	// SAGE is GraphSAGE with mean aggregation on free embeddings or given features.
	SAGE EncoderKind = "sage"
	// Node2Vec is skip-gram with negative sampling on biased random walks; the decoder is trained
	// on its embeddings.
	Node2Vec EncoderKind = "node2vec"
)

// LossKind names a loss to minimise.
type LossKind string

// The losses.
const (
	BCE   LossKind = "bce"   // binary cross-entropy of links and sampled negatives, the default
	PLNLP LossKind = "plnlp" // pairwise squared hinge, sum of (1 - (link - negative))^2 (Wang et al., arXiv 2112.02936, eq. 5)
	// Softmax is the cross-entropy of a link among its negatives. With Dot, DistMult and ComplEx
	// all links of a step share them.
	Softmax LossKind = "softmax"
)

// NegativeKind names a distribution of negatives.
type NegativeKind string

// The distributions of negatives. With two kinds of nodes, negatives are always targets.
const (
	Uniform NegativeKind = "uniform" // any candidate, the default
	Batch   NegativeKind = "batch"   // the targets of other links of the batch
	Degree  NegativeKind = "degree"  // candidates in proportion to degree^0.75
	// Pairs draws the source too: every pair of nodes without a link is as likely as every other,
	// as in OGB's examples. It is for scores that are compared between sources, as Hits@k among one
	// list of negatives compares them. With Uniform a source is in negatives as often as in links.
	Pairs NegativeKind = "pairs"
)

// DefaultDim is the default of Options.Dim, except for social graphs and relations: see DimFor.
const DefaultDim = 64

// Options are the options of a run. The zero value of a field means its default.
type Options struct {
	Encoder EncoderKind  // default Hops; MF for ComplEx and DistMult on relations without features
	Decoder decoder.Kind // default decoder.HadamardMLP
	Dim     int          // width of an embedding; default DefaultDim, or more: see DimFor

	DecoderHidden []int // widths of the decoder's hidden layers; default two of 2*Dim, at most 128 for a social graph
	DecoderNorm   bool  // layer norm before each activation of the decoder
	// DecoderResidual adds its input to the linear output of each hidden layer of a HadamardMLP or
	// ConcatMLP that keeps the width.
	DecoderResidual bool
	Components      int     // MoL: components of a source and of a target, each of half the width; default 4
	EncoderHidden   int     // width of the encoder's hidden layers; default 256 for Hops, Dim for the others
	EncoderLayers   int     // GCN and SAGE: number of layers; default 2
	Dropout         float64 // share of hidden values dropped in training, 0 to 0.9; default 0

	Loss         LossKind     // default BCE; Softmax for MF with a decoder by relation
	Negatives    NegativeKind // default Uniform
	PerLink      int          // negatives per link; default 4, or 1,024 if all share them: see Softmax
	LearningRate float64      // of Adam; default 0.006
	// WeightDecay applies to networks and free embeddings. It is decoupled from the gradient
	// (AdamW). It decides how fast the model is served: see docs/train.md. The default for Hops
	// with a network as decoder is 3, or 1 with fewer than 20,000 candidates, which are scanned
	// anyway, except in a social graph: see DimFor. For MF with a decoder by relation it is 3. For
	// other models it is 0. Negative means none.
	WeightDecay float64
	BatchEdges  int // links per step; default by the number of links
	Folds       int // training links are learned in so many parts, each from the graph without that part; default 10 for Hops; otherwise 1, which leaves nothing out

	// FreeLinks makes the free embeddings of Hops learn the slower the fewer links a node has: with
	// d links at d/(d+FreeLinks) of the rate. It is for graphs most of whose nodes have two or
	// three links, if the validation falls after the first epochs: see docs/train.md. Default 0.
	FreeLinks float64

	Epochs     int           // most epochs; default 2 to 30, fewer for more links
	Patience   int           // validations without a better one before the run ends; default half of the epochs, 5 to 15
	ValidHits  int           // k of the Hits@k that a validation measures among Split.ValidNegatives; default 20
	TimeBudget time.Duration // the run ends after the step in which it is used up; 0 means none
	Seed       uint64

	WalkReturn, WalkInOut float64 // Node2Vec: p and q; default 1
	WalkLength            int     // Node2Vec: nodes per walk; default 20
	WalksPerNode          int     // Node2Vec: walks that begin at each node; default 10
	WalkWindow            int     // Node2Vec: most steps of a walk between two nodes of a pair; default 5

	Cores       int   // goroutines; default all processors. It changes the time and not the result
	MemoryBytes int64 // Run refuses what Estimate puts above this; 0 means no bound

	// Checkpoint is the path of a file with the state of the run, which is replaced after every
	// epoch. The caller removes it. With Resume, a run continues from its checkpoint if there is
	// one, and else starts from the beginning. Graph, split and options must be those of the first
	// run, except for Epochs, Patience, TimeBudget, Cores and MemoryBytes. If those are equal too,
	// the result is that of a run that was never interrupted.
	Checkpoint string
	Resume     bool

	// Progress, if set, is called after every validation, and about once a second between them, by
	// the goroutine that called Run.
	Progress func(Progress)
}

// The stages of a run.
const (
	StageFeatures  = "features"  // Hops: features of the nodes
	StageWalks     = "walks"     // Node2Vec: walks and skip-gram
	StageTrain     = "train"     // encoder and decoder
	StageNewcomers = "newcomers" // the encoder of later nodes
)

// Progress says how much of a run is done.
type Progress struct {
	Stage   string        // one of the stages
	Epoch   int           // from 1
	Epochs  int           // at most
	Share   float64       // of the epoch, or of the stage, that is done, 0 to 1
	Loss    float64       // mean per link, since the epoch began
	Metric  string        // what a validation measures, as Model.Metric
	Valid   float64       // by the last validation; 0 before the first
	Best    float64       // the best so far
	Elapsed time.Duration // since Run began
	Left    time.Duration // until the last epoch at this pace; 0 when unknown
}

// A collection of fewer nodes than fewCandidates has no index and is scanned. It is minIndexedRows
// of package flashdb, which train does not import. A test of internal/lint compares the two.
const fewCandidates = 20_000

// withDefaults fills in what is zero, for a graph and a number of training edges.
func (o Options) withDefaults(g *Graph, links int) Options {
	set := func(v *int, by int) {
		if *v == 0 {
			*v = by
		}
	}
	if o.Decoder == "" {
		o.Decoder = decoder.HadamardMLP
	}
	byRelation := g.Relations > 0 && (o.Decoder == decoder.ComplEx || o.Decoder == decoder.DistMult)
	if o.Encoder == "" {
		o.Encoder = Hops
		if byRelation && g.FeatureDim == 0 {
			o.Encoder = MF
		}
	}
	factors := byRelation && o.Encoder == MF
	if o.Negatives == "" {
		o.Negatives = Uniform
	}
	if o.Loss == "" {
		o.Loss = BCE
		if factors && o.Negatives != Pairs {
			o.Loss = Softmax
		}
	}
	social := !byRelation && o.social(g, links)
	o.setWidths(social, factors && g.Nodes <= mostWide)
	set(&o.Components, mixtureComponents)
	conv := o.Encoder == GCN || o.Encoder == SAGE
	if conv {
		set(&o.EncoderHidden, o.Dim)
		set(&o.EncoderLayers, 2)
		// As in OGB's examples, but with 16 steps per epoch at least.
		set(&o.BatchEdges, min(1<<16, max(256, 1<<bits.Len(uint(links/32)))))
	}
	set(&o.EncoderHidden, 256)
	if o.sharesNegatives() {
		set(&o.PerLink, sharedNegatives)
	}
	set(&o.PerLink, 4)
	set(&o.BatchEdges, min(8192, max(256, 1<<bits.Len(uint(links/200)))))
	set(&o.Epochs, defaultEpochs(links))
	set(&o.Cores, runtime.GOMAXPROCS(0))
	if o.LearningRate == 0 {
		o.LearningRate = 0.006
	}
	if o.Folds == 0 {
		o.Folds = 1
		if o.Encoder == Hops {
			o.Folds = 10
		}
	}
	if o.WeightDecay == 0 && o.Encoder == Hops && (o.Decoder == decoder.HadamardMLP || o.Decoder == decoder.ConcatMLP) {
		o.WeightDecay = 3
		if g.Nodes-g.firstTarget() < fewCandidates && !social {
			o.WeightDecay = 1
		}
	}
	if o.WeightDecay == 0 && factors {
		o.WeightDecay = 3
	}
	o.WeightDecay = max(0, o.WeightDecay)
	set(&o.WalkLength, 20)
	set(&o.WalksPerNode, 10)
	set(&o.WalkWindow, 5)
	if o.WalkReturn == 0 {
		o.WalkReturn = 1
	}
	if o.WalkInOut == 0 {
		o.WalkInOut = 1
	}
	set(&o.Patience, max(5, min(15, o.Epochs/2)))
	set(&o.ValidHits, 20)
	return o
}

// sharesNegatives reports whether the links of a step have the same negatives: see shared. Loss and
// decoder must be set.
func (o *Options) sharesNegatives() bool { return o.Loss == Softmax && hasQuery(o.Decoder) }

// DimFor returns the width of the embeddings that Run makes of a graph with so many training edges:
// Dim, or its default. The default is larger for relations without features, and where nodes have
// many links without a direction, as friends have: the neighbours that two of them have in common
// tell whether they are linked, and few values cannot tell those apart.
func (o Options) DimFor(g *Graph, links int) int { return o.withDefaults(g, links).Dim }

// What makes a graph a social one, and what its defaults are.
const (
	socialDegree = 10      // least mean degree
	fewestSocial = 1_000   // nodes: fewer have no use for so many values
	mostWide     = 250_000 // nodes: more would take much memory, also with relations
	wideDim      = 128
	socialHidden = 128 // width of the decoder's layers
)

// social reports whether a graph has the defaults of a social one. The encoder must be set.
func (o *Options) social(g *Graph, links int) bool {
	return o.Encoder == Hops && g.undirected() && g.Nodes >= fewestSocial && g.Nodes <= mostWide && 2*links >= socialDegree*g.Nodes
}

// setWidths sets the widths of embeddings and decoder that are not given.
func (o *Options) setWidths(social, related bool) {
	width := DefaultDim
	if social || related {
		width = wideDim
	}
	if o.Dim == 0 {
		o.Dim = width
	}
	if o.DecoderHidden != nil {
		return
	}
	hidden := 2 * o.Dim
	if social {
		hidden = min(hidden, socialHidden)
	}
	o.DecoderHidden = []int{hidden, hidden}
	if o.Decoder == decoder.MoL {
		o.DecoderHidden = []int{hidden}
	}
}

// defaultEpochs returns more epochs for few links, because these have few steps per epoch, and
// fewer if an epoch takes minutes.
func defaultEpochs(links int) int {
	const visits, mostVisits = 1_400_000, 8_000_000
	return max(2, min(mostVisits/max(1, links), max(12, min(30, visits/max(1, links)))))
}

// Validate lists every fault of the options.
func (o Options) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if !slices.Contains([]EncoderKind{"", Hops, MF, GCN, SAGE, Node2Vec}, o.Encoder) {
		fault("encoder %q: want hops, mf, gcn, sage or node2vec", o.Encoder)
	}
	if !slices.Contains([]decoder.Kind{"", decoder.HadamardMLP, decoder.ConcatMLP, decoder.Dot, decoder.MoL, decoder.Bilinear, decoder.DistMult, decoder.ComplEx}, o.Decoder) {
		fault("decoder %q: want hadamard_mlp, concat_mlp, mol, dot, bilinear, distmult or complex", o.Decoder)
	}
	if !slices.Contains([]LossKind{"", BCE, PLNLP, Softmax}, o.Loss) {
		fault("loss %q: want bce, plnlp or softmax", o.Loss)
	}
	if !slices.Contains([]NegativeKind{"", Uniform, Batch, Degree, Pairs}, o.Negatives) {
		fault("negatives %q: want uniform, batch, degree or pairs", o.Negatives)
	}
	for _, c := range []struct {
		name        string
		value, most int
	}{
		{"Dim", o.Dim, 4096},
		{"Components", o.Components, decoder.MaxComponents},
		{"EncoderHidden", o.EncoderHidden, 1 << 16},
		{"EncoderLayers", o.EncoderLayers, 16},
		{"PerLink", o.PerLink, 1 << 16},
		{"BatchEdges", o.BatchEdges, 1 << 24},
		{"Folds", o.Folds, 1000},
		{"Epochs", o.Epochs, 1 << 30},
		{"ValidHits", o.ValidHits, 1 << 30},
		{"WalkLength", o.WalkLength, 1000},
		{"WalksPerNode", o.WalksPerNode, 1000},
		{"WalkWindow", o.WalkWindow, 1000},
	} {
		if c.value < 0 || c.value > c.most {
			fault("%s is %d: want 1 to %d, or 0 for the default", c.name, c.value, c.most)
		}
	}
	for _, width := range o.DecoderHidden {
		if width < 1 || width > 1<<16 {
			fault("a hidden layer of the decoder is %d wide: want 1 to %d", width, 1<<16)
		}
	}
	if len(o.DecoderHidden) >= decoder.MaxLayers {
		fault("the decoder has %d hidden layers: want fewer than %d", len(o.DecoderHidden), decoder.MaxLayers)
	}
	if o.Decoder == decoder.ComplEx && o.Dim%2 != 0 {
		fault("Dim is %d: complex wants an even number, half of the values are imaginary parts", o.Dim)
	}
	rates := []struct {
		name        string
		value, most float64
	}{{"LearningRate", o.LearningRate, 10}, {"WeightDecay", max(0, o.WeightDecay), 100}, {"Dropout", o.Dropout, 0.9}, {"FreeLinks", o.FreeLinks, 1e6}, {"WalkReturn", o.WalkReturn, 1e6}, {"WalkInOut", o.WalkInOut, 1e6}}
	for _, c := range rates {
		if !(c.value >= 0 && c.value <= c.most) {
			fault("%s is %g: want 0 to %g", c.name, c.value, c.most)
		}
	}
	if o.Loss == Softmax && o.Negatives == Pairs && hasQuery(o.Decoder) {
		fault("loss softmax with negatives pairs: with %s all links of a step share their negatives, whose sources cannot be drawn: want uniform, batch or degree", o.Decoder)
	}
	if o.Resume && o.Checkpoint == "" {
		fault("Resume without the path of a checkpoint")
	}
	return errors.Join(faults...)
}
