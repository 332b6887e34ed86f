package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
	"github.com/flashdb/flashdb/decoder"
)

// overflowing makes a database whose decoder overflows: against source the others score plus
// infinity twice, minus infinity, NaN and two numbers.
func overflowing(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	var rows strings.Builder
	for _, r := range []struct{ key, values string }{
		{"source", "1e20, 1e20"},
		{"low", "-1e20, -1e20"},
		{"nan", "1e20, -1e20"},
		{"one", "1e-20, 0"},
		{"high", "1e20, 1e20"},
		{"large", "1e18, 0"},
		{"higher", "1e22, 1"},
	} {
		fmt.Fprintf(&rows, "{\"key\": %q, \"embedding\": [%s]}\n", r.key, r.values)
	}
	require.NoError(t, os.WriteFile("rows.jsonl", []byte(rows.String()), 0o600))
	for _, line := range []string{"create db c --dim 2", "import db c rows.jsonl"} {
		code, _, errOut := runLine(strings.Fields(line)...)
		require.Zero(t, code, errOut)
	}
	// A linear decoder sums in float64. Of a network the hidden values overflow, here x0 y0 and x1
	// y1, and infinities of both signs add up to NaN.
	sum, err := decoder.New(decoder.Spec{Kind: "hadamard_mlp", Dim: 2, Layers: []decoder.LayerSpec{
		{Weight: "w0", Activation: "leaky_relu"}, {Weight: "w1", Activation: "identity"},
	}}, map[string]decoder.Tensor{
		"w0": {Shape: []int{2, 2}, Data: []float32{1, 0, 0, 1}},
		"w1": {Shape: []int{1, 2}, Data: []float32{1, 1}},
	})
	require.NoError(t, err)
	db, err := flashdb.Open("db", nil)
	require.NoError(t, err)
	c, err := db.Collection("c")
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(context.Background(), "sum", sum))
	require.NoError(t, db.Close())
}

// A scored line of any output: key, score and probability, in words that strconv.ParseFloat reads.
type scoredLine [3]string

func (l scoredLine) floats(t *testing.T) [2]float32 {
	t.Helper()
	var out [2]float32
	for i, text := range l[1:] {
		f, err := strconv.ParseFloat(text, 32)
		require.NoError(t, err)
		out[i] = float32(f)
	}
	return out
}

// TestOverflowingScoresAreTheSameInEveryFormat asks by every command that prints scores, in every
// format, in this process and over the socket of another.
func TestOverflowingScoresAreTheSameInEveryFormat(t *testing.T) {
	overflowing(t)
	db, err := flashdb.Open("db", nil)
	require.NoError(t, err)
	c, err := db.Collection("c")
	require.NoError(t, err)
	want, err := c.Predict(context.Background(), "source", 6, nil)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(want.Hits), 5)
	scores, err := c.Score(context.Background(), "source", []string{"high", "low", "nan", "one"}, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.True(t, math.IsInf(float64(want.Hits[0].Score), 1))
	require.True(t, math.IsInf(float64(scores[1].Score), -1))
	require.True(t, math.IsNaN(float64(scores[2].Score)), "%v", scores)

	for _, remote := range []bool{false, true} {
		t.Run(fmt.Sprintf("remote %v", remote), func(t *testing.T) {
			if remote {
				db, err := flashdb.Open("db", nil)
				require.NoError(t, err)
				_, err = control.Serve(db, nil)
				require.NoError(t, err)
				defer func() { require.NoError(t, db.Close()) }()
			}
			for name, lines := range map[string][]scoredLine{
				"predict json": jsonLines(t, "predict", "db", "c", "source", "-k", "6", "--json"),
				"all jsonl":    fileLines(t, remote, "jsonl"),
				"all csv":      fileLines(t, remote, "csv"),
				"all tsv":      fileLines(t, remote, "tsv"),
				"all parquet":  fileLines(t, remote, "parquet"),
				"predict text": textLines(t, "predict", "db", "c", "source", "-k", "6"),
			} {
				requireScores(t, name, want.Hits, lines, strings.HasSuffix(name, "text"))
			}
			requireScores(t, "score json", scores, jsonLines(t, "score", "db", "c", "source", "high", "low", "nan", "one", "--json"), false)
			found := jsonLines(t, "search", "db", "c", "source", "-k", "7", "--json")
			require.Equal(t, "Infinity", found[0][1])
			require.Contains(t, textOf(t, "search", "db", "c", "source", "-k", "7"), "  Infinity\n")
			requireScores(t, "score text", scores, textLines(t, "score", "db", "c", "source", "high", "low", "nan", "one"), true)
			code, out, errOut := runLine("eval", "db", "c", "-k", "3", "--sources", "7", "--json")
			require.Zero(t, code, errOut)
			require.Contains(t, out, `"max_abs_diff":0,`)
			require.Contains(t, out, `"recall_worst":1,`)
			code, out, errOut = runLine("predict", "db", "c", "source", "-k", "6", "--explain", "--verify", "--json")
			require.Zero(t, code, errOut)
			require.True(t, json.Valid([]byte(out)))
			code, _, errOut = runLine("report", "db", "c", "-o", fmt.Sprintf("r%v.html", remote), "--sources", "7")
			require.Zero(t, code, errOut)
			code, _, errOut = runLine("predict", "db", "c", "source", "--min-score", "NaN")
			require.Equal(t, exitFailed, code)
			require.Contains(t, errOut, "min-score is NaN")
			code, out, errOut = runLine("predict", "db", "c", "--all", "-k", "6", "--min-score", "Inf")
			require.Zero(t, code, errOut)
			require.NotContains(t, out, "NaN")
			require.Contains(t, out, `{"key":"high","score":"Infinity","probability":1}`)
		})
	}
}

