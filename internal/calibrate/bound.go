package calibrate

import (
	"math"
	"slices"
)

// LowerBound returns a lower bound of the mean recall of all sources, one-sided with 95%
// confidence, from the recalls at k of a sample.
//
// Recalls of a good plan are mostly 1 with a few far lower. There Student's interval fails twice:
// the mean of a small sample is skewed, and a sample without one of the rare poor sources has no
// variance at all. So
//
//   - one unseen source is added to the sample, as poor as the worst seen and at least unseenGap,
//     or one node of k, below the mean. The bound of n perfect recalls is then about 1 - 0.19/n for
//     large k, and not 1;
//   - the interval is Johnson's ("Modified t Tests and Confidence Intervals for Asymmetrical
//     Populations", JASA 1978), which moves Student's by the sample's third moment.
//
// In simulations (see the tests) 93% to 100% of the bounds of 30 sources and more lie below the
// true mean for binomial and beta-binomial recalls, where Student's are 64% to 94%. When 3% of the
// sources are poor, and nothing tells which, it is 75% for 50 sources, 91% for 100 and 96% for 200:
// no bound knows of what its sample does not show.
func LowerBound(recalls []float64, k int) float64 {
	if len(recalls) == 0 {
		return 0
	}
	mean := meanOf(recalls)
	unseen := min(slices.Min(recalls), mean-max(unseenGap, 1/float64(k)))
	sample := append(slices.Clone(recalls), max(0, unseen))
	n := float64(len(sample))
	mean = meanOf(sample)
	var m2, m3 float64 // sums of the second and third power of the deviations
	for _, r := range sample {
		d := r - mean
		m2 += d * d
		m3 += d * d * d
	}
	variance := m2 / (n - 1)
	if variance == 0 {
		return min(1, max(0, mean))
	}
	t := student95(n - 1)
	skewed := m3 / n / (6 * n * variance) * (1 + 2*t*t)
	return min(1, max(0, mean+skewed-t*math.Sqrt(variance/n)))
}

// missMargin is the share of the best rows that all plans may have missed unseen, when so many of
// them were sampled: one that misses none may have missed unseenRows of those, and of the others in
// proportion.
func missMargin(sampled, best int) float64 {
	if sampled == 0 {
		return 1
	}
	return max(0, unseenRows*(1/float64(sampled)-1/float64(best)))
}

// tailBound is the highest recall that a plan with this 5th percentile and worst is taken for where
// a costlier one may do better by the poorest sources. One of k nodes may be missing in any case.
func tailBound(p5, worst float64, k int) float64 {
	allowed := func(recall, misses float64) float64 {
		if recall >= 1-1.5/float64(k) {
			return 1
		}
		return 1 - (1-recall)/misses
	}
	return max(0, min(allowed(p5, tailMisses), allowed(worst, worstMisses)))
}

// PerfectBound returns the lower bound of so many perfect recalls at k: the most that a sample can
// show.
func PerfectBound(sources, k int) float64 {
	return LowerBound(slices.Repeat([]float64{1}, sources), k)
}

// normal95 is the 95% quantile of the normal distribution.
const normal95 = 1.6448536269514722

// student95 returns the 95% quantile of Student's t by its expansion around the normal one
// (Abramowitz and Stegun 26.7.5), within 1% from three degrees of freedom on.
func student95(df float64) float64 {
	const z = normal95
	z3, z5 := z*z*z, z*z*z*z*z
	return z + (z3+z)/(4*df) + (5*z5+16*z3+3*z)/(96*df*df)
}

func meanOf(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(1, len(v)))
}

// quantile returns the q-quantile of ascending values by nearest rank.
func quantile(sorted []float64, q float64) float64 {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// median returns that of any order, 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return quantile(slices.Sorted(slices.Values(values)), 0.5)
}
