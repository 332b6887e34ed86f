package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Lines of a --keys file may be in any order, and leave rows out.
func TestRowNames(t *testing.T) {
	for name, rows := range map[string][]int64{
		"in order":            {0, 1, 2, 3, 4},
		"from a row on":       {7, 8, 9},
		"with gaps":           {2, 3, 7, 100, 5_000_000_000},
		"out of order":        {3, 1, 2, 0},
		"late out of order":   {0, 1, 2, 9, 4},
		"gaps, out of order":  {90, 3, 50, 4},
		"one":                 {5},
		"backwards with gaps": {9, 7, 5},
	} {
		im := importer{keys: &rowNames{keys: map[string]int64{}}}
		for _, row := range rows {
			require.NoError(t, im.addKey(rowName{row: row, key: "key " + strconv.FormatInt(row, 10), payload: "pay\tload"}), name)
		}
		require.ErrorContains(t, im.addKey(rowName{row: rows[0], key: "another"}), "is named twice", name)
		require.ErrorContains(t, im.addKey(rowName{row: 6000000000, key: "key " + strconv.FormatInt(rows[0], 10)}), "and row 6000000000", name)
		im.keys.finish()
		wanted := map[int64]bool{}
		for _, row := range rows {
			wanted[row] = true
			got, ok := im.keys.of(row)
			require.True(t, ok, "%s: row %d", name, row)
			assert.Equal(t, rowName{row: row, key: "key " + strconv.FormatInt(row, 10), payload: "pay\tload"}, got)
		}
		for row := int64(-1); row < 110; row++ {
			_, ok := im.keys.of(row)
			assert.Equal(t, wanted[row], ok, "%s: row %d", name, row)
		}
	}
}

// What is wrong with a --keys file is told with its line.
func TestKeysFileFaults(t *testing.T) {
	for text, want := range map[string]string{
		"0\ta\n1\tb\n0\tc\n": "line 3: row 0 is named twice",
		"0\ta\n2\tb\n1\tb\n": `line 3: key "b" names row 2 and row 1`,
		"0\ta\n1\n":          "line 2: 1 column",
		"0\t\n":              "line 1: the key is empty",
	} {
		path := filepath.Join(t.TempDir(), "keys.tsv")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		keys := tableAt(path)
		im := importer{keysFile: &keys}
		require.ErrorContains(t, im.loadKeys(), want)
	}
}
