package flashdb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/internal/calibrate"
	"github.com/flashdb/flashdb/internal/delta"
	"github.com/flashdb/flashdb/storage"
)

const (
	// defaultSources is how many sources are asked if there is time.
	defaultSources = 200
	// metaSources is the name of the meta value that stores which collection sources are sampled
	// from.
	metaSources = "flashdb.calibrate.sources"
)

// CalibrateOptions are the options of one Calibrate. The zero value, or nil, means the defaults.
type CalibrateOptions struct {
	// Decoder names the decoder. Empty means all decoders.
	Decoder string
	// SourceCollection names the collection to sample sources from, where it is another one, such
	// as users when this one holds items. The name is stored, and later calibrations, also those by
	// Rebuild, sample from that collection. Empty means the stored name. The collection's own name
	// makes it sample from itself again.
	SourceCollection string
	// Sources is how many sources to ask at most. Default 200. A third of them is drawn evenly, the
	// others in proportion to their links, known or expected by the decoder. Fewer are asked if the
	// time is up before, and the bounds are then lower.
	Sources int
	// Time is how long one decoder may take. Default Options.CalibrateTime, or 10 s where that is
	// negative.
	Time time.Duration
	// RandomSeed is the seed of the sample of sources.
	RandomSeed uint64
	// Progress is called from time to time. It counts milliseconds of Time.
	Progress func(stage string, done, total int64)

	workers int // goroutines; 0: Options.Workers
}

// validate reports every fault of the options at once.
func (o *CalibrateOptions) validate() error {
	var errs []error
	if o.Sources < 0 {
		errs = append(errs, fmt.Errorf("%w: sources is %d: use a positive number, or 0 for the default", ErrInvalid, o.Sources))
	}
	if o.Time < 0 {
		errs = append(errs, fmt.Errorf("%w: time is %v: use a positive duration, or 0 for the default", ErrInvalid, o.Time))
	}
	return errors.Join(errs...)
}

// Calibrate measures what recall each plan reaches at what cost, for one decoder or all, and stores
// the result. Predict chooses its plan by it to meet PredictOptions.Recall.
//
// Calibrate runs plans for sampled sources. It does not scan every row for the exact answer: it
// takes the best rows that all plans and a sample of the other rows have found. So its time does
// not grow with the number of rows. For a nonlinear decoder it also trains learned seeds on other
// sources. Rebuild and PutDecoder calibrate by themselves.
//
// ErrInvalid is returned when no index is served. Queries then scan every node, so there is nothing
// to measure.
func (c *Collection) Calibrate(ctx context.Context, opts *CalibrateOptions) ([]Calibration, error) {
	leave, err := c.db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	var o CalibrateOptions
	if opts != nil {
		o = *opts
	}
	var all []Calibration
	if err = c.writable(); err == nil {
		all, err = c.calibrate(ctx, o)
	}
	if err != nil {
		if c.db.closing.Err() != nil && errors.Is(err, context.Canceled) {
			err = ErrClosed
		}
		return nil, fmt.Errorf("calibrate %q: %w", c.name, err)
	}
	return all, nil
}

func (c *Collection) calibrate(ctx context.Context, o CalibrateOptions) ([]Calibration, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	ctx, cancel := c.db.untilClose(ctx)
	defer cancel()
	p, err := c.pin(ctx)
	if err != nil {
		return nil, err
	}
	defer p.release()
	if p.gen == nil {
		return nil, fmt.Errorf("%w: no index is served, so that queries scan exactly: rebuild first", ErrInvalid)
	}
	names := []string{o.Decoder}
	if o.Decoder == "" {
		if names, err = c.storedDecoders(); err != nil {
			return nil, err
		}
	}
	if o.SourceCollection != "" {
		if err := c.rememberSources(ctx, o.SourceCollection); err != nil {
			return nil, err
		}
	}
	var all []Calibration
	for _, name := range names {
		t, err := c.trained(name)
		if err != nil {
			if o.Decoder == "" && errors.Is(err, ErrNotFound) {
				continue // dropped meanwhile
			}
			return all, err
		}
		res, err := c.measure(ctx, t, p, o)
		if err == nil {
			err = c.storePlans(ctx, t, res.Calibration)
		}
		if o.Decoder == "" && errors.Is(err, ErrNotFound) {
			continue // dropped or replaced meanwhile
		}
		if err != nil {
			return all, fmt.Errorf("decoder %q: %w", name, err)
		}
		all = append(all, c.shown(t, &res.Calibration))
	}
	return all, nil
}

// calibrateNew calibrates a decoder that was just stored, if an index is served.
func (c *Collection) calibrateNew(ctx context.Context, name string) error {
	if c.db.opts.CalibrateTime < 0 {
		return nil
	}
	info, err := c.info()
	if err != nil || info.Generation == 0 {
		return err
	}
	_, err = c.calibrate(ctx, CalibrateOptions{Decoder: name})
	if errors.Is(err, ErrInvalid) {
		return nil // the generation cannot be used, which was logged
	}
	return err
}

