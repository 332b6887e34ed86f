package browse

import (
	"net/http"

	"github.com/flashdb/flashdb"
)

// writes refuses a call where the page may only look.
func (s *Server) writes(call func(*http.Request) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		if !s.opts.Write {
			return nil, &requestError{http.StatusForbidden, "this page only looks: start it with --write to change links"}
		}
		return call(r)
	}
}

// A pair is a link that the page stores or forgets.
type pair struct {
	Collection string `json:"c"`
	Key        string `json:"key"`
	To         string `json:"to"`
	Target     string `json:"target"`
	Relation   string `json:"relation"`
}

// pairOf reads a pair: the collection to call, and the edge.
func (s *Server) pairOf(r *http.Request) (Collection, flashdb.Edge, error) {
	var p pair
	if err := readBody(r, &p); err != nil {
		return nil, flashdb.Edge{}, err
	}
	if p.To == "" {
		p.To = p.Collection
	}
	var err error
	e := flashdb.Edge{Relation: p.Relation}
	if p.To != p.Collection {
		e.SourceCollection = p.Collection
	}
	if e.Source, err = decodeKey(p.Key); err != nil {
		return nil, e, err
	}
	if e.Target, err = decodeKey(p.Target); err != nil {
		return nil, e, err
	}
	if e.Source == "" || e.Target == "" || p.To == "" {
		return nil, e, badRequest("a link needs c, key and target")
	}
	c, err := s.db.Collection(r.Context(), p.To)
	return c, e, err
}

// link stores a link.
func (s *Server) link(r *http.Request) (any, error) {
	c, e, err := s.pairOf(r)
	if err != nil {
		return nil, err
	}
	return map[string]bool{"linked": true}, c.Link(r.Context(), e)
}

// unlink forgets a link. One that is not stored is no error: it is not there afterwards.
func (s *Server) unlink(r *http.Request) (any, error) {
	c, e, err := s.pairOf(r)
	if err != nil {
		return nil, err
	}
	n, err := c.Unlink(r.Context(), e)
	return map[string]int{"unlinked": n}, err
}
