package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// absent stands for a figure that was not measured.
const absent = "-"

// significant writes a positive number with three significant digits, or all before the point:
// 0.0123, 1.23, 12.3, 12,345. Zero means not measured.
func significant(v float64) string {
	switch {
	case v == 0 || math.IsNaN(v):
		return absent
	case v >= 99.95:
		return grouped(int64(math.Round(v)))
	}
	digits := 2 - int(math.Floor(math.Log10(v)))
	return strconv.FormatFloat(v, 'f', max(0, digits), 64)
}

// grouped writes a number with commas between thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// share writes a recall.
func share(v float64) string { return fmt.Sprintf("%.4f", v) }

// percent writes a share as a percentage; zero means none.
func percent(v float64) string {
	if v == 0 {
		return absent
	}
	return significant(100*v) + "%"
}

// megabytes writes a number of bytes in MB of 10^6.
func megabytes(n int64) string { return significant(float64(n) / 1e6) }
