// Package report writes what is known of a collection as one HTML page: facts, charts and examples,
// readable on a phone and in the dark. The page asks the network for nothing, and holds no script.
//
// It draws what it is given and knows no database. Write may run concurrently.
package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"time"
)

// A Page is what there is to show. Empty parts are left out.
type Page struct {
	Title   string
	Made    time.Time
	Version string // of flashdb

	Facts    []Fact
	Warnings []string // what a reader should do something about

	// Norms are the lengths of sampled embeddings.
	Norms []float64

	// Delta is what the index does not hold.
	Delta *Delta

	Decoders []Decoder
	Asked    *Asked
	Growth   *Growth
	Examples []Example
	// ExamplesNote says which sources the examples have. Scores says that they show the scores of
	// hits, because these are no logits and have no probability.
	ExamplesNote string
	Scores       bool
}

// A Fact is one number worth knowing.
type Fact struct{ Name, Value, Note string }

// A Delta is what has changed since the index was built.
type Delta struct {
	Facts []Fact
	Text  string
}

// A Decoder is one decoder and what was measured with it.
type Decoder struct {
	Name      string
	Kind      string
	Relations string // their names, or ""
	Layers    []Layer
	// Frontiers are the calibrated plans, one a k.
	Frontiers []Frontier
}

// A Layer is one layer of a network. Active is the share of its neurons that are active at sampled
// pairs: those that were predicted, and any; below 0 when that is not known.
type Layer struct {
	In, Out           int
	After             string // activation, norm
	ActiveHits        float64
	ActiveAny         float64
	HasActive, Output bool
}

// A Frontier is the plans worth choosing for the K best.
type Frontier struct {
	K       int
	Rows    int
	Sources string // how many, of what
	Exact   time.Duration
	Plans   []Plan
	Wanted  float64 // recall that queries ask for
	// Relations says that the plans name relations.
	Relations bool
}

// A Plan is a plan and what it achieved.
type Plan struct {
	Text                   string
	Mean, P5, Worst, Bound float64
	RowsScored             float64
	Time                   time.Duration
	// Relation is the one with the lowest mean recall, which is RelationMean; "" if unknown.
	Relation     string
	RelationMean float64
}

// Asked says what the default query did for sampled sources, beside the exact scan of the same.
type Asked struct {
	K       int
	Recalls []float64
	Times   []time.Duration
	Exact   []time.Duration
	Wanted  float64 // recall that was asked for
	Scanned int     // queries that were answered by the exact scan
	Plan    string  // why, of the last one
	// Relations says by which relations the sources are asked, or nothing.
	Relations string
}

// An Example is one answer.
type Example struct {
	Source   string
	Relation string // that it is asked for, or ""
	Reverse  bool   // the hits have the relation to the source
	Known    string // what is known of the source
	Hits     []Hit
	Note     string
}

// A Hit is one predicted node.
type Hit struct {
	Key         string
	Score       float64
	Probability float64
}

//go:embed page.html style.css
var files embed.FS

var page = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"style":   func() (template.CSS, error) { b, err := files.ReadFile("style.css"); return template.CSS(b), err },
	"took":    took,
	"recall":  recall,
	"percent": func(share float64) string { return fmt.Sprintf("%.3g%%", 100*share) },
	"count": func(n any) string {
		switch n := n.(type) {
		case int:
			return count(float64(n))
		case float64:
			return count(n)
		}
		return fmt.Sprint(n)
	},
	"frontier":  drawFrontier,
	"histogram": drawHistogram,
	"latency":   drawLatency,
	"growth":    drawGrowth,
	"times":     func(exact, t time.Duration) string { return fmt.Sprintf("%.3g×", exact.Seconds()/max(t, 1).Seconds()) },
	"mean":      mean,
	"power":     func(exponent float64) string { return fmt.Sprintf("%.2f", exponent) },
	"add":       func(a, b int) int { return a + b },

	"breaks": breaks, "probability": probability, "words": words, "unreached": unreached,
	"scanned": func(a *Asked) string { return scanned(*a) }, "below": func(a *Asked) string { return below(*a) },
	"scannedPoints": func(g *Growth) string { return scannedPoints(*g) }, "belowPoints": func(g *Growth) string { return belowPoints(*g) },
}).ParseFS(files, "page.html"))

// Write writes the page.
func Write(w io.Writer, p Page) error {
	if err := page.Execute(w, p); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
