package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// took writes a duration to three digits.
func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/float64(time.Microsecond))
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

// recall writes a share of the right answers: .9937.
func recall(r float64) string {
	return strings.TrimPrefix(strconv.FormatFloat(r, 'f', 4, 64), "0")
}

// count writes a number with commas.
func count(n float64) string {
	s := strconv.FormatInt(int64(math.Round(n)), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func mean(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// quantile returns the value that a share q of sorted values does not exceed.
func quantile[T any](sorted []T, q float64) T {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// bins counts values in n bins of equal width between the least and the greatest.
func bins(values []float64, n int) (lo, hi float64, counts []int) {
	lo, hi = slices.Min(values), slices.Max(values)
	if lo == hi {
		return lo, hi, []int{len(values)}
	}
	counts = make([]int, n)
	for _, v := range values {
		counts[min(n-1, int(float64(n)*(v-lo)/(hi-lo)))]++
	}
	return lo, hi, counts
}
