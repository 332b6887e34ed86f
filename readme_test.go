package flashdb_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadmeSamples demands that every Go sample of README.md stands in the compiled and run
// examples, so that it cannot drift.
func TestReadmeSamples(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	examples, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	compiled := squeeze(string(examples))

	samples := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, samples)
	for _, s := range samples {
		require.Contains(t, compiled, squeeze(s[1]), "this sample is not in example_test.go:\n%s", s[1])
	}
}

// squeeze folds white space, so that indentation does not matter.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }
