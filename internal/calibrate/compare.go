package calibrate

import "math"

// Worse tells whether recalls fell by more than the tolerance between two searches of the same
// sources, beyond what the choice of sources explains (one-sided paired t test, 95%), and by how
// much on average.
func Worse(before, after []float64, tolerance float64) (fall float64, worse bool) {
	n := float64(len(before))
	if n < 2 {
		return 0, false
	}
	for i := range before {
		fall += (before[i] - after[i]) / n
	}
	squares := 0.0
	for i := range before {
		d := before[i] - after[i] - fall
		squares += d * d
	}
	errorOfMean := math.Sqrt(squares / (n - 1) / n)
	return fall, fall > tolerance && fall > student95(n-1)*errorOfMean
}

// Mean returns the mean of recalls, 0 of none.
func Mean(recalls []float64) float64 {
	return meanOf(recalls)
}