// info returns the state of the collection.
func (c *Collection) info() (info storage.Info, err error) {
	err = c.view(func(v *storage.View) error {
		var ok bool
		if info, ok = v.Collection(c.name); !ok || info.UID != c.uid {
			return fmt.Errorf("collection %w: it was dropped", ErrNotFound)
		}
		return nil
	})
	return info, err
}

// rememberSources checks the collection to sample sources from, and stores its name.
func (c *Collection) rememberSources(ctx context.Context, name string) error {
	from, err := c.db.collection(name)
	if err != nil {
		return err
	}
	if from.schema.Dim != c.schema.Dim {
		return fmt.Errorf("%w: sources from %q have %d values, collection %q holds %d", ErrDim, name, from.schema.Dim, c.name, c.schema.Dim)
	}
	return c.commit(ctx, "remember sources of", func(r *record, _ storage.Info) error {
		if was, _ := r.changes.Meta(c.uid, metaSources); was == name || (was == "" && name == c.name) {
			return nil
		}
		return r.emit(storage.SetMeta{UID: c.uid, Name: metaSources, Value: name})
	})
}

// sourcesFrom returns the collection to sample sources from: the one whose name is stored, or c
// where there is none that can be used.
func (c *Collection) sourcesFrom() *Collection {
	var name string
	_ = c.view(func(v *storage.View) error {
		name, _ = v.Meta(c.uid, metaSources)
		return nil
	})
	if name == "" || name == c.name {
		return c
	}
	from, err := c.sibling(name)
	if err == nil && from.schema.Dim != c.schema.Dim {
		err = fmt.Errorf("%w: it holds %d values", ErrDim, from.schema.Dim)
	}
	if err != nil {
		c.db.slog.Warn("calibrating with sources of the collection itself", "collection", c.name, "remembered", name, "err", err)
		return c
	}
	return from
}

