package browse

import (
	"fmt"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

// growth says how the rows have changed since the index was built.
type growth struct {
	Indexed uint64 `json:"indexed"` // rows of the index that queries find
	Newer   uint64 `json:"newer"`   // that queries search without it
	Dead    uint64 `json:"dead"`    // rows of the index whose nodes were deleted or replaced
	Facts   []fact `json:"facts"`
}

// growthOf returns nil if there is no index.
func growthOf(c flashdb.CollectionStats, all flashdb.Stats) *growth {
	if c.Generation == 0 || c.IndexDamaged {
		return nil
	}
	dead := min(c.Drift.Dead, c.IndexedRows)
	g := &growth{Indexed: c.IndexedRows - dead, Newer: c.DeltaRows, Dead: dead, Facts: []fact{
		{"newer rows", show.Number(c.DeltaRows), "every query scans them, until there are enough for a segment"},
		{"rows in segments", show.Number(c.SegmentRows), "newer rows that are indexed beside it, in " + show.Count(c.Segments, "file")},
		{"dead rows", show.Number(dead), "of nodes deleted or replaced since; the index skips them"},
		{"rows moved", fmt.Sprintf("%.3g%%", 100*c.Drift.Moved), "newer and deleted, of the indexed ones; rebuild from about 20% on"},
		{"writes since", show.Number(all.DurableLSN - min(c.BuildLSN, all.DurableLSN)), "of all collections, since its build began"},
	}}
	if c.DeltaRows > 0 && c.Drift.Residual > 0 {
		g.Facts = append(g.Facts, fact{"fit of newer rows", fmt.Sprintf("%.3g×", c.Drift.Residual), "as far from their centroids as the indexed ones; above 1 the lists suit them less"})
	}
	if c.Drift.RecallLoss >= .0005 {
		g.Facts = append(g.Facts, fact{"recall lost", fmt.Sprintf("%.3f", c.Drift.RecallLoss), "perhaps, by a rule of thumb"})
	}
	return g
}
