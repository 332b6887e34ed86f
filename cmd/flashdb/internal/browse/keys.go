package browse

import (
	"context"
	"net/http"
	"strings"
	"time"
)

const (
	maxKeys    = 50   // found by one call
	keysAtOnce = 4096 // read from the database in one step
	// searchTime bounds one call that looks for keys which hold a text. The page goes on from where
	// it ended.
	searchTime = 150 * time.Millisecond
)

// foundKeys is the answer to a search for keys.
type foundKeys struct {
	Keys []ref `json:"keys"`
	// Next is the row that a further call begins with, or 0 when all rows were looked at, or none
	// had to be: keys that begin with the text were enough.
	Next uint32 `json:"next,omitempty"`
}

// keys finds keys: without a text the first ones, with a text those that begin with it and then
// those that hold it. With from it goes on to look from that row.
func (s *Server) keys(r *http.Request) (any, error) {
	p := parametersOf(r)
	name, text := p.needed("c"), p.text("q")
	most := p.count("n", 20, 1, maxKeys)
	from := p.count("from", 0, 0, 1<<32-1)
	if p.err != nil {
		return nil, p.err
	}
	if len(text) > 1024 {
		return nil, badRequest("no key is longer than 1024 bytes; the text has %d", len(text))
	}
	c, err := s.db.Collection(r.Context(), name)
	if err != nil {
		return nil, err
	}
	begin, err := decodeKey(text)
	if err != nil {
		begin = text // on its way to be one
	}
	var found foundKeys
	seen := map[string]bool{}
	add := func(keys ...string) {
		for _, key := range keys {
			if len(found.Keys) < most && !seen[key] {
				seen[key] = true
				found.Keys = append(found.Keys, refTo(key))
			}
		}
	}
	if begin != "" && from == 0 {
		keys, err := c.KeysWithPrefix(r.Context(), begin, most)
		if err != nil {
			return nil, err
		}
		add(keys...)
	}
	if len(found.Keys) < most {
		holds := strings.ToLower(text)
		found.Next, err = rowsUntil(r.Context(), c, uint32(from), func(key string) bool {
			lower := strings.ToLower(key)
			if strings.Contains(lower, holds) && (holds == "" || !strings.HasPrefix(key, begin)) {
				add(key)
			}
			return len(found.Keys) < most
		})
	}
	if found.Keys == nil {
		found.Keys = []ref{}
	}
	return found, err
}

// rowsUntil yields the keys of the rows from one on, until yield returns false or searchTime is
// over. It returns the row to go on with, or 0 at the end.
func rowsUntil(ctx context.Context, c Collection, from uint32, yield func(key string) bool) (next uint32, err error) {
	end := time.Now().Add(searchTime)
	step := 64 // of a search without a text, which ends at once
	for {
		keys, err := c.RowKeys(ctx, from, step)
		if err != nil {
			return 0, err
		}
		for _, key := range keys {
			from++
			if key != "" && !yield(key) {
				return from, nil
			}
		}
		if len(keys) < step {
			return 0, nil
		}
		if !time.Now().Before(end) {
			return from, nil
		}
		step = keysAtOnce
	}
}