// measure runs a calibration of t on p, which the caller releases.
func (c *Collection) measure(ctx context.Context, t *trained, p pinned, o CalibrateOptions) (*calibrate.Result, error) {
	if o.Sources == 0 {
		o.Sources = defaultSources
	}
	if o.Time == 0 {
		o.Time = c.db.opts.CalibrateTime
	}
	if o.Time < 0 {
		o.Time = 10 * time.Second
	}
	began := time.Now()
	from := c.sourcesFrom()
	enough := func() bool { return time.Since(began) > o.Time/10 }
	sources, err := c.sampleSources(ctx, t, from, o.Sources+calibrate.TrainSources, o.RandomSeed, enough)
	if err != nil {
		return nil, err
	}
	asked := min(o.Sources, len(sources))
	in := calibrate.Input{
		Decoder:  t.measured(),
		Sources:  sources[:asked],
		Training: sources[asked:],
		Rows:     p.gen.Info().Rows + p.delta.Len(),
		Open:     func() calibrate.Engine { return c.engine(p) },
		Workers:  cmp.Or(o.workers, c.db.opts.Workers),
		Time:     max(o.Time/2, o.Time-time.Since(began)),
	}
	if o.Progress != nil {
		in.Progress = func(done, total time.Duration) {
			o.Progress("calibrate "+t.name, done.Milliseconds(), total.Milliseconds())
		}
	}
	var res *calibrate.Result
	err = p.gen.Guard(func() (err error) {
		res, err = calibrate.Run(ctx, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	res.Generation, res.BuildLSN, res.Decoder = p.number, p.gen.Info().BuildLSN, t.hash
	if from != c {
		res.SourcesFrom = from.name
	}
	return res, nil
}

// engine returns what one worker searches p with. p must stay pinned meanwhile.
func (c *Collection) engine(p pinned) calibrate.Engine {
	v := &view{c: c}
	v.open(p)
	if v.search != nil {
		v.search.Workers = 1 // times are measured on one core
	}
	return calibrate.Engine{Search: v, Rows: v, Lists: newViewLists(v)}
}

// alone returns p with an empty delta. The caller holds the generation.
func (c *Collection) alone(p pinned) pinned {
	p.delta = delta.New(c.schema.Dim).Snapshot()
	return p
}

// sampleSources draws up to n live nodes of a collection, in the order in which to ask them. With
// each it returns the ids that a query from it would leave out.
func (c *Collection) sampleSources(ctx context.Context, t *trained, from *Collection, n int, seed uint64, enough func() bool) ([]calibrate.Source, error) {
	var pool []calibrate.Source
	var rows []float32
	wanted, compared := calibrate.Pool(n, c.schema.Dim, c.db.opts.MemoryBytes)
	ask := newRelationDraw(t, seed)
	err := c.view(func(v *storage.View) error {
		info, ok := v.Collection(from.name)
		if !ok || info.UID != from.uid {
			return fmt.Errorf("collection %q %w", from.name, ErrNotFound)
		}
		if info.Rows == 0 {
			return fmt.Errorf("%w: collection %q has no nodes to take as sources", ErrInvalid, from.name)
		}
		for _, id := range sampleIDs(info, v.Tombs(from.uid), v.RowIDs(from.uid), wanted, seed) {
			s := calibrate.Source{ID: id, Vector: make([]float32, c.schema.Dim)}
			if !v.Row(s.Vector, from.uid, id) {
				continue
			}
			if c.schema.Normalize && from != c {
				row, err := unit(s.Vector)
				if err != nil {
					return err
				}
				s.Vector = row
			}
			asked := ask.draw(v.Related(from.uid, id, c.uid))
			if err := asked.apply(t, s.Vector); err != nil {
				return err
			}
			s.Relation = asked.relation
			if links := knownLinks(v, from.uid, id, c.uid, asked.relation, asked.reverse); links != nil {
				s.Excluded = links.ToArray()
			}
			s.Links = len(s.Excluded)
			if from == c {
				s.Excluded = append(s.Excluded, id)
			}
			pool = append(pool, s)
		}
		if info, ok = v.Collection(c.name); !ok || info.UID != c.uid {
			return fmt.Errorf("collection %w: it was dropped", ErrNotFound)
		}
		rows = make([]float32, 0, compared*c.schema.Dim)
		for _, id := range sampleIDs(info, v.Tombs(c.uid), v.RowIDs(c.uid), compared, seed+1) {
			at := len(rows)
			rows = rows[:at+c.schema.Dim]
			if !v.Row(rows[at:], c.uid, id) {
				rows = rows[:at]
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return calibrate.Pick(ctx, t.measured(), pool, rows, n, rand.New(rand.NewPCG(seed, 0x11c5)), enough)
}

// sampleIDs draws up to n live ids, in random order. held, if not nil, are those that have a row:
// only these are drawn.
func sampleIDs(info storage.Info, tombs, held *roaring.Bitmap, n int, seed uint64) []uint32 {
	rng := rand.New(rand.NewPCG(seed, 0x5ca1ab1e))
	dead := func(id uint32) bool {
		return tombs != nil && tombs.Contains(id) || held != nil && !held.Contains(id)
	}
	n = min(n, info.Rows)
	if 2*n >= info.Rows { // few: shuffle all
		var live []uint32
		for id := range info.NextID {
			if !dead(id) {
				live = append(live, id)
			}
		}
		rng.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
		return live[:min(n, len(live))]
	}
	drawn := map[uint32]bool{}
	ids := make([]uint32, 0, n)
	for len(ids) < n {
		if id := uint32(rng.Uint64N(uint64(info.NextID))); !dead(id) && !drawn[id] {
			drawn[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// storePlans makes a calibration durable, unless the decoder has changed since. It also keeps the
// stored calibration of the latest other generation. That may be the generation that is served
// until the new one is published. Or it may be a newer one, published while an earlier one was
// measured.
func (c *Collection) storePlans(ctx context.Context, t *trained, of calibrate.Calibration) error {
	stored, err := c.plansOf(t)
	if err != nil {
		stored = nil // it cannot be read, and is replaced
	}
	stored = slices.DeleteFunc(stored, func(other calibrate.Calibration) bool { return other.Generation == of.Generation })
	slices.SortFunc(stored, func(a, b calibrate.Calibration) int { return cmp.Compare(b.Generation, a.Generation) })
	set := append(calibrate.Set{of}, stored[:min(1, len(stored))]...)
	if c.release != "" {
		return c.putStaged(storage.SetPlans{UID: c.uid, Name: t.name, Blob: set.Marshal()})
	}
	return c.commit(ctx, "store plans in", func(r *record, _ storage.Info) error {
		blob, ok := r.changes.Decoder(c.uid, t.name)
		if !ok || hashOf(blob) != t.hash {
			return fmt.Errorf("decoder %q was replaced or dropped meanwhile: %w", t.name, ErrNotFound)
		}
		return r.emit(storage.SetPlans{UID: c.uid, Name: t.name, Blob: set.Marshal()})
	})
}

// plansOf returns the stored calibrations of a decoder that were measured with the same weights.
func (c *Collection) plansOf(t *trained) (calibrate.Set, error) {
	var blob []byte
	err := c.view(func(v *storage.View) error {
		blob, _ = v.Plans(c.uid, t.name)
		return nil
	})
	if err != nil || blob == nil {
		return nil, err
	}
	set, err := calibrate.Unmarshal(blob)
	return slices.DeleteFunc(set, func(of calibrate.Calibration) bool { return of.Decoder != t.hash }), err
}

// on returns the calibration for the pinned generation, or nil.
func (t *trained) on(p *pinned) *calibrate.Calibration {
	if p.gen == nil {
		return nil
	}
	for i := range t.plans {
		if of := &t.plans[i]; of.Generation == p.number && of.BuildLSN == p.gen.Info().BuildLSN {
			return of
		}
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// hashOf identifies a decoder by its blob.
func hashOf(blob []byte) uint64 {
	sum := sha256.Sum256(blob)
	return binary.LittleEndian.Uint64(sum[:])
}

// untilClose returns a context that also ends when the database is closed, with the cause
// ErrClosed.
func (db *DB) untilClose(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(db.closing, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
