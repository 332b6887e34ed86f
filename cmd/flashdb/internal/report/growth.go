package report

import (
	"html/template"
	"math"
	"slices"
	"time"
)

// A Growth says how the time of a query grows with the rows: the same sources asked of subsets of a
// collection, each with an index of its own.
type Growth struct {
	K       int
	Sources int
	// Relations says by which relations the sources are asked, or nothing.
	Relations string
	// Points are in order of their rows, the last one being the collection itself. Fewer than two
	// are not drawn.
	Points []GrowthPoint
	// Wanted is the recall that was asked for.
	Wanted float64
	// Note says why there are no points, or not all.
	Note string
}

// A GrowthPoint is one subset. Times are medians.
type GrowthPoint struct {
	Rows           int
	Planned, Exact time.Duration
	Recall         float64 // mean of the planned queries
	Scanned        bool    // they were answered by the exact scan
}

// PlannedExponent is that of the power law that fits the planned queries best.
func (g Growth) PlannedExponent() float64 {
	return exponent(g.Points, func(p GrowthPoint) time.Duration { return p.Planned })
}

// ExactExponent is that of the exact scans.
func (g Growth) ExactExponent() float64 {
	return exponent(g.Points, func(p GrowthPoint) time.Duration { return p.Exact })
}

// exponent returns the slope of the least squares line through the logarithms of rows and times:
// time grows as rows to that power. It is 0 for fewer than two different numbers of rows.
func exponent(points []GrowthPoint, of func(GrowthPoint) time.Duration) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		x, y := math.Log(float64(max(1, p.Rows))), math.Log(max(1e-9, of(p).Seconds()))
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	spread := n*sxx - sx*sx
	if spread <= 1e-9 {
		return 0
	}
	return (n*sxy - sx*sy) / spread
}

// drawGrowth draws times against rows, both by their logarithms: a power law is a straight line
// there.
func drawGrowth(g Growth) template.HTML {
	if len(g.Points) < 2 {
		return ""
	}
	var times []time.Duration
	for _, p := range g.Points {
		times = append(times, p.Planned, p.Exact)
	}
	s := newLogScale(slices.Min(times), slices.Max(times))
	first, last := math.Log(float64(max(1, g.Points[0].Rows))), math.Log(float64(max(1, g.Points[len(g.Points)-1].Rows)))
	x := func(p GrowthPoint) float64 {
		return .08 + .84*(math.Log(float64(max(1, p.Rows)))-first)/max(1e-9, last-first)
	}
	c := newChart("time of a query against rows")
	for _, d := range s.ticks() {
		c.yTick(s.at(d), took(d))
	}
	for _, p := range g.Points {
		c.xTick(x(p), count(float64(p.Rows)))
	}
	c.xTitle("rows, on a logarithmic scale")
	c.yTitle("median time of a query")
	for _, line := range []struct {
		class, what string
		of          func(GrowthPoint) time.Duration
	}{
		{"", "planned", func(p GrowthPoint) time.Duration { return p.Planned }},
		{"slow", "exact scan", func(p GrowthPoint) time.Duration { return p.Exact }},
	} {
		c.printf(`<path class="curve %s" d="`, line.class)
		for i, p := range g.Points {
			c.printf("%c%.1f %.1f", "ML"[min(i, 1)], left+x(p)*frameWidth, top+(1-s.at(line.of(p)))*frameHeight)
		}
		c.printf(`"/>`)
		for _, p := range g.Points {
			c.point(line.class+" mark", x(p), s.at(line.of(p)), line.what+", "+count(float64(p.Rows))+" rows: "+took(line.of(p)))
		}
	}
	return c.done()
}
