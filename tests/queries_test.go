package tests

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// A question is a query of a reader, and what it takes to check its answer.
type question struct {
	name, key, dec string // collection, source and decoder
	from           string // another collection, of which the source may be
	vector         []float32
	k              int
	o              flashdb.PredictOptions
	by             flashdb.Similarity
	exact          bool // every allowed node is scored
	others         []string
}

// question draws one: half of the plans score every node.
func (r *reader) question(name, key, dec string) *question {
	coin := func() bool { return r.rng.IntN(2) == 0 }
	q := &question{
		name: name, key: key, dec: dec, from: historyNames[r.rng.IntN(len(historyNames))], vector: randomVector(r.rng, modelDim), k: 1 + r.rng.IntN(80),
		by: []flashdb.Similarity{flashdb.SimilarityIP, flashdb.SimilarityCosine, flashdb.SimilarityL2}[r.rng.IntN(3)],
	}
	q.o = flashdb.PredictOptions{
		Decoder:       dec,
		IncludeLinked: coin(),
		Exclude:       []string{fmt.Sprintf("n%d", r.rng.IntN(61)), "never stored"},
		Filter:        []string{"", "red", "not red"}[r.rng.IntN(3)],
		WithNode:      coin(),
	}
	switch r.rng.IntN(4) {
	case 0:
		q.o.Exact, q.exact = true, true
	case 1:
		q.o.Plan, q.exact = &flashlight.Plan{PerRound: 100, Probes: index.Probes{Share: 1}}, true
	case 2:
		q.o.Plan = &flashlight.Plan{Rounds: 2, PerRound: 10}
	}
	if dec == "related" {
		q.o.Relation, q.o.Reverse = relations[r.rng.IntN(len(relations))], coin()
	}
	for range 1 + r.rng.IntN(4) {
		q.others = append(q.others, fmt.Sprintf("n%d", r.rng.IntN(61)))
	}
	return q
}

func (q *question) predict(ctx context.Context, c *flashdb.Collection) (verdict, error) {
	got, err := c.Predict(ctx, q.key, q.k, &q.o)
	return q.predicted(source{key: q.key}, got), err
}

func (q *question) predictVector(ctx context.Context, c *flashdb.Collection) (verdict, error) {
	got, err := c.PredictVector(ctx, q.vector, q.k, &q.o)
	return q.predicted(source{}, got), err
}

// batch asks for several sources; each answer is one of its own moment.
func (r *reader) batch(ctx context.Context, q *question) ([]verdict, error) {
	c, err := r.db.Collection(q.name)
	if err != nil {
		return []verdict{found("", "", nil, err)}, unexpected(err)
	}
	var checks []verdict
	for got, err := range c.PredictBatch(ctx, q.others, q.k, &q.o) {
		if unexpected(err) != nil {
			return nil, err
		}
		key := q.others[len(checks)]
		checks = append(checks, found(key, q.dec, q.predicted(source{key: key}, got), err))
	}
	if len(checks) != len(q.others) {
		return nil, fmt.Errorf("%d answers to %d questions", len(checks), len(q.others))
	}
	return checks, nil
}

// vectors asks by several vectors, as batch does.
func (r *reader) vectors(ctx context.Context, q *question) ([]verdict, error) {
	c, err := r.db.Collection(q.name)
	if err != nil {
		return []verdict{found("", "", nil, err)}, unexpected(err)
	}
	var checks []verdict
	for got, err := range c.PredictVectors(ctx, [][]float32{q.vector, q.vector}, q.k, &q.o) {
		if unexpected(err) != nil {
			return nil, err
		}
		checks = append(checks, found("", q.dec, q.predicted(source{}, got), err))
	}
	if len(checks) != 2 {
		return nil, fmt.Errorf("%d answers to 2 questions", len(checks))
	}
	return checks, nil
}

// across asks for a source of another collection.
func (r *reader) across(ctx context.Context, q *question) ([]verdict, error) {
	c, err := r.db.Collection(q.name)
	if err != nil {
		return []verdict{found("", "", nil, err)}, unexpected(err)
	}
	o, from := q.o, source{collection: q.from, key: q.key}
	o.SourceCollection = q.from
	if q.from == q.name {
		from.collection = ""
	}
	got, err := c.Predict(ctx, q.key, q.k, &o)
	answered := found("", q.dec, q.predicted(from, got), err)
	return []verdict{func(m *model, worlds []world, at int) error {
		if of := worlds[at][q.from]; err != nil && (of == nil || of.nodes[q.key].Embedding == nil) {
			return nil
		}
		return answered(m, worlds, at)
	}}, unexpected(err)
}

