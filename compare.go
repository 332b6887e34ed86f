package flashdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/internal/calibrate"
	"github.com/flashdb/flashdb/storage"
)

// CompareOptions are the options of one CompareRelease. The zero value means the defaults.
type CompareOptions struct {
	// K is how many nodes each source asks for. Default 10.
	K int
	// Sources is how many sources are asked at most for each decoder. Default 200.
	Sources int
	// Edges are links to rank, by the collection of their targets. They should be known to neither
	// training, such as the newest. Without any of a collection, the links are ranked that Link has
	// stored since Comparison.Since: the newest 2,000, if they are 100 at least.
	Edges map[string][]Edge
	// Time is how long the sources of one decoder may take, and as long again its edges. Default
	// Options.CalibrateTime, or 10 s where that is negative. Fewer are compared if it is up.
	Time time.Duration
	// Tolerance is how far the mean recall at equal cost, and the MRR, may fall. Default 0.01.
	Tolerance float64
	// RandomSeed is the seed of the samples.
	RandomSeed uint64
	// Progress is called from time to time.
	Progress func(stage string, done, total int64)
}

// Validate reports every fault of the options at once.
func (o *CompareOptions) Validate() error {
	var errs []error
	if o.K < 0 || o.K > 1000 {
		errs = append(errs, fmt.Errorf("%w: k is %d: use 1 to 1000, or 0 for the default", ErrInvalid, o.K))
	}
	if o.Sources < 0 {
		errs = append(errs, fmt.Errorf("%w: sources is %d: use a positive number, or 0 for the default", ErrInvalid, o.Sources))
	}
	if o.Time < 0 {
		errs = append(errs, fmt.Errorf("%w: time is %v: use a positive duration, or 0 for the default", ErrInvalid, o.Time))
	}
	if !(o.Tolerance >= 0 && o.Tolerance <= 1) {
		errs = append(errs, fmt.Errorf("%w: tolerance %v is outside (0, 1]", ErrInvalid, o.Tolerance))
	}
	return errors.Join(errs...)
}

// A Comparison compares a staged release with the live one.
type Comparison struct {
	Release, Live string // names
	// Since is when the data of the release was cut, or the live one published, whichever is later.
	// Links that were recorded after it are new to both.
	Since time.Time
	// Decoders has one entry for each decoder that both have under the same name.
	Decoders []DecoderComparison
	// Worse says in what the release is worse than the live one. If it says anything, Publish
	// refuses the release.
	Worse []string
}

// A DecoderComparison compares two releases for one decoder.
type DecoderComparison struct {
	Collection, Decoder, SourceCollection string
	// Sources is how many sources were asked, and K for how many nodes.
	Sources, K int
	// Indexed says whether both have an index. Only then are the recalls measured: of the plan that
	// the live release uses, on either index, against the exact scan of the same release.
	Indexed                  bool
	LiveRecall, StagedRecall float64
	// Agreement is the mean share of the exact top K of the live release that is in that of the
	// staged one.
	Agreement float64
	// Changed are the sources whose answers have changed most: ten at most, those first that keep
	// least.
	Changed []ChangedSource
	// Recorded is how many links that can be ranked were recorded after Comparison.Since, without
	// CompareOptions.Edges of the collection. The newest were ranked, if they are enough.
	Recorded int
	// Edges compares the ranks of CompareOptions.Edges, or of the links that were recorded. It is
	// nil without either.
	Edges *EdgeComparison
}

// A ChangedSource is a source and how many nodes of its exact top K are in both releases.
type ChangedSource struct {
	Key  string
	Kept int
}

// An EdgeComparison compares the ranks of the same links in two releases.
type EdgeComparison struct {
	// Edges were ranked. LeftOut were not: their source or target has no embedding in one of the
	// releases, or the time was up.
	Edges, LeftOut int
	// Candidates is among how many nodes a target is ranked: a sample of those with an embedding in
	// both releases. Known links of the source are not among them.
	Candidates   int
	Live, Staged EdgeRanks
	// Difference is the MRR of the staged release minus that of the live one. Its 95% confidence
	// interval is Margin wide to either side (paired over the edges).
	Difference, Margin float64
}

