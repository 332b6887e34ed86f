package browse

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/internal/attr"
)

const (
	maxPayload = 64 << 10 // bytes of a payload that the page shows
	maxHex     = 512      // bytes of one that is no text
	maxLinks   = 200      // known links that the page lists
)

// nodeAnswer is what there is to know of one node.
type nodeAnswer struct {
	ref
	Tags       []string     `json:"tags"`
	Attributes []attribute  `json:"attributes"`
	Payload    payloadShown `json:"payload"`
	Dim        int          `json:"dim"`
	Norm       number       `json:"norm"`
}

// An attribute is a name with a value, as text.
type attribute struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// attributesOf returns attributes by name.
func attributesOf(all flashdb.Attributes) []attribute {
	out := make([]attribute, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, attribute{show.Text(name), attributeText(all[name])})
	}
	return out
}

// attributeText returns the value of an attribute as text. A time at midnight is a day.
func attributeText(value any) string {
	v, err := attr.Of(value)
	if err != nil {
		return show.Text(fmt.Sprint(value))
	}
	return show.Text(v.String())
}

// node answers with a node: c and key.
func (s *Server) node(r *http.Request) (any, error) {
	q, err := s.questionOf(r)
	if err != nil {
		return nil, err
	}
	n, err := q.from.Get(r.Context(), q.key)
	if err != nil {
		return nil, err
	}
	sum := 0.0
	for _, x := range n.Embedding {
		sum += float64(x) * float64(x)
	}
	return nodeAnswer{refTo(n.Key), shown(n.Tags), attributesOf(n.Attributes), showPayload(n.Payload), len(n.Embedding), number(math.Sqrt(sum))}, nil
}

// A payloadShown is a payload as text, and what it was.
type payloadShown struct {
	Bytes int    `json:"bytes"`
	Kind  string `json:"kind"` // none, json, text or binary
	Text  string `json:"text"`
	Cut   bool   `json:"cut,omitempty"` // Text is its beginning
}

// showPayload returns JSON indented, text as it is, and of other bytes the first in hexadecimal.
func showPayload(b []byte) payloadShown {
	p := payloadShown{Bytes: len(b), Kind: "none"}
	if len(b) == 0 {
		return p
	}
	if len(b) <= maxPayload && json.Valid(b) {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, b, "", "  "); err == nil && utf8.Valid(b) {
			p.Kind, p.Text = "json", visible(pretty.String())
			p.Text, p.Cut = cut(p.Text, 4*maxPayload)
			return p
		}
	}
	if text, isCut := cut(string(b), maxPayload); utf8.ValidString(text) {
		p.Kind, p.Text, p.Cut = "text", visible(text), isCut
		return p
	}
	p.Kind, p.Cut = "binary", len(b) > maxHex
	p.Text = hex.Dump(b[:min(len(b), maxHex)])
	return p
}

// cut returns at most the first n bytes of s, without part of a character.
func cut(s string, n int) (text string, isCut bool) {
	if len(s) <= n {
		return s, false
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], true
}

// visible writes each character that cannot be seen, but for newlines and tabs, as Go quotes it: no
// text may change the order of what stands around it.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' || strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// A neighbour is a node that a source is known to be linked to. Probability is that of the decoder,
// where one was named.
type neighbour struct {
	ref
	Score       *number `json:"score,omitempty"`
	Probability *number `json:"probability,omitempty"`
}

// linksAnswer is the known links from a node.
type linksAnswer struct {
	Count int         `json:"count"`
	Links []neighbour `json:"links"` // the first ones
}

// links answers with the known links from a node: c, key, to, and relation. With a decoder it also
// scores them.
func (s *Server) links(r *http.Request) (any, error) {
	q, err := s.questionOf(r)
	if err != nil {
		return nil, err
	}
	score := flashdb.ScoreOptions{
		Decoder: q.params.text("decoder"), Relation: q.params.text("relation"), Reverse: q.params.flag("reverse"), SourceCollection: q.sourceCollection(),
	}
	if q.params.err != nil {
		return nil, q.params.err
	}
	keys, err := q.linked(r.Context(), score.Relation, score.Reverse)
	if err != nil {
		return nil, err
	}
	a := linksAnswer{Count: len(keys), Links: []neighbour{}}
	keys = keys[:min(len(keys), maxLinks)]
	if score.Decoder == "" || len(keys) == 0 {
		for _, key := range keys {
			a.Links = append(a.Links, neighbour{ref: refTo(key)})
		}
		return a, nil
	}
	hits, err := q.to.Score(r.Context(), q.key, keys, &score)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(hits, func(a, b flashdb.Hit) int { return cmp.Compare(b.Score, a.Score) })
	for _, h := range hits {
		score, probability := number(h.Score), number(h.Probability)
		a.Links = append(a.Links, neighbour{refTo(h.Key), &score, &probability})
	}
	return a, nil
}