// scoreAcross scores a node of the collection against a source of another one.
func (r *reader) scoreAcross(ctx context.Context, q *question) ([]verdict, error) {
	c, err := r.db.Collection(q.name)
	if err != nil {
		return []verdict{found("", "", nil, err)}, unexpected(err)
	}
	key := q.others[0]
	got, err := c.Score(ctx, q.key, []string{key}, q.scoreOptions(q.from))
	answered := found(key, q.dec, func(m *model, worlds []world, at int) error {
		of, row, d := worlds[at][q.from], m.nodes[key].Embedding, q.decoder(m)
		if of == nil || of.nodes[q.key].Embedding == nil || row == nil || d == nil || len(got) != 1 {
			return unequal("scores", got, key)
		}
		var scratch decoder.Scratch
		var s [1]float32
		d.Bind(nil, of.nodes[q.key].Embedding).Score(&scratch, s[:], row)
		if !near(s[0], got[0].Score) {
			return unequal("score", got[0].Score, s[0])
		}
		return nil
	}, err)
	return []verdict{func(m *model, worlds []world, at int) error {
		if of := worlds[at][q.from]; err != nil && (of == nil || of.nodes[q.key].Embedding == nil) {
			return nil
		}
		return answered(m, worlds, at)
	}}, unexpected(err)
}

// predicted checks an answer to a source, or to the vector if that has no key. The decoder and the
// source are as of the same commit as the nodes.
func (q *question) predicted(from source, got flashdb.Result) verdict {
	return func(m *model, worlds []world, at int) error {
		if got.Source != from.key {
			return unequal("source", got.Source, from.key)
		}
		embedding, of := q.vector, m
		if from.collection != "" {
			of = worlds[at][from.collection]
		}
		if from.key != "" {
			if of == nil || of.nodes[from.key].Embedding == nil {
				return unequal("answer", got, "no such node")
			}
			embedding = of.nodes[from.key].Embedding
		}
		d := q.decoder(m)
		if d == nil {
			return fmt.Errorf("there is no decoder %q", q.dec)
		}
		bound := d.Bind(nil, embedding)
		var itself string
		if from.collection == "" {
			itself = from.key
		}
		scores := q.scores(m, itself, q.known(m, of, from), func(row []float32) float32 {
			var scratch decoder.Scratch
			var s [1]float32
			bound.Score(&scratch, s[:], row)
			return s[0]
		})
		return q.hits(got, scores, true, m, worlds[at:])
	}
}

func (q *question) search(ctx context.Context, c *flashdb.Collection) (verdict, error) {
	got, err := c.Search(ctx, q.vector, q.k, &flashdb.SearchOptions{
		Similarity: q.by, Exact: q.exact, Exclude: q.o.Exclude, Filter: q.o.Filter, WithNode: q.o.WithNode,
	})
	return func(m *model, worlds []world, at int) error {
		return q.hits(got, q.scores(m, "", nil, q.similarity), false, m, worlds[at:])
	}, err
}

// similarity is what Search ranks by.
func (q *question) similarity(row []float32) float32 {
	var dot, l2, a, b float64
	for i, x := range row {
		y := float64(q.vector[i])
		dot += float64(x) * y
		l2 += (float64(x) - y) * (float64(x) - y)
		a += float64(x) * float64(x)
		b += y * y
	}
	switch q.by {
	case flashdb.SimilarityL2:
		return float32(-l2)
	case flashdb.SimilarityCosine:
		return float32(dot / math.Sqrt(a*b))
	}
	return float32(dot)
}

func (q *question) score(ctx context.Context, c *flashdb.Collection) (verdict, error) {
	got, err := c.Score(ctx, q.key, []string{q.key}, q.scoreOptions(""))
	return func(m *model, worlds []world, at int) error {
		row := m.nodes[q.key].Embedding
		if row == nil || len(got) != 1 || got[0].Key != q.key {
			return unequal("scores", got, q.key)
		}
		var scratch decoder.Scratch
		var s [1]float32
		if d := q.decoder(m); d != nil {
			if d.Bind(nil, row).Score(&scratch, s[:], row); near(s[0], got[0].Score) {
				return nil
			}
		}
		return unequal("score", got[0].Score, "that of the decoder")
	}, err
}

func (q *question) scoreOptions(from string) *flashdb.ScoreOptions {
	return &flashdb.ScoreOptions{Decoder: q.dec, SourceCollection: from, Relation: q.o.Relation, Reverse: q.o.Reverse}
}

