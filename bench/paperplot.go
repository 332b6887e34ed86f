package main

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// plotLine adds the i-th line of a plot, with points where marked.
func plotLine(p *plot.Plot, i int, name string, xs, ys []float64, marked bool) error {
	points := make(plotter.XYs, len(xs))
	for j := range xs {
		points[j] = plotter.XY{X: xs[j], Y: ys[j]}
	}
	l, s, err := plotter.NewLinePoints(points)
	if err != nil {
		return fmt.Errorf("plot %s: %w", name, err)
	}
	l.Color, l.Width = paint(i), vg.Points(1.5)
	s.Color, s.Shape, s.Radius = paint(i), glyphs[i%len(glyphs)], vg.Points(3)
	if !marked {
		l.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(l)
		p.Legend.Add(name, l)
		return nil
	}
	p.Add(l, s)
	p.Legend.Add(name, l, s)
	return nil
}

// newSharePlot returns an empty plot of shares from 0 to 1.
func newSharePlot(title, x, y string) *plot.Plot {
	p := newPlot(title, x, y)
	p.Y.Scale, p.Y.Tick.Marker = plot.LinearScale{}, plot.DefaultTicks{}
	p.Y.Min, p.Y.Max = 0, 1.02
	return p
}

// plotCurve draws recall@k with the lines of an oracle, which retrieves the best rows first, and of
// rows drawn at random.
func plotCurve(path, title string, c curveRecord) error {
	p := newSharePlot("Recall@k of the best 100, "+title, "rows retrieved, k", "recall")
	xs := make([]float64, len(c.K))
	oracle, random := make([]float64, len(c.K)), make([]float64, len(c.K))
	for i, k := range c.K {
		xs[i] = float64(k)
		oracle[i], random[i] = min(1, xs[i]/paperK), xs[i]/float64(c.Nodes)
	}
	p.Legend.XOffs, p.Legend.YOffs = 3*vg.Inch, vg.Inch/2 // beside the rise, above the random rows
	for i, l := range []struct {
		name   string
		ys     []float64
		marked bool
	}{{oracleName, oracle, false}, {learnedLine, c.Recall[learnedLine], true}, {printedLine, c.Recall[printedLine], true}, {randomLine, random, false}} {
		if err := plotLine(p, i, l.name, xs, l.ys, l.marked); err != nil {
			return err
		}
	}
	return writePlot(p, path)
}

// plotTradeOff draws what is answered in a second against recall: the best plans of each line.
func plotTradeOff(path, title string, s speedRecord) error {
	p := newPlot("Recall against speed on one thread, "+title, "mean recall of the decoder's best 100, spaced by what is missed", "sources per second")
	p.X.Min, p.X.Max = 0, 1-(1-mostRecall)/1.5
	p.X.Scale, p.X.Tick.Marker = missScale{}, recallTicks
	for i, name := range []string{oursLine, learnedLine, dotMaxLine, randomLine} {
		var xs, ys []float64
		for _, point := range s.frontier(name) {
			xs, ys = append(xs, min(point.Recall, mostRecall)), append(ys, point.Rate)
		}
		if len(xs) == 0 {
			continue
		}
		if err := plotLine(p, i, name, xs, ys, true); err != nil {
			return err
		}
	}
	exact, err := plotter.NewScatter(plotter.XYs{{X: mostRecall, Y: s.Exact}})
	if err != nil {
		return err
	}
	exact.Color, exact.Shape, exact.Radius = paint(5), draw.CrossGlyph{}, vg.Points(5)
	p.Add(exact)
	p.Legend.Add(exactLine, exact)
	p.Legend.Top = false
	p.Y.Min /= max(6, math.Pow(p.Y.Max/p.Y.Min, .4)) // room for the legend, whatever the range is
	return savePlot(p, path)
}

// plotFit draws the errors of appendix A by epoch.
func plotFit(path string, fits []fitRecord) error {
	p := newPlot("Appendix A: error on held-out pairs, labels of variance 1", "epoch", "MSE")
	p.Legend.Top, p.Legend.XOffs = true, 3*vg.Inch
	i := 0
	for _, f := range fits {
		xs := make([]float64, len(f.Epochs))
		for j, epoch := range f.Epochs {
			xs[j] = float64(epoch)
		}
		for _, l := range f.Lines {
			if err := plotLine(p, i, fmt.Sprintf("%s, d = %d", l.Name, f.Dim), xs, l.ByEpoch, true); err != nil {
				return err
			}
			i++
		}
	}
	p.Y.Max *= 30 // room for the legend
	return savePlot(p, path)
}

// plotComplexity draws times against numbers of rows, with the fitted powers.
func plotComplexity(path string, c complexityRecord) error {
	p := newPlot("Median processor time of a query, parts of "+c.Graph, "candidates", "milliseconds")
	p.X.Scale = plot.LogScale{}
	p.Legend.Top = true
	for i, name := range []string{exactLine, oursLine, learnedLine} {
		rows, ms, _ := c.line(name)
		_, e := fitExponent(rows, ms)
		label := name
		if !math.IsNaN(e) {
			label = fmt.Sprintf("%s, n^%.2f", name, e)
		}
		if err := plotLine(p, i, label, rows, ms, true); err != nil {
			return err
		}
		var ticks plot.ConstantTicks
		for _, n := range rows {
			ticks = append(ticks, plot.Tick{Value: n, Label: grouped(int64(n))})
		}
		p.X.Tick.Marker = ticks
	}
	return savePlot(p, path)
}
