package calibrate

// features is how many amounts of work a cost is made of.
const features = 4

// work predicts seconds from the work that was done: a query, a round, a row scored, a code scanned.
//
// Plans are compared by it as long as they were not asked side by side. What other programs do meanwhile makes one plan
// look half as dear as another just like it, and which of them goes on would then differ from run to run; the work does not.
type work [features]float64

func (o *outcome) work() [features]float64 {
	return [features]float64{1, float64(o.rounds), float64(o.scored), float64(o.codes)}
}

// fitWork fits the costs to the seconds of all outcomes by non-negative least squares of the relative errors.
func fitWork(candidates []*candidate) (w work) {
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
	// Coordinate descent: the best value of one cost under those of the others, none below zero.
	const sweeps = 500
	for range sweeps {
		for j := range w {
			if normal[j][j] == 0 {
				continue
			}
			rest := right[j]
			for l := range w {
				if l != j {
					rest -= normal[j][l] * w[l]
				}
			}
			w[j] = max(0, rest/normal[j][j])
		}
	}
	return w
}

// seconds is the mean a source that the work of a candidate takes.
func (w *work) seconds(c *candidate) float64 {
	sum := 0.0
	for i := range c.outcomes {
		f := c.outcomes[i].work()
		for j := range f {
			sum += w[j] * f[j]
		}
	}
	return sum / float64(max(1, len(c.outcomes)))
}
