package browse

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

// A hit is one node of an answer.
type hit struct {
	ref
	Score       number      `json:"score"`
	Probability *number     `json:"probability,omitempty"` // of a decoder
	Tags        []string    `json:"tags"`
	Attributes  []attribute `json:"attributes"`
}

// An answer is the answer to one query, and how it came about.
type answer struct {
	Hits   []hit    `json:"hits"`
	Millis number   `json:"ms"`
	Plan   string   `json:"plan"`
	Scored int      `json:"scored"`
	Lists  int      `json:"lists"`
	Rounds int      `json:"rounds"`
	Newer  int      `json:"newer"` // rows newer than the index
	Short  string   `json:"short,omitempty"`
	Notes  []string `json:"notes"` // what a reader should know
	Exact  *checked `json:"exact,omitempty"`
}

// checked says whether the exact scan agrees.
type checked struct {
	Missed []missed `json:"missed"`
	Millis number   `json:"ms"`
}

// missed is a hit that only the exact scan found, with its rank there.
type missed struct {
	ref
	Rank  int    `json:"rank"`
	Score number `json:"score"`
}

// predictOptions reads what predictions and drawings have in common: decoder, relation, reverse,
// filter, recall, exact, diversity and per.
func (q question) predictOptions() flashdb.PredictOptions {
	p := q.params
	return flashdb.PredictOptions{
		Decoder: p.text("decoder"), Relation: p.text("relation"), Reverse: p.flag("reverse"), Filter: p.text("filter"),
		Recall: p.share("recall"), Exact: p.flag("exact"), Diversity: p.share("diversity"), Per: p.limit("per"),
		SourceCollection: q.sourceCollection(),
	}
}

// predict answers with predictions: c, key, to, k, those of predictOptions, linked, verify, and
// release, which is another one than the live one.
func (s *Server) predict(r *http.Request) (any, error) {
	q, err := s.questionOf(r)
	if err != nil {
		return nil, err
	}
	p := q.params
	k := p.count("k", defaultK, 1, maxK)
	opts := q.predictOptions()
	opts.IncludeLinked, opts.Verify, opts.WithNode = p.flag("linked"), p.flag("verify"), true
	if p.err != nil {
		return nil, p.err
	}
	by := opts.Decoder
	if release := p.text("release"); release != "" {
		by += ", release " + release
		if q.to, err = s.db.ReleaseCollection(r.Context(), release, q.to.Name()); err != nil {
			return nil, err
		}
	}
	res, err := q.to.Predict(r.Context(), q.key, k, &opts)
	if err != nil {
		return nil, err
	}
	s.queries.add("predict", by, q, res.Stats)
	return answerOf(res, true), nil
}

// nearest answers with the nodes of the nearest embeddings: c, key, to, k, filter, by, and for the
// known links that it leaves out relation, reverse and linked.
func (s *Server) nearest(r *http.Request) (any, error) {
	q, err := s.questionOf(r)
	if err != nil {
		return nil, err
	}
	p := q.params
	k := p.count("k", defaultK, 1, maxK)
	opts := flashdb.SearchOptions{Similarity: flashdb.Similarity(p.text("by")), Filter: p.text("filter"), WithNode: true}
	linked, relation, reverse := p.flag("linked"), p.text("relation"), p.flag("reverse")
	if p.err != nil {
		return nil, p.err
	}
	n, err := q.from.Get(r.Context(), q.key)
	if err != nil {
		return nil, err
	}
	if q.sourceCollection() == "" {
		opts.Exclude = []string{q.key}
	}
	if !linked { // as a prediction does, so that the two can be compared
		keys, err := q.linked(r.Context(), relation, reverse)
		if err != nil {
			return nil, err
		}
		opts.Exclude = append(opts.Exclude, keys...)
	}
	res, err := q.to.Search(r.Context(), n.Embedding, k, &opts)
	if err != nil {
		return nil, err
	}
	s.queries.add("search", string(opts.Similarity), q, res.Stats)
	return answerOf(res, false), nil
}

func answerOf(res flashdb.Result, decoded bool) answer {
	st := res.Stats
	a := answer{
		Hits: make([]hit, len(res.Hits)), Millis: number(show.Millis(st.Elapsed)), Plan: st.Plan, Scored: st.RowsScored, Lists: st.ListsProbed,
		Rounds: st.Rounds, Short: st.Short, Notes: []string{},
	}
	if st.Generation > 0 { // else there is no index to be newer than
		a.Newer = st.DeltaRows
	}
	for i, h := range res.Hits {
		a.Hits[i] = hit{ref: refTo(h.Key), Score: number(h.Score), Tags: shown(h.Tags), Attributes: attributesOf(h.Attributes)}
		if decoded {
			p := number(h.Probability)
			a.Hits[i].Probability = &p
		}
	}
	if len(st.UnknownTags) > 0 {
		a.Notes = append(a.Notes, "no node has the tag "+strings.Join(shown(st.UnknownTags), ", "))
	}
	if st.IndexDamaged {
		a.Notes = append(a.Notes, "the index is damaged or missing, so that every node was scanned: flashdb rebuild repairs it")
	}
	if v := st.Verification; v != nil {
		a.Exact = &checked{[]missed{}, number(show.Millis(v.Elapsed))}
		for _, m := range v.Missed {
			a.Exact.Missed = append(a.Exact.Missed, missed{refTo(m.Key), m.Rank, number(m.Score)})
		}
	}
	return a
}

// keptQueries is how many queries the page remembers.
const keptQueries = 40

// A queryLog is the last queries that the page asked. It is safe for concurrent use.
type queryLog struct {
	mu   sync.Mutex
	last []asked // the latest last
}

// asked is one query of the page.
type asked struct {
	When   time.Time `json:"when"`
	What   string    `json:"what"` // predict or search
	By     string    `json:"by"`   // the decoder, or the similarity
	Node   ref       `json:"node"`
	From   string    `json:"from"`
	Millis number    `json:"ms"`
	Scored int       `json:"scored"`

	to string // the collection of the hits
}

func (l *queryLog) add(what, by string, q question, st flashdb.QueryStats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) == keptQueries {
		l.last = append(l.last[:0], l.last[1:]...)
	}
	l.last = append(l.last, asked{time.Now(), what, by, refTo(q.key), q.from.Name(), number(show.Millis(st.Elapsed)), st.RowsScored, q.to.Name()})
}

// of returns the queries for nodes of a collection, the latest first.
func (l *queryLog) of(collection string) []asked {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []asked{}
	for i := len(l.last) - 1; i >= 0; i-- {
		if l.last[i].to == collection || l.last[i].From == collection {
			out = append(out, l.last[i])
		}
	}
	return out
}
