package opensearch

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/flashdb/flashdb/remote"
)

const (
	// keepAlive is how long a scan may rest between two pages.
	keepAlive = "10m"
	// pageBytes is about how many bytes a page of a scan has.
	pageBytes = 4 << 20
)

// pageRows is how many rows of a layout a page has.
func (l *layout) pageRows() int {
	const others = 256 // bytes of a row beside its vector
	return max(10, min(10_000, pageBytes/(l.dim*16/3+others)))
}

// Scan implements remote.Engine. It sees the rows as they were when it began.
func (e *Engine) Scan(ctx context.Context, in remote.Name, f *remote.Filter, fn func([]remote.Row) error) error {
	p, l, err := e.find(ctx, in)
	if err != nil {
		return err
	}
	what := "scan " + p.index
	r := request{
		what: what, method: http.MethodPost, path: "/" + p.index + "/_search?allow_partial_search_results=false&scroll=" + keepAlive,
		body: encoded(clause{"size": l.pageRows(), "sort": []string{"_doc"}, "track_total_hits": true, "_source": withoutPayload, "query": rowsWhere(f, nil)}),
	}
	var page searched
	if err := e.client.do(ctx, &r, &page); err != nil {
		return e.forget(in, err)
	}
	defer func() { e.endScroll(ctx, page.ScrollID) }()
	total, seen := page.Hits.Total.Value, 0
	rows := make([]remote.Row, 0, len(page.Hits.Hits))
	for len(page.Hits.Hits) > 0 {
		if missing := page.missing(); missing != "" {
			return fmt.Errorf("opensearch: %s: %w: %s", what, remote.ErrUnavailable, missing)
		}
		rows = rows[:0]
		for i := range page.Hits.Hits {
			row, err := page.Hits.Hits[i].row(l.dim)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		seen += len(rows)
		if err := fn(rows); err != nil {
			return err
		}
		scroll := page.ScrollID
		page = searched{ScrollID: scroll}
		r := request{what: what, method: http.MethodPost, path: "/_search/scroll", body: encoded(clause{"scroll": keepAlive, "scroll_id": scroll})}
		if err := e.client.do(ctx, &r, &page); err != nil {
			return e.forget(in, err)
		}
	}
	if missing := page.missing(); missing != "" || seen != total {
		return fmt.Errorf("opensearch: %s: %w: %d of %d rows came: %s", what, remote.ErrUnavailable, seen, total, missing)
	}
	return nil
}

// endScroll frees what the nodes keep for a scan. If it fails, they do so after a while.
func (e *Engine) endScroll(ctx context.Context, id string) {
	if id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = e.client.do(ctx, &request{what: "end scan", method: http.MethodDelete, path: "/_search/scroll", body: encoded(clause{"scroll_id": []string{id}})}, nil)
}

// Count implements remote.Engine.
func (e *Engine) Count(ctx context.Context, in remote.Name) (int, error) {
	p, _, err := e.find(ctx, in)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Count  int    `json:"count"`
		Shards shards `json:"_shards"`
	}
	what := "count rows of " + p.index
	r := request{what: what, method: http.MethodPost, path: "/" + p.index + "/_count", body: encoded(clause{"query": rowsWhere(nil, nil)})}
	if err := e.client.do(ctx, &r, &answer); err != nil {
		return 0, e.forget(in, err)
	}
	return answer.Count, answer.Shards.whole(what)
}
