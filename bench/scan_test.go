package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestScanCommand(t *testing.T) {
	var out, log strings.Builder
	args := []string{"scan", "-data", "", "-sources", "3", "-rotations", "1", "-lists", "50,0"}
	require.NoError(t, run(t.Context(), args, &out, &log))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2+2*len(scanShares)*len(scanKeeps), "a title, a header, one line per setting")
	assert.Regexp(t, `2090 probes, best 2000 +33,445 +33,445 `, lines[len(lines)-1], "every code is scanned")
	require.ErrorContains(t, run(t.Context(), []string{"scan", "-data", "", "-lists", "5,x"}, &out, &log), `"x" is no number of lists`)
}
