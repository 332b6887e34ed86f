package flashdb

import (
	"time"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/storage"
)

// Stop says why a query ended.
type Stop string

// The reasons to stop.
const (
	StopRounds    = Stop(flashlight.StopRounds)    // all rounds of the plan were run
	StopConverged = Stop(flashlight.StopConverged) // no round brought anything into the top-k, for as many rounds as the plan's patience
	StopTail      = Stop(flashlight.StopTail)      // the tail of the last round brought few of the top-k: see flashlight.Plan.Tail
	StopBudget    = Stop(flashlight.StopBudget)    // flashlight.Plan.MaxScored rows were scored
	StopDeadline  = Stop(flashlight.StopDeadline)  // the context's deadline passed after the first round
	StopExhausted = Stop(flashlight.StopExhausted) // the rounds scored every row that the filters allow, so the answer is exact
	StopLinear    = Stop(flashlight.StopLinear)    // a linear decoder needs one round
	StopExact     = Stop(flashlight.StopExact)     // an exact scan scored every row that the filters allow
	StopMinScore  = Stop(flashlight.StopMinScore)  // hits below MinScore were dropped
)

// A Round is the trace of one round of a query.
type Round struct {
	// Aims say what the query vectors were made of, one for each vector.
	Aims []Aim
	// Probes is how much of the index all rounds so far were allowed to visit.
	Probes index.Probes
	// Lists and Rows count what this round was the first to visit, and Codes what it scanned.
	Lists, Rows, Codes int
	// Scored counts the rows that the decoder scored. Entered counts those of them that entered the
	// top-k. Later rows may have displaced some.
	Scored, Entered int
	// Best is the highest score of this round, or minus infinity when no row was scored.
	Best float32
	// Widening marks a round that was added after the plan's last one because fewer than k hits
	// were found.
	Widening bool
	Elapsed  time.Duration
}

// An Aim says where a query vector came from.
type Aim struct {
	// From is "ones", "source", "components" or "learned" for a seed. It is "round" or "all" for
	// the mean gradient at anchors of the last round or of all rounds.
	From string
	// Anchors are the keys of the nodes at which the decoder was linearised, best first. Nodes
	// deleted since are left out.
	Anchors []string
	// Sources are the keys of the sources that a learned seed was made from, most similar first.
	// They are nodes of Calibration.SourceCollection. Nodes deleted since are left out.
	Sources []string
	// Neurons counts the neurons of the decoder. Changed counts those that are active at the best
	// anchor and were not at the best anchor of the round before, or the reverse. Few changes mean
	// that the query has settled. Both are 0 for a seed, and for a decoder without neurons.
	Neurons, Changed int
}

// trace returns rounds with keys in place of ids.
func (q *query) trace(rounds []flashlight.Round) ([]Round, error) {
	out := make([]Round, len(rounds))
	err := q.c.view(func(v *storage.View) error {
		sources := q.c.uid
		if q.measured != nil && q.measured.SourcesFrom != "" {
			info, _ := v.Collection(q.measured.SourcesFrom)
			sources = info.UID // 0, which has no nodes, if it was dropped since
		}
		for i, r := range rounds {
			out[i] = Round{
				Probes: r.Probes, Lists: r.Cost.Lists, Rows: r.Cost.Rows, Codes: r.Cost.Codes,
				Scored: r.Scored, Entered: r.Entered, Best: r.Best, Widening: r.Widening, Elapsed: r.Elapsed,
			}
			for _, a := range r.Aims {
				out[i].Aims = append(out[i].Aims, Aim{
					From: a.From, Neurons: a.Neurons, Changed: a.Changed,
					Anchors: keysOf(v, q.c.uid, a.Anchors), Sources: keysOf(v, sources, a.Sources),
				})
			}
		}
		return nil
	})
	return out, err
}

// keysOf returns the keys of the ids. It skips ids whose node was deleted.
func keysOf(v *storage.View, uid uint32, ids []uint32) (keys []string) {
	for _, id := range ids {
		if key, ok := v.Key(uid, id); ok {
			keys = append(keys, key)
		}
	}
	return keys
}
