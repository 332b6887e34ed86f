package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/decoder"
)

// resultColumns say what a result's scores are.
type resultColumns struct {
	score       string // title of the score column
	probability bool
	noLogit     bool // of Search: a probability has no meaning
}

// predicted are the columns of a decoder's answers. For programs tables have the same columns
// always.
func (a *app) predicted(d decoder.Decoder) resultColumns {
	return resultColumns{score: "score", probability: a.tables != nil || hasProbability(d)}
}

// hasProbability tells whether the scores of a decoder are logits, whose sigmoids are
// probabilities. A dot product is none unless its spec says so.
func hasProbability(d decoder.Decoder) bool {
	return d.Kind() != decoder.Dot || d.Spec().Output == "sigmoid"
}

// printResult prints the answer of one query, with the reasons of its hits if there are any.
func (a *app) printResult(res flashdb.Result, columns resultColumns, reasons ...flashdb.Reason) error {
	if a.json {
		j := newJSONResult(res, columns)
		for i := range reasons {
			j.Hits[i].Why = newJSONReason(reasons[i])
		}
		return a.emit(j)
	}
	fmt.Fprintln(a.out, show.Text(res.Source))
	err := a.titled(func(w io.Writer) {
		of, source := "", ""
		if a.tables != nil { // the line above the table is not there
			of, source = "source\t", show.Text(res.Source)+"\t"
		}
		if columns.probability {
			fmt.Fprintf(w, "  %srank\tkey\t%s\tprobability\n", of, columns.score)
		} else {
			fmt.Fprintf(w, "  %srank\tkey\t%s\n", of, columns.score)
		}
		scores := scoresOf(res.Hits)
		for i, h := range res.Hits {
			fmt.Fprintf(w, "  %s%d\t%s\t%s", source, i+1, show.Text(h.Key), scores[i])
			if columns.probability {
				fmt.Fprintf(w, "\t%s", probability(h.Probability))
			}
			fmt.Fprintln(w)
		}
	})
	if err != nil {
		return err
	}
	if s := res.Stats.Short; s != "" {
		fmt.Fprintf(a.out, "  %s: %s\n", show.Count(len(res.Hits), "hit"), s)
	}
	fmt.Fprintf(a.out, "%s\n%s\n", a.dim(a.folded("  "+describeStats(res.Stats), 4)), a.dim(terminal.Fold(a.out, "  plan: "+res.Stats.Plan, 8)))
	a.printReasons(res.Source, reasons)
	a.printTrace(res.Stats)
	a.printVerification(len(res.Hits), res.Stats.Verification)
	return nil
}

// printVerification tells what the exact scan found beside the answer.
func (a *app) printVerification(hits int, v *flashdb.Verification) {
	if v == nil {
		return
	}
	fmt.Fprintf(a.out, "  exact scan: %s, recall %.4g", show.Duration(v.Elapsed), v.Recall)
	if len(v.Missed) == 0 {
		fmt.Fprintf(a.out, ": all %s are its best\n", show.Count(hits, "hit"))
		return
	}
	fmt.Fprintf(a.out, "; missed:\n")
	for _, m := range v.Missed {
		where := fmt.Sprintf("in list %d, which was visited: no query ranked it high enough to be scored", m.List)
		switch {
		case m.List < 0:
			where = "newer than the index"
		case !m.Visited:
			where = fmt.Sprintf("in list %d, which was not visited: more --probes would reach it", m.List)
		}
		fmt.Fprintln(a.out, a.folded(fmt.Sprintf("    rank %d  %s  %s  %s", m.Rank, show.Text(m.Key), score(m.Score), where), 8))
	}
}

// describeStats says what an answer cost, and why the search ended.
func describeStats(s flashdb.QueryStats) string {
	parts := []string{show.Duration(s.Elapsed), show.Count(s.RowsScored, "row") + " scored"}
	if s.Rounds > 0 {
		parts = append(parts, show.Count(s.Rounds, "round"))
	}
	if s.ListsProbed > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s visited", show.Count(s.ListsProbed, "list"), show.Count(s.RowsVisited, "row")))
	}
	if s.DeltaRows > 0 && s.Generation > 0 {
		parts = append(parts, show.Count(s.DeltaRows, "newer row"))
	}
	return fmt.Sprintf("%s; stop: %s", strings.Join(parts, ", "), s.Stop)
}

