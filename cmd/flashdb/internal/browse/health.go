package browse

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

// sizesKept is how long the counts of a database are kept: to count again reads much of it.
const sizesKept = 5 * time.Second

// sizes keeps the counts of a database for a while. It is safe for concurrent use.
type sizes struct {
	mu   sync.Mutex
	at   time.Time
	last flashdb.Stats
}

// stats returns counts that are at most sizesKept old.
func (s *Server) stats(ctx context.Context) (flashdb.Stats, error) {
	z := &s.sizes
	z.mu.Lock()
	defer z.mu.Unlock()
	if !z.at.IsZero() && time.Since(z.at) < sizesKept {
		return z.last, nil
	}
	stats, err := s.db.Stats(ctx)
	if err == nil {
		z.last, z.at = stats, time.Now()
	}
	return stats, err
}

// statsOf returns the counts of one collection, and those of the database.
func (s *Server) statsOf(ctx context.Context, name string) (of flashdb.CollectionStats, all flashdb.Stats, err error) {
	if _, err := s.db.Collection(ctx, name); err != nil {
		return of, all, err
	}
	all, err = s.stats(ctx)
	for _, c := range all.Collections {
		if c.Name == name {
			of = c
		}
	}
	return of, all, err
}

// healthAnswer is the state of a collection.
type healthAnswer struct {
	Facts    []fact        `json:"facts"`
	Growth   *growth       `json:"growth,omitempty"` // nil without an index
	Releases []releaseFact `json:"releases"`         // none if only the live one was ever made
	Files    []fact        `json:"files"`
	Warnings []string      `json:"warnings"`
	Curves   []curve       `json:"curves"`
	Queries  []asked       `json:"queries"`
}

// A fact is one number worth knowing.
type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Note  string `json:"note,omitempty"`
}

// A curve is the plans that a calibration kept for one k, cheapest first.
type curve struct {
	Decoder string  `json:"decoder"`
	K       int     `json:"k"`
	Sources int     `json:"sources"`
	From    string  `json:"from"`
	Exact   number  `json:"exact_ms"`
	Old     bool    `json:"old"` // of an index that is no longer served
	Plans   []point `json:"plans"`
}

// A point is one plan of a curve.
type point struct {
	Plan   string `json:"plan"`
	Mean   number `json:"mean"`
	Bound  number `json:"bound"`
	Worst  number `json:"worst"`
	Scored number `json:"scored"`
	Millis number `json:"ms"`
}

// health answers with the state of a collection: c.
func (s *Server) health(r *http.Request) (any, error) {
	p := parametersOf(r)
	name := p.needed("c")
	if p.err != nil {
		return nil, p.err
	}
	of, all, err := s.statsOf(r.Context(), name)
	if err != nil {
		return nil, err
	}
	c, err := s.db.Collection(r.Context(), name)
	if err != nil {
		return nil, err
	}
	calibrations, err := c.Calibrations(r.Context())
	if err != nil {
		return nil, err
	}
	a := healthAnswer{Facts: factsOf(of), Growth: growthOf(of, all), Files: filesOf(all), Warnings: warningsOf(of), Curves: []curve{}, Queries: s.queries.of(name)}
	if a.Releases, err = s.releasesOf(r.Context(), name); err != nil {
		return nil, err
	}
	for _, cal := range calibrations {
		for _, f := range cal.Frontiers {
			a.Curves = append(a.Curves, curveOf(cal, f, of.Generation))
		}
	}
	return a, nil
}

func curveOf(cal flashdb.Calibration, f flashdb.Frontier, served uint64) curve {
	c := curve{
		Decoder: show.Text(cal.Decoder), K: f.K, Sources: cal.Sources, From: cal.SourceCollection,
		Exact: number(show.Millis(cal.Exact)), Old: cal.Generation != served, Plans: []point{},
	}
	for _, p := range f.Plans {
		c.Plans = append(c.Plans, point{p.Plan.String(), number(p.Mean), number(p.Bound), number(p.Worst), number(p.RowsScored), number(show.Millis(p.Time))})
	}
	return c
}

