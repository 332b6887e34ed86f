package flashdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/internal/calibrate"
)

// A Calibration says what plans achieve for one decoder on the served generation, measured against
// the best rows that all plans and a sample of the others hold.
type Calibration struct {
	Decoder          string
	SourceCollection string // of the sources
	Generation       uint64
	Rows             int
	Sources          int           // asked
	Exact            time.Duration // median of an exact scan, of one core
	Seeds            int           // sources that learned seeds were trained on; 0: there are none
	Frontiers        []Frontier    // for k = 10 and 100
}

// A Frontier is the plans worth choosing for the k best, cheapest first; each further one has a
// higher bound, or a higher recall of its poorest sources or relation.
type Frontier struct {
	K     int
	Plans []PlanPoint
}

// A PlanPoint is one plan and what it achieved.
type PlanPoint struct {
	Plan flashlight.Plan
	// Recall over the sources: mean, 5th percentile, worst, and what may be promised: a lower bound
	// of the mean with 95% confidence, lower still where the mean of one kind of source is.
	Mean, P5, Worst, Bound float64
	// Relation is the one with the lowest mean recall, and RelationMean that recall, of those with
	// at least 8 sources, in both directions together; empty for a decoder without relations. It is
	// no bound: Bound is one of the mean over all relations.
	Relation     string
	RelationMean float64
	// RowsScored and CodesScanned are means per source.
	RowsScored, CodesScanned float64
	// Time is the mean, of one core.
	Time time.Duration
}

// Calibrations returns what Rebuild, PutDecoder or Calibrate measured of plans on the served
// generation, for each decoder that was measured.
func (c *Collection) Calibrations(ctx context.Context) ([]Calibration, error) {
	leave, err := c.db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := c.info()
	if err != nil {
		return nil, fmt.Errorf("calibrations of %q: %w", c.name, err)
	}
	if info.Generation == 0 {
		return nil, nil
	}
	gen, err := c.checkedGeneration(info) // no rows are read, so that a large one need not be
	if err != nil {
		return nil, nil // queries scan, and Stats says why
	}
	p := pinned{gen: gen, number: info.Generation}
	defer p.release()
	var all []Calibration
	names, err := c.storedDecoders()
	if err != nil {
		return nil, fmt.Errorf("calibrations of %q: %w", c.name, err)
	}
	for _, name := range names {
		t, err := c.trained(name)
		if errors.Is(err, ErrNotFound) {
			continue // dropped meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("calibrations of %q: %w", c.name, err)
		}
		if of := t.on(&p); of != nil {
			all = append(all, c.shown(t, of))
		}
	}
	return all, nil
}

// shown returns a calibration as users see it.
func (c *Collection) shown(t *trained, of *calibrate.Calibration) Calibration {
	s := Calibration{
		Decoder: t.name, SourceCollection: of.SourcesFrom, Generation: of.Generation, Rows: of.Rows, Sources: of.Sources,
		Exact: seconds(of.ExactSeconds), Seeds: of.Seeds.Len(),
	}
	if s.SourceCollection == "" {
		s.SourceCollection = c.name
	}
	for _, f := range of.Frontiers {
		points := make([]PlanPoint, len(f.Points))
		for i, p := range f.Points {
			points[i] = PlanPoint{
				Plan: p.Plan, Mean: p.Mean, P5: p.P5, Worst: p.Worst, Bound: p.Bound,
				Relation: p.Relation, RelationMean: p.RelationMean, RowsScored: p.RowsScored, CodesScanned: p.CodesScanned, Time: seconds(p.Seconds),
			}
		}
		s.Frontiers = append(s.Frontiers, Frontier{K: f.K, Plans: points})
	}
	return s
}
