package flashdb

import (
	"context"
	"errors"
	"fmt"
)

// Calibrations returns what was measured of plans for each decoder on the served
// generation, by Rebuild, PutDecoder or Calibrate; nothing of a decoder that was
// not measured.
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

// ListSizes returns the number of rows in each inverted list of the served
// generation; nothing without one.
func (c *Collection) ListSizes(ctx context.Context) ([]int, error) {
	leave, err := c.db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	p, err := c.pin(ctx)
	if err != nil {
		return nil, fmt.Errorf("lists of %q: %w", c.name, err)
	}
	defer p.release()
	if p.gen == nil {
		return nil, nil
	}
	return p.gen.ListSizes(), nil
}
