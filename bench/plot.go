package main

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	plotWidth  = 8 * vg.Inch
	plotHeight = 5 * vg.Inch
)

// palette is that of Okabe and Ito, which the colour-blind can tell apart.
var palette = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
	color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
}

func paint(i int) color.Color { return palette[i%len(palette)] }

var glyphs = []draw.GlyphDrawer{
	draw.BoxGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.CircleGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{}, draw.RingGlyph{},
}

// mostRecall is where recalls beyond are drawn: a hundred answers for a hundred sources cannot tell
// them from 1.
const mostRecall = 0.9999

// missScale spreads recalls by the logarithm of what is missed: .9, .99 and .999 lie at equal
// distances.
type missScale struct{}

func (missScale) Normalize(lo, hi, x float64) float64 {
	misses := func(recall float64) float64 { return -math.Log10(1 - recall) }
	return (misses(x) - misses(lo)) / (misses(hi) - misses(lo))
}

// recallTicks are those of missScale.
var recallTicks = plot.ConstantTicks{
	{Value: 0, Label: "0"},
	{Value: 0.5, Label: ".5"},
	{Value: 0.8, Label: ".8"},
	{Value: 0.9, Label: ".9"},
	{Value: 0.95, Label: ".95"},
	{Value: 0.98, Label: ".98"},
	{Value: 0.99, Label: ".99"},
	{Value: 0.995, Label: ".995"},
	{Value: 0.998, Label: ".998"},
	{Value: 0.999, Label: ".999"},
	{Value: mostRecall, Label: "all"},
}

// plotRecall draws mean recall against queries per second on one core: the named settings one by
// one, the frontier of the grid and of each peer as lines.
func plotRecall(path, graph string, all []resultRecord) error {
	p := newPlot("Recall against speed on one core, graph "+graph, "mean recall of the decoder's true top-k, spaced by what is missed", "queries per second")
	p.X.Min, p.X.Max = 0, 1-(1-mostRecall)/1.5
	p.X.Scale, p.X.Tick.Marker = missScale{}, recallTicks

	painted := 0
	line := func(name string, best []resultRecord) error {
		if len(best) == 0 {
			return nil
		}
		l, s, err := plotter.NewLinePoints(recallPoints(best))
		if err != nil {
			return err
		}
		l.Color, l.Width = paint(painted), vg.Points(1.5)
		s.Color, s.Shape, s.Radius = l.Color, draw.CircleGlyph{}, vg.Points(2)
		p.Add(l, s)
		p.Legend.Add(name, l, s)
		painted++
		return nil
	}
	var grid, others []resultRecord
	var peers []string
	for _, r := range all {
		switch {
		case r.Graph != graph, r.Threads > 1:
		case r.Peer == flashdbPeer && r.Grid:
			grid = append(grid, r)
		case r.Peer == flashdbPeer:
			others = append(others, r)
		case !slices.Contains(peers, r.Peer):
			peers = append(peers, r.Peer)
		}
	}
	if len(grid) > 0 {
		s, err := plotter.NewScatter(recallPoints(grid))
		if err != nil {
			return err
		}
		s.Color, s.Shape, s.Radius = color.Gray{Y: 0xb0}, draw.CircleGlyph{}, vg.Points(1.5)
		p.Add(s)
		p.Legend.Add("flashdb, grid of plans", s)
	}
	if err := line("flashdb, best plans of the grid", frontier(grid, flashdbPeer, graph)); err != nil {
		return err
	}
	for _, peer := range peers {
		if err := line(peer, frontier(all, peer, graph)); err != nil {
			return err
		}
	}
	for i, r := range others {
		s, err := plotter.NewScatter(recallPoints([]resultRecord{r}))
		if err != nil {
			return err
		}
		s.Color, s.Shape, s.Radius = color.Black, glyphs[i%len(glyphs)], vg.Points(4)
		p.Add(s)
		p.Legend.Add("flashdb, "+r.Setting, s)
	}
	return savePlot(p, path)
}

