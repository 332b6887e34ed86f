package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/train"
	"github.com/flashdb/flashdb/train/graph"
)

// A trainReport is what train prints.
type trainReport struct {
	Collection       string `json:"collection"`
	SourceCollection string `json:"source_collection,omitempty"`

	Release *jsonTrainRelease `json:"release,omitempty"`

	Decoders       []string        `json:"decoders"`
	Decoder        string          `json:"decoder"` // in words
	Encoder        string          `json:"encoder"`
	Nodes          int             `json:"nodes"`
	Sources        int             `json:"sources"` // of the nodes, those of source_collection
	Edges          int             `json:"edges"`
	Directed       bool            `json:"directed"`
	LeadBack       float64         `json:"lead_back"`
	Relations      int             `json:"relations"`
	Features       int             `json:"features"`
	UnusedFeatures int             `json:"unused_feature_rows"`
	Components     int             `json:"components"`
	Largest        int             `json:"largest_component"`
	Links          int             `json:"links"`
	Layout         jsonLayout      `json:"layout"`
	Cleaned        jsonCleaned     `json:"cleaned"`
	Split          jsonSplit       `json:"split"`
	Memory         int64           `json:"memory_bytes"`
	Dim            int             `json:"dim"`
	Epochs         int             `json:"epochs"`
	BestEpoch      int             `json:"best_epoch"`
	Stopped        string          `json:"stopped"`
	ValidMetric    string          `json:"valid_metric"`
	Valid          float64         `json:"valid"`
	HeldOut        *jsonMetrics    `json:"held_out,omitempty"`
	Dot            *jsonMetrics    `json:"dot,omitempty"` // the same by plain inner products
	NoScore        string          `json:"no_score,omitempty"`
	NewNodes       *jsonMetrics    `json:"new_nodes,omitempty"` // of --new-nodes
	Index          jsonTrainIndex  `json:"index"`
	Plans          []jsonTrainPlan `json:"plans"`
	NoPlan         string          `json:"no_plan,omitempty"`
	TrainSeconds   float64         `json:"train_seconds"`
	Seconds        float64         `json:"seconds"`
}

type jsonLayout struct {
	Separator string `json:"separator,omitempty"`
	Header    bool   `json:"header"`
	Comments  int    `json:"comments"`
	Source    string `json:"source_column,omitempty"`
	Target    string `json:"target_column,omitempty"`
	Relation  string `json:"relation_column,omitempty"`
	Time      string `json:"time_column,omitempty"`

	Unread []string `json:"unread_columns"`
}

type jsonCleaned struct {
	Lines     int `json:"lines"`
	SelfLoops int `json:"self_loops"`
	Repeats   int `json:"repeats"`
	Reversed  int `json:"reversed"`
	BothKinds int `json:"keys_of_both_kinds"`
	Leaked    int `json:"held_out_but_trained"`
	Unknown   int `json:"held_out_of_unknown_nodes"`
}

type jsonSplit struct {
	How   string `json:"how"`
	Train int    `json:"train"`
	Valid int    `json:"valid"`
	Test  int    `json:"test"`
}

type jsonTrainIndex struct {
	Built  bool   `json:"built"`
	Reason string `json:"reason,omitempty"`
	Lists  int    `json:"lists"`
	Bytes  int64  `json:"bytes"`
}

// A jsonTrainPlan is the plan that queries take by default.
type jsonTrainPlan struct {
	K       int     `json:"k"`
	Plan    string  `json:"plan"`
	Recall  float64 `json:"recall_mean"`
	Bound   float64 `json:"recall_bound"`
	MS      float64 `json:"ms"`
	Speedup float64 `json:"times_as_fast"`
}

// onceText says how a file lists edges that are there once each.
var onceText = map[graph.Listing]string{
	graph.LowerFirst: "with the lower key first",
	graph.ByNode:     "node after node",
	graph.EitherWay:  "either node first, as if at random",
}

// directionText says whether edges have a direction, and why.
func (t *trainRun) directionText() string {
	once, listedOnce := onceText[t.g.Listing]
	switch {
	case t.r.direction() == graph.FindOut && listedOnce:
		return fmt.Sprintf("edges have no direction: each is there once, %s; --directed if they have one", once)
	case t.g.Directed:
		return fmt.Sprintf("edges lead from source to target: %.3g%% of them are there in both directions", 100*t.g.LeadBack)
	}
	return fmt.Sprintf("edges have no direction: %.3g%% of them are there in both directions", 100*t.g.LeadBack)
}

