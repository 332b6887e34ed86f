package flashlight

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/flashdb/flashdb/index"
)

// Method says how a query is answered.
type Method string

// The methods.
const (
	MethodFlashlight Method = "flashlight" // rounds, as the other fields of the plan say
	MethodPaper      Method = "paper"      // Algorithm 1 as printed, see PaperPlan
	MethodExact      Method = "exact"      // score every row; the other fields of the plan are ignored
)

// AnchorsFrom says at which scored rows the decoder is linearised for the query vectors of the next
// round.
type AnchorsFrom string

// The anchor rules.
const (
	AnchorsRound AnchorsFrom = "round" // the best of the last round: explores
	AnchorsAll   AnchorsFrom = "all"   // the best of all rounds: exploits
	AnchorsBoth  AnchorsFrom = "both"  // two query vectors, one from each, with half of the round each

	// AnchorsRoundOnes is two query vectors, with half of the round each: one from the best of the
	// last round, and the ones seed. It is for sources whose best rows lie in two places.
	AnchorsRoundOnes AnchorsFrom = "round+ones"
)

// Plan says how much work a query may do and where it searches.
type Plan struct {
	Method      Method
	Seed        Seed
	AnchorsFrom AnchorsFrom
	Anchors     int          // rows whose mean gradient is the next query vector
	Rounds      int          // at most so many rounds
	PerRound    int          // rows scored per round
	Patience    int          // stop after so many rounds in a row that brought nothing into the top-k
	Tail        float64      // stop after a round whose tail holds at most this share of the top-k, see tailParts; 0 means never
	Probes      index.Probes // search set at its largest
	Growth      int          // rounds over which the search set grows to Probes, in equal parts; 1 means at once, 0 DefaultGrowth
	MaxScored   int          // rows scored at most, in all; 0 means no bound
}

// PaperPlan returns the plan of Algorithm 1 of the Flashlight paper as printed: the ones seed,
// three rounds of 200, the best row of the round as the only anchor, no early stop, every list
// probed.
func PaperPlan() Plan {
	return Plan{
		Method:      MethodPaper,
		Seed:        SeedOnes,
		AnchorsFrom: AnchorsRound,
		Anchors:     1,
		Rounds:      3,
		PerRound:    200,
		Patience:    3, // as many as there are rounds, so never
		Probes:      index.Probes{Share: 1},
	}
}

// Validate reports everything that is wrong with the plan.
func (p Plan) Validate() error {
	switch p.Method {
	case MethodExact:
		return nil
	case MethodFlashlight, MethodPaper:
	default:
		return fmt.Errorf("plan: method %q: use flashlight, paper or exact", p.Method)
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("plan: "+format, args...)) }
	if !p.Seed.valid() {
		bad("seed %q: use ones, source, both, learned, learned+ones or components", p.Seed)
	}
	switch p.AnchorsFrom {
	case AnchorsRound, AnchorsAll, AnchorsBoth, AnchorsRoundOnes:
	default:
		bad("anchors from %q: use round, all, both or round+ones", p.AnchorsFrom)
	}
	if p.Anchors < 1 {
		bad("%d anchors: want at least 1", p.Anchors)
	}
	if p.Rounds < 1 {
		bad("%d rounds: want at least 1", p.Rounds)
	}
	if p.PerRound < 1 {
		bad("%d rows per round: want at least 1", p.PerRound)
	}
	if p.Patience < 1 {
		bad("patience %d: want at least 1", p.Patience)
	}
	if !(p.Tail >= 0 && p.Tail < 1) {
		bad("tail %v: want a share of the top-k below 1, or 0", p.Tail)
	}
	if p.Growth < 0 {
		bad("growth over %d rounds: want a positive number, or 0 for %d", p.Growth, DefaultGrowth)
	}
	if p.MaxScored < 0 {
		bad("at most %d rows scored: want a positive number, or 0 for no bound", p.MaxScored)
	}
	if err := p.Probes.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("plan: %w", err))
	}
	paper := PaperPlan()
	paper.Probes, paper.MaxScored = p.Probes, p.MaxScored
	if p.Method == MethodPaper && len(errs) == 0 && p != paper {
		bad("method paper fixes everything but the probes and the bound on rows scored: want %v", paper)
	}
	return errors.Join(errs...)
}

// String returns the plan in one line, such as "4 rounds of 150, seed ones, 20 anchors from both,
// probes 30%".
func (p Plan) String() string {
	if p.Method == MethodExact {
		return "exact"
	}
	rounds := "rounds"
	if p.Rounds == 1 {
		rounds = "round"
	}
	anchors := "anchors"
	if p.Anchors == 1 {
		anchors = "anchor"
	}
	s := fmt.Sprintf("%d %s of %d, seed %s, %d %s from %s, probes %v",
		p.Rounds, rounds, p.PerRound, p.Seed, p.Anchors, anchors, p.AnchorsFrom, p.Probes)
	switch {
	case p.Growth == 1:
		s += " at once"
	case p.Growth > 1:
		s += fmt.Sprintf(" over %d rounds", p.Growth)
	}
	if p.Patience > 1 && p.Method != MethodPaper {
		s += fmt.Sprintf(", patience %d", p.Patience)
	}
	if p.Tail > 0 {
		s += fmt.Sprintf(", tail %.3g%%", 100*p.Tail)
	}
	if p.MaxScored > 0 {
		s += fmt.Sprintf(", at most %d scored", p.MaxScored)
	}
	if p.Method == MethodPaper {
		s = "paper: " + s
	}
	return s
}

