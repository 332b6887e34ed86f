package opensearch

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

// A document is a row, or the description of a version, as OpenSearch returns it.
type document struct {
	Index  string `json:"_index"`
	Found  bool   `json:"found"`
	Error  *cause `json:"error"`
	Source source `json:"_source"`
}

type source struct {
	Key     string   `json:"key"`
	Sum     uint32   `json:"sum"`
	Tags    []string `json:"tags"`
	Payload []byte   `json:"payload"`
	Raw     []byte   `json:"raw"`
	Version []byte   `json:"version"`
}

// row returns a document as a row with a vector of dim values.
func (d *document) row(dim int) (remote.Row, error) {
	s := &d.Source
	if s.Key == "" || len(s.Raw) != 4*dim {
		return remote.Row{}, fmt.Errorf("opensearch: index %s: row %q: %w: it has %d bytes of vector, want %d", d.Index, s.Key, remote.ErrForeign, len(s.Raw), 4*dim)
	}
	vector := make([]float32, dim)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(s.Raw[4*i:]))
	}
	return remote.Row{Key: s.Key, Vector: vector, Tags: s.Tags, Payload: s.Payload, Sum: s.Sum}, nil
}

// appendRow appends a row as JSON.
func (l *layout) appendRow(b []byte, r *remote.Row) []byte {
	b = append(append(b, `{"key":`...), encoded(r.Key)...)
	b = strconv.AppendUint(append(b, `,"sum":`...), uint64(r.Sum), 10)
	if len(r.Tags) > 0 {
		b = append(append(b, `,"tags":`...), encoded(r.Tags)...)
	}
	if len(r.Payload) > 0 {
		b = base64.StdEncoding.AppendEncode(append(b, `,"payload":"`...), r.Payload)
		b = append(b, '"')
	}
	raw := make([]byte, 0, 4*len(r.Vector))
	for _, x := range r.Vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	b = base64.StdEncoding.AppendEncode(append(b, `,"raw":"`...), raw)
	b = l.appendVector(append(b, `","vector":`...), r.Vector)
	return append(b, '}')
}

// appendVector appends a vector as it is indexed. A value that is much too large for the version is
// cut, so that no distance overflows.
func (l *layout) appendVector(b []byte, v []float32) []byte {
	const most = 1e16
	for i, x := range v {
		c := byte(',')
		if i == 0 {
			c = '['
		}
		scaled := max(-most, min(most, math.Ldexp(float64(x), l.exponent)))
		b = strconv.AppendFloat(append(b, c), scaled, 'g', -1, 32)
	}
	return append(b, ']')
}

// bulkBytes is about how large a request with rows becomes.
const bulkBytes = 8 << 20

// Put implements remote.Engine.
func (e *Engine) Put(ctx context.Context, in remote.Name, rows []remote.Row) error {
	if len(rows) == 0 {
		return nil
	}
	p, l, err := e.find(ctx, in)
	if err != nil {
		return err
	}
	for i := range rows {
		if len(rows[i].Vector) != l.dim {
			return fmt.Errorf("opensearch: row %q: %w: its vector has %d values, want %d", rows[i].Key, flashdb.ErrDim, len(rows[i].Vector), l.dim)
		}
	}
	var body []byte
	from := 0
	for i := range rows {
		body = append(append(body, `{"index":{"_id":`...), encoded(idOf(rows[i].Key))...)
		body = l.appendRow(append(body, "}}\n"...), &rows[i])
		body = append(body, '\n')
		if len(body) < bulkBytes && i+1 < len(rows) {
			continue
		}
		part := rows[from : i+1]
		if _, err := e.bulk(ctx, &p, body, func(i int) string { return part[i].Key }); err != nil {
			return e.forget(in, err)
		}
		body, from = body[:0], i+1
	}
	return nil
}

// bulk sends operations on rows. It returns how many rows were deleted. key returns the key of the
// row of an operation.
func (e *Engine) bulk(ctx context.Context, p *place, body []byte, key func(i int) string) (deleted int, _ error) {
	var answer struct {
		Items []map[string]struct {
			Result string `json:"result"`
			Status int    `json:"status"`
			Error  *cause `json:"error"`
		} `json:"items"`
	}
	what := "write to " + p.index
	r := request{what: what, method: http.MethodPost, path: "/" + p.write + "/_bulk?require_alias=true", body: body, lines: true}
	if err := e.client.do(ctx, &r, &answer); err != nil {
		return 0, err
	}
	if n := bytes.Count(body, []byte(`":{"_id":`)); len(answer.Items) > n { // a key may hold that text, so n is no less
		return 0, fmt.Errorf("opensearch: %s: %d answers to at most %d operations", what, len(answer.Items), n)
	}
	failures, said := 0, error(nil)
	for i, item := range answer.Items {
		for _, done := range item {
			switch {
			case done.Error != nil:
				if failures++; said == nil {
					said = fmt.Errorf("row %q: %w", key(i), done.Error.as(done.Status))
				}
			case done.Result == "deleted":
				deleted++
			}
		}
	}
	if said != nil {
		return 0, fmt.Errorf("opensearch: %s: %d of %d rows failed, the first: %w", what, failures, len(answer.Items), said)
	}
	return deleted, nil
}

// someKeys is how many keys are in one request.
const someKeys = 1000

// Delete implements remote.Engine.
func (e *Engine) Delete(ctx context.Context, in remote.Name, keys []string) (deleted int, _ error) {
	p, _, err := e.find(ctx, in)
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(keys, someKeys) {
		var body []byte
		for _, key := range some {
			body = append(append(body, `{"delete":{"_id":`...), encoded(idOf(key))...)
			body = append(body, "}}\n"...)
		}
		n, err := e.bulk(ctx, &p, body, func(i int) string { return some[i] })
		if err != nil {
			return deleted, e.forget(in, err)
		}
		deleted += n
	}
	return deleted, nil
}

// Get implements remote.Engine. It reads in real time, from any copy of a shard that has
// acknowledged the last write.
func (e *Engine) Get(ctx context.Context, in remote.Name, keys []string) (rows []remote.Row, _ error) {
	p, l, err := e.find(ctx, in)
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(keys, someKeys) {
		ids := make([]string, len(some))
		for i, key := range some {
			ids[i] = idOf(key)
		}
		docs, err := e.get(ctx, "read rows of "+p.index, p.index, ids)
		if err != nil {
			return nil, e.forget(in, err)
		}
		for i := range docs {
			if !docs[i].Found {
				continue
			}
			r, err := docs[i].row(l.dim)
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// get returns the documents of these ids, in their order. Of those that are not there Found is
// false.
func (e *Engine) get(ctx context.Context, what, index string, ids []string) ([]document, error) {
	var answer struct {
		Docs []document `json:"docs"`
	}
	r := request{what: what, method: http.MethodPost, path: "/" + index + "/_mget", body: encoded(map[string]any{"ids": ids})}
	if err := e.client.do(ctx, &r, &answer); err != nil {
		return nil, err
	}
	if len(answer.Docs) != len(ids) {
		return nil, fmt.Errorf("opensearch: %s: %d documents came back for %d ids", what, len(answer.Docs), len(ids))
	}
	for i := range answer.Docs {
		if failure := answer.Docs[i].Error; failure != nil {
			return nil, fmt.Errorf("opensearch: %s: %w", what, failure.as(http.StatusInternalServerError))
		}
	}
	return answer.Docs, nil
}
