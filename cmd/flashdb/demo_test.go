package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes, in goroutines that other tests run too")
	}
	dir := filepath.Join(t.TempDir(), "go.flash")
	code, out, errOut := runLine("demo", "--dir", dir)
	require.Zero(t, code, errOut)
	assert.NotContains(t, errOut, "\r", "what is drawn over is for terminals")
	for _, want := range append([]string{
		"imported 33,445 declarations", "linked   113,899 references", "100 logits equal PyTorch's",
		"bytes.(*Buffer).WriteString *", "recall@100 of 100 sources", "go run ./cmd/flashdb predict " + dir + " stdlib ",
	}, demoSymbols...) {
		assert.Contains(t, out, want)
	}
	for line := range strings.Lines(out) {
		if !strings.Contains(line, dir) { // whose length is not the demo's choice
			assert.LessOrEqual(t, utf8.RuneCountInString(line), 111, line)
		}
	}
	tryCommands(t, out)

	code, out, errOut = runLine("check", dir)
	assert.Zero(t, code, out+errOut)
	code, _, errOut = runLine("demo", "--dir", dir)
	assert.Equal(t, exitFailed, code)
	assert.Equal(t, "flashdb: --dir "+dir+" is not empty: name a new directory\n", errOut)
}

// tryCommands runs the commands that the demo proposes.
func tryCommands(t *testing.T, out string) {
	t.Helper()
	t.Chdir(filepath.Join("..", "..")) // where the demo says to run them
	lines := regexp.MustCompile(`(?m)^  go run ./cmd/flashdb (.*)$`).FindAllStringSubmatch(out, -1)
	require.Len(t, lines, 4)
	for _, line := range lines {
		var args []string
		for _, m := range regexp.MustCompile(`'([^']*)'|"([^"]*)"|(\S+)`).FindAllStringSubmatch(line[1], -1) {
			args = append(args, m[1]+m[2]+m[3])
		}
		code, _, errOut := runLine(args...)
		assert.Zero(t, code, "%s: %s", line[1], errOut)
	}
}

func TestDemoJSON(t *testing.T) {
	if testing.Short() {
		t.Skip("it is the demo of TestDemo once more")
	}
	t.Setenv("TMPDIR", t.TempDir()) // where the demo leaves its database
	defer func(epochs int) { demoEpochs = epochs }(demoEpochs)
	demoEpochs = 1
	code, out, errOut := runLine("demo", "--train", "--json")
	require.Zero(t, code, errOut)
	assert.Equal(t, 1, strings.Count(out, "\n"), "one object on one line")
	var r demoReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	assert.EqualValues(t, 33445, r.Nodes)
	assert.Positive(t, r.Lists)
	assert.DirExists(t, r.Dir)
	require.Len(t, r.Symbols, len(demoSymbols))
	for i, s := range r.Symbols {
		assert.Equal(t, demoSymbols[i], s.Source)
		require.Len(t, s.Hits, demoHits)
		require.Len(t, s.Dot, demoHits)
		require.Len(t, s.Trained, demoHits)
		assert.Less(t, s.RowsScored, 33445/10, "which plan was measured to be the cheapest depends on the machine")
		assert.Positive(t, s.Known)
		for _, h := range s.Hits {
			assert.NotNil(t, h.Probability)
		}
	}
	require.NotNil(t, r.Trained)
	assert.Equal(t, 1, r.Trained.Epochs)
	assert.Greater(t, r.Trained.Valid, 0.3)
	assert.Equal(t, demoSources, r.Eval.Sources)
	assert.Greater(t, r.Eval.RecallMean, 0.95)
	assert.Less(t, r.Eval.MaxRelDiff, 1e-4)
	require.NoError(t, os.RemoveAll(r.Dir))
}
