package prometheus

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

func TestWrite(t *testing.T) {
	var out strings.Builder
	Write(&out, flashdb.Stats{
		Disk:        flashdb.DiskUse{Store: 1 << 30},
		Collections: []flashdb.CollectionStats{{Name: `a"b\`, Nodes: 7, Written: time.Unix(1e9, 0)}, {Name: "c"}},
	}, flashdb.Metrics{
		Predicts:     3,
		Publishes:    2,
		QuerySeconds: flashdb.Histogram{Bounds: []float64{0.001, 0.002}, Counts: []uint64{1, 2, 4}, Sum: 0.5},
	})
	text := out.String()
	for _, want := range []string{
		"# TYPE flashdb_store_bytes gauge\nflashdb_store_bytes 1.073741824e+09\n",
		`flashdb_nodes{collection="a\"b\\"} 7` + "\n" + `flashdb_nodes{collection="c"} 0` + "\n",
		`flashdb_index_written_seconds{collection="a\"b\\"} 1e+09` + "\n" + `flashdb_index_written_seconds{collection="c"} 0` + "\n",
		`flashdb_queries_total{kind="predict"} 3` + "\n",
		"# TYPE flashdb_publishes_total counter\nflashdb_publishes_total 2\n",
		`flashdb_query_seconds_bucket{le="0.001"} 1` + "\n" + `flashdb_query_seconds_bucket{le="0.002"} 3` + "\n" +
			`flashdb_query_seconds_bucket{le="+Inf"} 7` + "\nflashdb_query_seconds_sum 0.5\nflashdb_query_seconds_count 7\n",
	} {
		assert.Contains(t, text, want)
	}
	// Every line is a comment or a sample, and every name is described once.
	sample := regexp.MustCompile(`^flashdb_[a-z_]+(\{[a-z]+="([^"\\]|\\.)*"\})? [0-9.e+-]+$`)
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			require.False(t, seen[name], name)
			seen[name] = true
		}
		require.True(t, strings.HasPrefix(line, "# ") || sample.MatchString(line), line)
	}
}

// TestHandler: a scrape has what Write writes, other paths and methods have nothing, and a closed
// database is unavailable.
func TestHandler(t *testing.T) {
	db, err := flashdb.Open(filepath.Join(t.TempDir(), "db"), nil)
	require.NoError(t, err)
	_, err = db.CreateCollection("papers", flashdb.Schema{Dim: 2})
	require.NoError(t, err)
	h := Handler(db)
	get := func(method, path string) *httptest.ResponseRecorder {
		r := httptest.NewRecorder()
		h.ServeHTTP(r, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		return r
	}
	r := get(http.MethodGet, "/metrics")
	assert.Equal(t, http.StatusOK, r.Code)
	assert.Equal(t, "text/plain; version=0.0.4; charset=utf-8", r.Header().Get("Content-Type"))
	assert.Contains(t, r.Body.String(), `flashdb_nodes{collection="papers"} 0`)
	assert.Equal(t, http.StatusNotFound, get(http.MethodGet, "/").Code)
	assert.Equal(t, http.StatusMethodNotAllowed, get(http.MethodPost, "/metrics").Code)
	require.NoError(t, db.Close())
	r = get(http.MethodGet, "/metrics")
	assert.Equal(t, http.StatusServiceUnavailable, r.Code)
	assert.Contains(t, r.Body.String(), "closed")
}
