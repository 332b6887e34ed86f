package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRewrite(t *testing.T) {
	named := func(words []string) (table, error) {
		require.Equal(t, []string{"results", "debian"}, words)
		return table{header: []string{"setting", "ms"}, rows: [][]string{{"exact", "12"}}}, nil
	}
	const before = "# Title\n\n<!-- bench: results debian -->\nold\nrows\n<!-- end of bench table -->\nprose\n"
	const after = "# Title\n\n<!-- bench: results debian -->\n| setting | ms |\n|---|--:|\n| exact | 12 |\n<!-- end of bench table -->\nprose\n"
	got, err := rewrite(before, named)
	require.NoError(t, err)
	assert.Equal(t, after, got)
	again, err := rewrite(got, named)
	require.NoError(t, err)
	assert.Equal(t, after, again, "a second time changes nothing")
}

func TestRewriteRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"no end":        {"<!-- bench: machine -->\n", "line 1 has no end"},
		"end alone":     {"x\n<!-- end of bench table -->\n", "line 2"},
		"nested":        {"<!-- bench: machine -->\n<!-- bench: machine -->\n", "line 2"},
		"unknown table": {"<!-- bench: nonsense -->\n<!-- end of bench table -->\n", `unknown table "nonsense"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rewrite(tt.text, (&resultSet{}).named)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestFrontier(t *testing.T) {
	result := func(setting string, recall, qps float64) resultRecord {
		return resultRecord{Peer: flashdbPeer, Graph: "g", Setting: setting, RecallMean: recall, QPS1: qps}
	}
	all := []resultRecord{
		result("slow and poor", .8, 10),
		result("exact", 1, 5),
		result("fast", .9, 100),
		result("as exact, slower", 1, 4),
		result("middle", .95, 50),
		{Peer: "other", Graph: "g", Setting: "other program", RecallMean: 1, QPS1: 1000},
		{Peer: flashdbPeer, Graph: "h", Setting: "other graph", RecallMean: 1, QPS1: 1000},
	}
	var names []string
	for _, r := range frontier(all, flashdbPeer, "g") {
		names = append(names, r.Setting)
	}
	assert.Equal(t, []string{"fast", "middle", "exact"}, names)
}

func TestParseRecords(t *testing.T) {
	var r resultSet
	for _, line := range []string{
		`{"kind":"machine","cores":2}`,
		`{"kind":"result","peer":"flashdb","graph":"g","setting":"exact scan","recall_mean":1,"qps1":10,"qps2":20}`,
		`{"peer":"faiss","graph":"g","setting":"nprobe 64","recall_mean":0.97,"recall_p5":0.9,"recall_worst":0.5,"ms_p50":5.5,"ms_p99":7,"qps1":20}`,
		`{"peer":"torch","graph":"g","setting":"exhaustive","threads":2,"recall_mean":1,"qps1":30}`,
	} {
		require.NoError(t, r.parse([]byte(line)))
	}
	got := resultTable(r.results, "g", everyResult)
	require.Len(t, got.rows, 3)
	assert.Equal(t, "faiss: nprobe 64", got.rows[1][0])
	assert.Equal(t, "2.00", got.rows[1][8], "a peer's ratio is that of the rates")
	assert.Equal(t, []string{"-", "30.0", "1.50"}, got.rows[2][6:9], "a rate of two threads is one of two cores")

	assert.ErrorContains(t, r.parse([]byte(`{"graph":"g"}`)), `without "peer"`)
	assert.ErrorContains(t, r.parse([]byte(`{"kind":"odd"}`)), `"odd"`)
	assert.Error(t, r.parse([]byte(`nonsense`)))
}

func TestPartTakes(t *testing.T) {
	for _, want := range []int64{1, 7, 50, 99, 100} {
		var taken int64
		for i := range int64(100) {
			if (part{candidates: want}).takes(i, 100) {
				taken++
			}
		}
		assert.Equal(t, want, taken)
	}
	assert.True(t, part{}.takes(5, 100), "no number means all")
}

func TestUnknownCommand(t *testing.T) {
	var out strings.Builder
	require.ErrorContains(t, run(t.Context(), []string{"nonsense"}, &out, &out), `unknown command "nonsense"`)
	require.ErrorContains(t, run(t.Context(), []string{"graph", "extra"}, &out, &out), `unexpected argument "extra"`)
}
