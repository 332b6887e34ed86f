package flashlight

import (
	"time"

	"github.com/flashdb/flashdb/index"
)

// Stop says why a query ended, and so why an answer is short.
type Stop string

// The reasons to stop.
const (
	StopRounds    Stop = "rounds"    // all rounds of the plan were run
	StopConverged Stop = "converged" // no round brought anything into the top-k, for as many rounds as the plan's patience
	StopTail      Stop = "tail"      // the tail of the last round brought few of the top-k: see Plan.Tail
	StopBudget    Stop = "budget"    // Plan.MaxScored rows were scored
	StopDeadline  Stop = "deadline"  // the context's deadline passed after the first round
	StopExhausted Stop = "exhausted" // the rounds scored every row that the filters allow, so the answer is exact
	StopLinear    Stop = "linear"    // a linear decoder needs one round
	StopExact     Stop = "exact"     // an exact scan scored every row that the filters allow
	StopMinScore  Stop = "min-score" // hits below Query.MinScore were dropped
)

// Report says what a query cost and why it stopped.
type Report struct {
	Plan       Plan // Query.Plan, or if its learned seed was not available, the fallback or the plan with the ones seed
	Stop       Stop
	Rounds     int // searches followed by scoring, with widening rounds
	RowsScored int // by the decoder
	Cost       index.Cost
	Trace      []Round // when Query.Explain is set
}

// Round is the trace of one round.
type Round struct {
	Aims     []Aim         // one for each query vector
	Probes   index.Probes  // the search set asked for
	Cost     index.Cost    // of this round alone
	Scored   int           // rows chosen and scored
	Best     float32       // highest score of this round, minus infinity when none was scored
	Entered  int           // rows that entered the top-k; later ones may have displaced some
	Widening bool          // added after the plan's last round, because fewer than k hits were found
	Elapsed  time.Duration // by Executor.Clock
}

// Aim says where a query vector came from.
type Aim struct {
	From    string   // "ones", "source", "components" or "learned" for a seed, "start" for Query.Start, "round" or "all" for the mean gradient at anchors
	Anchors []uint32 // their ids, best first
	// Sources are the ids of the stored sources that a learned seed was made from, most similar
	// first. They are ids of the collection that the sources of Query.Seeds are from.
	Sources []uint32
	// Neurons counts the neurons of the decoder. Changed counts those that are active at the best
	// anchor and were not at that of the round before, or the reverse. After a seed every neuron
	// counts as having been active. Few changes mean that the query has settled. Both are 0 for a
	// seed, and for a decoder without neurons.
	Neurons, Changed int
}
