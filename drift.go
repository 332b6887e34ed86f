package flashdb

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/storage"
)

// driftSample is how many of the newer rows are compared with the centroids.
const driftSample = 256

// Drift says how far the rows of a collection have moved away from its served generation.
type Drift struct {
	// Dead counts the rows of the generation whose node was deleted or replaced since the build.
	Dead uint64
	// OldestLSN is the number of the batch that wrote the oldest row of the delta, or 0 if that is
	// empty. Batches have no times.
	OldestLSN uint64
	// Moved is (newer + deleted rows) / rows of the generation. Rows in segments are newer rows
	// too. RebuildOptions.MinDrift is compared with it.
	Moved float64
	// Residual is the root mean square distance of newer rows from their nearest centroid, divided
	// by that of the rows of the generation. It is taken over at most 256 newer rows. Above 1 the
	// lists fit the newer rows worse than their own. It is 0 without newer rows.
	Residual float64
	// RecallLoss estimates how much lower recall may be now than when it was calibrated. It is a
	// rule of thumb, not a measurement: Calibrate measures. Newer rows are assumed to be found as
	// well as the others: those in the delta are searched exactly, and docs/measurements.md has
	// what is measured of those in segments. Where the share m of the indexed rows is dead, 1/(1-m)
	// times as many misses (1 - recall) are assumed. It is 0 without a calibration, and where
	// queries scan exactly.
	RecallLoss float64
}

// drift compares the rows of the store with gen, the served generation with its segments. It also
// counts the rows in the delta.
func (c *Collection) drift(info storage.Info, gen *ivf.Index) (d Drift, inDelta uint64, err error) {
	var dirty []uint32 // newer rows: at first those of the delta
	err = c.dirty(func(id uint32, lsn uint64) error {
		if len(dirty) == 0 || lsn < d.OldestLSN {
			d.OldestLSN = lsn
		}
		dirty = append(dirty, id)
		return nil
	})
	if err != nil {
		return d, inDelta, err
	}
	inDelta = uint64(len(dirty))
	files := gen.Files()
	if len(files) > 1 {
		newer := roaring.BitmapOf(dirty...)
		for _, segment := range files[1:] {
			newer.AddMany(segment.IDs())
		}
		dirty, gen = newer.ToArray(), files[0]
	}
	rows := make([]float32, 0, driftSample*c.schema.Dim)
	var gone *roaring.Bitmap
	err = c.view(func(v *storage.View) error {
		if gone = v.Tombs(c.uid); gone != nil {
			gone = gone.Clone()
		} else {
			gone = roaring.New()
		}
		step := max(1, (len(dirty)+driftSample-1)/driftSample)
		for i := 0; i < len(dirty); i += step {
			at := len(rows)
			rows = rows[:at+c.schema.Dim]
			if !v.Row(rows[at:], c.uid, dirty[i]) {
				rows = rows[:at] // deleted since
			}
		}
		return nil
	})
	if err != nil {
		return d, inDelta, err
	}
	if gone.IsEmpty() && len(dirty) == 0 {
		return d, inDelta, nil
	}
	held := roaring.New()
	held.AddMany(gen.IDs())
	deleted := gone.AndCardinality(held)
	gone.AddMany(dirty)
	d.Dead = gone.AndCardinality(held)
	built := float64(gen.Info().Rows)
	d.Moved = float64(uint64(len(dirty))+deleted) / built
	if own := gen.Residual(); len(rows) > 0 && own > 0 {
		d.Residual = gen.ResidualOf(rows) / own
	}
	d.RecallLoss, err = c.recallLoss(pinned{gen: gen, number: info.Generation}, float64(d.Dead)/built)
	return d, inDelta, err
}

// recallLoss returns the largest estimate of all decoders: see Drift.RecallLoss.
func (c *Collection) recallLoss(p pinned, dead float64) (loss float64, err error) {
	names, err := c.storedDecoders()
	for _, name := range names {
		t, err := c.trained(name)
		if err != nil {
			continue
		}
		of := t.on(&p)
		if of == nil {
			continue
		}
		for _, f := range of.Frontiers {
			if point, ok := f.Choose(defaultRecall); ok {
				misses := 1 - point.Mean
				loss = max(loss, min(1, misses/max(1e-9, 1-dead))-misses)
			}
		}
	}
	return loss, err
}

// drifted returns why a rebuild can wait. It returns "" when the share of moved rows is at least
// least, or when there is no usable index.
func (c *Collection) drifted(info storage.Info, least float64) (reason string, err error) {
	gen := c.openGeneration(info)
	if gen == nil {
		return "", nil
	}
	defer gen.Release()
	d, _, err := c.drift(info, gen)
	if err != nil || d.Moved >= least {
		return "", err
	}
	return fmt.Sprintf("%.3g%% of the rows moved since the last rebuild, less than %.3g%%", 100*d.Moved, 100*least), nil
}
