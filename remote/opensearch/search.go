package opensearch

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

const (
	// maxK is how many rows the plugin returns of an approximate search.
	maxK = 10_000
	// maxEffort bounds the memory that a shard needs for its candidates.
	maxEffort = 100_000
	// maxExcluded is how many keys are left out inside the search. More are dropped after it, and
	// as many more rows are fetched.
	maxExcluded = 65_536
)

// clause is a query of OpenSearch's language.
type clause = map[string]any

// where returns a clause that a row with these tags matches.
func where(f *remote.Filter) clause {
	switch f.Op {
	case remote.Not:
		return clause{"bool": clause{"must_not": []clause{where(f.Args[0])}}}
	case remote.And:
		all := make([]clause, len(f.Args))
		for i, a := range f.Args {
			all[i] = where(a)
		}
		return clause{"bool": clause{"filter": all}}
	case remote.Or: // its tags in one clause, as there may be at most 1,024 of them
		var tags []string
		any := []clause{}
		for _, a := range f.Args {
			if a.Op == "" && a.Span == nil {
				tags = append(tags, a.Tag)
			} else {
				any = append(any, where(a))
			}
		}
		if len(tags) > 0 {
			any = append(any, clause{"terms": clause{"tags": tags}})
		}
		return clause{"bool": clause{"should": any, "minimum_should_match": 1}}
	}
	if f.Span != nil {
		return clause{"range": clause{"tags": clause{"gte": f.Span.From, "lt": f.Span.To}}}
	}
	return clause{"term": clause{"tags": clause{"value": f.Tag}}}
}

// rowsWhere returns a clause for the rows that match a filter and are not of these ids. A nil
// filter matches all rows.
func rowsWhere(f *remote.Filter, without []string) clause {
	b := clause{"must_not": []clause{{"ids": clause{"values": append(without, describing)}}}}
	if f != nil {
		b["filter"] = []clause{where(f)}
	}
	return clause{"bool": b}
}

// withoutPayload leaves out what a search does not return.
var withoutPayload = clause{"excludes": []string{"payload"}}

// A searched is the answer to one search.
type searched struct {
	ScrollID string `json:"_scroll_id"`
	TimedOut bool   `json:"timed_out"`
	Shards   shards `json:"_shards"`
	Hits     struct {
		Total struct {
			Value int `json:"value"`
		} `json:"total"`
		Hits []document `json:"hits"`
	} `json:"hits"`
	Status int    `json:"status"`
	Error  *cause `json:"error"`
}

// Search implements remote.Engine.
func (e *Engine) Search(ctx context.Context, in remote.Name, q *remote.Query) (remote.Answer, error) {
	p, l, err := e.find(ctx, in)
	if err != nil {
		return remote.Answer{}, err
	}
	for _, v := range q.Vectors {
		if len(v) != l.dim {
			return remote.Answer{}, fmt.Errorf("opensearch: search %s: %w: a query vector has %d values, want %d", p.index, flashdb.ErrDim, len(v), l.dim)
		}
	}
	pushed := q.Exclude[:min(len(q.Exclude), maxExcluded)]
	dropped := map[string]bool{}
	for _, key := range q.Exclude[len(pushed):] {
		dropped[key] = true
	}
	size := min(q.N+len(dropped), maxWindow)
	var answer struct {
		Responses []searched `json:"responses"`
	}
	r := request{
		what: "search " + p.index, method: http.MethodPost, path: "/" + p.index + "/_msearch", lines: true,
		body: l.searches(q, pushed, size),
	}
	if err := e.client.do(ctx, &r, &answer); err != nil {
		return remote.Answer{}, e.forget(in, err)
	}
	if len(answer.Responses) != len(q.Vectors) {
		return remote.Answer{}, fmt.Errorf("opensearch: %s: %d answers to %d vectors", r.what, len(answer.Responses), len(q.Vectors))
	}
	a := remote.Answer{Rows: make([][]remote.Row, len(q.Vectors))}
	for i := range answer.Responses {
		s := &answer.Responses[i]
		if s.Error != nil {
			return remote.Answer{}, e.forget(in, fmt.Errorf("opensearch: %s: %w", r.what, s.Error.as(s.Status)))
		}
		if a.Missing == "" {
			a.Missing = s.missing()
		}
		for j := range s.Hits.Hits {
			d := &s.Hits.Hits[j]
			if dropped[d.Source.Key] || len(a.Rows[i]) == q.N {
				continue
			}
			row, err := d.row(l.dim)
			if err != nil {
				return remote.Answer{}, err
			}
			a.Rows[i] = append(a.Rows[i], row)
		}
	}
	if a.Missing != "" { // shards also fail while their index is deleted
		if _, err := e.look(ctx, &p); errors.Is(err, flashdb.ErrNotFound) {
			return remote.Answer{}, e.forget(in, err)
		}
	}
	return a, nil
}

// missing says in words what part of the rows was not searched.
func (s *searched) missing() string {
	if s.TimedOut {
		return "the search ran out of time"
	}
	return s.Shards.missing()
}

// searches returns the body of an _msearch for all vectors of a query.
func (l *layout) searches(q *remote.Query, without []string, size int) (body []byte) {
	ids := make([]string, len(without))
	for i, key := range without {
		ids[i] = idOf(key)
	}
	filter := encoded(rowsWhere(q.Filter, ids))
	effort := encoded(max(q.Effort, size, 1))
	if q.Effort > maxEffort {
		effort = encoded(maxEffort)
	}
	for _, v := range q.Vectors {
		body = append(body, "{}\n"...)
		body = append(append(body, `{"track_total_hits":false,"_source":{"excludes":["payload"]},"size":`...), encoded(size)...)
		if q.Exact || size > maxK {
			body = append(append(body, `,"query":{"script_score":{"query":`...), filter...)
			body = l.appendVector(append(body, `,"script":{"lang":"knn","source":"knn_score","params":{"field":"vector","space_type":"l2","query_value":`...), v)
			body = append(body, "}}}}}\n"...)
			continue
		}
		body = l.appendVector(append(body, `,"query":{"knn":{"vector":{"vector":`...), v)
		body = append(append(body, `,"k":`...), encoded(size)...)
		body = append(append(body, `,"method_parameters":{"ef_search":`...), effort...)
		body = append(append(body, `},"filter":`...), filter...)
		body = append(body, "}}}}\n"...)
	}
	return body
}
