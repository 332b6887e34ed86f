package report

import (
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func full() Page {
	return Page{
		Title: `<b>"papers"</b>`, Made: time.Unix(0, 0).UTC(), Version: "v1",
		Facts:    []Fact{{"nodes", "3", "of dimension 2"}},
		Warnings: []string{"rebuild & see"},
		Norms:    []float64{1, 1, 1},
		Decoders: []Decoder{{
			Name: "cites", Kind: "hadamard_mlp 2-4-1",
			Layers: []Layer{{In: 2, Out: 4, After: "relu", HasActive: true, ActiveHits: .5, ActiveAny: .25}, {In: 4, Out: 1, Output: true}},
			Frontiers: []Frontier{
				{K: 10, Rows: 3, Exact: time.Millisecond, Wanted: .98, Plans: []Plan{{Text: "a plan", Mean: .99, P5: .9, Bound: .98, Time: 50 * time.Microsecond}, {Mean: 1, Bound: 1, Time: time.Second}}},
				{K: 50, Exact: time.Millisecond, Wanted: .995, Relations: true, Plans: []Plan{{Relation: "treats <", RelationMean: .87}}},
				{K: 100, Rows: 3, Exact: time.Millisecond}, // nothing beats the exact scan
			},
		}, {Name: "dot"}},
		Asked: &Asked{K: 100, Recalls: []float64{1, .98}, Times: []time.Duration{time.Millisecond, 2 * time.Millisecond}, Exact: []time.Duration{time.Second, time.Second}, Wanted: .995, Scanned: 2, Plan: "exact: no index"},
		Delta: &Delta{Facts: []Fact{{"newer rows", "12", "of write 7"}}, Text: "writes & rows"},
		Growth: &Growth{K: 100, Sources: 30, Wanted: .995, Note: "no more time", Points: []GrowthPoint{
			{Rows: 1000, Planned: time.Millisecond, Exact: 3 * time.Millisecond, Recall: 1, Scanned: true},
			{Rows: 4000, Planned: 2 * time.Millisecond, Exact: 12 * time.Millisecond, Recall: .98},
		}},
		ExamplesNote: "of 400 sampled.",
		Examples:     []Example{{Source: "<script>alert(1)</script>", Known: "12 known links", Hits: []Hit{{"x\"y", 1.5, .82}, {"z", 9, .9999}}, Note: "1 ms"}},
	}
}

// TestPage checks that the page is whole, escapes what it is given, and asks the network for
// nothing.
func TestPage(t *testing.T) {
	for name, p := range map[string]Page{
		"full":                         full(),
		"empty":                        {},
		"growth that was not measured": {Growth: &Growth{Note: "why"}, Delta: &Delta{}},
		"growth of nothing":            {Growth: &Growth{Points: []GrowthPoint{{}, {}}}},
		"one length":                   {Norms: []float64{7}, Asked: &Asked{}},
		"no frontier":                  {Decoders: []Decoder{{Name: "d", Frontiers: []Frontier{{K: 1}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			require.NoError(t, Write(&out, p))
			text := out.String()
			assert.NotContains(t, text, "<script")
			assert.NotRegexp(t, regexp.MustCompile(`(?i)(src|href)=|url\(|@import|https?:`), text)
			assert.NotContains(t, text, "NaN")
			assert.NotContains(t, text, "Inf")
			d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(text, "<!doctype html>\n")))
			d.Strict = false
			d.AutoClose = xml.HTMLAutoClose
			d.Entity = xml.HTMLEntity
			for {
				_, err := d.Token()
				if err == io.EOF {
					break
				}
				require.NoError(t, err)
			}
		})
	}
}

func TestPageShowsWhatItIsGiven(t *testing.T) {
	var out strings.Builder
	require.NoError(t, Write(&out, full()))
	text := out.String()
	for _, want := range []string{
		"&lt;b&gt;&#34;papers&#34;&lt;/b&gt;", "rebuild &amp; see", "<b>.9900</b>", "0.820", "&gt;.999", "50 µs", "20×",
		`<meter value="0.5">`, "25%", "exact scan: 1 ms", `<td class="plan" colspan="7">a plan</td>`, `colspan="8"`,
		"12 known links", "of 400 sampled", "x&#34;y", "both curves are times of the same work. The planner says: exact: no index.",
		"of these 2 sources, .9900, lies below the .995 that was asked for", "Of 4,000 rows the mean recall lies below the .995",
		"The planned queries of 1,000 rows are the exact scan", "No plan reaches a recall of .995", "No plan is faster than the exact scan",
		"<dt>seed</dt>", "<dt>anchors</dt>", "<dt>mean, p5, worst</dt>",
		"writes &amp; rows", "rows<sup>0.50</sup>", "rows<sup>1.00</sup>", "<td>4,000</td><td>2 ms</td><td>.9800</td><td>12 ms</td><td>6×</td>", "no more time",
		"<td>.8700 treats &lt;</td>",
	} {
		assert.Contains(t, text, want)
	}
	assert.Equal(t, 1, strings.Count(text, "lowest relation"), "no column where plans name none")
	assert.Equal(t, 1, strings.Count(text, "No plan reaches"), "one plan reaches .98")
	assert.Less(t, strings.Index(text, "<h2>Predictions"), strings.Index(text, "<h2>Times"), "predictions come first")
	assert.Equal(t, strings.Count(text, "<svg"), strings.Count(text, `class="x title"`), "every axis has a title")
	assert.Equal(t, strings.Count(text, "<svg"), strings.Count(text, `class="top title"`))
	assert.Equal(t, 5, strings.Count(text, "<svg"), "latency, growth, two frontiers, norms, and no chart of an empty frontier")
}

// TestBreaks lets a key break after its separators, and nowhere else.
func TestBreaks(t *testing.T) {
	assert.Equal(t, "a/<wbr/>b&lt;.<wbr/>é", string(breaks("a/b<.é")))
	assert.Equal(t, "", string(breaks("")))
}

func TestRemarksAreSilentWhereAllIsWell(t *testing.T) {
	fine := Asked{Times: make([]time.Duration, 3), Recalls: []float64{.98, 1}, Wanted: .98}
	assert.Empty(t, scanned(fine))
	assert.Empty(t, below(fine))
	fine.Scanned = 1
	assert.Equal(t, "1 of the 3 planned queries were the exact scan.", scanned(fine))
	g := Growth{Wanted: .98, Points: []GrowthPoint{{Rows: 1000, Recall: .98}, {Rows: 2000, Recall: 1}}}
	assert.Empty(t, scannedPoints(g))
	assert.Empty(t, belowPoints(g))
	g.Points[0].Scanned, g.Points[1].Scanned = true, true
	assert.Contains(t, scannedPoints(g), "The planned queries of all sizes are the exact scan")
	assert.Empty(t, unreached(Frontier{Wanted: .98, Plans: []Plan{{Bound: .9}, {Bound: .98}}}))
	for p, want := range map[float64]string{0: "0.000", .00001: "<.001", .25: "0.250", .99999: ">.999", 1: "1.000"} {
		assert.Equal(t, want, probability(p))
	}
}

func TestMissScale(t *testing.T) {
	assert.InDelta(t, 0, missScale(.9, .9), 1e-12)
	assert.InDelta(t, 1, missScale(.9, 1), 1e-12)
	assert.InDelta(t, missScale(.9, .999)-missScale(.9, .99), missScale(.9, .99)-missScale(.9, .9), 1e-9)
}

func TestBins(t *testing.T) {
	lo, hi, counts := bins([]float64{0, 1, 2, 3, 4, 4}, 4)
	assert.Equal(t, 0.0, lo)
	assert.Equal(t, 4.0, hi)
	assert.Equal(t, []int{1, 1, 1, 3}, counts)
	_, _, counts = bins([]float64{2, 2}, 4)
	assert.Equal(t, []int{2}, counts)
}

func TestLogScaleTicks(t *testing.T) {
	s := newLogScale(80*time.Microsecond, 3*time.Millisecond)
	assert.Equal(t, []time.Duration{100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond}, s.ticks())
	for _, d := range newLogScale(0, 0).ticks() {
		assert.Positive(t, d)
	}
}

func TestExponent(t *testing.T) {
	var points []GrowthPoint
	for _, rows := range []int{1000, 2000, 4000, 8000} {
		points = append(points, GrowthPoint{Rows: rows, Planned: time.Duration(10 * rows * rows), Exact: 7 * time.Second})
	}
	g := Growth{Points: points}
	assert.InDelta(t, 2, g.PlannedExponent(), 1e-9)
	assert.InDelta(t, 0, g.ExactExponent(), 1e-9)
	assert.Zero(t, Growth{Points: points[:1]}.PlannedExponent())
	assert.Zero(t, Growth{}.PlannedExponent())
}
