package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
)

// An evaluation asks questions of a collection and compares the answers with the exact ones.
type evaluation struct {
	target       collection
	sourcesFrom  collection // the target itself, or another collection
	k            int
	opts         flashdb.PredictOptions
	exactSources int // how many questions to time the exact scan on
}

// A question is one source.
type question struct {
	key   string
	exact *truth // nil: the exact scan is to find it
}

// An evalReport is what eval prints; means are per source.
type evalReport struct {
	Sources          int            `json:"sources"`
	K                int            `json:"k"`
	RecallMean       float64        `json:"recall_mean"`
	RecallP5         float64        `json:"recall_p5"`
	RecallWorst      float64        `json:"recall_worst"`
	MaxAbsDiff       jsonNumber     `json:"max_abs_diff"`
	MaxRelDiff       jsonNumber     `json:"max_rel_diff"`
	RowsScored       float64        `json:"rows_scored"`
	CodesScanned     float64        `json:"codes_scanned"`
	RowsVisited      float64        `json:"rows_visited"`
	RowsVisitedShare float64        `json:"rows_visited_share"` // of the collection's nodes
	FastMS           float64        `json:"fast_ms"`
	ExactMS          float64        `json:"exact_ms"`
	ExactSources     int            `json:"exact_sources"` // how many exact_ms is the mean of
	Stops            map[string]int `json:"stops"`
	Plan             string         `json:"plan"`

	last flashdb.QueryStats // of the last answer
}

// ask turns an oracle's lines into questions.
func (e *evaluation) ask(ctx context.Context, lines []oracleLine) ([]question, error) {
	nodes, err := newNodeIndex(ctx, e.target)
	if err != nil {
		return nil, err
	}
	sources := nodes
	if e.sourcesFrom.Name() != e.target.Name() {
		if sources, err = newNodeIndex(ctx, e.sourcesFrom); err != nil {
			return nil, err
		}
	}
	questions := make([]question, len(lines))
	for i, l := range lines {
		id, err := sources.byRow(l.Source)
		if err != nil {
			return nil, fmt.Errorf("oracle source %d: %w", l.Source, err)
		}
		t, err := l.truth(nodes, e.k)
		if err != nil {
			return nil, fmt.Errorf("oracle answer of source %d: %w", l.Source, err)
		}
		questions[i] = question{key: sources.keys[id], exact: &t}
	}
	return questions, nil
}

// sample draws n sources, or all when there are fewer.
func (e *evaluation) sample(ctx context.Context, n int, seed uint64) ([]question, error) {
	nodes, err := newNodeIndex(ctx, e.sourcesFrom)
	if err != nil {
		return nil, err
	}
	keys := slices.DeleteFunc(nodes.keys, func(key string) bool { return key == "" })
	if len(keys) == 0 {
		return nil, fmt.Errorf("collection %q has no nodes to ask about", e.sourcesFrom.Name())
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(keys))
	var questions []question
	for _, i := range order[:min(n, len(keys))] {
		questions = append(questions, question{key: keys[i]})
	}
	return questions, nil
}

func (e *evaluation) predict(ctx context.Context, q question, opts *flashdb.PredictOptions) (flashdb.Result, time.Duration, error) {
	start := time.Now()
	res, err := e.target.Predict(ctx, q.key, e.k, opts)
	return res, time.Since(start), err
}

// run asks at least one question, one at a time.
func (e *evaluation) run(ctx context.Context, questions []question, p *terminal.Progress) (evalReport, error) {
	r := evalReport{Sources: len(questions), K: e.k, Stops: map[string]int{}}
	// The first query faults the index in and fills the pools.
	if _, _, err := e.predict(ctx, questions[0], &e.opts); err != nil {
		return r, err
	}
	var recalls []float64
	var fast, exact time.Duration
	for i, q := range questions {
		p.Update("eval", int64(i), int64(len(questions)))
		if q.exact == nil || i < e.exactSources {
			answer, elapsed, err := e.exactAnswer(ctx, q)
			if err != nil {
				return r, err
			}
			if i < e.exactSources {
				exact += elapsed
				r.ExactSources++
			}
			if q.exact == nil {
				q.exact = &answer
			}
		}
		res, elapsed, err := e.predict(ctx, q, &e.opts)
		if err != nil {
			return r, err
		}
		fast += elapsed
		r.add(res)
		o := compare(res.Hits, q.exact.cut(e.k))
		recalls = append(recalls, o.recall)
		r.MaxAbsDiff = max(r.MaxAbsDiff, jsonNumber(o.maxAbs))
		r.MaxRelDiff = max(r.MaxRelDiff, jsonNumber(o.maxRel))
	}
	r.RecallMean, r.RecallP5, r.RecallWorst = spread(recalls)
	return r, e.finish(ctx, &r, fast, exact)
}

// exactAnswer scans every node, under the same exclusions.
func (e *evaluation) exactAnswer(ctx context.Context, q question) (truth, time.Duration, error) {
	res, elapsed, err := e.predict(ctx, q, &flashdb.PredictOptions{
		Decoder:          e.opts.Decoder,
		Exact:            true,
		Relation:         e.opts.Relation,
		Reverse:          e.opts.Reverse,
		SourceCollection: e.opts.SourceCollection,
		IncludeLinked:    e.opts.IncludeLinked,
		Filter:           e.opts.Filter,
	})
	var t truth
	for _, h := range res.Hits {
		t.keys = append(t.keys, h.Key)
		t.scores = append(t.scores, float64(h.Score))
	}
	return t, elapsed, err
}

// add adds what one answer cost to the sums.
func (r *evalReport) add(res flashdb.Result) {
	r.RowsScored += float64(res.Stats.RowsScored)
	r.CodesScanned += float64(res.Stats.CodesScanned)
	r.RowsVisited += float64(res.Stats.RowsVisited)
	r.Stops[string(res.Stats.Stop)]++
	r.Plan, r.last = res.Stats.Plan, res.Stats
}

// finish turns sums into means.
func (e *evaluation) finish(ctx context.Context, r *evalReport, fast, exact time.Duration) error {
	n := float64(r.Sources)
	r.RowsScored /= n
	r.CodesScanned /= n
	r.RowsVisited /= n
	r.FastMS = show.Millis(fast) / n
	if r.ExactSources > 0 {
		r.ExactMS = show.Millis(exact) / float64(r.ExactSources)
	}
	nodes, err := countNodes(ctx, e.target)
	if nodes > 0 {
		r.RowsVisitedShare = r.RowsVisited / float64(nodes)
	}
	return err
}

func countNodes(ctx context.Context, c collection) (n int, err error) {
	for _, err := range c.Keys(ctx) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// describeStops lists the reasons the queries ended for, the most frequent first.
func describeStops(stops map[string]int) string {
	names := slices.SortedFunc(maps.Keys(stops), func(x, y string) int {
		if d := stops[y] - stops[x]; d != 0 {
			return d
		}
		return strings.Compare(x, y)
	})
	var texts []string
	for _, name := range names {
		texts = append(texts, fmt.Sprintf("%s %d", name, stops[name]))
	}
	return strings.Join(texts, ", ")
}
