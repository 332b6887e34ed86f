package main

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/train"
)

// An ogbArray is an array of int64 of one of OGB's files.
type ogbArray struct {
	shape  []int
	values []int64
}

// ogbPairs is an array of m x 2, as OGB's splits have edges and negatives.
func ogbPairs(values ...int64) ogbArray { return ogbArray{[]int{len(values) / 2, 2}, values} }

// writeOGBArrays writes arrays of int64 as .safetensors, which is recognised by its content.
func writeOGBArrays(t *testing.T, path string, arrays map[string]ogbArray) {
	t.Helper()
	header := map[string]any{}
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		a := arrays[name]
		from := len(data)
		for _, v := range a.values {
			data = binary.LittleEndian.AppendUint64(data, uint64(v))
		}
		header[name] = map[string]any{"dtype": "I64", "shape": a.shape, "data_offsets": []int{from, len(data)}}
	}
	text, err := json.Marshal(header)
	require.NoError(t, err)
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, append(append(file, text...), data...), 0o644))
}

// writeOGB writes a small folder with one list of negatives for all edges, in the raw layout of
// ogbl-ddi, ogbl-collab and ogbl-ppa: the last two have years or weights beside the edges.
func writeOGB(t *testing.T, dir, split string, more map[string]ogbArray) {
	t.Helper()
	writeGzip(t, filepath.Join(dir, "raw", "num-node-list.csv.gz"), "8\n")
	writeGzip(t, filepath.Join(dir, "raw", "num-edge-list.csv.gz"), "6\n")
	writeGzip(t, filepath.Join(dir, "raw", "edge.csv.gz"), "0,1\n1,2\n2,3\n3,4\n4,5\n5,6\n")
	for name, arrays := range map[string]map[string]ogbArray{
		"train": {"edge": ogbPairs(0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6)},
		"valid": {"edge": ogbPairs(0, 2, 1, 3), "edge_neg": ogbPairs(0, 5, 1, 6)},
		"test":  {"edge": ogbPairs(2, 4, 3, 5), "edge_neg": ogbPairs(0, 6, 1, 7, 2, 7)},
	} {
		for name, a := range more {
			arrays[name] = ogbArray{append([]int{arrays["edge"].shape[0]}, a.shape...), a.values[:arrays["edge"].shape[0]]}
		}
		writeOGBArrays(t, filepath.Join(dir, "split", split, name+".pt"), arrays)
	}
}

// TestOGBFolders reads OGB's data sets with one list of negatives, each by its official Hits@k, in
// a folder of either spelling: as the data set is named, and as OGB unpacks it.
func TestOGBFolders(t *testing.T) {
	years := map[string]ogbArray{"year": {nil, []int64{2001, 2002, 2003, 2004, 2005, 2006}}, "weight": {nil, []int64{1, 1, 2, 1, 1, 1}}}
	for _, c := range []struct {
		name, split string
		more        map[string]ogbArray
		hits        []int
	}{
		{"ogbl-ddi", "target", nil, []int{20, 50, 100}},
		{"ogbl-collab", "time", years, []int{50, 20, 100}},
		{"ogbl-ppa", "throughput", nil, []int{100, 20, 50}},
	} {
		for _, folder := range []string{c.name, strings.ReplaceAll(c.name, "-", "_")} {
			data := t.TempDir()
			writeOGB(t, filepath.Join(data, folder), c.split, c.more)
			require.True(t, hasGraph(data, c.name))
			p, err := openPaperGraph(data, c.name, 0)
			require.NoError(t, err, folder)
			assert.Equal(t, paperRule{Hits: c.hits}, p.rule, folder)
			assert.Equal(t, []train.Edge{{Source: 2, Target: 4}, {Source: 3, Target: 5}}, p.split.Test)
			assert.Equal(t, []train.Edge{{Source: 0, Target: 6}, {Source: 1, Target: 7}, {Source: 2, Target: 7}}, p.negatives)
			assert.Equal(t, []train.Edge{{Source: 0, Target: 5}, {Source: 1, Target: 6}}, p.split.ValidNegatives)
			assert.Len(t, p.split.Train, 6)
			info := p.info()
			assert.Equal(t, 8, info.Nodes)
			assert.True(t, info.Official)
			assert.False(t, info.Directed)
		}
	}
}

// TestOGBFoldersAreChosen: the full run takes OGB's folder where there is one, and else what stands
// in for it.
func TestOGBFoldersAreChosen(t *testing.T) {
	data := t.TempDir()
	for _, name := range []string{"ogbl_ppa", "debian", "genes", "go-stdlib"} {
		require.NoError(t, os.MkdirAll(filepath.Join(data, name), 0o755))
	}
	graphs, err := (&paperFlags{data: data}).chooseGraphs()
	require.NoError(t, err)
	assert.Equal(t, []string{"go-stdlib", "ogbl-ppa", "genes"}, graphs)
	graphs, err = (&paperFlags{data: data, quick: true}).chooseGraphs()
	require.NoError(t, err)
	assert.Equal(t, []string{"go-stdlib"}, graphs)
}

