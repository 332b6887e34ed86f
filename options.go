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
	// Logger is told what happens inside: a rebuild started and how it ended, an index that cannot
	// be served, a torn log tail, a flush, writes that are refused from then on. A record has the
	// attribute dir, and as they apply collection, generation and err, an error value. A handler is
	// called while others wait for what happens: it must return soon, and must not call the
	// database. Metrics counts the same. Default: nothing.
	Logger *slog.Logger
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

// validate reports every fault of the options at once.
func (o *Options) validate() error {
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

// PredictOptions refine one Predict. The zero value, or nil, means the defaults.
type PredictOptions struct {
	// Decoder names the decoder; it may be empty when the collection has exactly one.
	Decoder string
	// Relation names the relation that is asked, of a decoder that has relations: "treats". Known
	// links of that relation are left out, and no others.
	Relation string
	// Reverse asks for the other end of triples: for the nodes that have the relation to the
	// source. It needs a Relation.
	Reverse bool
	// Recall is the mean share of the exact top-k to be found, in (0, 1]. Zero means 0.98. The
	// answer comes by the cheapest plan whose recall, measured by Calibrate, is at least that with
	// 95% confidence, and by the exact scan where there is none or the scan is as fast;
	// QueryStats.Plan says which and why. Without a calibration a recall that is asked for is met
	// by the exact scan, and zero means the default plan.
	Recall float64

	// Exact scores every node.
	Exact bool
	// Plan, if not nil, is run as it is, whatever recall it reaches. Its fields that are zero are
	// those of flashlight.DefaultPlan, or of flashlight.PaperPlan where its Method is paper. A plan
	// that Calibrations returns may be given back. Exact and Recall must not be set with it.
	Plan *flashlight.Plan

	// SourceCollection names the collection of the source, when it is not the one that is asked:
	// users when items are predicted. Its embeddings have the same width. Empty means the one that
	// is asked.
	SourceCollection string
	// Exclude lists keys that must not be returned. Unknown keys are ignored.
	Exclude []string
	// IncludeLinked also returns nodes that the source is linked to: by Relation, or, where that is
	// empty, by any.
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
	if o.Reverse && o.Relation == "" {
		errs = append(errs, errReverse)
	}
	if o.MinScore != nil && math.IsNaN(float64(*o.MinScore)) {
		bad("min-score is NaN: use a number")
	}
	if !(o.Recall >= 0 && o.Recall <= 1) {
		bad("recall %v is outside (0, 1]", o.Recall)
	}
	if o.Plan != nil {
		switch plan := complete(*o.Plan, flashlight.DefaultPlan(1, 1)); {
		case o.Exact || o.Recall != 0:
			bad("a plan by hand is run as it is: leave exact and recall unset with it")
		case plan.Method == flashlight.MethodExact:
			bad("plan: method exact: set PredictOptions.Exact instead")
		default:
			if err := plan.Validate(); err != nil {
				bad("%w", err)
			}
		}
	}
	if _, err := parseFilter(o.Filter); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ScoreOptions refine one Score. The zero value, or nil, means the defaults.
type ScoreOptions struct {
	// Decoder, Relation, Reverse and SourceCollection are as in PredictOptions.
	Decoder          string
	Relation         string
	Reverse          bool
	SourceCollection string
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
	// Probes says how much of the index to visit, counted from its beginning; zero means the share
	// of flashlight.DefaultPlan.
	Probes index.Probes
	// Exclude, Filter, MinScore and WithNode are as in PredictOptions.
	Exclude  []string
	Filter   string
	MinScore *float32
	WithNode bool
}

// validate reports every fault of the options at once.
func (o *SearchOptions) validate() error {
	var errs []error
	switch o.Similarity {
	case "", SimilarityIP, SimilarityCosine, SimilarityL2:
	default:
		errs = append(errs, fmt.Errorf("%w: similarity %q is unknown: use ip, cosine or l2", ErrInvalid, o.Similarity))
	}
	p := PredictOptions{Plan: &flashlight.Plan{Probes: o.Probes}, Filter: o.Filter, MinScore: o.MinScore}
	return errors.Join(append(errs, p.Validate())...)
}
