package browse

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

const (
	maxK     = 200 // hits of one query
	defaultK = 20
)

// parameters are the values of an address. The first fault is kept in err.
type parameters struct {
	values url.Values
	err    error
}

func parametersOf(r *http.Request) *parameters {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		err = badRequest("the address cannot be read: %v", err)
	}
	return &parameters{values, err}
}

func (p *parameters) fail(format string, args ...any) {
	if p.err == nil {
		p.err = badRequest(format, args...)
	}
}

func (p *parameters) text(name string) string { return p.values.Get(name) }

// needed returns a value that must not be empty.
func (p *parameters) needed(name string) string {
	v := p.values.Get(name)
	if v == "" {
		p.fail("%s is missing in the address", name)
	}
	return v
}

// key returns a key that must be there.
func (p *parameters) key(name string) string {
	key, err := decodeKey(p.needed(name))
	if err != nil && p.err == nil {
		p.err = err
	}
	return key
}

// flag returns whether a value is 1.
func (p *parameters) flag(name string) bool {
	switch v := p.values.Get(name); v {
	case "", "0":
		return false
	case "1":
		return true
	default:
		p.fail("%s is %q: want 1, or 0", name, show.Clip(v, 40))
		return false
	}
}

// count returns a whole number between least and most, or without a value what is usual.
func (p *parameters) count(name string, usual, least, most int) int {
	v := p.values.Get(name)
	if v == "" {
		return usual
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		p.fail("%s is %q: want a whole number from %d to %d", name, show.Clip(v, 40), least, most)
		return usual
	}
	return n
}

// share returns a number above 0 and at most 1, or 0 without a value.
func (p *parameters) share(name string) float64 {
	v := p.values.Get(name)
	if v == "" {
		return 0
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f > 0 && f <= 1) {
		p.fail("%s is %q: want a number above 0 and at most 1, such as 0.95", name, show.Clip(v, 40))
		return 0
	}
	return f
}

// limit returns a cap, such as brand=2 or, of tags, tag=2; nil without a value.
func (p *parameters) limit(name string) *flashdb.Cap {
	v := p.values.Get(name)
	if v == "" {
		return nil
	}
	at := strings.LastIndexByte(v, '=')
	most, err := strconv.Atoi(strings.TrimSpace(v[at+1:]))
	of := strings.TrimSpace(v[:max(at, 0)])
	if err != nil || most < 1 || of == "" {
		p.fail("at most %s: want a name and how many hits of each of its values, such as brand=2, or tag=2 for tags", show.Clip(v, 40))
		return nil
	}
	if of == "tag" {
		of = ""
	}
	return &flashdb.Cap{Attribute: of, Most: most}
}

// A question is what every question about a node says: the node, and the collection whose nodes are
// found for it.
type question struct {
	from, to Collection
	key      string
	params   *parameters
}

// sourceCollection is what the options of a query call the collection of the source.
func (q question) sourceCollection() string {
	if q.from.Name() == q.to.Name() {
		return ""
	}
	return q.from.Name()
}

// questionOf reads a question: c, key, and to, which is c where it is empty.
func (s *Server) questionOf(r *http.Request) (q question, err error) {
	p := parametersOf(r)
	from, to := p.needed("c"), p.text("to")
	q.key, q.params = p.key("key"), p
	if p.err != nil {
		return q, p.err
	}
	if q.from, err = s.db.Collection(r.Context(), from); err != nil {
		return q, err
	}
	q.to = q.from
	if to != "" && to != from {
		q.to, err = s.db.Collection(r.Context(), to)
	}
	return q, err
}
