package tests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
)

// historyReaders is how many goroutines read beside the calls of a history.
const historyReaders = 2

// A tally counts what the histories of a test did.
type tally struct {
	histories, steps, reads, segments atomic.Int64
	seen                              atomic.Pointer[string] // what went wrong: rapid forgets what it cannot bring about again
}

// Readers read beside some steps in a row, and check what they see.
//
// worlds are those from before the first step to after the last. A read that begins when
// over.Load() is i, and ends when begun.Load() is j, must answer as one of worlds[i] to worlds[j]
// does: i counts the steps that were over before it, j those that had begun when it ended.
type readers struct {
	db          *flashdb.DB
	worlds      []world
	over, begun atomic.Int64
	stop        atomic.Bool
	running     sync.WaitGroup // until each has read once
	done        sync.WaitGroup
	tally       *tally

	mu  sync.Mutex // guards err
	err error      // the first
}

// run carries out steps with readers beside them.
func (h *history) run(steps ...step) {
	h.runBeside("nothing", func(context.Context) error { return nil }, steps)
}

// runBeside carries out steps with readers and a call of that name beside them. Each reader reads
// at least once before the first step, so that reads are under way when it begins.
func (h *history) runBeside(name string, beside func(context.Context) error, steps []step) {
	r := &readers{db: h.db, worlds: []world{h.w}, tally: h.tally}
	for _, s := range steps {
		r.worlds = append(r.worlds, s.then)
	}
	for i := range historyReaders {
		reader := reader{r, rand.New(rand.NewPCG(h.seed, uint64(h.steps)<<8|uint64(i)))}
		r.running.Add(1)
		r.done.Go(reader.loop)
	}
	r.running.Wait()
	ctx := context.Background()
	var long sync.WaitGroup
	var failed error
	long.Go(func() { failed = beside(ctx) })
	var err error
	names := []string{}
	for _, s := range steps {
		names = append(names, s.name)
		r.begun.Add(1)
		if err = s.do(ctx); err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
			break
		}
		r.over.Add(1)
	}
	long.Wait()
	r.stop.Store(true)
	r.done.Wait()
	if failed != nil {
		failed = fmt.Errorf("%s: %w", name, failed)
	}
	if err = errors.Join(err, failed, r.err); err != nil {
		seen := fmt.Sprintf("%q with %s beside, step %d of history %d: %v", names, name, h.steps, h.seed, err)
		h.tally.seen.CompareAndSwap(nil, &seen)
		require.Fail(h.t, seen)
	}
	h.w = r.worlds[len(r.worlds)-1]
	h.steps += 1 + len(steps)
	h.tally.steps.Add(int64(len(steps)))
}

// A reader is one of the goroutines.
type reader struct {
	*readers
	rng *rand.Rand
}

func (r *reader) loop() {
	first := sync.OnceFunc(r.running.Done)
	defer first()
	for {
		last := r.stop.Load()
		if err := r.read(); err != nil {
			r.mu.Lock()
			r.err = cmp.Or(r.err, err)
			r.mu.Unlock()
			return
		}
		first()
		if last {
			return
		}
	}
}

// A verdict tells why what a read returned is not what it would have returned had it taken place in
// worlds[at], where m is the collection: nil if it is. The worlds are those of all moments from its
// begin to its end.
type verdict func(m *model, worlds []world, at int) error

// A call reads a collection.
type call func(context.Context, *flashdb.Collection) (verdict, error)

// A seen is what one read returned.
type seen struct {
	kind, name string // name: of the collection
	checks     []verdict
	from, to   int // the first and the last of the worlds that it may be of
}

// look makes one read.
func (r *reader) look(name string) (seen, error) {
	kinds := r.kinds(name)
	s := seen{kind: slices.Sorted(maps.Keys(kinds))[r.rng.IntN(len(kinds))], name: name, from: int(r.over.Load())}
	var err error
	s.checks, err = kinds[s.kind](context.Background())
	s.to = int(r.begun.Load())
	r.tally.reads.Add(1)
	if err != nil {
		err = fmt.Errorf("%s in %q: %w", s.kind, name, err)
	}
	return s, err
}

// moment returns the first of all worlds, from least on, that a check passes.
func (s seen) moment(check verdict, all []world, least int) (int, error) {
	worlds := all[s.from : s.to+1]
	var why error
	for at := range worlds {
		if s.from+at < least {
			continue
		}
		err := check(worlds[at][s.name], worlds, at)
		if err == nil {
			return s.from + at, nil
		}
		why = errors.Join(why, fmt.Errorf("after step %d: %w", s.from+at, err))
	}
	return 0, fmt.Errorf("%s in %q is the answer of no moment from %d on: %w", s.kind, s.name, least, why)
}