// printTrace explains the rounds of a query, one or two lines each.
func (a *app) printTrace(s flashdb.QueryStats) {
	for i, r := range s.Trace {
		line := fmt.Sprintf("  round %d: may visit %s; %s more, %s scanned; %s scored, %d entered the top-k",
			i+1, r.Probes, show.Count(r.Lists, "list"), show.Count(r.Codes, "code"), show.Count(r.Scored, "row"), r.Entered)
		if r.Scored > 0 {
			line += fmt.Sprintf(", best %s", score(r.Best))
		}
		line += "; " + show.Duration(r.Elapsed)
		if r.Widening {
			line += " (widening: fewer than k were known)"
		}
		fmt.Fprintln(a.out, a.folded(line, 4))
		for _, aim := range r.Aims {
			fmt.Fprintln(a.out, a.folded("    query: "+describeAim(aim), 8))
		}
	}
}

// aimWords say what a query vector was made of.
var aimWords = map[string]string{
	"ones":    "the decoder with every neuron active (seed ones)",
	"source":  "the source's own embedding (seed source)",
	"learned": "mean gradient that searches for the most similar sources ended with (seed learned)",
	"round":   "mean gradient at the best of the last round",
	"all":     "mean gradient at the best of all rounds",
}

func describeAim(aim flashdb.Aim) string {
	words := aimWords[aim.From]
	if words == "" {
		words = aim.From
	}
	keys := aim.Anchors
	if len(aim.Sources) > 0 {
		keys = aim.Sources
	}
	if len(keys) == 0 {
		return words
	}
	const most = 3
	more := ""
	if n := len(keys) - most; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	keys = slices.Clone(keys[:min(most, len(keys))])
	for i := range keys {
		keys[i] = show.Text(keys[i])
	}
	changed := ""
	if aim.Neurons > 0 {
		changed = fmt.Sprintf("; %.3g%% of the neurons changed", 100*float64(aim.Changed)/float64(aim.Neurons))
	}
	return fmt.Sprintf("%s: %s%s%s", words, strings.Join(keys, ", "), more, changed)
}

type jsonHit struct {
	Key         string      `json:"key"`
	Score       jsonNumber  `json:"score"`
	Probability *jsonNumber `json:"probability,omitempty"` // of a decoder's score
	Why         *jsonReason `json:"why,omitempty"`

	Attributes map[string]any `json:"attributes,omitempty"` // of single answers
}

// newJSONHits writes hits of a decoder.
func newJSONHits(hits []flashdb.Hit) []jsonHit {
	out := make([]jsonHit, len(hits))
	for i, h := range hits {
		p := jsonScore(h.Probability)
		out[i] = jsonHit{Key: show.JSON(h.Key), Score: jsonScore(h.Score), Probability: &p, Attributes: jsonAttributes(h.Attributes)}
	}
	return out
}

type jsonQueryStats struct {
	Plan         string            `json:"plan"`
	Rounds       int               `json:"rounds"`
	ListsProbed  int               `json:"lists_probed"`
	RowsVisited  int               `json:"rows_visited"`
	CodesScanned int               `json:"codes_scanned"`
	RowsScored   int               `json:"rows_scored"`
	Stop         flashdb.Stop      `json:"stop"`
	Short        string            `json:"short,omitempty"`
	Pool         int               `json:"pool,omitempty"`
	Generation   uint64            `json:"generation"`
	DeltaRows    int               `json:"delta_rows"`
	Damaged      bool              `json:"index_damaged,omitempty"`
	UnknownTags  []string          `json:"unknown_tags,omitempty"`
	ElapsedMS    float64           `json:"elapsed_ms"`
	SeedSources  []string          `json:"seed_sources,omitempty"` // keys
	Trace        []jsonRound       `json:"trace,omitempty"`
	Verification *jsonVerification `json:"verification,omitempty"`
}

type jsonVerification struct {
	Recall    float64      `json:"recall"`
	Missed    []jsonMissed `json:"missed"`
	ElapsedMS float64      `json:"elapsed_ms"`
}

