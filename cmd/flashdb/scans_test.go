package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb"
)

func TestDescribeScans(t *testing.T) {
	frontier := func(k int, mean, bound float64) flashdb.Frontier {
		return flashdb.Frontier{K: k, Plans: []flashdb.PlanPoint{{Mean: .2, Bound: .1}, {Mean: mean, Bound: bound}}}
	}
	of := flashdb.Calibration{Decoder: "d", Sources: 200}
	for _, c := range []struct {
		name      string
		sources   int
		frontiers []flashdb.Frontier
		want      string
	}{
		{"reached", 200, []flashdb.Frontier{frontier(10, .99, .985), frontier(100, .99, .985)}, ""},
		{"as likely as not", 200, []flashdb.Frontier{frontier(10, .985, .97)}, ""},
		{"too few sources to tell", 3, []flashdb.Frontier{frontier(10, .9, .5)}, ""},
		{"one k", 200, []flashdb.Frontier{frontier(10, .99, .985), frontier(100, .9, .85)}, "d: for k = 100 no plan reaches recall 0.98, so that queries scan every node; the best finds 0.900: ask for less, such as --recall 85%, or measure for longer, with `flashdb calibrate --time 1m`"},
		{"no plan at all", 200, []flashdb.Frontier{{K: 10}, {K: 100}}, "d: for k = 10 and 100 no plan is faster than the exact scan, so that queries scan every node"},
	} {
		of.Sources, of.Frontiers = c.sources, c.frontiers
		assert.Equal(t, c.want, describeScans(of), c.name)
	}
}
