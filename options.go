package flashdb

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"time"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/vfs"
)

// Options configure Open. The zero value, or nil, means the defaults.
type Options struct {
	// MustExist makes Open fail with ErrNotFound instead of creating the directory.
	MustExist bool
	// ReadOnly opens an existing database beside others that read it, while no process has it open
	// for writing, and changes nothing on disk: what the log holds is replayed into memory.
	// Changes, Rebuild, Compact and Backup return ErrReadOnly.
	ReadOnly bool
	// LockTimeout is how long Open waits for another process to release the directory before it
	// returns ErrLocked. Default 250 ms.
	LockTimeout time.Duration
	// Workers bounds the goroutines of one exact scan, one search of much of an index, one rebuild,
	// or one PredictBatch. Default GOMAXPROCS.
	Workers int
	// FlushBytes is how much acknowledged change is held in memory before it is moved from the log
	// into the bbolt file. Default 32 MiB. A writer that is faster than the move waits while twice
	// as much is held.
	FlushBytes int64
	// Rebuild rebuilds in this process from time to time.
	Rebuild RebuildSchedule
	clock   clock // of Rebuild; nil is the system's
	// CalibrateTime is how long a decoder is calibrated at most, at each Rebuild and PutDecoder:
	// see Collection.Calibrate. Default 10 s; negative means not at all.
	CalibrateTime time.Duration
	// LazyChecksums leaves verifying the codes and rows of an index to DB.Check. By default the
	// first query of a collection verifies the whole file, which reads it once, and every query
	// rests on bytes that were sound then.
	LazyChecksums bool
	// Logger receives what an operator should know: a generation that could not be opened or was
	// given up, a torn log tail, a finished rebuild. Default: nothing.
	Logger *slog.Logger
	// Events are told what a program may want to act on or count.
	Events EventListener
	disk   disk // the operating system's by default
}

func (o *Options) withDefaults() Options {
	var v Options
	if o != nil {
		v = *o
	}
	if v.LockTimeout == 0 {
		v.LockTimeout = 250 * time.Millisecond
	}
	if v.Workers == 0 {
		v.Workers = runtime.GOMAXPROCS(0)
	}
	if v.FlushBytes == 0 {
		v.FlushBytes = 32 << 20
	}
	if v.CalibrateTime == 0 {
		v.CalibrateTime = 10 * time.Second
	}
	if v.clock == nil {
		v.clock = systemClock{}
	}
	if v.disk.system == nil {
		v.disk.system = vfs.OS()
	}
	if v.Logger == nil {
		v.Logger = slog.New(slog.DiscardHandler)
	}
	return v
}

// Validate reports every fault of the options at once.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	if o.LockTimeout < 0 {
		errs = append(errs, fmt.Errorf("%w: Options.LockTimeout is %v, want >= 0", ErrInvalid, o.LockTimeout))
	}
	if o.Workers < 0 {
		errs = append(errs, fmt.Errorf("%w: Options.Workers is %d, want >= 0", ErrInvalid, o.Workers))
	}
	if o.FlushBytes < 0 {
		errs = append(errs, fmt.Errorf("%w: Options.FlushBytes is %d, want >= 0", ErrInvalid, o.FlushBytes))
	}
	return errors.Join(append(errs, o.Rebuild.validate())...)
}

// Mode says how a Predict finds its answer.
type Mode string

const (
	// ModeAuto uses the index where there is one and it pays, and the exact scan otherwise. It is
	// the default.
	ModeAuto Mode = "auto"
	// ModePaper is Algorithm 1 of the Flashlight paper as printed: the ones seed, three rounds of
	// 200, one anchor, no early stop.
	ModePaper Mode = "paper"
	// ModeExact scores every node.
	ModeExact Mode = "exact"
)

// Seed says what the first query of a search is made of: see the constants.
type Seed string

