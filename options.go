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
	// ReadOnly opens an existing database without changing anything on disk. What the log holds is
	// replayed into memory. Several processes may have it open so, while none has it open for
	// writing. Writes, Rebuild and Compact return ErrReadOnly, and so does Backup when the log
	// holds what the bbolt file lacks.
	ReadOnly bool
	// LockTimeout is how long Open waits for another process to release the directory before it
	// returns ErrLocked. Default 250 ms.
	LockTimeout time.Duration
	// Workers bounds the goroutines of one exact scan, one search of a large part of an index, one
	// rebuild, or one PredictBatch. Default GOMAXPROCS. A rebuild takes half by default: see
	// RebuildOptions.Workers.
	Workers int
	// FlushBytes is how many bytes of acknowledged writes are held in memory before a flush moves
	// them into the bbolt file. Default 32 MiB. While twice as much is held, a write waits for the
	// running flush.
	FlushBytes int64
	// MemoryBytes is a budget for the memory that a rebuild holds, and for that of a calibration,
	// each by itself. Where it is short, lists are trained on fewer rows, down to a quarter, and
	// fewer sources are looked at. Such an index has a lower recall at the same cost, so that
	// calibration chooses more expensive plans, and the first rebuild may be refused: see
	// RebuildOptions.Tolerance. If a rebuild cannot be held to the budget, it fails with an error
	// that names the least one. Default 0: no budget.
	//
	// The budget is for what is held: Go's collector lets the heap grow to about twice that, unless
	// GOGC or GOMEMLIMIT say otherwise. It leaves out pages of files, which the system can take
	// back, what FlushBytes bounds, and queries. Rows newer than an index move into a segment once
	// they hold a quarter of it: see SegmentRows. Segments are built within the budget too, but one
	// that does not fit is built all the same: it holds up to 16 bytes a row, and 36 a dimension of
	// each list.
	MemoryBytes int64
	// SegmentRows is after how many upserts the rows that are newer than the index of a collection
	// get an index of their own, a segment, in the background. Until then each query scans them. If
	// they are fewer than half as many, as where nodes are written again and again, they wait for
	// the next time. Default 16,384. Negative means never.
	SegmentRows int
	// Rebuild schedules rebuilds of every collection in this process. Default none.
	Rebuild RebuildSchedule
	clock   clock // for Rebuild; nil means the system clock
	// CalibrateTime is the longest time for which Rebuild and PutDecoder calibrate one decoder: see
	// Collection.Calibrate. Default 10 s. Negative means not at all.
	CalibrateTime time.Duration
	// LazyChecksums leaves it to DB.Check to verify the codes and rows of an index. By default the
	// first query of a collection reads its whole index file and verifies every checksum.
	LazyChecksums bool
	// Logger receives the events of the database: a rebuild that starts or ends, an index that
	// cannot be served, a torn log tail, a flush, and that writes are refused from now on. A record
	// has the attribute dir and, where they apply, collection, generation and err, which is an
	// error value. Other calls may wait while the handler runs, so it must return soon and must not
	// call the database. DB.Metrics counts such events. Default: no log.
	Logger *slog.Logger
	disk   disk // the file system of the operating system by default
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
	if v.SegmentRows == 0 {
		v.SegmentRows = defaultSegmentRows
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
	if o.MemoryBytes < 0 {
		errs = append(errs, fmt.Errorf("%w: Options.MemoryBytes is %d, want >= 0", ErrInvalid, o.MemoryBytes))
	}
	return errors.Join(append(errs, o.Rebuild.validate())...)
}

