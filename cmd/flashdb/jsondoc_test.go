package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
)

// TestJSONDoc holds docs/json.md to what the commands print: every key is described, every
// described one is printed, but for those marked optional.
func TestJSONDoc(t *testing.T) {
	described := readJSONDoc(t)
	dir := t.TempDir()
	t.Chdir(dir)
	var rows, edges strings.Builder
	for i := range 40 {
		fmt.Fprintf(&rows, "{\"key\": \"n%d\", \"embedding\": [%d, %d, 1], \"tags\": [\"t\"]}\n", i, i%7, i%5)
		fmt.Fprintf(&edges, "n%d\tn%d\n", i, (i+1)%40)
	}
	for name, text := range map[string]string{
		"rows.jsonl": rows.String(), "edges.tsv": edges.String(), "dot.json": `{"kind": "dot", "dim": 3}`,
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	printed := map[string]map[string]bool{}
	for _, line := range []string{
		"create db c --dim 3",
		"import db c rows.jsonl --dry-run",
		"import db c rows.jsonl",
		"link db c edges.tsv --dry-run",
		"link db c edges.tsv",
		"unlink db c edges.tsv --dry-run",
		"unlink db c edges.tsv --undirected",
		"link db c edges.tsv",
		"put db c extra --embedding 1,2,3",
		"delete db c extra nobody",
		"decoder add db c d dot.json",
		"decoder list db c",
		"decoder show db c d",
		"rebuild db --force --progress json",
		"rebuild db",
		"calibrate db c --sources 5",
		"predict db c n1 --explain --verify --why",
		"predict db c n1 --filter none",
		"predict db c --all -k 2 --out all.jsonl",
		"score db c n1 n2",
		"search db c n1",
		"get db c n1",
		"keys db c -n 2",
		"eval db c -k 5 --sources 5",
		"eval db c --edges edges.tsv",
		"train db t edges.tsv --epochs 1 --new-nodes 10%",
		"embed db t extra --links n1,n2",
		"export rows db c rows.npy",
		"export links db c links.tsv",
		"export decoder db c d d.json",
		"release stage db night c",
		"release add db night c rows.jsonl",
		"release decoder db night c d dot.json",
		"release build db night --force",
		"release compare db night --edges edges.tsv",
		"release publish db night --force",
		"release list db",
		"release rollback db",
		"release drop db night",
		"report db c -o r.html --sources 2",
		"stats db",
		"check db",
		"checkpoint db",
		"compact db",
		"backup db db.zst",
		"restore --verify db.zst",
		"restore db.zst db2",
		"snapshot db snap",
		"decoder remove db c d",
		"drop db c --yes",
		"version",
	} {
		words := strings.Fields(line)
		code, out, errOut := runLine(append(words, "--json")...)
		require.Zero(t, code, "%s: %s", line, errOut)
		verb := words[0]
		if verb == "decoder" || verb == "export" || verb == "release" {
			verb += " " + words[1]
		}
		if strings.Contains(line, "--out") {
			verb = "predict --all --out"
		}
		collectKeys(t, printed, verb, out)
		if strings.Contains(line, "--progress json") {
			collectKeys(t, printed, "progress", errOut)
		}
	}
	// So few rows may have no plan that is faster than the exact scan.
	frontier, err := json.Marshal(newJSONCalibration(flashdb.Calibration{Frontiers: []flashdb.Frontier{{Plans: make([]flashdb.PlanPoint, 1)}}}))
	require.NoError(t, err)
	collectKeys(t, printed, "calibrate", string(frontier))
	var remarks bytes.Buffer
	require.True(t, terminal.NewProgressAs("json", &remarks).Remark("no plan is faster"))
	collectKeys(t, printed, "progress", remarks.String())
	all, err := os.ReadFile("all.jsonl")
	require.NoError(t, err)
	collectKeys(t, printed, "predict --all", string(all))
	ended, end := context.WithCancel(context.Background())
	end()
	var out, errOut bytes.Buffer
	require.Zero(t, run(ended, []string{"serve", "db", "--json"}, nil, &out, &errOut), errOut.String())
	collectKeys(t, printed, "serve", out.String())
	out.Reset()
	require.Zero(t, run(ended, []string{"browse", "db", "--json", "--no-open"}, nil, &out, &errOut), errOut.String())
	collectKeys(t, printed, "browse", out.String())

	for _, path := range leafPaths(newRoot(nil, nil, nil)) {
		// remote prints what the program prints that it runs.
		if verb := strings.TrimPrefix(path, "flashdb "); verb != "shell" && verb != "demo" && verb != "remote" {
			assert.NotEmpty(t, described[verb], "docs/json.md has no %s", verb)
		}
	}
	for verb, keys := range printed {
		for key := range keys {
			if _, ok := described[verb][key]; !ok {
				t.Errorf("%s --json prints %s, which docs/json.md does not describe", verb, key)
			}
			assert.Regexp(t, `^[a-z0-9_.@\[\]*]+$`, key)
		}
	}
	for verb, keys := range described {
		for key, optional := range keys {
			if !optional && !printed[verb][key] {
				t.Errorf("docs/json.md describes %s of %s, which was not printed", key, verb)
			}
		}
	}
}

// collectKeys adds the keys of lines of JSON to those of a verb: a.b of an object, a[].b of a list
// of objects.
func collectKeys(t *testing.T, printed map[string]map[string]bool, verb, text string) {
	if printed[verb] == nil {
		printed[verb] = map[string]bool{}
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				if path == "collections[].tags" || path == "stops" {
					key = "*" // of many
				}
				below := strings.TrimPrefix(path+"."+key, ".")
				printed[verb][below] = true
				if key != "*" && below != "spec" {
					walk(below, value)
				}
			}
		case []any:
			for _, value := range v {
				walk(path+"[]", value)
			}
		}
	}
	for line := range strings.Lines(text) {
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &v), "%s: %s", verb, line)
		walk("", v)
	}
}

// readJSONDoc returns the keys that each section of docs/json.md describes, and whether they are
// optional.
func readJSONDoc(t *testing.T) map[string]map[string]bool {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	require.NoError(t, err)
	row := regexp.MustCompile("^\\| `([^`]+)` \\|( optional;)?")
	described := map[string]map[string]bool{}
	var verbs []string
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			verbs = strings.Split(strings.TrimSpace(title), ", ")
			for _, verb := range verbs {
				described[verb] = map[string]bool{}
			}
		}
		if m := row.FindStringSubmatch(line); m != nil {
			for _, verb := range verbs {
				described[verb][m[1]] = m[2] != ""
			}
		}
	}
	return described
}
