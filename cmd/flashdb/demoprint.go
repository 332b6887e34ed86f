package main

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

// The demo's lines are at most about 110 columns wide.
const demoKeyWidth = 40

// printf prints what people read; with --json there is only the report.
func (d *demo) printf(format string, args ...any) {
	if !d.json {
		fmt.Fprintf(d.out, format, args...)
	}
}

func (d *demo) printIntro() {
	d.printf(`Which declarations of Go's standard library belong together?

The graph: every node is a declaration (func, type, var or const), and an edge A - B says that
A mentions B in its source, as net/http.Get mentions net/http.DefaultClient. Every node has an
embedding, and a small neural network, the decoder, was trained on the edges to score pairs.

building %s
`, show.Text(d.report.Dir))
}

func (d *demo) printStep(what string, elapsed time.Duration) {
	d.printf("  %s %8s\n", pad(what, 76), show.Duration(elapsed))
}

func (d *demo) printLegend() {
	beside := "what the plain dot product of the\nembeddings says."
	if d.report.Trained != nil {
		beside = "what the model that was\ntrained just now says, which has learned what a declaration mentions."
	}
	d.printf(`
The best new neighbours, that is without a known edge, beside %s
A score is the decoder's logit: its sigmoid is the probability that the pair is a reference and not a
random pair. * marks a real reference that was kept from the training.
`, beside)
}

func (d *demo) printSymbol(s demoSymbol) {
	d.printf("\n%s (%s, %s)\n", show.Text(s.Source), show.Text(s.Kind), show.Count(s.Known, "known neighbour"))
	title, unit, beside := "by plain dot product", "dot", s.Dot
	if d.report.Trained != nil {
		title, unit, beside = "by the model trained just now", "score", s.Trained
	}
	d.printf("     %s %6s  %6s   %s %6s\n", pad("by the decoder", demoKeyWidth), "score", "prob.", pad(title, demoKeyWidth), unit)
	for i := range max(len(s.Hits), len(beside)) {
		d.printf("  %d  %s   %s\n", i+1, decoderCell(s.Hits, i), besideCell(beside, i))
	}
	d.printf("     %s of %s scored in %.2g ms; scoring all takes %.3g ms and gives %s\n",
		show.Number(s.RowsScored), show.Count(d.report.Nodes, "row"), s.FastMS, s.ExactMS, agreement(s))
}

func agreement(s demoSymbol) string {
	if s.Agree == len(s.Hits) {
		return fmt.Sprintf("the same %d", s.Agree)
	}
	return fmt.Sprintf("%d of these %d", s.Agree, len(s.Hits))
}

func decoderCell(hits []demoHit, i int) string {
	if i >= len(hits) {
		return strings.Repeat(" ", demoKeyWidth+15)
	}
	h := hits[i]
	return fmt.Sprintf("%s %6.2f  %6s", markedKey(h), h.Score, probability(float32(*h.Probability)))
}

func besideCell(hits []demoHit, i int) string {
	if i >= len(hits) {
		return ""
	}
	return fmt.Sprintf("%s %6.2f", markedKey(hits[i]), hits[i].Score)
}

func markedKey(h demoHit) string {
	if h.HeldOut {
		return pad(show.Clip(show.Text(h.Key), demoKeyWidth-2)+" *", demoKeyWidth)
	}
	return pad(show.Clip(show.Text(h.Key), demoKeyWidth), demoKeyWidth)
}

// pad fills s up to width runes.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

func (d *demo) printMeasure() {
	d.printf(`
How much is missed by scoring so few rows? recall@100 is the share of the 100 best nodes, linked ones
included, that the index finds.
`)
}

func (d *demo) printNext() error {
	dir := show.Word(d.report.Dir)
	_, err := fmt.Fprintf(d.out, `
The database stays in %[1]s. Try next:
  %[3]s predict %[1]s %[2]s net/http.Get --filter "func and not internal" --explain
  %[3]s score %[1]s %[2]s os.Open 'os.(*File).Close' io.Closer unicode.IsUpper
  %[3]s eval %[1]s %[2]s --probes 10%%
  %[3]s shell %[1]s
`, dir, demoCollection, programName())
	return err
}

// programName is how this program was called: go run builds below a directory of that name.
func programName() string {
	if name, err := os.Executable(); err == nil && strings.Contains(name, "go-build") {
		return "go run ./cmd/flashdb"
	}
	return "flashdb"
}