// read makes some reads in a row, of any collections, and checks them. What one shows of a write,
// those after it show too: so of a batch across collections nobody sees a part.
func (r *reader) read() error {
	least := 0
	for range 1 + r.rng.IntN(3) {
		s, err := r.look(historyNames[r.rng.IntN(len(historyNames))])
		if err != nil {
			return err
		}
		next := least
		for _, check := range s.checks {
			at, err := s.moment(check, r.worlds, least)
			if err != nil {
				return err
			}
			next = max(next, at)
		}
		least = next
	}
	return nil
}

// kinds are the reads of a collection: all public ones of DB and Collection. A batch has several
// answers, each as of a commit of its own.
func (r *reader) kinds(name string) map[string]func(context.Context) ([]verdict, error) {
	key := fmt.Sprintf("n%d", r.rng.IntN(61))
	dec := []string{"a", "b", "mlp", "mlp", "related", "related"}[r.rng.IntN(6)]
	of := func(key, dec string, do call) func(context.Context) ([]verdict, error) {
		return func(ctx context.Context) ([]verdict, error) {
			c, err := r.db.Collection(name)
			var ok verdict
			if err == nil {
				ok, err = do(ctx, c)
			}
			return []verdict{found(key, dec, ok, err)}, unexpected(err)
		}
	}
	about := r.question(name, key, dec)
	return map[string]func(context.Context) ([]verdict, error){
		"collections": r.collections, "metrics": r.metrics, "stats": r.stats,
		"predict": of(key, dec, about.predict), "predict again": of(key, dec, about.predict),
		"predict vector": of("", dec, about.predictVector), "search": of("", "", about.search),
		"score":        of(key, dec, about.score),
		"batch":        func(ctx context.Context) ([]verdict, error) { return r.batch(ctx, about) },
		"vectors":      func(ctx context.Context) ([]verdict, error) { return r.vectors(ctx, about) },
		"across":       func(ctx context.Context) ([]verdict, error) { return r.across(ctx, about) },
		"links":        of("", "", r.links),
		"score across": func(ctx context.Context) ([]verdict, error) { return r.scoreAcross(ctx, about) },
		"linked":       func(ctx context.Context) ([]verdict, error) { return r.linked(ctx, name, key) },
		"get":          of(key, "", get(key)), "meta": of("", "", meta),
		"keys": of("", "", keys), "prefix": of("", "", r.prefix), "rows": of("", "", r.rowKeys),
		"decoders": of("", "", decoders), "decoder": of("", dec, decoderNamed(dec)), "index": of("", "", ofIndex),
	}
}

// unexpected passes the errors on that are no answer: that something is not there is one.
func unexpected(err error) error {
	if errors.Is(err, flashdb.ErrNotFound) {
		return nil
	}
	return err
}

// found checks what a read returned, and that what it did not find was not there: the collection,
// the node or the decoder that it was about, if not "".
func found(key, dec string, ok verdict, err error) verdict {
	return func(m *model, worlds []world, at int) error {
		switch {
		case m == nil && err != nil:
			return nil
		case m == nil:
			return ok(newModel(), worlds, at) // the handle of one that was dropped shows an empty one
		case err == nil:
			return ok(m, worlds, at)
		}
		if _, has := m.nodes[key]; key != "" && !has {
			return nil
		}
		if dec != "" && m.decoders[dec] == nil {
			return nil
		}
		return err
	}
}

func unequal(what string, got, want any) error {
	return fmt.Errorf("%s: got %v, want %v", what, got, want)
}

func (r *reader) collections(ctx context.Context) ([]verdict, error) {
	got, err := r.db.Collections(ctx)
	if err != nil {
		return nil, err
	}
	return []verdict{func(_ *model, worlds []world, at int) error {
		if want := worlds[at].names(); !slices.Equal(want, got) {
			return unequal("collections", got, want)
		}
		return nil
	}}, nil
}

func (r *reader) metrics(context.Context) ([]verdict, error) {
	_ = r.db.Metrics() // counts all calls since Open, those of other readers too
	return nil, nil
}

