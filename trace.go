package flashdb

import (
	"time"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/storage"
)

// Stop says why a query ended: see the constants.
type Stop string

// The reasons to stop.
const (
	StopRounds    = Stop(flashlight.StopRounds)    // all rounds of the plan were run
	StopConverged = Stop(flashlight.StopConverged) // as many rounds as the plan's patience brought nothing into the top-k
	StopTail      = Stop(flashlight.StopTail)      // few of the top-k came from the tail of the last round: see flashlight.Plan.Tail
	StopBudget    = Stop(flashlight.StopBudget)    // flashlight.Plan.MaxScored rows were scored
	StopDeadline  = Stop(flashlight.StopDeadline)  // the context's deadline passed after the first round
	StopExhausted = Stop(flashlight.StopExhausted) // every row that the filters allow was scored: the answer is exact
	StopLinear    = Stop(flashlight.StopLinear)    // a linear decoder needs one round
	StopExact     = Stop(flashlight.StopExact)     // every row that the filters allow was scored, without a search
	StopMinScore  = Stop(flashlight.StopMinScore)  // hits below MinScore were dropped
)

// A Round is the trace of one round of a query.
type Round struct {
	// Aims are what its query vectors were made of, one each.
	Aims []Aim
	// Probes is how much of the index all rounds so far were allowed to visit.
	Probes index.Probes
	// Lists, Rows and Codes are what this round alone visited and scanned.
	Lists, Rows, Codes int
	// Scored counts the rows that the decoder scored, and Entered those of them that entered the
	// top-k, some of which later ones displaced.
	Scored, Entered int
	// Best is the highest score of this round, minus infinity when none was scored.
	Best float32
	// Widening marks a round after the plan's last one, because fewer than k hits were known.
	Widening bool
	Elapsed  time.Duration
}

// An Aim says where a query vector came from.
type Aim struct {
	// From is "ones", "source" or "learned" for a seed, "round" or "all" for the mean gradient at
	// anchors.
	From string
	// Anchors are the keys of the nodes at which the decoder was linearised, best first. Those
	// deleted since are left out.
	Anchors []string
	// Sources are the keys of the stored sources whose searches taught a learned seed, most alike
	// first, in the collection that the calibration's sources are from. Those deleted since are
	// left out.
	Sources []string
	// Neurons counts those of the decoder, and Changed the ones whose activity at the best anchor
	// is not what it was at the best anchor of the round before. Both are 0 for a seed, and for a
	// decoder without neurons. Few changes mean that the query has settled.
	Neurons, Changed int
}

// trace returns rounds with the keys of what they name by id.
func (q *query) trace(rounds []flashlight.Round) ([]Round, error) {
	out := make([]Round, len(rounds))
	err := q.c.db.store.View(func(v *storage.View) error {
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

// keysOf returns the keys of those of the ids that have a node.
func keysOf(v *storage.View, uid uint32, ids []uint32) (keys []string) {
	for _, id := range ids {
		if key, ok := v.Key(uid, id); ok {
			keys = append(keys, key)
		}
	}
	return keys
}