// EdgeRanks sums up the ranks of links: the mean reciprocal rank, and the shares that are among the
// first 1, 10 and 50.
type EdgeRanks struct {
	MRR, Hits1, Hits10, Hits50 float64
}

// CompareRelease compares a staged release with the live one. For each decoder that both have, it
// asks the same sources of both, and ranks the same links in both.
//
// The release counts as worse if its mean recall at equal cost, or its MRR, is lower by more than
// the tolerance, and by more than the choice of sources or links explains (one-sided paired t test,
// 95%). It also counts as worse if a collection has no embeddings, lacks a decoder that the live
// release has, or lacks an index where the live release has one.
func (db *DB) CompareRelease(ctx context.Context, name string, opts *CompareOptions) (c Comparison, err error) {
	err = db.releaseCall(ctx, "compare", name, func(ctx context.Context) error {
		var o CompareOptions
		if opts != nil {
			o = *opts
		}
		c, err = db.compareRelease(ctx, name, o)
		return err
	})
	return c, err
}

func (db *DB) compareRelease(ctx context.Context, name string, o CompareOptions) (c Comparison, err error) {
	if err := o.Validate(); err != nil {
		return c, err
	}
	o.K, o.Sources = cmp.Or(o.K, 10), cmp.Or(o.Sources, defaultSources)
	o.Tolerance = cmp.Or(o.Tolerance, defaultTolerance)
	if o.Time == 0 {
		o.Time = cmp.Or(max(0, db.opts.CalibrateTime), 10*time.Second)
	}
	c.Release = name
	if err := c.name(db); err != nil {
		return c, err
	}
	names, err := (&Release{db, name}).collections()
	if err != nil {
		return c, err
	}
	for _, of := range names {
		if err := c.collection(ctx, db, of, o); err != nil {
			return c, fmt.Errorf("collection %q: %w", of, err)
		}
	}
	return c, nil
}

// name finds the live release, and since when links are new to both.
func (c *Comparison) name(db *DB) error {
	return db.store.View(func(v *storage.View) error {
		for _, r := range v.Releases() {
			at := time.Time{}
			switch {
			case r.State == storage.Live:
				c.Live, at = r.Name, r.Published
			case r.Name == c.Release:
				at = r.Cut
			}
			if at.After(c.Since) {
				c.Since = at.UTC()
			}
		}
		return nil
	})
}

// A pair is a collection in two releases.
type pair struct{ live, staged *Collection }

func (p pair) each() [2]*Collection { return [2]*Collection{p.live, p.staged} }

// collection compares one collection of the release.
func (c *Comparison) collection(ctx context.Context, db *DB, name string, o CompareOptions) error {
	var p pair
	var err error
	if p.live, err = db.collection(name); err == nil {
		p.staged, err = db.collectionOf(c.Release, name)
	}
	if err != nil {
		return err
	}
	var infos [2]storage.Info
	var decoders [2][]string
	for i, of := range p.each() {
		if infos[i], err = of.info(); err == nil {
			decoders[i], err = of.storedDecoders()
		}
		if err != nil {
			return err
		}
	}
	worse := func(format string, args ...any) {
		c.Worse = append(c.Worse, fmt.Sprintf("collection %q ", name)+fmt.Sprintf(format, args...))
	}
	if infos[1].Rows == 0 && infos[0].Rows > 0 {
		worse("has no embeddings in it: put them")
		return nil
	}
	if infos[0].Generation != 0 && infos[1].Generation == 0 && infos[1].Rows >= minIndexedRows {
		worse("has no index in it: build it")
	}
	for _, decoder := range decoders[0] {
		if !slices.Contains(decoders[1], decoder) {
			worse("has no decoder %q in it, which the live release has", decoder)
			continue
		}
		d := DecoderComparison{Collection: name, Decoder: decoder, K: o.K}
		if err := d.run(ctx, p, o, c.Since, worse); err != nil {
			return fmt.Errorf("decoder %q: %w", decoder, err)
		}
		c.Decoders = append(c.Decoders, d)
	}
	return nil
}