type jsonMissed struct {
	Key     string     `json:"key"`
	Rank    int        `json:"rank"`
	Score   jsonNumber `json:"score"`
	List    int        `json:"list"` // -1: newer than the index
	Visited bool       `json:"visited"`
}

func newJSONVerification(v *flashdb.Verification) *jsonVerification {
	if v == nil {
		return nil
	}
	j := &jsonVerification{Recall: v.Recall, Missed: []jsonMissed{}, ElapsedMS: show.Millis(v.Elapsed)}
	for _, m := range v.Missed {
		j.Missed = append(j.Missed, jsonMissed{Key: show.JSON(m.Key), Rank: m.Rank, Score: jsonScore(m.Score), List: m.List, Visited: m.Visited})
	}
	return j
}

type jsonRound struct {
	Aims      []jsonAim   `json:"aims"`
	Probes    string      `json:"probes"`
	Lists     int         `json:"lists"`
	Codes     int         `json:"codes"`
	Rows      int         `json:"rows"`
	Scored    int         `json:"scored"`
	Best      *jsonNumber `json:"best,omitempty"` // none when nothing was scored
	Entered   int         `json:"entered"`
	Widening  bool        `json:"widening,omitempty"`
	ElapsedMS float64     `json:"elapsed_ms"`
}

type jsonAim struct {
	From    string   `json:"from"`
	Anchors []string `json:"anchors,omitempty"`
	// Neurons of the decoder, and those whose activity changed since the round before.
	Neurons int `json:"neurons,omitempty"`
	Changed int `json:"changed,omitempty"`
}

type jsonResult struct {
	Source string         `json:"source"`
	Hits   []jsonHit      `json:"hits"`
	Stats  jsonQueryStats `json:"stats"`
}

func newJSONResult(res flashdb.Result, columns resultColumns) jsonResult {
	s := res.Stats
	j := jsonResult{
		Source: show.JSON(res.Source),
		Hits:   newJSONHits(res.Hits),
		Stats: jsonQueryStats{
			Plan: s.Plan, Rounds: s.Rounds, ListsProbed: s.ListsProbed, RowsVisited: s.RowsVisited,
			CodesScanned: s.CodesScanned, RowsScored: s.RowsScored, Stop: s.Stop, Short: s.Short, Pool: s.Pool,
			Generation: s.Generation, DeltaRows: s.DeltaRows, ElapsedMS: show.Millis(s.Elapsed),
			Verification: newJSONVerification(s.Verification), Damaged: s.IndexDamaged,
		},
	}
	if columns.noLogit {
		for i := range j.Hits {
			j.Hits[i].Probability = nil
		}
	}
	for _, tag := range s.UnknownTags {
		j.Stats.UnknownTags = append(j.Stats.UnknownTags, show.JSON(tag))
	}
	for i, r := range s.Trace {
		if i == 0 {
			j.Stats.SeedSources = seedSources(r)
		}
		j.Stats.Trace = append(j.Stats.Trace, newJSONRound(r))
	}
	return j
}

// seedSources returns the keys of the sources that taught the seed, as text.
func seedSources(first flashdb.Round) (keys []string) {
	for _, aim := range first.Aims {
		for _, key := range aim.Sources {
			keys = append(keys, show.JSON(key))
		}
	}
	return keys
}

func newJSONRound(r flashdb.Round) jsonRound {
	j := jsonRound{
		Probes: r.Probes.String(), Lists: r.Lists, Codes: r.Codes, Rows: r.Rows,
		Scored: r.Scored, Entered: r.Entered, Widening: r.Widening, ElapsedMS: show.Millis(r.Elapsed),
	}
	if r.Scored > 0 {
		best := jsonScore(r.Best)
		j.Best = &best
	}
	for _, aim := range r.Aims {
		ja := jsonAim{From: aim.From, Neurons: aim.Neurons, Changed: aim.Changed}
		for _, key := range aim.Anchors {
			ja.Anchors = append(ja.Anchors, show.JSON(key))
		}
		j.Aims = append(j.Aims, ja)
	}
	return j
}