// The seeds.
const (
	SeedOnes    = Seed(flashlight.SeedOnes)    // the source through the decoder with every neuron active, as in the paper
	SeedSource  = Seed(flashlight.SeedSource)  // the source's own embedding
	SeedBoth    = Seed(flashlight.SeedBoth)    // two queries, one of each, half of the round each
	SeedLearned = Seed(flashlight.SeedLearned) // what calibration learned from the searches of similar sources; ones where it has learned nothing

	SeedLearnedOnes = Seed(flashlight.SeedLearnedOnes) // two queries, learned and ones, half of the round each
)

// AnchorsFrom says at which of the nodes found so far the decoder is linearised for the queries of
// the next round: see the constants.
type AnchorsFrom string

// The anchors.
const (
	AnchorsRound = AnchorsFrom(flashlight.AnchorsRound) // the best of the round that just ended: explores
	AnchorsAll   = AnchorsFrom(flashlight.AnchorsAll)   // the best of all rounds: exploits
	AnchorsBoth  = AnchorsFrom(flashlight.AnchorsBoth)  // two queries, one at each, half of the round each

	AnchorsRoundOnes = AnchorsFrom(flashlight.AnchorsRoundOnes) // two queries, one at the best of the round, and the ones seed again
)

// Probes says how much of the index a query may visit, counted from its beginning. The zero value
// means the default plan's share.
type Probes struct {
	Lists int     // number of lists; 0 leaves it to Share
	Share float64 // share of the rows, in (0, 1]; ignored when Lists is set
}

// String returns it in words, such as "40 lists", "2.5%" or "all".
func (p Probes) String() string { return index.Probes(p).String() }

// PredictOptions refine one Predict. The zero value, or nil, means the defaults. A knob set by hand
// is used as it is and echoed in QueryStats.Plan.
type PredictOptions struct {
	// Decoder names the decoder; it may be empty when the collection has exactly one.
	Decoder string
	// Mode is auto, paper or exact.
	Mode Mode
	// Recall is the mean share of the exact top-k to be found, in (0, 1]. Zero means 0.98. The
	// answer comes by the cheapest plan whose recall, measured by Calibrate, is at least that with
	// 95% confidence, and by the exact scan where there is none or the scan is as fast;
	// QueryStats.Plan says which and why. Without a calibration a recall that is asked for is met
	// by the exact scan, and zero means the default plan.
	Recall float64

	// Rounds, PerRound, Probes, Growth, Tail, Anchors, AnchorsFrom and Seed set the plan by hand;
	// see flashlight.Plan for their meaning.
	Rounds      int
	PerRound    int
	Probes      Probes
	Growth      int
	Tail        float64
	Anchors     int
	AnchorsFrom AnchorsFrom
	Seed        Seed
	// MaxScored bounds the rows scored by the decoder. Zero means no bound but the plan's. The scan
	// of ModeExact is not bounded.
	MaxScored int

	// SourceCollection names the collection of the source, when it is not the one that is asked:
	// users when items are predicted. Its embeddings have the same width. Empty means the one that
	// is asked.
	SourceCollection string
	// Exclude lists keys that must not be returned. Unknown keys are ignored.
	Exclude []string
	// IncludeLinked also returns nodes that the source is linked to.
	IncludeLinked bool
	// Filter is a tag expression: tags, and, or, not, parentheses.
	Filter string
	// MinScore drops hits with a lower score when it is not nil.
	MinScore *float32

	// WithNode fills Hit.Tags and Hit.Payload.
	WithNode bool
	// Explain records a trace of the rounds in Stats.Trace.
	Explain bool
	// Verify also scans exactly and says in Stats.Verification which hits of the exact answer were
	// missed, and where they lie.
	Verify bool
}