// describeGraph fills in what was read.
func (t *trainRun) describeGraph() {
	g, r := t.g, &t.report
	r.Collection, r.SourceCollection = t.r.collection, t.r.sourceCollection
	r.Nodes, r.Sources, r.Edges, r.Relations, r.Features = g.Nodes, g.Sources, len(g.Edges), max(1, g.Relations), g.FeatureDim
	r.Components, r.Largest = g.Components()
	r.Directed, r.LeadBack = g.Directed, g.LeadBack
	r.Memory = train.Estimate(&g.Graph, t.split, t.r.opts).Total
	r.Cleaned = jsonCleaned(g.Cleaned)
	r.Plans = []jsonTrainPlan{}
	l := g.Layouts[0]
	r.Layout = jsonLayout{l.Separator, l.Header, l.Comments, show.JSON(l.Columns.Source), show.JSON(l.Columns.Target), show.JSON(l.Columns.Relation), show.JSON(l.Columns.Time), show.JSONs(l.Unread)}
}

// printGraph writes it, once the training has begun: what is refused prints nothing.
func (t *trainRun) printGraph() {
	g, r := t.g, &t.report
	t.r.progress.Clear()
	_, _ = t.notes.WriteTo(t.err)
	if t.json {
		return
	}
	fmt.Fprintf(t.out, "read     %s, %s\n", t.nodesText(), show.Count(len(g.Edges), "edge"))
	for _, line := range t.cleanedText(g.Layouts[0]) {
		fmt.Fprintf(t.out, "         %s\n", line)
	}
	s := r.Split
	fmt.Fprintf(t.out, "split    %s: %s to train on, %s for validation, %s to measure\n", s.How, show.Number(s.Train), show.Number(s.Valid), show.Number(s.Test))
	fmt.Fprintf(t.out, "memory   training takes about %s beside the graph\n", show.Bytes(r.Memory))
}

func (t *trainRun) nodesText() string {
	if t.g.Sources > 0 {
		return fmt.Sprintf("%s of %s, %s of %s", show.Count(t.g.Sources, "node"), t.r.sourceCollection,
			show.Count(t.g.Nodes-t.g.Sources, "node"), t.r.collection)
	}
	return show.Count(t.g.Nodes, "node")
}

// cleanedText says how the file was read and what was left out.
func (t *trainRun) cleanedText(l graph.Layout) (lines []string) {
	var parts []string
	add := func(n int, noun, text string) {
		if n > 0 {
			parts = append(parts, show.Count(n, noun)+text)
		}
	}
	if l.Separator == "" && l.Columns.Relation != "" {
		lines = append(lines, t.relationsText(l))
	}
	if l.Separator != "" {
		columns := fmt.Sprintf("source %s, target %s", show.Text(l.Columns.Source), show.Text(l.Columns.Target))
		if l.Columns.Relation != "" {
			columns += ", " + t.relationsText(l)
		}
		if l.Columns.Time != "" {
			columns += ", time " + show.Text(l.Columns.Time)
		}
		header := "no header"
		if l.Header {
			header = "a header"
		}
		lines = append(lines, fmt.Sprintf("columns separated by %s, %s: %s", l.Separator, header, columns))
	}
	if t.g.Sources == 0 {
		lines = append(lines, t.directionText())
	}
	c := t.g.Cleaned
	reversed := " left out"
	if c.Reversed > 0 {
		reversed = fmt.Sprintf(" left out, %s in the other direction", show.Number(c.Reversed))
	}
	if len(l.Unread) > 0 {
		parts = append(parts, "columns not read: "+shownList(l.Unread, 12))
	}
	add(l.Comments, "line", " of comment")
	add(c.SelfLoops, "self loop", " left out")
	add(c.Repeats, "repeat", reversed)
	add(c.BothKinds, "key", " of both kinds: two nodes each")
	add(c.Leaked, "held-out edge", " left out, being a training edge too")
	add(c.Unknown, "held-out edge", " left out, of nodes that no training edge has")
	add(t.report.UnusedFeatures, "row", " of features of no node")
	if t.report.Components > 1 {
		parts = append(parts, fmt.Sprintf("%s components, the largest of %s", show.Number(t.report.Components), show.Count(t.report.Largest, "node")))
	}
	if len(parts) > 0 {
		lines = append(lines, strings.Join(parts, "; "))
	}
	return lines
}

// relationsText says which column has the relations.
func (t *trainRun) relationsText(l graph.Layout) string {
	text := "relation " + show.Text(l.Columns.Relation)
	if t.g.Relations == 0 {
		return text + " (only the decoders distmult and complex tell relations apart)"
	}
	return fmt.Sprintf("%s (%s different)", text, show.Number(t.g.Relations))
}