// run compares one decoder.
func (d *DecoderComparison) run(ctx context.Context, p pair, o CompareOptions, since time.Time, worse func(string, ...any)) error {
	from := pair{live: p.live.sourcesFrom()}
	var err error
	if from.staged, err = p.staged.sibling(from.live.name); err != nil {
		return err
	}
	d.SourceCollection = from.live.name
	recalls, err := d.ask(ctx, p, from, o)
	if err != nil {
		return err
	}
	if calibrate.Worse(recalls[0], recalls[1], o.Tolerance) {
		worse("has recall %s at equal cost with decoder %q, on %d sources, and the live release %s", share(d.StagedRecall), d.Decoder, d.Sources, share(d.LiveRecall))
	}
	edges, of := o.Edges[d.Collection], ""
	if len(edges) == 0 {
		if edges, d.Recorded, err = p.recorded(from, d.Decoder, since); err != nil || len(edges) < minRecorded {
			return err
		}
		of = " recorded since " + since.Format(time.RFC3339)
	}
	r := ranker{d: d, p: p, o: o, edges: edges, began: time.Now()}
	inverse, err := r.run(ctx)
	if err != nil {
		return err
	}
	if calibrate.Worse(inverse[0], inverse[1], o.Tolerance) {
		worse("has MRR %.4f with decoder %q, on %d links%s, and the live release %.4f", d.Edges.Staged.MRR, d.Decoder, d.Edges.Edges, of, d.Edges.Live.MRR)
	}
	return nil
}

// ask asks the same sources of both releases, and returns the recall of each.
func (d *DecoderComparison) ask(ctx context.Context, p, from pair, o CompareOptions) (recalls [2][]float64, err error) {
	began := time.Now()
	plan, err := p.planInUse(ctx, d.Decoder, o.K)
	if err != nil {
		return recalls, err
	}
	d.Indexed = plan != nil
	sources, err := p.sources(from, d.Decoder, o)
	if err != nil {
		return recalls, err
	}
	for i, s := range sources {
		if i >= 2 && time.Since(began) > o.Time {
			break
		}
		ask := PredictOptions{Decoder: d.Decoder, Relation: s.ask.relation, Reverse: s.ask.reverse}
		if from.live != p.live {
			ask.SourceCollection = from.live.name
		}
		var exact [2][]string
		for j, of := range p.each() {
			ask.Exact, ask.Plan = true, nil
			if exact[j], err = of.topKeys(ctx, s.key, o.K, ask); err != nil {
				return recalls, err
			}
			if plan == nil {
				continue
			}
			ask.Exact, ask.Plan = false, plan
			found, err := of.topKeys(ctx, s.key, o.K, ask)
			if err != nil {
				return recalls, err
			}
			recalls[j] = append(recalls[j], shareOf(common(exact[j], found), len(exact[j])))
		}
		kept := common(exact[0], exact[1])
		d.Agreement += shareOf(kept, len(exact[0]))
		d.Changed = append(d.Changed, ChangedSource{s.key, kept})
		if d.Sources++; o.Progress != nil {
			o.Progress("compare "+d.Collection+" "+d.Decoder, int64(d.Sources), int64(len(sources)))
		}
	}
	d.Agreement /= float64(max(1, d.Sources))
	d.LiveRecall, d.StagedRecall = calibrate.Mean(recalls[0]), calibrate.Mean(recalls[1])
	slices.SortStableFunc(d.Changed, func(a, b ChangedSource) int { return cmp.Compare(a.Kept, b.Kept) })
	d.Changed = d.Changed[:min(10, len(d.Changed))]
	return recalls, nil
}

