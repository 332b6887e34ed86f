package main

import (
	"fmt"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/report"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

// reportDelta says what the served index does not hold and how old that may be, or nothing when
// there is no index. Writes bear no times, so that the age of a row is told by its number and
// bounded by the build of the index.
func reportDelta(all flashdb.Stats, s flashdb.CollectionStats, now time.Time) *report.Delta {
	if s.Generation == 0 {
		return nil
	}
	d := &report.Delta{Facts: []report.Fact{
		{Name: "index written", Value: "unknown"},
		{Name: "writes since its build", Value: show.Number(all.DurableLSN - s.BuildLSN), Note: "of all collections"},
		{Name: "newer rows", Value: show.Number(s.DeltaRows), Note: "not indexed as yet: every query scans them"},
		{Name: "dead in the index", Value: show.Number(s.Drift.Dead), Note: "rows deleted or replaced"},
		{Name: "moved", Value: fmt.Sprintf("%.3g%%", 100*s.Drift.Moved), Note: "newer and deleted, of the rows indexed"},
	}}
	if !s.Written.IsZero() {
		d.Facts[0].Value, d.Facts[0].Note = ago(now.Sub(s.Written)), s.Written.Format("2006-01-02 15:04 MST")+", by the date of its file"
	}
	d.Text = "The index holds every row as it is now."
	if s.DeltaRows > 0 {
		d.Text = fmt.Sprintf("The oldest newer row is of write %s of %s. Writes bear no times, but that one came "+
			"after the build of the index began.", show.Number(s.Drift.OldestLSN), show.Number(all.DurableLSN))
	}
	if s.DeltaRows > 0 && s.Drift.Residual > 0 {
		d.Text += fmt.Sprintf(" Newer rows lie %.3g times as far from their centroids as those of the index.", s.Drift.Residual)
	}
	if s.Drift.RecallLoss >= .0005 {
		d.Text += fmt.Sprintf(" By a rule of thumb recall may have lost %.3f.", s.Drift.RecallLoss)
	}
	return d
}

// ago writes how long ago something was.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return show.Count(int(d.Minutes()), "minute") + " ago"
	case d < 48*time.Hour:
		return show.Count(int(d.Hours()), "hour") + " ago"
	}
	return show.Count(int(d.Hours()/24), "day") + " ago"
}
