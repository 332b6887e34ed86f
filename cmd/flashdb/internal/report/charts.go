package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"
)

// A chart is an SVG of fixed coordinates that scales with the page.
type chart struct{ b strings.Builder }

// Coordinates of every chart: the whole, and the frame inside the labels.
const (
	width, height            = 520.0, 310.0
	left, right, top, bottom = 66.0, 22.0, 38.0, 54.0
	frameWidth, frameHeight  = width - left - right, height - top - bottom
)

func newChart(title string) *chart {
	c := new(chart)
	c.printf(`<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, height, template.HTMLEscapeString(title))
	return c
}

func (c *chart) printf(format string, args ...any) { fmt.Fprintf(&c.b, format, args...) }

func (c *chart) text(class string, x, y float64, text string) {
	c.printf(`<text class="%s" x="%.1f" y="%.1f">%s</text>`, class, x, y, template.HTMLEscapeString(text))
}

// xTick draws a line and a label at a share of the width, yTick of the height.
func (c *chart) xTick(at float64, label string) {
	x := left + at*frameWidth
	c.printf(`<path class="grid" d="M%.1f %.1fv%.1f"/>`, x, top, frameHeight)
	c.text("x", x, height-bottom+19, label)
}

func (c *chart) yTick(at float64, label string) {
	y := top + (1-at)*frameHeight
	c.printf(`<path class="grid" d="M%.1f %.1fh%.1f"/>`, left, y, frameWidth)
	c.text("y", left-8, y+4, label)
}

func (c *chart) xTitle(title string) { c.text("x title", left+frameWidth/2, height-6, title) }

// yTitle stands above the frame, where it need not be turned.
func (c *chart) yTitle(title string) { c.text("top title", 0, 14, title) }

// point draws a dot with a text that shows under the pointer.
func (c *chart) point(class string, x, y float64, tip string) {
	c.printf(`<circle class="%s" cx="%.1f" cy="%.1f" r="5"><title>%s</title></circle>`,
		class, left+x*frameWidth, top+(1-y)*frameHeight, template.HTMLEscapeString(tip))
}

// bar draws a column from one share of the width to another.
func (c *chart) bar(from, to, y float64, tip string) {
	c.printf(`<rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`,
		left+from*frameWidth+0.5, top+(1-y)*frameHeight, max(0.5, (to-from)*frameWidth-1), y*frameHeight, template.HTMLEscapeString(tip))
}

func (c *chart) done() template.HTML {
	c.b.WriteString(`</svg>`)
	return template.HTML(c.b.String())
}

// logScale maps a range of durations to shares of an axis.
type logScale struct{ lo, hi float64 }

func newLogScale(lo, hi time.Duration) logScale {
	s := logScale{math.Log10(max(1e-9, lo.Seconds())) - 0.05, math.Log10(max(1e-9, hi.Seconds())) + 0.05}
	if s.hi-s.lo < 0.5 {
		s.lo, s.hi = s.lo-0.25, s.hi+0.25
	}
	return s
}

func (s logScale) at(d time.Duration) float64 {
	return (math.Log10(max(1e-9, d.Seconds())) - s.lo) / (s.hi - s.lo)
}

// ticks are 1, 2 and 5 times the powers of ten, or fewer where they would crowd.
func (s logScale) ticks() (ticks []time.Duration) {
	steps := []float64{1, 2, 5}
	if s.hi-s.lo > 2.1 {
		steps = steps[:1]
	}
	for e := math.Floor(s.lo); e <= s.hi; e++ {
		for _, m := range steps {
			d := time.Duration(m * math.Pow(10, e) * float64(time.Second))
			if at := s.at(d); d > 0 && at >= 0 && at <= 1 {
				ticks = append(ticks, d)
			}
		}
	}
	return ticks
}

// mostRecall is where recalls beyond are drawn.
const mostRecall = 0.9999

// missScale spreads recalls by the logarithm of what is missed, so that .9, .99 and .999 lie at
// equal distances.
func missScale(lo, r float64) float64 {
	misses := func(r float64) float64 { return -math.Log10(1 - min(r, mostRecall)) }
	return (misses(r) - misses(lo)) / (misses(mostRecall) - misses(lo))
}

// drawFrontier draws the recall of plans against their time.
func drawFrontier(f Frontier) template.HTML {
	if len(f.Plans) == 0 {
		return ""
	}
	c := newChart(fmt.Sprintf("recall against time of a query, k = %d", f.K))
	slowest, worst := f.Exact, 1.0
	fastest := f.Exact
	for _, p := range f.Plans {
		slowest, fastest, worst = max(slowest, p.Time), min(fastest, p.Time), min(worst, p.Bound)
	}
	lo := 0.0
	for _, step := range []float64{.5, .8, .9, .95, .98} {
		if worst > step {
			lo = step
		}
	}
	s := newLogScale(fastest, slowest)
	for _, d := range s.ticks() {
		c.xTick(s.at(d), took(d))
	}
	for _, r := range []float64{0, .5, .8, .9, .95, .98, .99, .995, .999} {
		if r >= lo {
			c.yTick(missScale(lo, r), strings.TrimPrefix(fmt.Sprint(r), "0"))
		}
	}
	c.yTick(1, "1")
	c.xTitle("time of a query, on a logarithmic scale")
	c.yTitle("mean recall, spread by what is missed")
	for _, p := range f.Plans {
		x := left + s.at(p.Time)*frameWidth
		c.printf(`<path class="bound" d="M%.1f %.1fV%.1f"/>`, x, top+(1-missScale(lo, p.Mean))*frameHeight, top+(1-missScale(lo, p.Bound))*frameHeight)
	}
	for _, p := range f.Plans {
		c.point("dot", s.at(p.Time), missScale(lo, p.Mean), fmt.Sprintf("%s: %s, recall %s, at least %s", p.Text, took(p.Time), recall(p.Mean), recall(p.Bound)))
	}
	c.point("exact", s.at(f.Exact), 1, "exact scan: "+took(f.Exact))
	return c.done()
}

// drawHistogram draws how lengths are spread.
func drawHistogram(values []float64) template.HTML {
	if len(values) == 0 {
		return ""
	}
	lo, hi, counts := bins(values, 32)
	c := newChart("lengths of embeddings")
	most := float64(slices.Max(counts))
	for i, n := range counts {
		from, to := float64(i)/float64(len(counts)), float64(i+1)/float64(len(counts))
		c.bar(from, to, float64(n)/most, fmt.Sprintf("%.3g to %.3g: %s", lo+from*(hi-lo), lo+to*(hi-lo), count(float64(n))))
	}
	for _, at := range []float64{0, .25, .5, .75, 1} {
		c.xTick(at, fmt.Sprintf("%.3g", lo+at*(hi-lo)))
	}
	c.yTick(1, count(most))
	c.yTick(0, "0")
	c.xTitle("length (Euclidean norm)")
	c.yTitle("embeddings")
	return c.done()
}

// drawLatency draws what share of the queries took at most how long.
func drawLatency(a Asked) template.HTML {
	all := append(slices.Clone(a.Times), a.Exact...)
	if len(all) == 0 {
		return ""
	}
	s := newLogScale(slices.Min(all), slices.Max(all))
	c := newChart("times of queries")
	for _, d := range s.ticks() {
		c.xTick(s.at(d), took(d))
	}
	for _, q := range []float64{0, .25, .5, .75, 1} {
		c.yTick(q, fmt.Sprintf("%.0f%%", 100*q))
	}
	c.xTitle("time, on a logarithmic scale")
	c.yTitle("share of queries answered within a time")
	for _, line := range []struct {
		class string
		times []time.Duration
	}{{"", a.Times}, {"slow", a.Exact}} {
		if len(line.times) == 0 {
			continue
		}
		times := slices.Sorted(slices.Values(line.times))
		c.printf(`<path class="curve %s" d="M%.1f %.1f`, line.class, left+s.at(times[0])*frameWidth, top+frameHeight)
		for i, d := range times {
			c.printf("L%.1f %.1f", left+s.at(d)*frameWidth, top+(1-float64(i+1)/float64(len(times)))*frameHeight)
		}
		c.printf(`"/>`)
		median := quantile(times, .5)
		c.point(line.class+" mark", s.at(median), .5, "median "+took(median))
	}
	return c.done()
}