// describeModel fills in what was trained.
func (t *trainRun) describeModel() {
	m, r := t.model, &t.report
	r.Dim, r.Epochs, r.Stopped, r.TrainSeconds = m.Dim, len(m.Epochs), m.Stopped, m.Elapsed.Seconds()
	r.Encoder = t.model.Encoder.Model()
	r.Decoder = fmt.Sprint(m.Decoder)
	r.Decoders = []string{show.JSON(t.r.decoderName)}
	if len(m.Epochs) > 0 {
		r.BestEpoch, r.ValidMetric, r.Valid = m.Epochs[m.Best].Epoch, strings.ToLower(m.Metric), m.Epochs[m.Best].Valid
	}
	if t.json {
		return
	}
	t.r.progress.Clear()
	fmt.Fprintf(t.out, "trained  encoder %s, embeddings of %d dimensions, decoder %s\n", r.Encoder, r.Dim, r.Decoder)
	fmt.Fprintf(t.out, "         %s in %s, the best is epoch %d; %s\n", show.Count(r.Epochs, "epoch"), show.Duration(m.Elapsed), r.BestEpoch, m.Stopped)
}

// describePlans fills in the plans that queries take by default: see flashdb.Frontier.Choose.
func (t *trainRun) describePlans(of flashdb.Calibration) {
	for _, f := range of.Frontiers {
		p, ok := defaultPlan(f)
		if !ok {
			continue
		}
		t.report.Plans = append(t.report.Plans, jsonTrainPlan{
			K: f.K, Plan: p.Plan.String(), Recall: p.Mean, Bound: p.Bound,
			MS: show.Millis(p.Time), Speedup: of.Exact.Seconds() / p.Time.Seconds(),
		})
	}
	t.report.NoPlan = describeScans(of)
}

// defaultPlan is the plan of queries that say nothing else, if there is one.
func defaultPlan(f flashdb.Frontier) (flashdb.PlanPoint, bool) {
	p, reached := f.Choose(defaultRecall)
	return p, reached || p.Mean >= defaultRecall
}

// lacksPlan tells whether there is a k without such a plan.
func lacksPlan(of flashdb.Calibration) bool {
	return slices.ContainsFunc(of.Frontiers, func(f flashdb.Frontier) bool {
		_, ok := defaultPlan(f)
		return !ok
	})
}

// defaultRecall is what queries ask for that say nothing else.
const defaultRecall = 0.98

// print writes the rest of the summary, after what was told on the way.
func (t *trainRun) print() error {
	r := &t.report
	if r.NoScore != "" {
		fmt.Fprintf(t.out, "score    none: %s\n", r.NoScore)
	} else {
		fmt.Fprintf(t.out, "score    %s held out, ranked among %s:\n", show.Count(r.HeldOut.Edges, "edge"), r.HeldOut.Against)
		if err := t.table(0, func(w io.Writer) {
			fmt.Fprintf(w, "           the decoder\t%s\n", r.HeldOut.text())
			fmt.Fprintf(w, "           inner product\t%s\n", r.Dot.text())
		}); err != nil {
			return err
		}
	}
	if n := r.NewNodes; n != nil {
		fmt.Fprintf(t.out, "new      %s of nodes that were held out, embedded from their other edges:\n", show.Count(n.Edges, "edge"))
		if err := t.table(0, func(w io.Writer) { fmt.Fprintf(w, "           the decoder\t%s\n", n.text()) }); err != nil {
			return err
		}
	}
	stored := "decoder " + show.Text(t.r.decoderName)
	if r.Links > 0 {
		stored += ", " + show.Count(r.Links, "known link")
	}
	fmt.Fprintf(t.out, "stored   %s, %s\n", t.nodesText(), stored)
	if r.Release != nil {
		fmt.Fprintf(t.out, "release  %s is live, %s is kept for rollback\n", r.Release.Release, r.Release.Former)
	}
	if r.Index.Built {
		fmt.Fprintf(t.out, "index    %s, %s\n", show.Count(r.Index.Lists, "list"), show.Bytes(r.Index.Bytes))
		for _, p := range r.Plans {
			fmt.Fprintf(t.out, "         k = %d: recall %.3f in %s, %.3g times as fast as a scan\n", p.K, p.Recall, show.Duration(time.Duration(p.MS*float64(time.Millisecond))), p.Speedup)
		}
		if r.NoPlan != "" {
			fmt.Fprintf(t.out, "%s\n", t.folded("         "+r.NoPlan, 9))
		}
	} else {
		fmt.Fprintf(t.out, "index    none: %s\n", r.Index.Reason)
	}
	_, err := fmt.Fprintf(t.out, "done in %s; %s\n", show.Duration(time.Duration(r.Seconds*float64(time.Second))), t.nextStep())
	return err
}

// nextStep is a command that predicts.
func (t *trainRun) nextStep() string {
	key := t.g.Keys[0]
	line := fmt.Sprintf("predict %s %s %s", show.Word(t.r.dir), t.r.collection, show.Word(key))
	if t.r.sourceCollection != "" {
		line += " --source-collection " + t.r.sourceCollection
	}
	if t.related() {
		line += " --relation " + show.Word(t.g.RelationNames[0])
	}
	return t.verb(line + " -k 10")
}