// TestOGBFoldersRefused: a damaged folder is refused in one line, which names the file and what is
// wrong with it.
func TestOGBFoldersRefused(t *testing.T) {
	at := func(dir, name string) string { return filepath.Join(dir, "split", "target", name+".pt") }
	cut := func(path string, keep int) error {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, text[:len(text)-keep], 0o644)
		}
		return err
	}
	edges := ogbPairs(2, 4, 3, 5)
	for want, damage := range map[string]func(t *testing.T, dir string) error{
		"test.pt is missing: want the files of the data set as OGB lays them out": func(_ *testing.T, dir string) error { return os.Remove(at(dir, "test")) },
		"valid.pt is missing": func(_ *testing.T, dir string) error { return os.Remove(at(dir, "valid")) },
		"num-node-list.csv.gz is missing": func(_ *testing.T, dir string) error {
			return os.Remove(filepath.Join(dir, "raw", "num-node-list.csv.gz"))
		},
		"edge.csv.gz is missing": func(_ *testing.T, dir string) error {
			if err := os.Remove(at(dir, "train")); err != nil {
				return err
			}
			return os.Remove(filepath.Join(dir, "raw", "edge.csv.gz"))
		},
		"has 0 splits: want one folder in split":          func(_ *testing.T, dir string) error { return os.RemoveAll(filepath.Join(dir, "split")) },
		"has 2 splits: want one":                          func(_ *testing.T, dir string) error { return os.Mkdir(filepath.Join(dir, "split", "time"), 0o755) },
		`test.pt: byte 164: tensor "edge_neg": truncated`: func(_ *testing.T, dir string) error { return cut(at(dir, "test"), 8) },
		`train.pt: byte 68: tensor "edge": truncated`:     func(_ *testing.T, dir string) error { return cut(at(dir, "train"), 90) },
		"line 7: byte 24: read: gzip: truncated: the compressed data ends too early": func(_ *testing.T, dir string) error {
			_ = os.Remove(at(dir, "train"))
			return cut(filepath.Join(dir, "raw", "edge.csv.gz"), 9)
		},
		"valid.pt: edge has shape [4]": func(t *testing.T, dir string) error {
			writeOGBArrays(t, at(dir, "valid"), map[string]ogbArray{"edge": {[]int{4}, edges.values}})
			return nil
		},
		"test.pt: edge_neg has shape [2 3]: want m x 2": func(t *testing.T, dir string) error {
			writeOGBArrays(t, at(dir, "test"), map[string]ogbArray{"edge": edges, "edge_neg": {[]int{2, 3}, []int64{1, 2, 3, 4, 5, 6}}})
			return nil
		},
		"test.pt holds no array named edge": func(t *testing.T, dir string) error {
			writeOGBArrays(t, at(dir, "test"), map[string]ogbArray{"edges": edges})
			return nil
		},
		"all edges of test.pt are left out": func(t *testing.T, dir string) error {
			writeOGBArrays(t, at(dir, "test"), map[string]ogbArray{"edge": ogbPairs(0, 1), "edge_neg": edges})
			return nil
		},
		"the test split has no negatives": func(t *testing.T, dir string) error {
			writeOGBArrays(t, at(dir, "test"), map[string]ogbArray{"edge": edges})
			return nil
		},
		"no node has number 8": func(t *testing.T, dir string) error {
			writeOGBArrays(t, at(dir, "test"), map[string]ogbArray{"edge": ogbPairs(2, 8), "edge_neg": edges})
			return nil
		},
		"no node has number 9": func(t *testing.T, dir string) error {
			writeOGBArrays(t, at(dir, "test"), map[string]ogbArray{"edge": edges, "edge_neg": ogbPairs(9, 1)})
			return nil
		},
		"test.pt holds no edges": func(t *testing.T, dir string) error {
			writeOGBArrays(t, at(dir, "test"), map[string]ogbArray{"edge": {[]int{0, 2}, nil}, "edge_neg": edges})
			return nil
		},
		`"eight" is no number of nodes`: func(t *testing.T, dir string) error {
			writeGzip(t, filepath.Join(dir, "raw", "num-node-list.csv.gz"), "eight\n")
			return nil
		},
	} {
		t.Run(want, func(t *testing.T) {
			data := t.TempDir()
			dir := filepath.Join(data, "ogbl-ddi")
			writeOGB(t, dir, "target", nil)
			require.NoError(t, damage(t, dir))
			_, err := openPaperGraph(data, "ogbl-ddi", 0)
			require.ErrorContains(t, err, want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}
