// Package prometheus writes what a database holds and has done in the text format of Prometheus,
// for a file or for scrapes.
package prometheus

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb"
)

// A writer writes metrics in the text format of Prometheus.
type writer struct{ w io.Writer }

func (p writer) head(name, kind, help string) {
	fmt.Fprintf(p.w, "# HELP flashdb_%s %s\n# TYPE flashdb_%s %s\n", name, help, name, kind)
}

// value writes one sample; labels are names and values in turn.
func (p writer) value(name string, v float64, labels ...string) {
	var b strings.Builder
	for i := 0; i < len(labels); i += 2 {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		fmt.Fprintf(&b, `%s%s="%s"`, sep, labels[i], escape.Replace(labels[i+1]))
	}
	if b.Len() > 0 {
		b.WriteString("}")
	}
	fmt.Fprintf(p.w, "flashdb_%s%s %s\n", name, b.String(), strconv.FormatFloat(v, 'g', -1, 64))
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (p writer) one(name, kind, help string, v float64) {
	p.head(name, kind, help)
	p.value(name, v)
}

func (p writer) histogram(name, help string, h flashdb.Histogram) {
	p.head(name, "histogram", help)
	total := uint64(0)
	for i, bound := range h.Bounds {
		total += h.Counts[i]
		p.value(name+"_bucket", float64(total), "le", strconv.FormatFloat(bound, 'g', -1, 64))
	}
	p.value(name+"_bucket", float64(h.Count()), "le", "+Inf")
	p.value(name+"_sum", h.Sum)
	p.value(name+"_count", float64(h.Count()))
}

// Handler answers GET /metrics with what db holds and has done. It is safe for concurrent use.
func Handler(db *flashdb.DB) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		stats, err := db.Stats(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		Write(w, stats, db.Metrics())
	})
	return mux
}

// Write writes what a database holds and what its owner has done.
func Write(w io.Writer, s flashdb.Stats, m flashdb.Metrics) {
	p := writer{w}
	p.one("store_bytes", "gauge", "Size of the bbolt file.", float64(s.Disk.Store))
	p.one("wal_bytes", "gauge", "Size of the log.", float64(s.Disk.WAL))
	p.one("durable_lsn", "counter", "Number of the last acknowledged write.", float64(s.DurableLSN))
	p.one("applied_lsn", "counter", "Number of the last write in the bbolt file.", float64(s.AppliedLSN))
	for _, g := range []struct {
		name, help string
		of         func(flashdb.CollectionStats) float64
	}{
		{"nodes", "Live nodes.", func(c flashdb.CollectionStats) float64 { return float64(c.Nodes) }},
		{"tombstones", "Deleted ids.", func(c flashdb.CollectionStats) float64 { return float64(c.Tombstones) }},
		{"generation", "Number of the served index, 0 for none.", func(c flashdb.CollectionStats) float64 { return float64(c.Generation) }},
		{"indexed_rows", "Rows of the served index.", func(c flashdb.CollectionStats) float64 { return float64(c.IndexedRows) }},
		{"index_segments", "Segments of the served index, with newer rows.", func(c flashdb.CollectionStats) float64 { return float64(c.Segments) }},
		{"index_bytes", "Size of the served index.", func(c flashdb.CollectionStats) float64 { return float64(c.IndexBytes) }},
		{"index_damaged", "1 when there is an index that is damaged or missing, until it is rebuilt.", func(c flashdb.CollectionStats) float64 {
			if c.IndexDamaged {
				return 1
			}
			return 0
		}},
		{"index_written_seconds", "When the file of the served index was written, since 1970; 0 for none.", func(c flashdb.CollectionStats) float64 {
			if c.Written.IsZero() {
				return 0
			}
			return float64(c.Written.Unix())
		}},
		{"delta_rows", "Rows newer than the served index.", func(c flashdb.CollectionStats) float64 { return float64(c.DeltaRows) }},
	} {
		p.head(g.name, "gauge", g.help)
		for _, c := range s.Collections {
			p.value(g.name, g.of(c), "collection", c.Name)
		}
	}
	p.head("queries_total", "counter", "Answered queries since the database was opened.")
	p.value("queries_total", float64(m.Predicts), "kind", "predict")
	p.value("queries_total", float64(m.Searches), "kind", "search")
	p.histogram("query_seconds", "Times of answered queries.", m.QuerySeconds)
	p.histogram("write_seconds", "Times until a change was durable.", m.WriteSeconds)
	for _, c := range []struct {
		name, help string
		v          uint64
	}{
		{"query_errors_total", "Queries that failed.", m.QueryErrors},
		{"exact_scans_total", "Answers that scored every node.", m.ExactScans},
		{"rounds_total", "Flashlight rounds.", m.Rounds},
		{"lists_probed_total", "Inverted lists visited.", m.ListsProbed},
		{"codes_scanned_total", "Codes scanned.", m.CodesScanned},
		{"rows_scored_total", "Rows scored by a decoder.", m.RowsScored},
		{"writes_total", "Durable atomic changes.", m.Writes},
		{"write_errors_total", "Changes that failed or were refused.", m.WriteErrors},
		{"flushes_total", "Flushes in the background.", m.Flushes},
		{"flush_errors_total", "Flushes that failed.", m.FlushErrors},
		{"rebuilds_total", "Finished rebuilds.", m.Rebuilds},
		{"rebuild_errors_total", "Rebuilds that failed or were refused.", m.RebuildErrors},
		{"indexes_unusable_total", "Indexes that could not be served.", m.IndexesUnusable},
		{"publishes_total", "Releases that were published.", m.Publishes},
		{"publish_errors_total", "Publishes that failed or were refused.", m.PublishErrors},
		{"rollbacks_total", "Releases that were gone back to.", m.Rollbacks},
	} {
		p.one(c.name, "counter", c.help, float64(c.v))
	}
	p.one("open_snapshots", "gauge", "Snapshots that are not closed.", float64(m.OpenSnapshots))
}