func requireScores(t *testing.T, name string, want []flashdb.Hit, got []scoredLine, rounded bool) {
	t.Helper()
	require.Len(t, got, len(want), name)
	for i, h := range want {
		require.Equal(t, h.Key, got[i][0], name)
		if rounded {
			got[i][2] = strings.NewReplacer(">.9999", "1", "<.0001", "0").Replace(got[i][2])
		}
		floats := got[i].floats(t)
		if f := float64(h.Score); math.IsInf(f, 0) || math.IsNaN(f) {
			assert.Regexp(t, `^(Infinity|-Infinity|NaN)$`, got[i][1], name)
		}
		for j, f := range []float32{h.Score, h.Probability} {
			if rounded {
				f, floats[j] = float32(math.Round(float64(f)*100)), float32(math.Round(float64(floats[j])*100))
			}
			assert.Equal(t, fmt.Sprint(f), fmt.Sprint(floats[j]), "%s: %s", name, h.Key)
		}
	}
}

// jsonLines runs a command and reads its hits.
func jsonLines(t *testing.T, args ...string) []scoredLine {
	t.Helper()
	code, out, errOut := runLine(args...)
	require.Zero(t, code, errOut)
	return readHits(t, out)
}

func readHits(t *testing.T, text string) (lines []scoredLine) {
	t.Helper()
	var answer struct {
		Hits []struct {
			Key                string
			Score, Probability any
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &answer))
	for _, h := range answer.Hits {
		lines = append(lines, scoredLine{h.Key, fmt.Sprint(h.Score), fmt.Sprint(h.Probability)})
	}
	return lines
}

// fileLines predicts for every node into a file, and reads what it has of source.
func fileLines(t *testing.T, remote bool, format string) (lines []scoredLine) {
	t.Helper()
	name := fmt.Sprintf("all-%v.%s", remote, format)
	code, _, errOut := runLine("predict", "db", "c", "--all", "-k", "6", "-o", name)
	require.Zero(t, code, errOut)
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	switch format {
	case "jsonl":
		first, _, _ := strings.Cut(string(content), "\n")
		return readHits(t, first)
	case "parquet":
		rows, err := parquet.ReadFile[struct {
			Source      string  `parquet:"source"`
			Target      string  `parquet:"target"`
			Score       float32 `parquet:"score"`
			Probability float32 `parquet:"probability"`
		}](name)
		require.NoError(t, err)
		for _, h := range rows {
			if h.Source == "source" {
				lines = append(lines, scoredLine{h.Target, digits(h.Score), digits(h.Probability)})
			}
		}
		return lines
	}
	r := csv.NewReader(strings.NewReader(string(content)))
	if format == "tsv" {
		r.Comma = '\t'
	}
	records, err := r.ReadAll()
	require.NoError(t, err)
	for _, record := range records {
		if record[0] == "source" {
			lines = append(lines, scoredLine{record[2], record[3], record[4]})
		}
	}
	return lines
}