// stats flushes, so it is rare: a crash should find writes that are only in the log.
func (r *reader) stats(ctx context.Context) ([]verdict, error) {
	if r.rng.IntN(20) > 0 {
		return nil, nil
	}
	got, err := r.db.Stats(ctx)
	return []verdict{func(_ *model, worlds []world, at int) error {
		var names []string
		for _, s := range got.Collections {
			names = append(names, s.Name)
			m := worlds[at][s.Name]
			if m == nil {
				return unequal("a collection of stats", s.Name, worlds[at].names())
			}
			tags := map[string]uint64{}
			for _, n := range m.nodes {
				for _, t := range n.Tags {
					tags[t]++
				}
			}
			if s.Nodes != uint64(len(m.nodes)) || s.Tombstones != uint64(m.next-len(m.nodes)) || s.Links != m.linkCount() || !maps.Equal(tags, s.Tags) {
				return unequal("stats", s, fmt.Sprint(len(m.nodes), m.next, tags))
			}
			if want := slices.Sorted(maps.Keys(m.decoders)); !slices.Equal(want, s.Decoders) {
				return unequal("decoders of stats", s.Decoders, want)
			}
		}
		slices.Sort(names)
		if want := worlds[at].names(); !slices.Equal(want, names) {
			return unequal("collections of stats", names, want)
		}
		return nil
	}}, err
}

func get(key string) call {
	return func(ctx context.Context, c *flashdb.Collection) (verdict, error) {
		got, err := c.Get(ctx, key)
		return func(m *model, _ []world, _ int) error {
			want, ok := m.nodes[key]
			if !ok || got.Key != key || !slices.Equal(want.Embedding, got.Embedding) || !sameNode(want, got.Tags, got.Payload, got.Attributes) {
				return unequal("node", got, want)
			}
			return nil
		}, err
	}
}

func sameNode(want flashdb.Node, tags []string, payload []byte, attributes flashdb.Attributes) bool {
	return sameTags(want.Tags, tags) && slices.Equal(want.Payload, payload) && maps.Equal(want.Attributes, attributes)
}

func keys(ctx context.Context, c *flashdb.Collection) (verdict, error) {
	got := map[string]int{}
	rows, err := c.RowKeys(ctx, 0, 1000)
	for row, key := range rows {
		if key != "" {
			got[key] = row
		}
	}
	return func(m *model, _ []world, _ int) error {
		want := map[string]int{}
		for key := range m.nodes {
			want[key] = m.ids[key]
		}
		if !maps.Equal(want, got) {
			return unequal("keys", got, want)
		}
		return nil
	}, err
}

func (r *reader) prefix(ctx context.Context, c *flashdb.Collection) (verdict, error) {
	prefix, limit := fmt.Sprintf("n%d", r.rng.IntN(7)), 1+r.rng.IntN(12)
	got, err := c.KeysWithPrefix(ctx, prefix, limit)
	return func(m *model, _ []world, _ int) error {
		want := slices.DeleteFunc(m.keys(), func(key string) bool { return !strings.HasPrefix(key, prefix) })
		if want = want[:min(limit, len(want))]; !slices.Equal(want, got) {
			return unequal("keys with prefix", got, want)
		}
		return nil
	}, err
}

func (r *reader) rowKeys(ctx context.Context, c *flashdb.Collection) (verdict, error) {
	from, n := r.rng.IntN(100), r.rng.IntN(20)
	got, err := c.RowKeys(ctx, uint32(from), n)
	return func(m *model, _ []world, _ int) error {
		want := make([]string, max(0, min(n, m.next-from)))
		for key := range m.nodes {
			if row := m.ids[key] - from; row >= 0 && row < len(want) {
				want[row] = key
			}
		}
		if !slices.Equal(want, got) {
			return unequal("keys of rows", got, want)
		}
		return nil
	}, err
}

func meta(ctx context.Context, c *flashdb.Collection) (verdict, error) {
	got, ok, err := c.Meta(ctx, "m")
	if err != nil {
		return nil, err
	}
	return func(m *model, _ []world, _ int) error {
		if want, has := m.meta["m"]; want != got || has != ok {
			return unequal("meta", got, want)
		}
		return nil
	}, nil
}

func decoders(ctx context.Context, c *flashdb.Collection) (verdict, error) {
	got, err := c.Decoders(ctx)
	if err != nil {
		return nil, err
	}
	return func(m *model, _ []world, _ int) error {
		if want := slices.Sorted(maps.Keys(m.decoders)); !slices.Equal(want, got) {
			return unequal("decoders", got, want)
		}
		return nil
	}, nil
}

func decoderNamed(name string) call {
	return func(_ context.Context, c *flashdb.Collection) (verdict, error) {
		got, err := c.Decoder(name)
		return func(m *model, _ []world, _ int) error {
			if want := m.decoders[name]; want == nil || !slices.Equal(decoder.Marshal(want), decoder.Marshal(got)) {
				return unequal("decoder", got, want)
			}
			return nil
		}, err
	}
}

// ofIndex reads what is said of the index, which is nobody's truth.
func ofIndex(ctx context.Context, c *flashdb.Collection) (verdict, error) {
	_, err := c.Calibrations(ctx)
	return func(*model, []world, int) error { return nil }, err
}