// PredictOptions are the options of one Predict. The zero value, or nil, means the defaults.
type PredictOptions struct {
	// Decoder names the decoder. It may be empty when the collection has exactly one.
	Decoder string
	// Relation names the relation to predict, such as "treats", for a decoder that has relations.
	// Only the known links of that relation are then left out.
	Relation string
	// Reverse predicts in the other direction: the nodes that have the relation to the source. It
	// needs a Relation.
	Reverse bool
	// Recall is the mean share of the exact top-k to be found, in (0, 1]. Zero means 0.98. The
	// query runs the cheapest plan whose recall, measured by Calibrate, is at least that with 95%
	// confidence. It runs the exact scan where no plan reaches the recall, or where the scan is as
	// fast. QueryStats.Plan says which and why. Without a calibration, a positive Recall is met by
	// the exact scan, and zero means the default plan.
	Recall float64

	// Exact scores every node that the other options allow.
	Exact bool
	// Plan, if not nil, is run whatever recall it reaches. Its zero fields take the values of
	// flashlight.DefaultPlan, or of flashlight.PaperPlan where its Method is paper. It may be a
	// plan that Calibrations returned. Exact and Recall must not be set with it.
	Plan *flashlight.Plan

	// SourceCollection names the collection of the source, where it is another one, such as users
	// when items are predicted. Its embeddings must have the same width. Empty means the collection
	// that Predict is called on.
	SourceCollection string
	// Exclude lists keys that must not be returned. Unknown keys are ignored.
	Exclude []string
	// IncludeLinked also returns the nodes that the source is already linked to. Without it they
	// are left out: the ones linked by Relation, or by any relation where Relation is empty.
	IncludeLinked bool
	// Filter is an expression of tags and attributes, such as `go and not (test or "old name")` or
	// `price < 20 and brand in ("A", "B") and released >= 2025-01-01 and not sold`. Only nodes that
	// match are returned. docs/filters.md has all of it.
	Filter string
	// MinScore, if not nil, drops hits with a lower score.
	MinScore *float32

	// Diversity, from 0 to 1, accepts lower scores for more variety. The hits are chosen one by one
	// from the best nodes, at least four for each hit: next comes the node with the highest
	//
	//	(1 - Diversity) * relevance - Diversity * similarity
	//
	// (maximal marginal relevance). The relevance is the score, scaled so that the best of those
	// nodes has 1 and the worst 0. The similarity is the highest cosine between its embedding and
	// those of the hits before it. Hits come in the order in which they were chosen, with their
	// exact scores. 0 is the plain order.
	Diversity float64 `json:",omitempty"`
	// Per, if not nil, is how many hits may have the same value of an attribute, or the same tag.
	Per *Cap `json:",omitempty"`

	// WithNode fills Hit.Tags, Hit.Attributes and Hit.Payload.
	WithNode bool
	// Explain records a trace of the rounds in QueryStats.Trace.
	Explain bool
	// Verify also runs the exact scan. QueryStats.Verification then says which hits of the exact
	// answer were missed, and which lists hold them.
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
		switch plan := o.Plan.Completed(1, 1); {
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
	if !(o.Diversity >= 0 && o.Diversity <= 1) {
		bad("diversity %v is outside [0, 1]", o.Diversity)
	}
	if o.Per != nil && o.Per.Most < 1 {
		bad("at most %d hits of one value leave none: want 1 or more", o.Per.Most)
	}
	if o.Verify && o.varied() {
		bad("the exact scan verifies the best hits, and diversity and per choose others: leave one of them unset")
	}
	if _, err := parsedFilter(o.Filter); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// A Cap bounds how many hits of one answer have the same value of an attribute. Nodes without the
// attribute are not bounded. More nodes are scored until there are k hits or no further nodes.
type Cap struct {
	// Attribute is its name. Empty means tags: no tag is that of more hits.
	Attribute string
	// Most is at least 1.
	Most int
}

// ScoreOptions are the options of one Score. The zero value, or nil, means the defaults.
type ScoreOptions struct {
	// Decoder, Relation, Reverse and SourceCollection are as in PredictOptions.
	Decoder          string
	Relation         string
	Reverse          bool
	SourceCollection string
}

// Similarity is what Search ranks by.
type Similarity string

// The similarities of Search. Under each, a nearer node has a higher score.
const (
	SimilarityIP     Similarity = "ip"     // inner product
	SimilarityCosine Similarity = "cosine" // cosine of the angle, in [-1, 1]
	SimilarityL2     Similarity = "l2"     // minus the squared Euclidean distance
)

// SearchOptions are the options of one Search. The zero value, or nil, means the defaults.
type SearchOptions struct {
	// Similarity is ip (the default), cosine or l2. The index serves ip, and cosine in a collection
	// whose Schema.Normalize is set. Any other search scans exactly.
	Similarity Similarity
	// Exact scans every node.
	Exact bool
	// Probes says how much of the index to visit. Zero means the share of flashlight.DefaultPlan.
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
