package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/train/graph"
)

// TestModelFits refuses models that no batch of their database holds, and says when another would.
func TestModelFits(t *testing.T) {
	const little = 64 << 20
	for name, c := range map[string]struct {
		nodes, dim, most int
		want             string
	}{
		"new database":    {50_000_000, 64, 0, ""},
		"fits":            {100_000, 64, little, ""},
		"too large":       {50_000_000, 64, flashdb.MaxBatchBytes, "existing database must fit one atomic write of 1.07 GB: train into a directory that is not there yet"},
		"too wide":        {100_000, 4096, flashdb.MaxBatchBytes, "the model takes about 1.64 GB"},
		"through another": {1_000_000, 64, little, "existing database while another process has it open must fit one atomic write of 67.1 MB"},
		"large for both":  {50_000_000, 64, little, "existing database must fit one atomic write of 67.1 MB"},
	} {
		run := trainRun{r: &trainRequest{}, g: &graph.Graph{}, mostBytes: c.most}
		run.g.Nodes, run.r.opts.Dim = c.nodes, c.dim
		err := run.fits()
		if c.want == "" {
			assert.NoError(t, err, name)
			continue
		}
		assert.ErrorContains(t, err, c.want, name)
	}
}
