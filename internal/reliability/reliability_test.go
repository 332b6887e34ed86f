package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const events = `{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA/sub","Output":"    a_test.go:5: tried: 40 files damaged\n"}
{"Action":"output","Test":"TestA","Output":"    a_test.go:6: tried: 2 files damaged\n"}
{"Action":"output","Test":"TestA","Output":"    a_test.go:7: tried: 3 calls\n"}
{"Action":"pass","Test":"TestA/sub"}
{"Action":"pass","Test":"TestA"}
{"Action":"output","Test":"TestB","Output":"    b_test.go:1: strace is missing\n"}
{"Action":"skip","Test":"TestB"}
{"Action":"fail","Test":"TestC/sub"}
{"Action":"fail","Test":"TestC"}
{"Action":"fail"}
`

func TestRowOfEvents(t *testing.T) {
	r := row{what: "damage | files"}
	require.NoError(t, r.read(strings.NewReader(events)))
	assert.Equal(t, "42 files damaged, 3 calls, skipped: strace is missing", r.tried())
	assert.Equal(t, "**failed**: TestC", r.found())
	assert.Contains(t, table([]row{r}, "Run."), `| damage \| files | 42 files damaged, 3 calls, skipped: strace is missing | **failed**: TestC |`)
	assert.Equal(t, "1,234,567", grouped(1234567))
	assert.Equal(t, "not run", row{skipped: []string{"no root"}}.found())
	assert.Equal(t, "nothing", row{runs: 1}.found())
}

// TestSkippedSubtests: a row says which of its subtests were skipped, each reason once, and is no
// row of a run where all of them were.
func TestSkippedSubtests(t *testing.T) {
	const skips = `{"Action":"output","Test":"TestA/x/1","Output":"        a_test.go:5: not root\n"}
{"Action":"skip","Test":"TestA/x/1"}
{"Action":"output","Test":"TestA/x/2","Output":"        a_test.go:5: not root\n"}
{"Action":"skip","Test":"TestA/x/2"}
{"Action":"pass","Test":"TestA/x"}
`
	all := row{what: "all"}
	require.NoError(t, all.read(strings.NewReader(skips+`{"Action":"pass","Test":"TestA"}`)))
	assert.Equal(t, "skipped: not root", all.tried())
	assert.Equal(t, "not run", all.found())

	some := row{what: "some"}
	require.NoError(t, some.read(strings.NewReader(skips+`{"Action":"pass","Test":"TestA/y"}
{"Action":"output","Test":"TestA/z","Output":"    a_test.go:9: no quota\n"}
{"Action":"skip","Test":"TestA/z"}
{"Action":"pass","Test":"TestA"}`)))
	assert.Equal(t, "once, skipped: not root, skipped: no quota", some.tried())
	assert.Equal(t, "nothing", some.found())

	counted := row{what: "counted"}
	require.NoError(t, counted.read(strings.NewReader(skips+`{"Action":"output","Test":"TestA","Output":"    a_test.go:6: tried: 2 files damaged\n"}
{"Action":"pass","Test":"TestA"}`)))
	assert.Equal(t, "2 files damaged, skipped: not root", counted.tried())
	assert.Equal(t, "nothing", counted.found())
}

func TestBetween(t *testing.T) {
	page, err := between("head\n"+tableBegin+"old\n"+tableEnd+"tail\n", "new\n")
	require.NoError(t, err)
	assert.Equal(t, "head\n"+tableBegin+"new\n"+tableEnd+"tail\n", page)
	_, err = between("nothing", "new")
	assert.ErrorContains(t, err, "it has not both")
}

// TestSuitesAreThere: every row names tests that exist, and the page has a place for them.
func TestSuitesAreThere(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := map[string]bool{}
	for _, s := range suites {
		assert.False(t, seen[s.what], s.what)
		seen[s.what] = true
		files, err := filepath.Glob(filepath.Join(root, s.pkg, "*_test.go"))
		require.NoError(t, err)
		var all strings.Builder
		for _, f := range files {
			content, err := os.ReadFile(f)
			require.NoError(t, err)
			all.Write(content)
		}
		for name := range strings.SplitSeq(s.test, "|") {
			assert.Regexp(t, regexp.MustCompile(`(?m)^func `+name+`\(`), all.String(), s.what)
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "reliability.md"))
	require.NoError(t, err)
	_, err = between(string(page), "")
	assert.NoError(t, err)
}