func shareOf(n, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(n) / float64(of)
}

// common returns how many keys are in both.
func common(a, b []string) (n int) {
	in := map[string]bool{}
	for _, key := range a {
		in[key] = true
	}
	for _, key := range b {
		if in[key] {
			n++
		}
	}
	return n
}

// topKeys returns the keys that Predict finds, without counting it as a query of the program.
func (c *Collection) topKeys(ctx context.Context, key string, k int, o PredictOptions) (keys []string, err error) {
	res, err := c.predictWith(ctx, time.Now(), key, nil, k, o)
	if errors.Is(err, ErrNotFound) && ctx.Err() == nil {
		err = nil // the source was deleted meanwhile
	}
	for _, h := range res.Hits {
		keys = append(keys, h.Key)
	}
	return keys, err
}

// planInUse returns the plan that the live release uses, or nil if one of the two has no index or
// it scans every node.
func (p pair) planInUse(ctx context.Context, decoder string, k int) (*flashlight.Plan, error) {
	var pins [2]pinned
	for i, of := range p.each() {
		var err error
		if pins[i], err = of.pin(ctx); err != nil {
			return nil, err
		}
		defer pins[i].release()
	}
	if pins[0].gen == nil || pins[1].gen == nil {
		return nil, nil
	}
	t, err := p.live.trained(decoder)
	if err != nil {
		return nil, err
	}
	plan := flashlight.DefaultPlan(k, pins[0].gen.Info().Rows)
	if of := t.on(&pins[0]); of != nil {
		f, _ := of.For(k)
		if len(f.Points) == 0 {
			return nil, nil
		}
		point, _ := f.Choose(defaultRecall)
		plan = f.Scaled(point, k).Plan
	}
	return &plan, nil
}

// A comparedSource is the key of a source, and for which relation it asks.
type comparedSource struct {
	key string
	ask askedRelation
}

// sources draws sources that have an embedding in both releases.
func (p pair) sources(from pair, decoder string, o CompareOptions) (all []comparedSource, err error) {
	t, err := p.staged.trained(decoder)
	if err != nil {
		return nil, err
	}
	draw := newRelationDraw(t, o.RandomSeed)
	both, err := from.both()
	if err != nil {
		return nil, err
	}
	err = p.live.view(func(v *storage.View) error {
		info, ok := v.Collection(from.live.name)
		if !ok {
			return from.live.gone()
		}
		info.Rows = int(both.GetCardinality())
		for _, id := range sampleIDs(info, v.Tombs(info.UID), both, o.Sources, o.RandomSeed) {
			if key, ok := v.Key(info.UID, id); ok {
				all = append(all, comparedSource{key, draw.draw(v.Related(info.UID, id, p.live.uid))})
			}
		}
		return nil
	})
	return all, err
}

// both returns the ids of the nodes that have an embedding in both releases.
func (p pair) both() (*roaring.Bitmap, error) {
	var all *roaring.Bitmap
	for i, of := range p.each() {
		err := of.view(func(v *storage.View) error {
			info, ok := v.Collection(of.name)
			if !ok {
				return of.gone()
			}
			if i == 0 {
				all = liveIDs(v, info)
			}
			if held := v.RowIDs(of.uid); held != nil {
				all.And(held)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// margin returns half the width of the 95% confidence interval of the mean difference of pairs.
func margin(a, b []float64) float64 {
	n := float64(len(a))
	if n < 2 {
		return 0
	}
	mean, squares := calibrate.Mean(b)-calibrate.Mean(a), 0.0
	for i := range a {
		d := b[i] - a[i] - mean
		squares += d * d
	}
	return 1.96 * math.Sqrt(squares/(n-1)/n)
}
