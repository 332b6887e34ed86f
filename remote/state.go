package remote

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/flashdb/flashdb/internal/calibrate"
)

// A calibration is stored as a meta value of the local collection, one for each decoder.
const metaPlans = "flashdb.remote.plans." // followed by the decoder's name

// stored is the JSON of a meta value.
type stored struct {
	Version  string   `json:"version"`  // of the rows
	Plans    string   `json:"plans"`    // calibrate.Set.Marshal, in base64
	SeedKeys []string `json:"seedKeys"` // sources of the learned seeds, by their id in it
}

// storedPlans returns the calibration of a decoder of a version, or nil if there is none. One that
// cannot be read counts as none, because it can be measured again.
func (c *Collection) storedPlans(ctx context.Context, version, decoder string) (*plans, error) {
	value, ok, err := c.local.Meta(ctx, metaPlans+decoder)
	if err != nil || !ok {
		return nil, err
	}
	var of stored
	if err := json.Unmarshal([]byte(value), &of); err != nil || of.Version != version {
		return nil, nil
	}
	blob, err := base64.StdEncoding.DecodeString(of.Plans)
	if err == nil {
		var set calibrate.Set
		if set, err = calibrate.Unmarshal(blob); err == nil && len(set) == 1 {
			return &plans{Calibration: set[0], seedKeys: of.SeedKeys}, nil
		}
	}
	c.db.opts.Logger.Warn("calibration cannot be read", "collection", c.name, "decoder", decoder, "err", err)
	return nil, nil
}

// storePlans stores a calibration of a decoder.
func (c *Collection) storePlans(ctx context.Context, version, decoder string, p *plans) error {
	set := calibrate.Set{p.Calibration}
	value, err := json.Marshal(stored{Version: version, Plans: base64.StdEncoding.EncodeToString(set.Marshal()), SeedKeys: p.seedKeys})
	if err != nil {
		return err
	}
	if err := c.local.SetMeta(ctx, metaPlans+decoder, string(value)); err != nil {
		return fmt.Errorf("store the calibration: %w", err)
	}
	return nil
}