func recallPoints(records []resultRecord) plotter.XYs {
	points := make(plotter.XYs, len(records))
	for i, r := range records {
		points[i] = plotter.XY{X: min(r.RecallMean, mostRecall), Y: r.QPS1}
	}
	return points
}

// plotGrowth draws median times against numbers of rows, with the fitted powers.
func plotGrowth(path string, growth []growthRecord) error {
	if len(growth) == 0 {
		return errors.New("plot growth: there are no results")
	}
	p := newPlot("Median time of a query on one core against the number of rows, graph "+growth[0].Graph, "rows", "milliseconds")
	p.Legend.Top = true
	p.X.Scale = plot.LogScale{}
	sizes, _ := series(growth, exactSetting)
	ticks := make(plot.ConstantTicks, len(sizes))
	for i, n := range sizes {
		ticks[i] = plot.Tick{Value: n, Label: grouped(int64(n))}
	}
	p.X.Tick.Marker = ticks
	for i, setting := range []string{exactSetting, defaultSetting} {
		rows, ms := series(growth, setting)
		points := make(plotter.XYs, len(rows))
		fitted := make(plotter.XYs, len(rows))
		a, e := fitExponent(rows, ms)
		for j := range rows {
			points[j] = plotter.XY{X: rows[j], Y: ms[j]}
			fitted[j] = plotter.XY{X: rows[j], Y: a * math.Pow(rows[j], e)}
		}
		s, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		s.Color, s.Shape, s.Radius = paint(i), glyphs[i], vg.Points(4)
		p.Add(s)
		name := setting
		if !math.IsNaN(e) {
			l, err := plotter.NewLine(fitted)
			if err != nil {
				return err
			}
			l.Color, l.Dashes = paint(i), []vg.Length{vg.Points(4), vg.Points(3)}
			p.Add(l)
			name = fmt.Sprintf("%s, rows^%.2f", setting, e)
		}
		p.Legend.Add(name, s)
	}
	return savePlot(p, path)
}

// newPlot returns an empty plot with a grid, whose y axis is logarithmic. Its label must be short:
// on such an axis plot makes room for it in the wrong place.
func newPlot(title, x, y string) *plot.Plot {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = vg.Points(6)
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, logTicks{}
	// From left to right, so that a wider font than expected finds room.
	p.Legend.Left, p.Legend.XOffs = true, vg.Points(10)
	p.Legend.Padding = vg.Points(2)
	p.Add(plotter.NewGrid())
	return p
}

// logTicks marks 1, 2 and 5 of every decade.
type logTicks struct{}

func (logTicks) Ticks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	for decade := math.Floor(math.Log10(lo)); decade <= math.Ceil(math.Log10(hi)); decade++ {
		for _, digit := range []float64{1, 2, 5} {
			if v := digit * math.Pow(10, decade); v >= lo && v <= hi {
				ticks = append(ticks, plot.Tick{Value: v, Label: tickLabel(v)})
			}
		}
	}
	return ticks
}

func tickLabel(v float64) string {
	if v >= 1 {
		return grouped(int64(math.Round(v)))
	}
	return fmt.Sprintf("%.2g", v)
}

// savePlot writes an SVG file of a plot whose y axis is logarithmic.
func savePlot(p *plot.Plot, path string) error {
	// Room above and below, so that marks at the ends are whole.
	p.Y.Min, p.Y.Max = p.Y.Min/1.5, p.Y.Max*1.5
	return writePlot(p, path)
}

// writePlot writes an SVG file of a plot as it is.
func writePlot(p *plot.Plot, path string) error {
	c := vgsvg.New(plotWidth, plotHeight)
	margin := vg.Points(8)
	p.Draw(draw.Crop(draw.New(c), margin, -margin, margin, -margin))
	var svg bytes.Buffer
	if _, err := c.WriteTo(&svg); err != nil {
		return fmt.Errorf("plot %s: %w", path, err)
	}
	// Few have the font that the text was measured with; these are as wide.
	text := bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}