func textOf(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errOut := runLine(args...)
	require.Zero(t, code, errOut)
	return out
}

// textLines runs a command and reads the lines of its table.
func textLines(t *testing.T, args ...string) (lines []scoredLine) {
	t.Helper()
	out := textOf(t, args...)
	line := regexp.MustCompile(`(?m)^ *(?:\d+ +)?(\w+) +(-?[0-9.]+|-?Infinity|NaN) +([0-9.<>]+|NaN)$`)
	for _, m := range line.FindAllStringSubmatch(out, -1) {
		lines = append(lines, scoredLine(m[1:]))
	}
	return lines
}

func TestCompareInfiniteScores(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	hit := func(key string, score float64) flashdb.Hit { return flashdb.Hit{Key: key, Score: float32(score)} }
	for _, c := range []struct {
		name   string
		hits   []flashdb.Hit
		exact  truth
		recall float64
		diff   float64
	}{
		{"the same", []flashdb.Hit{hit("a", inf), hit("b", inf)}, truth{[]string{"a", "b"}, []float64{inf, inf}}, 1, 0},
		{"a tie", []flashdb.Hit{hit("a", inf), hit("c", inf)}, truth{[]string{"a", "b"}, []float64{inf, inf}}, 1, 0},
		{"one is missed", []flashdb.Hit{hit("a", inf), hit("c", 5)}, truth{[]string{"a", "b"}, []float64{inf, inf}}, .5, 0},
		{"minus infinity", []flashdb.Hit{hit("a", 1), hit("b", -inf)}, truth{[]string{"a", "b"}, []float64{1, -inf}}, 1, 0},
		{"a NaN", []flashdb.Hit{hit("a", 1), hit("b", nan)}, truth{[]string{"a", "b"}, []float64{1, nan}}, 1, 0},
		{"not the same", []flashdb.Hit{hit("a", 7)}, truth{[]string{"a"}, []float64{inf}}, 1, inf},
		{"a NaN for a number", []flashdb.Hit{hit("a", nan)}, truth{[]string{"a"}, []float64{7}}, 1, inf},
	} {
		o := compare(c.hits, c.exact)
		assert.Equal(t, c.recall, o.recall, c.name)
		assert.Equal(t, c.diff, o.maxAbs, c.name)
		assert.Equal(t, c.diff, o.maxRel, c.name)
	}
}

func TestScoresShowWhatDiffers(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		scores []float32
		want   []string
	}{
		{[]float32{70.23, 2}, []string{"70.2300", "2.0000"}},
		{[]float32{.999991, .999982}, []string{"0.99999", "0.99998"}},
		{[]float32{.000123, .00001}, []string{"0.0001230", "0.0000100"}},
		{[]float32{1, 1}, []string{"1.0000", "1.0000"}},
		{[]float32{inf, .5}, []string{"Infinity", "0.5000"}},
		{[]float32{0}, []string{"0.0000"}},
		{nil, []string{}},
	} {
		var hits []flashdb.Hit
		for _, s := range c.scores {
			hits = append(hits, flashdb.Hit{Score: s})
		}
		assert.Equal(t, c.want, scoresOf(hits))
	}
}

func TestProbabilityIsNotRoundedToCertainty(t *testing.T) {
	assert.Equal(t, "0.5000", probability(.5))
	assert.Equal(t, ">.9999", probability(.99999))
	assert.Equal(t, "1.0000", probability(1))
	assert.Equal(t, "<.0001", probability(1e-9))
	assert.Equal(t, "0.0000", probability(0))
}

func TestJSONScoreKeepsFloat32Digits(t *testing.T) {
	assert.Equal(t, jsonNumber(0.1), jsonScore(0.1))
	assert.Equal(t, jsonNumber(-12.345678), jsonScore(-12.345678))
}
