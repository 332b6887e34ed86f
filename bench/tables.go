package main

import (
	"fmt"
	"slices"
	"strings"
)

// machineTable has a row a machine and program, since several runs may have been on the same.
func machineTable(machines []machineRecord) table {
	t := table{
		title:  "Machine",
		header: []string{"processor", "features", "cores", "memory GB", "system", "Go", "flashdb", "date", "load before each run"},
	}
	for _, m := range machines {
		cells := []string{
			orAbsent(m.CPU), orAbsent(strings.Join(m.Features, " ")), fmt.Sprint(m.Cores),
			significant(float64(m.MemoryBytes) / 1e9), m.OS + "/" + m.Arch, m.Go, orAbsent(m.Revision), m.Date,
		}
		same := func(row []string) bool { return slices.Equal(row[:len(cells)], cells) }
		if i := slices.IndexFunc(t.rows, same); i >= 0 {
			t.rows[i][len(cells)] += ", " + orAbsent(m.Load)
			continue
		}
		t.add(append(cells, orAbsent(m.Load))...)
	}
	return t
}

func orAbsent(s string) string {
	if s == "" {
		return absent
	}
	return s
}

// buildTable has a row a graph: what import and index took. Bytes a row count all that is in the
// directory.
func buildTable(builds []buildRecord, queries []queriesRecord) table {
	t := table{
		title: "Build, default options on all cores",
		header: []string{
			"graph", "rows", "dim", "lists", "import s", "index s", "calibrate s", "on sources", "index B/row", "store B/row", "disk B/row",
			"peak MB, import and index", "without mapped files", "peak MB, queries", "without mapped files",
		},
	}
	for _, b := range builds {
		var q queriesRecord
		if i := slices.IndexFunc(queries, func(q queriesRecord) bool { return q.Graph == b.Graph }); i >= 0 {
			q = queries[i]
		}
		perRow := func(bytes int64) string { return significant(float64(bytes) / float64(b.Rows)) }
		t.add(
			b.Graph, grouped(b.Rows), fmt.Sprint(b.Dim), grouped(int64(b.Lists)),
			significant(b.ImportSeconds), significant(b.BuildSeconds),
			significant(b.CalibrateSeconds), fmt.Sprint(b.CalibrateSources),
			perRow(b.IndexBytes), perRow(b.StoreBytes+b.LogBytes), perRow(b.IndexBytes+b.StoreBytes+b.LogBytes),
			megabytes(b.PeakBytes), megabytes(b.PeakAnonymousBytes),
			megabytes(q.PeakBytes), megabytes(q.PeakAnonymousBytes),
		)
	}
	return t
}

// everyResult keeps all results.
func everyResult(resultRecord) bool { return true }

// namedResult keeps what is not of the grid of plans.
func namedResult(r resultRecord) bool { return !r.Grid }

// resultTable has a row a setting of flashdb and of every peer on one graph.
func resultTable(all []resultRecord, graph string, keep func(resultRecord) bool) table {
	t := table{
		title: "Graph " + graph,
		header: []string{
			"setting", "recall mean", "p5", "worst", "p50 ms", "p99 ms", "q/s, 1 core", "q/s, 2 cores", "x exact scan",
			"rows scored", "codes scanned", "rows visited",
		},
	}
	exact := exactResult(all, graph)
	for _, r := range all {
		if r.Graph != graph || !keep(r) {
			continue
		}
		if r.Threads == 2 {
			r.QPS1, r.QPS2 = 0, r.QPS1 // both cores work on one query at a time
		}
		if r.Peer != flashdbPeer {
			r.VersusExact = versusRate(r, exact)
		}
		t.add(
			label(r), share(r.RecallMean), share(r.RecallP5), share(r.RecallWorst),
			significant(r.P50), significant(r.P99), significant(r.QPS1), significant(r.QPS2), significant(r.VersusExact),
			significant(r.RowsScored), significant(r.CodesScanned), percent(r.VisitedShare),
		)
	}
	return t
}

// versusRate compares with the exact scan a result that another process measured: only rates on as
// many cores compare.
func versusRate(r, exact resultRecord) float64 {
	switch {
	case r.QPS1 > 0 && exact.QPS1 > 0:
		return r.QPS1 / exact.QPS1
	case r.QPS2 > 0 && exact.QPS2 > 0:
		return r.QPS2 / exact.QPS2
	}
	return 0
}

// label names a result among those of all programs.
func label(r resultRecord) string {
	if r.Peer == flashdbPeer {
		return r.Setting
	}
	return r.Peer + ": " + r.Setting
}

// exactResult is the graph's exact scan; the zero result where there is none.
func exactResult(all []resultRecord, graph string) resultRecord {
	for _, r := range all {
		if r.Peer == flashdbPeer && r.Graph == graph && r.Setting == exactSetting {
			return r
		}
	}
	return resultRecord{}
}

// frontier returns the results of one program on one graph that no other result of it beats in both
// mean recall and queries per second, by ascending recall.
func frontier(all []resultRecord, peer, graph string) []resultRecord {
	var best []resultRecord
	for _, r := range all {
		if r.Peer == peer && r.Graph == graph {
			best = append(best, r)
		}
	}
	// From the highest recall down, a result counts when it is faster than all that find more.
	slices.SortStableFunc(best, func(x, y resultRecord) int {
		switch {
		case x.RecallMean != y.RecallMean:
			return compareDescending(x.RecallMean, y.RecallMean)
		default:
			return compareDescending(x.QPS1, y.QPS1)
		}
	})
	fastest := 0.0
	best = slices.DeleteFunc(best, func(r resultRecord) bool {
		if r.QPS1 <= fastest {
			return true
		}
		fastest = r.QPS1
		return false
	})
	slices.Reverse(best)
	return best
}

func compareDescending(x, y float64) int {
	switch {
	case x > y:
		return -1
	case x < y:
		return 1
	}
	return 0
}

// growthTable has a row a size, and last the exponents fitted to all sizes.
func growthTable(growth []growthRecord) table {
	t := table{
		title:  "Growth",
		header: []string{"rows", "lists", "exact scan ms", "default plan ms", "x exact scan", "recall mean", "of sources", "rows visited"},
	}
	for _, g := range growth {
		if g.Setting != exactSetting {
			continue
		}
		for _, fast := range growth {
			if fast.Rows == g.Rows && fast.Setting == defaultSetting {
				t.add(grouped(g.Rows), grouped(int64(g.Lists)), significant(g.P50), significant(fast.P50),
					significant(g.P50/fast.P50), share(fast.RecallMean), fmt.Sprint(fast.RecallSources), percent(fast.VisitedShare))
			}
		}
	}
	if len(t.rows) >= 2 {
		t.add("exponent", "", exponent(growth, exactSetting), exponent(growth, defaultSetting), "", "", "", "")
	}
	return t
}

// series returns the sizes and median times of one setting.
func series(growth []growthRecord, setting string) (rows, ms []float64) {
	for _, g := range growth {
		if g.Setting == setting {
			rows, ms = append(rows, float64(g.Rows)), append(ms, g.P50)
		}
	}
	return rows, ms
}

func exponent(growth []growthRecord, setting string) string {
	_, e := fitExponent(series(growth, setting))
	return fmt.Sprintf("%.2f", e)
}
