package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/flashdb/flashdb"
)

// A shop answers the requests. It is safe for concurrent use: all state is in the database.
type shop struct {
	db           *flashdb.DB
	users, items *flashdb.Collection
}

func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items", answer(s.recommendItems))
	mux.HandleFunc("GET /friends", answer(s.recommendFriends))
	mux.HandleFunc("PUT /users/{key}", answer(func(r *http.Request) (any, error) { return s.put(r, s.users) }))
	mux.HandleFunc("PUT /items/{key}", answer(func(r *http.Request) (any, error) { return s.put(r, s.items) }))
	mux.HandleFunc("DELETE /items/{key}", answer(s.deleteItem))
	mux.HandleFunc("PUT /likes/{user}/{item}", answer(s.like))
	mux.HandleFunc("PUT /friends/{user}/{friend}", answer(s.befriend))
	return mux
}

// A recommendation is one line of an answer.
type recommendation struct {
	Key         string  `json:"key"`
	Probability float32 `json:"probability"`
}

// recommendItems scores items against a user, who is a node of another collection. What the user
// likes is left out: likes are links.
func (s *shop) recommendItems(r *http.Request) (any, error) {
	k, err := number(r, "k", 10)
	if err != nil {
		return nil, err
	}
	res, err := s.items.Predict(r.Context(), r.FormValue("user"), k, &flashdb.PredictOptions{SourceCollection: s.users.Name()})
	return recommendations(res), err
}

// recommendFriends scores users against a user of the same collection: friends are links, and left
// out without being asked.
func (s *shop) recommendFriends(r *http.Request) (any, error) {
	k, err := number(r, "k", 10)
	if err != nil {
		return nil, err
	}
	res, err := s.users.Predict(r.Context(), r.FormValue("user"), k, nil)
	return recommendations(res), err
}

func recommendations(res flashdb.Result) []recommendation {
	list := make([]recommendation, len(res.Hits))
	for i, h := range res.Hits {
		list[i] = recommendation{h.Key, h.Probability}
	}
	return list
}

// put stores a user or an item that came after training. The body is a JSON array: the items the
// user likes, or the users who like the item. The encoder makes an embedding of them, and node and
// likes are stored in one write. The next request finds them, without a rebuild.
func (s *shop) put(r *http.Request, c *flashdb.Collection) (any, error) {
	var likes flashdb.EmbedLinks
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<16)).Decode(&likes.To); err != nil {
		return nil, fmt.Errorf("%w: the body must be an array of keys: %w", flashdb.ErrInvalid, err)
	}
	key := r.PathValue("key")
	embedding, err := c.Embed(r.Context(), likes, nil)
	if err != nil {
		return nil, err
	}
	_, use, err := c.Encoder(r.Context())
	if err != nil {
		return nil, err
	}
	var b flashdb.Batch
	b.Upsert(c.Name(), flashdb.Node{Key: key, Embedding: embedding})
	through, edges := use.Edges(c.Name(), key, likes)
	b.Link(through, edges...)
	return nil, s.db.Apply(r.Context(), &b)
}

// deleteItem forgets an item: once it has answered, no request recommends it.
func (s *shop) deleteItem(r *http.Request) (any, error) {
	_, err := s.items.Delete(r.Context(), r.PathValue("key"))
	return nil, err
}

// like remembers that a user likes an item, as a link from the one to the other.
func (s *shop) like(r *http.Request) (any, error) {
	return nil, s.items.Link(r.Context(), flashdb.Edge{
		SourceCollection: s.users.Name(), Source: r.PathValue("user"), Target: r.PathValue("item"),
	})
}

func (s *shop) befriend(r *http.Request) (any, error) {
	a, b := r.PathValue("user"), r.PathValue("friend")
	return nil, s.users.Link(r.Context(), flashdb.Edge{Source: a, Target: b}, flashdb.Edge{Source: b, Target: a})
}

func number(r *http.Request, name string, otherwise int) (int, error) {
	text := r.FormValue(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%w: %s is no number", flashdb.ErrInvalid, name)
	}
	return n, nil
}

// answer makes a handler of fn, which returns what to send as JSON.
func answer(fn func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := fn(r)
		if err != nil {
			http.Error(w, err.Error(), status(err))
			return
		}
		if body == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body) // fails when the client has gone
	}
}

func status(err error) int {
	switch {
	case errors.Is(err, flashdb.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, flashdb.ErrInvalid), errors.Is(err, flashdb.ErrDim):
		return http.StatusBadRequest
	case errors.Is(err, flashdb.ErrReadOnly), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
