package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
)

// reasons asks what supports the hits of a result.
func (r *predictRequest) reasons(ctx context.Context, c collection, res flashdb.Result) ([]flashdb.Reason, error) {
	keys := make([]string, len(res.Hits))
	for i, h := range res.Hits {
		keys[i] = h.Key
	}
	return c.Why(ctx, res.Source, keys, &flashdb.WhyOptions{
		Decoder: r.opts.Decoder, Relation: r.opts.Relation, Reverse: r.opts.Reverse, SourceCollection: r.opts.SourceCollection,
	})
}

const (
	whyKeyWidth  = 40 // runes of a key
	whyIndent    = 29 // columns before what a line says
	whyShown     = 3  // blocks that are named
	whyIndicates = "why: an indication, from stored links and from the slope of the decoder at each hit"
)

// printReasons prints what supports each hit: its key, and at most five lines.
func (a *app) printReasons(source string, reasons []flashdb.Reason) {
	if len(reasons) == 0 {
		return
	}
	fmt.Fprintln(a.out, a.dim("  "+whyIndicates))
	for i, r := range reasons {
		linked := ""
		if r.Linked {
			linked = ", which is a known link"
		}
		fmt.Fprintf(a.out, "  %d  %s%s\n", i+1, whyKey(r.Key), linked)
		a.printLinks(source, r)
		a.printParts(r)
	}
}

func whyKey(key string) string { return show.Clip(show.Text(key), whyKeyWidth) }

// printLinks prints what the known links and the paths say.
func (a *app) printLinks(source string, r flashdb.Reason) {
	of := fmt.Sprintf("of %s", show.Count(r.Known, "known link"))
	if r.Compared < r.Known {
		of = fmt.Sprintf("of %s of %s", show.Number(r.Compared), show.Count(r.Known, "known link"))
	}
	if r.Known == 0 {
		a.whyLine("known links", []string{"none of " + whyKey(source) + ": only the decoder speaks for it"}, "")
	}
	if len(r.ByScore) > 0 {
		a.whyLine("known, by the decoder", neighborTexts(r.ByScore, func(n flashdb.Neighbor) string { return fmt.Sprintf("%.2f", n.Score) }), of)
		of = ""
	}
	a.whyLine("known, by cosine", neighborTexts(r.ByCosine, func(n flashdb.Neighbor) string { return fmt.Sprintf("%.2f", n.Cosine) }), of)
	label, paths := pathTexts(r.Paths)
	more := ""
	if r.PathCount > len(paths) {
		more = "of " + show.Number(r.PathCount)
	}
	a.whyLine(label, paths, more)
}

// printParts prints which dimensions carry the score, and which known links are alike there.
func (a *app) printParts(r flashdb.Reason) {
	blocks := slices.Clone(r.Blocks)
	slices.SortStableFunc(blocks, func(a, b flashdb.Block) int {
		return cmp.Compare(math.Abs(b.Contribution), math.Abs(a.Contribution))
	})
	var parts []string
	others := r.Sum
	for _, b := range blocks[:min(whyShown, len(blocks))] {
		others -= b.Contribution
		parts = append(parts, fmt.Sprintf("%s %+.2f", dimensions(b), b.Contribution))
	}
	if len(blocks) > whyShown {
		parts = append(parts, fmt.Sprintf("others %+.2f", others))
	}
	if rest := float64(r.Score) - r.Sum; math.Abs(rest) >= .005 {
		parts = append(parts, fmt.Sprintf("biases etc. %+.2f", rest))
	}
	line := fmt.Sprintf("     %-24s%s", fmt.Sprintf("%.2f, by dimensions", r.Score), strings.Join(parts, ", "))
	fmt.Fprintln(a.out, a.folded(line, whyIndent))
	along := func(n flashdb.Neighbor) string { return fmt.Sprintf("%+.2f", n.Along) }
	links := neighborTexts(r.For, along)
	for i, text := range neighborTexts(r.Against, along) {
		if i == 0 {
			text = "against: " + text
		}
		links = append(links, text)
	}
	if len(r.Against) > 0 { // the first of both kinds, if there is no place for more
		links = slices.Concat(links[:min(2, len(r.For))], links[len(r.For):len(r.For)+1])
	}
	a.whyLine("known, by its slope", links, "")
}

// dimensions names those of a block: the first is 0.
func dimensions(b flashdb.Block) string {
	if b.To == b.From+1 {
		return fmt.Sprint(b.From)
	}
	return fmt.Sprintf("%d-%d", b.From, b.To-1)
}

// neighborTexts writes known links with a number each.
func neighborTexts(all []flashdb.Neighbor, number func(flashdb.Neighbor) string) (texts []string) {
	for _, n := range all {
		texts = append(texts, whyKey(n.Key)+" "+number(n))
	}
	return texts
}

