package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

// An Engine holds versions of collections in an OpenSearch cluster. It implements remote.Engine.
type Engine struct {
	client *client
	config Config
	known  sync.Map // layout by remote.Name
}

// New returns an engine for a cluster. It connects with the first call.
func New(c Config) (*Engine, error) {
	cl, err := newClient(&c)
	if err != nil {
		return nil, err
	}
	return &Engine{client: cl, config: c}, nil
}

// Close implements remote.Engine.
func (e *Engine) Close() error {
	e.client.close()
	return nil
}

// format is the version of the mapping below. An index of another one is not ours.
const format = 1

// maxDim is how many values a vector of the Lucene engine may have.
const maxDim = 16_000

// maxWindow is the index.max_result_window of our indexes.
const maxWindow = 1 << 20

// A layout is what the mapping of a version tells.
type layout struct {
	dim      int // of the stored vectors
	exponent int // they are indexed times 2^exponent
}

// target is the power of two that a version's rows are at least as long as in the index.
const target = 10

// exponentFor returns the exponent for rows of a length.
func exponentFor(norm float32) int {
	if norm == 0 {
		return 0
	}
	_, exponent := math.Frexp(float64(norm)) // norm is .5 to 1 times 2^exponent
	return target + 1 - exponent
}

// mapping is a mapping as OpenSearch takes and returns it.
type mapping struct {
	Meta struct {
		Flashdb struct {
			Format   int `json:"format"`
			Exponent int `json:"exponent"`
		} `json:"flashdb"`
	} `json:"_meta"`
	Dynamic    string           `json:"dynamic"`
	Source     map[string]any   `json:"_source"`
	Properties map[string]field `json:"properties"`
}

type field struct {
	Type      string         `json:"type"`
	Dimension int            `json:"dimension,omitempty"`
	Method    map[string]any `json:"method,omitempty"`
	Index     *bool          `json:"index,omitempty"`
	DocValues *bool          `json:"doc_values,omitempty"`
}

// newMapping returns the mapping of a new version.
func newMapping(v *remote.Version, c *Config) mapping {
	var m mapping
	m.Meta.Flashdb.Format, m.Meta.Flashdb.Exponent = format, exponentFor(v.Norm)
	m.Dynamic = "strict"
	m.Source = map[string]any{"excludes": []string{"vector"}}
	method := map[string]int{"m": c.M, "ef_construction": c.EfConstruction}
	if c.M == 0 {
		method["m"] = 16
	}
	if c.EfConstruction == 0 {
		method["ef_construction"] = 128
	}
	no := false
	m.Properties = map[string]field{
		"key":     {Type: "keyword", Index: &no, DocValues: &no},
		"sum":     {Type: "long", Index: &no, DocValues: &no},
		"tags":    {Type: "keyword", DocValues: &no},
		"payload": {Type: "binary"},
		"raw":     {Type: "binary"},
		"version": {Type: "binary"},
		"vector": {Type: "knn_vector", Dimension: v.Dim + 1, Method: map[string]any{
			"name": "hnsw", "engine": "lucene", "space_type": "l2", "parameters": method,
		}},
	}
	return m
}

// layout checks that a mapping is one of ours.
func (m *mapping) layout() (layout, error) {
	if m.Meta.Flashdb.Format != format {
		return layout{}, fmt.Errorf("%w: its mapping has no mark of flashdb's format %d", remote.ErrForeign, format)
	}
	vector := m.Properties["vector"]
	for name, typ := range map[string]string{"key": "keyword", "sum": "long", "tags": "keyword", "payload": "binary", "raw": "binary", "version": "binary", "vector": "knn_vector"} {
		if m.Properties[name].Type != typ {
			return layout{}, fmt.Errorf("%w: its field %s has type %q, want %q", remote.ErrForeign, name, m.Properties[name].Type, typ)
		}
	}
	if vector.Dimension < 2 || vector.Method["engine"] != "lucene" || vector.Method["space_type"] != "l2" {
		return layout{}, fmt.Errorf("%w: its vectors have %d dimensions, engine %v and space %v", remote.ErrForeign, vector.Dimension, vector.Method["engine"], vector.Method["space_type"])
	}
	return layout{dim: vector.Dimension, exponent: m.Meta.Flashdb.Exponent}, nil
}

// look reads the mapping of a version.
func (e *Engine) look(ctx context.Context, p *place) (layout, error) {
	what := "read the mapping of " + p.index
	var answer map[string]struct {
		Mappings mapping `json:"mappings"`
	}
	err := e.client.do(ctx, &request{what: what, method: http.MethodGet, path: "/" + p.index + "/_mapping"}, &answer)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return layout{}, fmt.Errorf("opensearch: index %s: %w: %w", p.index, remote.ErrForeign, err)
	}
	if err != nil {
		return layout{}, err
	}
	found, ok := answer[p.index]
	if !ok {
		return layout{}, fmt.Errorf("opensearch: %s: %w: the name is an alias", what, remote.ErrForeign)
	}
	l, err := found.Mappings.layout()
	if err != nil {
		return layout{}, fmt.Errorf("opensearch: index %s: %w", p.index, err)
	}
	return l, nil
}

// find returns the names and the layout of a version. It asks the cluster once.
func (e *Engine) find(ctx context.Context, n remote.Name) (place, layout, error) {
	p, err := placeOf(n)
	if err != nil {
		return p, layout{}, err
	}
	if l, ok := e.known.Load(n); ok {
		return p, l.(layout), nil
	}
	l, err := e.look(ctx, &p)
	if err != nil {
		return p, l, gone(err, n)
	}
	e.known.Store(n, l)
	return p, l, nil
}

// forget is called with the error of a call on a version. It forgets a version that is not there.
func (e *Engine) forget(n remote.Name, err error) error {
	if errors.Is(err, flashdb.ErrNotFound) {
		e.known.Delete(n)
	}
	return gone(err, n)
}

// gone adds to flashdb.ErrNotFound which version it is.
func gone(err error, n remote.Name) error {
	if errors.Is(err, flashdb.ErrNotFound) {
		return fmt.Errorf("version %s of collection %q: %w", n.Version, n.Collection, err)
	}
	return err
}

// encoded returns v as JSON. The types of this package always can be.
func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("opensearch: encode %T: %v", v, err))
	}
	return b
}