// decoder returns what scores: the decoder itself, or that of its relation. It returns nil when m
// has none of that name.
func (q *question) decoder(m *model) decoder.Decoder {
	d := m.decoders[q.dec]
	if d == nil || q.o.Relation == "" {
		return d
	}
	d, err := decoder.ForRelation(d, q.o.Relation, q.o.Reverse)
	if err != nil {
		panic(err)
	}
	return d
}

// known returns the nodes of m that are left out because the source, of the model of, has links
// with them: of the relation and direction asked, or of all where no relation is.
func (q *question) known(m, of *model, from source) map[string]bool {
	switch {
	case q.o.IncludeLinked || from.key == "":
		return nil
	case !q.o.Reverse:
		return m.linked(source{from.collection, from.key, q.o.Relation})
	case from.collection == "":
		return m.linkedTo("", q.o.Relation, from.key)
	}
	return of.linkedTo(q.name, q.o.Relation, from.key)
}

// scores returns the scores of all nodes that may be found.
func (q *question) scores(m *model, itself string, known map[string]bool, score func([]float32) float32) map[string]float32 {
	all := map[string]float32{}
	for key, n := range m.nodes {
		red := slices.Contains(n.Tags, "red")
		tagged := q.o.Filter == "" || red == (q.o.Filter == "red")
		if key != itself && tagged && !known[key] && !slices.Contains(q.o.Exclude, key) {
			all[key] = score(n.Embedding)
		}
	}
	return all
}

// hits checks the hits of a query that took place in the first of the worlds, in which m is the
// collection, and ended in one of them. What is deleted in between is left out, and nothing is
// found in its stead.
func (q *question) hits(got flashdb.Result, scores map[string]float32, probable bool, m *model, worlds []world) error {
	returned := map[string]bool{}
	last := float32(math.Inf(1))
	for i, h := range got.Hits {
		want, ok := scores[h.Key]
		switch {
		case !ok || returned[h.Key]:
			return fmt.Errorf("hit %d, %q, is not allowed or was there before", i, h.Key)
		case !near(h.Score, want) || h.Score > last:
			return fmt.Errorf("hit %d, %q, scores %v after %v, want %v", i, h.Key, h.Score, last, want)
		case probable && !near(h.Probability, decoder.Probability(h.Score)):
			return fmt.Errorf("hit %d, %q, has probability %v at score %v", i, h.Key, h.Probability, h.Score)
		case q.o.WithNode && !slices.ContainsFunc(worlds, func(w world) bool {
			return w[q.name] != nil && sameNode(w[q.name].nodes[h.Key], h.Tags, h.Payload, h.Attributes)
		}):
			return fmt.Errorf("hit %d, %q, comes with %q and payload %x, which it never had", i, h.Key, h.Tags, h.Payload)
		}
		returned[h.Key], last = true, h.Score
	}
	want := min(q.k, len(scores))
	if len(got.Hits) > want || (len(got.Hits) < q.k) != (got.Stats.Short != "") {
		return fmt.Errorf("%d hits, want at most %d of %d: %q", len(got.Hits), want, q.k, got.Stats.Short)
	}
	if q.exact {
		return q.complete(scores, returned, last, want-len(got.Hits), m, worlds)
	}
	return nil
}

// complete checks that nothing is missing but nodes deleted meanwhile.
func (q *question) complete(scores map[string]float32, returned map[string]bool, last float32, short int, m *model, worlds []world) error {
	var deleted []float32
	best, at := float32(math.Inf(-1)), "" // of those that were there all the time
	for key, s := range scores {
		switch {
		case returned[key]:
		case slices.ContainsFunc(worlds, func(w world) bool { return gone(w[q.name], key, m.ids[key]) }):
			deleted = append(deleted, s)
		case s > best:
			best, at = s, key
		}
	}
	if best > last && !near(best, last) {
		return fmt.Errorf("%q is missing, which scores %v, and the last hit scores %v", at, best, last)
	}
	for _, s := range deleted {
		if s > best || near(s, best) {
			short--
		}
	}
	if short > 0 {
		return fmt.Errorf("%d hits are missing that were not deleted meanwhile, the best of them %q", short, at)
	}
	return nil
}

// gone tells whether the node that has a key in some world is not in the one of m.
func gone(m *model, key string, id int) bool {
	if m == nil {
		return true
	}
	_, ok := m.nodes[key]
	return !ok || m.ids[key] != id
}

// near tells whether two scores are the same but for the order of sums.
func near(a, b float32) bool {
	return a == b || math.Abs(float64(a)-float64(b)) <= 1e-4*(1+math.Abs(float64(b)))
}
