package browse

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

const (
	mapNodes  = 2000        // sampled at most
	mapValues = 1 << 19     // of the sample: fewer nodes where embeddings are wide
	mapBlock  = 20          // rows that are read side by side, as the rows of one block lie together
	mapTags   = 12          // tags that a map can be coloured by, the most frequent ones of the sample
	mapTime   = time.Minute // to make one, at most
	maxPlaced = maxK + 1    // nodes that are placed on a map at a time: a source and its hits
)

// A projection is a sample of a collection in two dimensions.
type projection struct {
	once sync.Once
	err  error

	plane  plane
	answer mapAnswer
}

// mapAnswer is a map. A point's Tags are places in the list of tags.
type mapAnswer struct {
	Points []placed `json:"points"`
	Tags   []string `json:"tags"` // the most frequent first
	Nodes  uint64   `json:"nodes"`
	Share  number   `json:"share"` // of the sample's variance that the two axes hold
	Millis number   `json:"ms"`    // to make it
}

// A placed is a node on a map.
type placed struct {
	ref
	X    number `json:"x"`
	Y    number `json:"y"`
	Tags []int  `json:"tags,omitempty"`
}

// drawMap answers with the map of a collection: c. It is made once, and with again once more.
func (s *Server) drawMap(r *http.Request) (any, error) {
	p := parametersOf(r)
	name, again := p.needed("c"), p.flag("again")
	if p.err != nil {
		return nil, p.err
	}
	m, err := s.mapOf(r.Context(), name, again)
	if err != nil {
		return nil, err
	}
	return m.answer, nil
}

// mapOf returns the map of a collection. Whoever asks first makes it, and the others wait. One that
// could not be made, or has no nodes as yet, is made again by the next to ask.
func (s *Server) mapOf(ctx context.Context, name string, again bool) (*projection, error) {
	c, err := s.db.Collection(ctx, name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	m, ok := s.maps[name]
	if !ok || again {
		m = &projection{}
		s.maps[name] = m
	}
	s.mu.Unlock()
	m.once.Do(func() {
		// It goes on when the page that asked first has gone: others may wait for it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mapTime)
		defer cancel()
		m.err = s.project(ctx, c, m)
	})
	if m.err != nil || len(m.answer.Points) == 0 {
		s.mu.Lock()
		if s.maps[name] == m {
			delete(s.maps, name)
		}
		s.mu.Unlock()
	}
	return m, m.err
}

func (s *Server) project(ctx context.Context, c Collection, m *projection) error {
	start := time.Now()
	of, _, err := s.statsOf(ctx, c.Name())
	if err != nil {
		return err
	}
	sample, err := sampleOf(ctx, c, of.Nodes+of.Tombstones)
	if err != nil {
		return err
	}
	rows := make([][]float32, len(sample))
	for i, n := range sample {
		rows[i] = n.Embedding
	}
	m.plane = principal(rows, c.Schema().Dim)
	names := frequentTags(sample)
	m.answer = mapAnswer{Points: make([]placed, len(sample)), Tags: shown(names), Nodes: of.Nodes, Share: number(m.plane.share)}
	for i, n := range sample {
		x, y := m.plane.place(n.Embedding)
		p := placed{ref: refTo(n.Key), X: number(x), Y: number(y)}
		for _, tag := range n.Tags {
			if at := slices.Index(names, tag); at >= 0 {
				p.Tags = append(p.Tags, at)
			}
		}
		m.answer.Points[i] = p
	}
	m.answer.Millis = number(show.Millis(time.Since(start)))
	return nil
}

// sampleOf returns nodes spread evenly over the rows of a collection, in small blocks.
func sampleOf(ctx context.Context, c Collection, rows uint64) (sample []flashdb.Node, err error) {
	most := max(64, min(mapNodes, mapValues/c.Schema().Dim))
	blocks := uint64((most + mapBlock - 1) / mapBlock)
	step := max(rows/blocks, mapBlock)
	for from := uint64(0); from < rows && len(sample) < most; from += step {
		keys, err := c.RowKeys(ctx, uint32(from), mapBlock)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if key == "" || len(sample) == most {
				continue // deleted
			}
			n, err := c.Get(ctx, key)
			if errors.Is(err, flashdb.ErrNotFound) {
				continue // deleted meanwhile
			}
			if err != nil {
				return nil, err
			}
			n.Payload = nil // not needed, and large
			sample = append(sample, n)
		}
	}
	return sample, nil
}

// frequentTags returns the mapTags most frequent tags of a sample.
func frequentTags(sample []flashdb.Node) []string {
	count := map[string]int{}
	for _, n := range sample {
		for _, tag := range n.Tags {
			count[tag]++
		}
	}
	return mostFrequent(count, mapTags)
}

// A placement asks where nodes are on a map: the source, which may be of another collection, and
// nodes of the collection.
type placement struct {
	Collection string   `json:"c"`
	From       string   `json:"from"`
	Source     string   `json:"source"`
	Keys       []string `json:"keys"`
}

// place answers where nodes are on the map of a collection, the source first.
func (s *Server) place(r *http.Request) (any, error) {
	var p placement
	if err := readBody(r, &p); err != nil {
		return nil, err
	}
	if p.Collection == "" || len(p.Keys) > maxPlaced {
		return nil, badRequest("c is needed, and at most %d keys", maxPlaced)
	}
	m, err := s.mapOf(r.Context(), p.Collection, false)
	if err != nil {
		return nil, err
	}
	out := []placed{}
	for i, text := range append([]string{p.Source}, p.Keys...) {
		name := p.Collection
		if i == 0 && p.From != "" {
			name = p.From
		}
		key, err := decodeKey(text)
		if err != nil {
			return nil, err
		}
		c, err := s.db.Collection(r.Context(), name)
		if err != nil {
			return nil, err
		}
		n, err := c.Get(r.Context(), key)
		if err != nil {
			return nil, err
		}
		if len(n.Embedding) != len(m.plane.mean) {
			return nil, badRequest("nodes of %s have %d values, those of the map %d", name, len(n.Embedding), len(m.plane.mean))
		}
		x, y := m.plane.place(n.Embedding)
		out = append(out, placed{ref: refTo(key), X: number(x), Y: number(y)})
	}
	return map[string][]placed{"points": out}, nil
}