// Validate reports every fault of the options at once.
func (o *PredictOptions) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	switch o.Mode {
	case "", ModeAuto, ModePaper, ModeExact:
	default:
		bad("mode %q is unknown: use auto, paper or exact", o.Mode)
	}
	switch o.Seed {
	case "", SeedOnes, SeedSource, SeedBoth, SeedLearned, SeedLearnedOnes:
	default:
		bad("seed %q is unknown: use ones, source, both, learned or learned+ones", o.Seed)
	}
	switch o.AnchorsFrom {
	case "", AnchorsRound, AnchorsAll, AnchorsBoth, AnchorsRoundOnes:
	default:
		bad("anchors from %q is unknown: use round, all, both or round+ones", o.AnchorsFrom)
	}
	if o.MinScore != nil && math.IsNaN(float64(*o.MinScore)) {
		bad("min-score is NaN: use a number")
	}
	if !(o.Recall >= 0 && o.Recall <= 1) {
		bad("recall %v is outside (0, 1]", o.Recall)
	}
	for _, f := range []struct {
		name string
		v    int
	}{
		{"rounds", o.Rounds},
		{"per-round", o.PerRound},
		{"growth", o.Growth},
		{"anchors", o.Anchors},
		{"max-scored", o.MaxScored},
		{"probed lists", o.Probes.Lists},
	} {
		if f.v < 0 {
			bad("%s is %d: use a positive number, or 0 for the default", f.name, f.v)
		}
	}
	if !(o.Probes.Share >= 0 && o.Probes.Share <= 1) {
		bad("probed share %v is outside (0, 1]", o.Probes.Share)
	}
	if !(o.Tail >= 0 && o.Tail < 1) {
		bad("tail %v is outside [0, 1)", o.Tail)
	}
	if o.byHand() && (o.Mode == ModePaper || o.Mode == ModeExact) {
		bad("mode %s fixes the plan: leave rounds, per-round, growth, tail, anchors, anchors-from, seed and recall unset", o.Mode)
	}
	if (o.byHand() || o.Probes != (Probes{})) && o.Recall != 0 {
		bad("recall chooses the plan: leave rounds, per-round, probes, growth, tail, anchors, anchors-from and seed unset with it")
	}
	if _, err := parseFilter(o.Filter); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ScoreOptions refine one Score. The zero value, or nil, means the defaults.
type ScoreOptions struct {
	// Decoder and SourceCollection are as in PredictOptions.
	Decoder          string
	SourceCollection string
}

// byHand reports whether a knob of the plan other than Probes is set.
func (o *PredictOptions) byHand() bool {
	return o.Rounds > 0 || o.PerRound > 0 || o.Growth > 0 || o.Tail > 0 || o.Anchors > 0 || o.AnchorsFrom != "" || o.Seed != ""
}

// Similarity is what Search ranks by.
type Similarity string

// The similarities of Search. A score is larger for a nearer node under each.
const (
	SimilarityIP     Similarity = "ip"     // inner product
	SimilarityCosine Similarity = "cosine" // cosine of the angle, in [-1, 1]
	SimilarityL2     Similarity = "l2"     // minus the squared Euclidean distance
)

// SearchOptions refine one Search. The zero value, or nil, means the defaults.
type SearchOptions struct {
	// Similarity is ip (the default), cosine or l2. The index serves ip, and cosine in a collection
	// whose schema normalises; the others, and those in other collections, are answered by an exact
	// scan.
	Similarity Similarity
	// Exact scans every node.
	Exact bool
	// Probes says how much of the index to visit.
	Probes Probes
	// Exclude, Filter, MinScore and WithNode are as in PredictOptions.
	Exclude  []string
	Filter   string
	MinScore *float32
	WithNode bool
}

// Validate reports every fault of the options at once.
func (o *SearchOptions) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	switch o.Similarity {
	case "", SimilarityIP, SimilarityCosine, SimilarityL2:
	default:
		errs = append(errs, fmt.Errorf("%w: similarity %q is unknown: use ip, cosine or l2", ErrInvalid, o.Similarity))
	}
	p := PredictOptions{Probes: o.Probes, Filter: o.Filter, MinScore: o.MinScore}
	return errors.Join(append(errs, p.Validate())...)
}
