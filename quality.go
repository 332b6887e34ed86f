package flashdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/internal/calibrate"
)

// defaultTolerance is by how much recall at equal cost may fall from one generation to the next.
const defaultTolerance = 0.01

// qualify calibrates every decoder on a generation that was built but is not served yet, and
// compares it with the served one on the same sources. It returns an error that matches ErrQuality
// if the recall of the new one is too low. It stores the calibrations last. They apply once the
// generation is published; until then those of the served generation do.
func (c *Collection) qualify(ctx context.Context, gen *ivf.Index, number uint64, o RebuildOptions) ([]Calibration, error) {
	co, ok := c.calibrateOptions(o)
	if !ok {
		return nil, nil
	}
	built := c.alone(pinned{gen: gen, number: number})
	var trainedAll []*trained
	var results []*calibrate.Result
	names, err := c.storedDecoders()
	if err != nil { // without names nothing would be compared, and a worse index could be published
		return nil, err
	}
	for _, name := range names {
		t, err := c.trained(name)
		if err != nil { // the other decoders still get a new index
			c.db.slog.Warn("decoder not calibrated", "collection", c.name, "decoder", name, "err", err)
			continue
		}
		res, err := c.measure(ctx, t, built, co)
		if err != nil {
			return nil, fmt.Errorf("decoder %q: %w", name, err)
		}
		if err := c.compare(ctx, t, res, built, o); err != nil {
			return nil, fmt.Errorf("decoder %q: %w", name, err)
		}
		trainedAll, results = append(trainedAll, t), append(results, res)
	}
	var all []Calibration
	for i, t := range trainedAll {
		err := c.storePlans(ctx, t, results[i].Calibration)
		if errors.Is(err, ErrNotFound) { // replaced or dropped meanwhile
			c.db.slog.Warn("calibration not stored", "collection", c.name, "decoder", t.name, "err", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, c.shown(t, &results[i].Calibration))
	}
	return all, nil
}

// calibrateOptions returns the options for the calibrations of a rebuild, or false if it does not
// calibrate.
func (c *Collection) calibrateOptions(o RebuildOptions) (CalibrateOptions, bool) {
	off := o.CalibrateTime < 0 || (o.CalibrateTime == 0 && c.db.opts.CalibrateTime < 0)
	return CalibrateOptions{Time: o.CalibrateTime, Progress: o.Progress, workers: o.Workers}, !off
}

// calibratePut calibrates the decoders that were put or replaced while the generation now served
// was built: PutDecoder has calibrated them on the one before. Errors are logged, and the
// generation stays published.
func (c *Collection) calibratePut(ctx context.Context, o RebuildOptions) (all []Calibration) {
	co, ok := c.calibrateOptions(o)
	if !ok {
		return nil
	}
	names, err := c.storedDecoders()
	if err != nil {
		c.db.slog.Warn("decoders not calibrated", "collection", c.name, "err", err)
	}
	for _, name := range names {
		missing, err := c.uncalibrated(ctx, name)
		if err == nil && missing {
			co.Decoder = name
			var of []Calibration
			of, err = c.calibrate(ctx, co)
			all = append(all, of...)
		}
		if err != nil {
			c.db.slog.Warn("decoder not calibrated", "collection", c.name, "decoder", name, "err", err)
		}
	}
	return all
}

// uncalibrated reports whether a decoder has no calibration on the served generation.
func (c *Collection) uncalibrated(ctx context.Context, name string) (bool, error) {
	t, err := c.trained(name)
	if err != nil {
		return false, err
	}
	p, err := c.pin(ctx)
	if err != nil {
		return false, err
	}
	defer p.release()
	return p.gen != nil && t.on(&p) == nil, nil
}

// compare is the quality gate for one decoder. It runs the plan that queries use now on the served
// generation and on the built one, whose recall must not be lower by more than the tolerance.
func (c *Collection) compare(ctx context.Context, t *trained, res *calibrate.Result, built pinned, o RebuildOptions) error {
	if o.Force {
		return nil
	}
	served, err := c.pin(ctx)
	if err != nil {
		return err
	}
	defer served.release()
	if served.gen == nil {
		return nil // the first index, or one that replaces a damaged one
	}
	k := res.Frontiers[len(res.Frontiers)-1].K
	old := calibrate.Served{Plan: flashlight.DefaultPlan(k, served.gen.Info().Rows)}
	if of := t.on(&served); of != nil {
		f, _ := of.For(k)
		if len(f.Points) == 0 {
			return nil // queries always scan exactly
		}
		point, _ := f.Choose(defaultRecall) // or else the best plan
		old.Plan, old.Seeds = point.Plan, of.Seeds
	}
	var before, after []float64
	err = served.gen.Guard(func() error {
		return built.gen.Guard(func() (err error) {
			old.Engine = c.engine(served)
			before, after, err = res.Compare(ctx, old, calibrate.Served{Engine: c.engine(built), Plan: old.Plan, Seeds: res.Seeds}, k)
			return err
		})
	})
	if err != nil {
		return err
	}
	tolerance := o.Tolerance
	if tolerance == 0 {
		tolerance = defaultTolerance
	}
	if calibrate.Worse(before, after, tolerance) {
		return fmt.Errorf("%w: recall at equal cost falls from %s to %s on %d sources, by more than %g: generation %d stays served; find out why, or publish all the same with Force or a larger Tolerance",
			ErrQuality, share(calibrate.Mean(before)), share(calibrate.Mean(after)), len(before), tolerance, served.number)
	}
	return nil
}

// discard releases and removes a generation that was built and is not published.
func (c *Collection) discard(gen *ivf.Index, number uint64) error {
	return errors.Join(gen.Release(), c.db.fs.Remove(generationName(c.name, number)))
}
