package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUnlinkCountsOverBatches forgets more links than one batch does.
func TestUnlinkCountsOverBatches(t *testing.T) {
	t.Chdir(t.TempDir())
	const nodes = 101
	require.Greater(t, nodes*nodes, batchEdges)
	var rows, edges strings.Builder
	for i := range nodes {
		fmt.Fprintf(&rows, "n%d,1\n", i)
		for j := range nodes {
			fmt.Fprintf(&edges, "n%d\tn%d\n", i, j)
		}
	}
	require.NoError(t, os.WriteFile("rows.csv", []byte(rows.String()), 0o600))
	require.NoError(t, os.WriteFile("edges.tsv", []byte(edges.String()), 0o600))
	for _, line := range []string{"create db c --dim 1", "import db c rows.csv", "link db c edges.tsv"} {
		code, _, errOut := runLine(strings.Fields(line)...)
		require.Zero(t, code, "%s: %s", line, errOut)
	}
	for _, forgot := range []string{"forgot 10,201 links in", "forgot 0 links (10,201 not known) in"} {
		code, out, errOut := runLine("unlink", "db", "c", "edges.tsv")
		require.Zero(t, code, errOut)
		assert.Contains(t, out, "read 10,201 edges, "+forgot)
	}
}
