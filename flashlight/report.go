package flashlight

import (
	"time"

	"github.com/flashdb/flashdb/index"
)

// Stop says why a query ended. When the answer is short, it says why that is.
type Stop string

// The reasons to stop.
const (
	StopRounds    Stop = "rounds"    // all rounds of the plan were run
	StopConverged Stop = "converged" // as many rounds as the plan's patience brought nothing into the top-k
	StopTail      Stop = "tail"      // few of the top-k came from the tail of the last round: see Plan.Tail
	StopBudget    Stop = "budget"    // Plan.MaxScored rows were scored
	StopDeadline  Stop = "deadline"  // the context's deadline passed after the first round
	StopExhausted Stop = "exhausted" // every row that the filters allow was scored: the answer is exact
	StopLinear    Stop = "linear"    // a linear decoder needs one round
	StopExact     Stop = "exact"     // every row that the filters allow was scored, without a search
	StopMinScore  Stop = "min-score" // hits below Query.MinScore were dropped
)

// Report says what a query cost and why it stopped.
type Report struct {
	Plan       Plan // Query.Plan; where its learned seed could not be had, the fallback, or the plan with the ones seed
	Stop       Stop
	Rounds     int // searches followed by scoring, widening rounds included
	RowsScored int // by the decoder
	Cost       index.Cost
	Trace      []Round // when Query.Explain is set
}

// Round is the trace of one round.
type Round struct {
	Aims     []Aim         // one per query
	Probes   index.Probes  // the search set asked for
	Cost     index.Cost    // of this round alone
	Scored   int           // rows chosen and scored
	Best     float32       // highest score of this round, minus infinity when none was scored
	Entered  int           // rows that entered the top-k, some of which later ones displaced
	Widening bool          // after the plan's last round, because fewer than k hits were known
	Elapsed  time.Duration // by Executor.Clock
}

// Aim says where a query vector came from.
type Aim struct {
	From    string   // "ones", "source" or "learned" for a seed, "start" for Query.Start, "round" or "all" for the mean gradient at anchors
	Anchors []uint32 // their ids, best first
	// Sources are the stored sources whose gradients the learned seed took, most alike first: ids
	// of the collection that the sources of Query.Seeds are from.
	Sources []uint32
	// Neurons counts those of the decoder, and Changed the ones whose activity at the best anchor
	// is not what it was at the best anchor of the round before; the ones seed takes every neuron
	// for active. Both are 0 for a seed, and for a decoder without neurons. Few changes mean that
	// the query has settled.
	Neurons, Changed int
}
