package calibrate

import "github.com/flashdb/flashdb/flashlight"

// features is how many amounts of work a cost depends on.
const features = 4

// costs are the seconds of each unit of work: a query, a round, a row scored, a code scanned.
//
// Until the final timing, plans are compared by these costs and not by their own times. Load of
// other programs can make one of two equal plans look twice as slow, and the choice between them
// would differ from run to run. The work does not depend on load.
type costs [features]float64

func (o *outcome) work() [features]float64 {
	return [features]float64{1, float64(o.rounds), float64(o.scored), float64(o.codes)}
}

// fitCosts fits the costs to the seconds of all outcomes by non-negative least squares of the
// relative errors.
func fitCosts(candidates []*candidate) costs {
	var normal [features][features]float64
	var right [features]float64
	for _, c := range candidates {
		for i := range c.outcomes {
			o := &c.outcomes[i]
			if o.seconds <= 0 {
				continue
			}
			f := o.work()
			for j := range f {
				right[j] += f[j] / o.seconds
				for l := range f {
					normal[j][l] += f[j] * f[l] / (o.seconds * o.seconds)
				}
			}
		}
	}
	return leastSquares(normal, right)
}

// of returns the mean seconds that the work of a candidate takes for one source.
func (w *costs) of(c *candidate) float64 {
	sum := 0.0
	for i := range c.outcomes {
		sum += w.seconds(c.outcomes[i].work())
	}
	return sum / float64(max(1, len(c.outcomes)))
}

// foretell estimates the seconds that a plan takes for one source in an index of so many rows. It
// assumes that only the tail ends the plan early.
func (w *costs) foretell(p flashlight.Plan, rows int) float64 {
	queries := 1.0
	if p.Rounds > 1 && (p.AnchorsFrom == flashlight.AnchorsBoth || p.AnchorsFrom == flashlight.AnchorsRoundOnes) {
		queries = 2
	}
	rounds := float64(p.Rounds)
	if p.Tail > 0 {
		rounds = min(rounds, roundsToTail)
	}
	codes := queries * rounds * p.Probes.Share * float64(rows)
	return w.seconds([features]float64{1, rounds, rounds * float64(p.PerRound), codes})
}

// timed returns the mean seconds that a candidate takes for one source. It scales the seconds of
// its work over all sources by the final timing, which has a few sources only. The mean of those
// few alone would mislead: a plan that stops early takes much longer for some sources than for
// others.
func (w *costs) timed(c *candidate) float64 {
	var pace []float64
	for i, seconds := range c.timed {
		if work := w.seconds(c.outcomes[i].work()); work > 0 {
			pace = append(pace, seconds/work)
		}
	}
	if len(pace) == 0 {
		return w.of(c)
	}
	return w.of(c) * median(pace)
}

func (w *costs) seconds(work [features]float64) (sum float64) {
	for i, amount := range work {
		sum += w[i] * amount
	}
	return sum
}