// pathTexts writes paths as seen from the source: to a node that it shares with the hit, or with an
// arrow for each of the two links.
func pathTexts(paths []flashdb.Path) (label string, texts []string) {
	plain := true
	for _, p := range paths {
		plain = plain && p.Shared && p.Links[0].Relation == "" && p.Links[1].Relation == ""
	}
	if plain {
		for _, p := range paths {
			texts = append(texts, whyKey(p.Via))
		}
		return "shared neighbours", texts
	}
	for _, p := range paths {
		toVia, toHit := p.Links[0].Target == p.Via, p.Links[1].Source == p.Via
		texts = append(texts, arrow(p.Links[0], toVia)+" "+whyKey(p.Via)+" "+arrow(p.Links[1], toHit))
	}
	return "paths of two links", texts
}

func arrow(e flashdb.Edge, forward bool) string {
	relation := ""
	if e.Relation != "" {
		relation = whyKey(e.Relation) + "-"
	}
	if forward {
		return "-" + relation + ">"
	}
	return "<-" + relation
}

// whyLine prints one line: as many of the items as fit, and the first one always.
func (a *app) whyLine(label string, items []string, of string) {
	if len(items) == 0 {
		return
	}
	if of != "" {
		of = " (" + of + ")"
	}
	text := fmt.Sprintf("     %-24s%s", label, items[0])
	room := terminal.Width(a.out) - utf8.RuneCountInString(of)
	for _, item := range items[1:] {
		if utf8.RuneCountInString(text)+2+utf8.RuneCountInString(item) > room {
			break
		}
		text += ", " + item
	}
	fmt.Fprintln(a.out, strings.TrimRight(text+of, " "))
}

// A jsonReason is a flashdb.Reason in JSON. The hit has its key and score.
type jsonReason struct {
	Linked    bool           `json:"linked"`
	Known     int            `json:"known"`
	Compared  int            `json:"compared"`
	ByScore   []jsonNeighbor `json:"by_score,omitempty"`
	ByCosine  []jsonNeighbor `json:"by_cosine,omitempty"`
	Paths     []jsonPath     `json:"paths,omitempty"`
	PathCount int            `json:"path_count"`
	Blocks    []jsonBlock    `json:"blocks"`
	Sum       jsonNumber     `json:"sum"`
	For       []jsonNeighbor `json:"for,omitempty"`
	Against   []jsonNeighbor `json:"against,omitempty"`
}

type jsonNeighbor struct {
	Key    string      `json:"key"`
	Score  *jsonNumber `json:"score,omitempty"` // of by_score
	Cosine jsonNumber  `json:"cosine"`
	Along  jsonNumber  `json:"along"`
}

type jsonPath struct {
	Via        string     `json:"via"`
	Collection string     `json:"collection,omitempty"`
	Shared     bool       `json:"shared"`
	Links      []jsonLink `json:"links"`
}

type jsonLink struct {
	SourceCollection string `json:"source_collection,omitempty"`
	Source           string `json:"source"`
	Relation         string `json:"relation,omitempty"`
	Target           string `json:"target"`
}

type jsonBlock struct {
	From         int        `json:"from"`
	To           int        `json:"to"`
	Contribution jsonNumber `json:"contribution"`
}

func newJSONReason(r flashdb.Reason) *jsonReason {
	j := &jsonReason{
		Linked: r.Linked, Known: r.Known, Compared: r.Compared, PathCount: r.PathCount, Sum: jsonNumber(r.Sum),
		ByScore: newJSONNeighbors(r.ByScore, true), ByCosine: newJSONNeighbors(r.ByCosine, false),
		For: newJSONNeighbors(r.For, false), Against: newJSONNeighbors(r.Against, false),
		Blocks: []jsonBlock{},
	}
	for _, p := range r.Paths {
		path := jsonPath{Via: show.JSON(p.Via), Collection: show.JSON(p.Collection), Shared: p.Shared}
		for _, e := range p.Links {
			path.Links = append(path.Links, jsonLink{show.JSON(e.SourceCollection), show.JSON(e.Source), show.JSON(e.Relation), show.JSON(e.Target)})
		}
		j.Paths = append(j.Paths, path)
	}
	for _, b := range r.Blocks {
		j.Blocks = append(j.Blocks, jsonBlock{b.From, b.To, jsonNumber(b.Contribution)})
	}
	return j
}

func newJSONNeighbors(all []flashdb.Neighbor, scored bool) (out []jsonNeighbor) {
	for _, n := range all {
		j := jsonNeighbor{Key: show.JSON(n.Key), Cosine: jsonScore(n.Cosine), Along: jsonScore(n.Along)}
		if scored {
			s := jsonScore(n.Score)
			j.Score = &s
		}
		out = append(out, j)
	}
	return out
}
