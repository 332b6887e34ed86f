package report

import (
	"fmt"
	"html/template"
	"strings"
)

// scanned says how many of the queries were answered by the exact scan, or nothing.
func scanned(a Asked) string {
	switch {
	case a.Scanned == 0:
		return ""
	case a.Scanned < len(a.Times):
		return fmt.Sprintf("%d of the %d planned queries were the exact scan.", a.Scanned, len(a.Times))
	}
	text := "The planned queries are the exact scan here: both curves are times of the same work."
	if a.Plan != "" {
		text += " The planner says: " + a.Plan + "."
	}
	return text
}

// below says that the recall is lower than what was asked for, or nothing.
func below(a Asked) string {
	if got := mean(a.Recalls); len(a.Recalls) > 0 && got < a.Wanted {
		return fmt.Sprintf("The mean recall of these %d sources, %s, lies below the %s that was asked for. A plan is chosen by the mean "+
			"of the sources of its calibration, with 95%% confidence; others may fare worse.", len(a.Recalls), recall(got), short(a.Wanted))
	}
	return ""
}

// scannedPoints is scanned for the subsets.
func scannedPoints(g Growth) string {
	return ofPoints(g, func(p GrowthPoint) bool { return p.Scanned }, "The planned queries of %s are the exact scan: no plan was measured to be faster and to reach the recall.")
}

// belowPoints is below for the subsets.
func belowPoints(g Growth) string {
	return ofPoints(g, func(p GrowthPoint) bool { return p.Recall < g.Wanted }, "Of %s the mean recall lies below the "+short(g.Wanted)+" that was asked for.")
}

// ofPoints writes a text about the subsets that are so, or nothing if none is.
func ofPoints(g Growth, so func(GrowthPoint) bool, format string) string {
	of, n := "", 0
	for _, p := range g.Points {
		if so(p) {
			if n++; n > 1 {
				of += ", "
			}
			of += count(float64(p.Rows))
		}
	}
	switch n {
	case 0:
		return ""
	case len(g.Points):
		return fmt.Sprintf(format, "all sizes")
	}
	return fmt.Sprintf(format, of+" rows")
}

// unreached says that queries scan because no plan is good enough, or nothing.
func unreached(f Frontier) string {
	if len(f.Plans) == 0 {
		return "No plan is faster than the exact scan, so that queries scan every node."
	}
	for _, p := range f.Plans {
		if p.Bound >= f.Wanted {
			return ""
		}
	}
	return fmt.Sprintf("No plan reaches a recall of %s with 95%% confidence, so that queries which ask for it scan every node.", short(f.Wanted))
}

// short writes a recall that somebody asked for: .98.
func short(r float64) string { return strings.TrimPrefix(fmt.Sprintf("%.3g", r), "0") }

// probability writes a sigmoid without rounding it to a certainty that it is not.
func probability(p float64) string {
	switch s := fmt.Sprintf("%.3f", p); {
	case s == "1.000" && p < 1:
		return ">.999"
	case s == "0.000" && p > 0:
		return "<.001"
	default:
		return s
	}
}

// breaks lets a browser break a key after its separators, rather than anywhere.
func breaks(text string) template.HTML {
	var b strings.Builder
	for _, part := range strings.SplitAfter(text, "") {
		b.WriteString(template.HTMLEscapeString(part))
		if strings.Contains("/._-:", part) {
			b.WriteString("<wbr/>")
		}
	}
	return template.HTML(b.String())
}

// words explains the terms of a page.
func words(p Page) []Fact {
	terms := []Fact{
		{Name: "recall", Note: "the share of the exact answer that a query finds. The exact answer is that of scoring every node."},
		{Name: "planned", Note: "a query by the cheapest plan that reaches the recall asked for, or by the exact scan."},
	}
	plans := false
	for _, d := range p.Decoders {
		for _, f := range d.Frontiers {
			plans = plans || len(f.Plans) > 0
		}
	}
	if !plans {
		return terms
	}
	return append(terms,
		Fact{Name: "mean, p5, worst", Note: "of the recalls of the sampled sources: the mean, the 5th percentile (1 source in 20 has less), and the least."},
		Fact{Name: "at least", Note: "what a query may rely on: the lower limit of the mean recall, with 95% confidence."},
		Fact{Name: "scored", Note: "the rows that the decoder scores for one query."},
		Fact{Name: "round", Note: "one search of the index by inner product. The rows that it finds are scored."},
		Fact{Name: "seed", Note: "the query of the first round: the decoder with every neuron active (ones), the source's own embedding (source), or what ended the searches of similar sources (learned)."},
		Fact{Name: "anchors", Note: "the best rows found so far. The decoder's mean slope at them is the query of the next round."},
		Fact{Name: "probes", Note: "the share of the rows that a query may visit in the index."},
	)
}