// linked returns the known links from the node of a question. Those against the direction of a
// relation are asked for by their target.
func (q question) linked(ctx context.Context, relation string, reverse bool) ([]string, error) {
	if !reverse {
		return q.to.Linked(ctx, flashdb.Edge{SourceCollection: q.sourceCollection(), Source: q.key, Relation: relation})
	}
	if q.sourceCollection() != "" {
		return nil, nil // such links are kept with the other collection
	}
	return q.to.Linked(ctx, flashdb.Edge{Target: q.key, Relation: relation})
}

// A decoderAbout is what the page says of a decoder.
type decoderAbout struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	Relations []string `json:"relations,omitempty"`

	read time.Time
}

// A target is a collection whose nodes can be predicted for those of another one.
type target struct {
	Collection string         `json:"collection"`
	Decoders   []decoderAbout `json:"decoders"`
	// Sources are the collections whose nodes the decoders were calibrated with.
	Sources []string `json:"sources"`
	// Releases are those with embeddings and decoders of their own that are not live.
	Releases []releaseAbout `json:"releases"`
}

// collectionAnswer is what the controls offer for the nodes of one collection.
type collectionAnswer struct {
	Targets []target `json:"targets"` // the one to begin with first
	First   []ref    `json:"first"`   // some nodes to begin with
}

// collection answers with what can be asked of the nodes of a collection: c.
func (s *Server) collection(r *http.Request) (any, error) {
	p := parametersOf(r)
	name := p.needed("c")
	if p.err != nil {
		return nil, p.err
	}
	ctx := r.Context()
	c, err := s.db.Collection(ctx, name)
	if err != nil {
		return nil, err
	}
	a := collectionAnswer{Targets: []target{}, First: []ref{}}
	if _, err := rowsUntil(ctx, c, 0, func(key string) bool {
		a.First = append(a.First, refTo(key))
		return len(a.First) < 12
	}); err != nil {
		return nil, err
	}
	names, err := s.db.Collections(ctx)
	if err != nil {
		return nil, err
	}
	for _, other := range names {
		to, err := s.db.Collection(ctx, other)
		if errors.Is(err, flashdb.ErrNotFound) {
			continue // dropped meanwhile
		}
		if err != nil {
			return nil, err
		}
		if to.Schema().Dim != c.Schema().Dim {
			continue
		}
		t, err := s.targetIn(ctx, to)
		if err != nil {
			return nil, err
		}
		if len(t.Decoders) > 0 || other == name {
			a.Targets = append(a.Targets, t)
		}
	}
	if err := s.addReleases(ctx, a.Targets); err != nil {
		return nil, err
	}
	slices.SortStableFunc(a.Targets, func(x, y target) int { return rank(y, name) - rank(x, name) })
	return a, nil
}

// rank says how well a target suits the nodes of a collection.
func rank(t target, from string) (points int) {
	if slices.Contains(t.Sources, from) {
		points += 4
	}
	if len(t.Decoders) > 0 {
		points += 2
	}
	if t.Collection == from {
		points++
	}
	return points
}

// targetIn describes a collection as a target.
func (s *Server) targetIn(ctx context.Context, to Collection) (t target, err error) {
	t = target{Collection: to.Name(), Decoders: []decoderAbout{}, Sources: []string{}, Releases: []releaseAbout{}}
	calibrations, err := to.Calibrations(ctx)
	if err != nil {
		return t, err
	}
	for _, c := range calibrations {
		if !slices.Contains(t.Sources, c.SourceCollection) {
			t.Sources = append(t.Sources, c.SourceCollection)
		}
	}
	decoders, err := to.Decoders(ctx)
	if err != nil {
		return t, err
	}
	for _, name := range decoders {
		about, err := s.aboutDecoder(ctx, to, name)
		if errors.Is(err, flashdb.ErrNotFound) {
			continue // dropped meanwhile
		}
		if err != nil {
			return t, err
		}
		t.Decoders = append(t.Decoders, about)
	}
	return t, nil
}

// aboutKept is how long the description of a decoder is kept: to read it reads its weights, which
// may be large.
const aboutKept = 10 * time.Second

// aboutDecoder describes a decoder as it was at most aboutKept ago.
func (s *Server) aboutDecoder(ctx context.Context, c Collection, name string) (decoderAbout, error) {
	id := c.Name() + "\x00" + name
	s.mu.Lock()
	about, ok := s.kinds[id]
	s.mu.Unlock()
	if ok && time.Since(about.read) < aboutKept {
		return about, nil
	}
	d, err := c.Decoder(ctx, name)
	if err != nil {
		return decoderAbout{}, err
	}
	about = decoderAbout{name, d.String(), d.Spec().Relations, time.Now()}
	s.mu.Lock()
	s.kinds[id] = about
	s.mu.Unlock()
	return about, nil
}