// The tail of a round is the last third of its rows, in the order of inner products. A query vector
// that fits the source finds nearly all of the top-k before the tail. If many of them are in the
// tail, more lie beyond it, and another round is worth its time.
const tailParts = 3

// DefaultGrowth is the number of rounds over which the search set grows if Plan.Growth is zero. The
// first query vectors are too inaccurate to choose all lists by. With a longer growth, queries that
// converge early miss rows. With growth at once, recall was a little lower on a large graph.
const DefaultGrowth = 3

// probes returns how much may be visited by the end of round t, counted from 1. A plan that probes
// everything does so from the first round. By the last round it is all that the plan allows.
func (p Plan) probes(t int) index.Probes {
	if p.Probes.All() {
		return p.Probes
	}
	growth := p.Growth
	if growth == 0 {
		growth = DefaultGrowth
	}
	return p.Probes.Scale(min(1, float64(t)/float64(min(p.Rounds, growth))))
}

// DefaultPlan returns the plan for the k best of so many rows.
//
// The number of rows to visit hardly grows with the graph. For well trained decoders, visiting all
// of 10,000 rows, a quarter of 64,000 or a twenty-fifth of 750,000 found the 100 best with a mean
// recall of .99. A k above 100 needs more. Rounds are small and many, with a patience of two. Well
// trained decoders converge in four or five rounds. A badly trained one runs all rounds: a single
// round without a new hit means little there.
func DefaultPlan(k, rows int) Plan {
	share := math.Pow(10_000/max(1, float64(rows)), 0.75) * max(1, math.Pow(float64(k)/100, 0.25))
	return Plan{
		Method:      MethodFlashlight,
		Seed:        SeedOnes,
		AnchorsFrom: AnchorsBoth,
		Anchors:     20,
		Rounds:      10,
		PerRound:    max(64, k),
		Patience:    2,
		Probes:      index.Probes{Share: min(1, share)},
	}
}

// Completed returns p with its zero fields set to those of DefaultPlan, or to those of PaperPlan
// where its Method is paper.
func (p Plan) Completed(k, rows int) Plan {
	defaults := DefaultPlan(k, rows)
	if p.Method == MethodPaper {
		defaults = PaperPlan()
	}
	return Plan{
		Method:      cmp.Or(p.Method, defaults.Method),
		Seed:        cmp.Or(p.Seed, defaults.Seed),
		AnchorsFrom: cmp.Or(p.AnchorsFrom, defaults.AnchorsFrom),
		Anchors:     cmp.Or(p.Anchors, defaults.Anchors),
		Rounds:      cmp.Or(p.Rounds, defaults.Rounds),
		PerRound:    cmp.Or(p.PerRound, defaults.PerRound),
		Patience:    cmp.Or(p.Patience, defaults.Patience),
		Tail:        cmp.Or(p.Tail, defaults.Tail),
		Probes:      cmp.Or(p.Probes, defaults.Probes),
		Growth:      cmp.Or(p.Growth, defaults.Growth),
		MaxScored:   cmp.Or(p.MaxScored, defaults.MaxScored),
	}
}

// Filtered returns the plan for a query whose filter allows so many of the rows. It probes
// FilteredScale times as much.
func (p Plan) Filtered(allowed, rows int) Plan {
	if by := FilteredScale(allowed, rows); by > 1 && !p.Probes.All() {
		p.Probes = p.Probes.Scale(by)
	}
	return p
}

// Vectors returns how many query vectors a search of so many rounds has, in all of them.
func (p Plan) Vectors(rounds float64) float64 {
	first, later := 1.0, 1.0
	if p.Seed == SeedBoth || p.Seed == SeedLearnedOnes || p.Seed == SeedComponents {
		first = 2 // the last one may have more
	}
	if p.AnchorsFrom == AnchorsBoth || p.AnchorsFrom == AnchorsRoundOnes {
		later = 2
	}
	return first + later*(rounds-1)
}

// FilteredScale returns how many times as much must be visited under a filter that allows so many
// of the rows, because the best of those rank lower among all rows. With random tags, a filter of
// one row in ten needed 2 to 4 times the probes for the same recall, on graphs of 64,000 and
// 750,000 rows. With a tag for one side of space it needed 4 to 8 times, on the larger graph. The
// exponent 0.9 gives 7.9.
func FilteredScale(allowed, rows int) float64 {
	return math.Pow(max(1, float64(rows)/float64(max(1, allowed))), 0.9)
}