func factsOf(c flashdb.CollectionStats) []fact {
	facts := []fact{
		{"nodes", show.Number(c.Nodes), "of " + c.Schema.String()},
		{"known links", show.Number(c.Links), "to its nodes"},
	}
	if c.Tombstones > 0 {
		facts = append(facts, fact{"deleted", show.Number(c.Tombstones), "ids are not used again"})
	}
	switch {
	case c.IndexDamaged:
		return append(facts, fact{"index", "damaged", "queries scan every node"})
	case c.Generation == 0:
		return append(facts, fact{"index", "none", "queries scan every node"})
	}
	return append(facts,
		fact{"index", show.Bytes(c.IndexBytes), "generation " + show.Number(c.Generation) + ", of " + c.Written.Format("2 January 2006 15:04")},
		fact{"indexed rows", show.Number(c.IndexedRows), "in " + show.Count(c.Lists, "list") + ", the largest of " + show.Number(c.LargestList)},
	)
}

func filesOf(s flashdb.Stats) []fact {
	return []fact{
		{"store", show.Bytes(s.Disk.Store), "flash.db: nodes, links, decoders"},
		{"log", show.Bytes(s.Disk.WAL), "writes " + show.Number(s.AppliedLSN) + " of " + show.Number(s.DurableLSN) + " are in the store"},
		{"indexes", show.Bytes(s.Disk.Index), "of all collections; rebuild makes them anew"},
	}
}

// indexFrom is how many nodes a rebuild builds an index for without --force: minIndexedRows of
// package flashdb.
const indexFrom = 20_000

func warningsOf(c flashdb.CollectionStats) []string {
	warnings := []string{}
	switch {
	case c.IndexDamaged:
		warnings = append(warnings, "The index is damaged or missing, so that queries scan every node: run flashdb rebuild.")
	case c.Generation == 0 && c.Nodes >= indexFrom:
		warnings = append(warnings, "There is no index, so that queries scan every node: run flashdb rebuild.")
	case c.Generation > 0 && c.Drift.Moved > 0.2:
		warnings = append(warnings, "More than a fifth of the rows have changed since the index was built: flashdb rebuild makes queries faster.")
	}
	return warnings
}

const maxTags = 200 // that are offered for a filter

// A tagCount is a tag and how many nodes have it.
type tagCount struct {
	Tag   string `json:"tag"`
	Nodes uint64 `json:"nodes"`
}

// An attributeRange is an attribute and what there is of it.
type attributeRange struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Distinct uint64 `json:"distinct"`
	Lowest   string `json:"lowest"`
	Highest  string `json:"highest"`
}

// words are what a filter or a cap may name.
type words struct {
	Tags       []tagCount       `json:"tags"` // those that most nodes have first
	Attributes []attributeRange `json:"attributes"`
}

// mostFrequent returns the tags that most nodes have, those of most nodes first.
func mostFrequent[N cmp.Ordered](nodes map[string]N, most int) []string {
	tags := slices.SortedFunc(maps.Keys(nodes), func(a, b string) int {
		return cmp.Or(cmp.Compare(nodes[b], nodes[a]), strings.Compare(a, b))
	})
	return tags[:min(len(tags), most)]
}

// words answers with the tags and attributes of a collection: c.
func (s *Server) words(r *http.Request) (any, error) {
	p := parametersOf(r)
	name := p.needed("c")
	if p.err != nil {
		return nil, p.err
	}
	of, _, err := s.statsOf(r.Context(), name)
	if err != nil {
		return nil, err
	}
	w := words{[]tagCount{}, []attributeRange{}}
	for _, tag := range mostFrequent(of.Tags, maxTags) {
		w.Tags = append(w.Tags, tagCount{tag, of.Tags[tag]})
	}
	for _, a := range of.Attributes {
		w.Attributes = append(w.Attributes, attributeRange{a.Name, a.Type, a.Distinct, attributeText(a.Lowest), attributeText(a.Highest)})
	}
	return w, nil
}
