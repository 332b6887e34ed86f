package main

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/train"
)

// writeIntegers writes arrays of int64 as .safetensors, which is recognised by its content. That of
// the negatives has a row for each source.
func writeIntegers(t *testing.T, path string, arrays map[string][]int64) {
	t.Helper()
	header := map[string]any{}
	var data []byte
	for name, values := range arrays {
		from, shape := len(data), []int{len(values)}
		if sources := len(arrays["source_node"]); name == "target_node_neg" && len(values)%sources == 0 {
			shape = []int{sources, len(values) / sources}
		}
		for _, v := range values {
			data = binary.LittleEndian.AppendUint64(data, uint64(v))
		}
		header[name] = map[string]any{"dtype": "I64", "shape": shape, "data_offsets": []int{from, len(data)}}
	}
	text, err := json.Marshal(header)
	require.NoError(t, err)
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, append(append(file, text...), data...), 0o644))
}

func writeGzip(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.Create(path)
	require.NoError(t, err)
	w := gzip.NewWriter(f)
	_, err = w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
}

// TestCitation reads a small folder in the layout of ogbl-citation2: each test link has negatives
// of its own, so the rule is the MRR.
func TestCitation(t *testing.T) {
	data := t.TempDir()
	dir := filepath.Join(data, "ogbl-citation2")
	split := filepath.Join(dir, "split", "time")
	writeGzip(t, filepath.Join(dir, "raw", "num-node-list.csv.gz"), "6\n")
	writeGzip(t, filepath.Join(dir, "raw", "edge.csv.gz"), "0,1\n1,2\n2,3\n3,4\n")
	test := map[string][]int64{"source_node": {0, 5}, "target_node": {2, 1}, "target_node_neg": {3, 4, 5, 0, 2, 3}}
	writeIntegers(t, filepath.Join(split, "test.pt"), test)
	writeIntegers(t, filepath.Join(split, "valid.pt"), map[string][]int64{"source_node": {4}, "target_node": {0}, "target_node_neg": {1, 2, 3}})

	p, err := openPaperGraph(data, "ogbl-citation2", 0)
	require.NoError(t, err)
	assert.Equal(t, []train.Edge{{Source: 0, Target: 1}, {Source: 1, Target: 2}, {Source: 2, Target: 3}, {Source: 3, Target: 4}}, p.split.Train)
	assert.Equal(t, []train.Edge{{Source: 4}}, p.split.Valid)
	assert.Equal(t, []train.Edge{{Source: 0, Target: 2}, {Source: 5, Target: 1}}, p.split.Test)
	assert.Equal(t, [][]uint32{{3, 4, 5}, {0, 2, 3}}, p.lists)
	assert.Equal(t, paperRule{Lists: 3}, p.rule)
	assert.True(t, p.official)

	writeIntegers(t, filepath.Join(split, "train.pt"), map[string][]int64{"source_node": {5}, "target_node": {4}})
	p, err = openPaperGraph(data, "ogbl-citation2", 0)
	require.NoError(t, err)
	assert.Equal(t, []train.Edge{{Source: 5, Target: 4}}, p.split.Train)
	m, err := trainPaper(t.Context(), p, paperTraining{Dim: 4, Hidden: []int{4}, Epochs: 1}, train.Options{Encoder: train.GCN}, filepath.Join(data, "checkpoint"), &strings.Builder{})
	require.NoError(t, err)
	metrics, err := evaluatePaper(t.Context(), p, m.Task)
	require.NoError(t, err)
	assert.Len(t, metrics, 1)
	assert.Greater(t, metrics[mrrName], .2)

	for name, change := range map[string]func(){
		"no node has number 6: there are 6":       func() { test["target_node"] = []int64{2, 6} },
		"want one number for each edge in both":   func() { test["target_node"] = []int64{2} },
		"has shape [5]: want a row for each of 2": func() { test["target_node"], test["target_node_neg"] = []int64{2, 1}, []int64{1, 2, 3, 4, 5} },
		"the test split has no negatives":         func() { delete(test, "target_node_neg"); test["target_node"] = []int64{2, 1} },
	} {
		kept := map[string][]int64{"source_node": test["source_node"], "target_node": test["target_node"], "target_node_neg": test["target_node_neg"]}
		change()
		writeIntegers(t, filepath.Join(split, "test.pt"), test)
		_, err := openPaperGraph(data, "ogbl-citation2", 0)
		require.ErrorContains(t, err, name)
		test = kept
	}
}
