package flashdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/internal/calibrate"
)

// A Calibration says what recall plans reach for one decoder on the served generation. The recall
// is measured against the best rows that all plans and a sample of the other rows have found.
type Calibration struct {
	Decoder          string
	SourceCollection string // of the sources
	Generation       uint64
	Rows             int
	Sources          int           // asked
	Exact            time.Duration // median of an exact scan, on one core
	Seeds            int           // sources that learned seeds were trained on; 0 means no learned seeds
	Frontiers        []Frontier    // for k = 10 and 100
}

// A Frontier holds the plans worth choosing for one k, cheapest first. Each has a higher bound than
// the cheaper ones, or a higher recall for its poorest sources or relation.
type Frontier struct {
	K     int
	Plans []PlanPoint
}

// A PlanPoint is one plan and what was measured of it.
type PlanPoint struct {
	Plan flashlight.Plan
	// Recall over the sources: mean, 5th percentile, worst, and a lower bound of the mean with 95%
	// confidence. The bound is lower still where one kind of source has a lower mean.
	Mean, P5, Worst, Bound float64
	// Relation is the relation with the lowest mean recall of those with at least 4 sources, both
	// directions counted together. RelationMean is that recall. It is no bound: Bound is for the
	// mean over all relations. Relation is empty for a decoder without relations.
	Relation     string
	RelationMean float64
	// RowsScored and CodesScanned are means for one query.
	RowsScored, CodesScanned float64
	// Time is the mean time of a query on one core.
	Time time.Duration
}

// Choose returns the plan that a query for K nodes takes if it asks for the recall: the cheapest
// whose bound reaches it, or one that serves the poorest sources better and costs at most half as
// much again. If no bound reaches the recall it returns the best plan and false. Then a query scans
// every node; only one that asks for no recall takes the best plan, if its mean reaches 0.98.
func (f Frontier) Choose(recall float64) (PlanPoint, bool) {
	of := calibrate.Frontier{K: f.K}
	for _, p := range f.Plans {
		of.Points = append(of.Points, calibrate.Point{
			Plan: p.Plan, Mean: p.Mean, P5: p.P5, Worst: p.Worst, Bound: p.Bound,
			Relation: p.Relation, RelationMean: p.RelationMean, Seconds: p.Time.Seconds(),
		})
	}
	chosen, reached := of.Choose(recall)
	if i := slices.Index(of.Points, chosen); i >= 0 {
		return f.Plans[i], reached
	}
	return PlanPoint{}, false
}

// Calibrations returns what Rebuild, PutDecoder or Calibrate measured on the served generation, one
// Calibration for each decoder that was measured.
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
	var p pinned
	if c.frozen != nil {
		p, err = c.pin(ctx)
	} else {
		p.gen, info, err = c.checkedGeneration(info) // no rows are read, so the file need not be verified
		p.number = info.Generation
	}
	if err != nil {
		return nil, nil // queries scan exactly, and Stats says why
	}
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

// shown returns a calibration in its exported form.
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
