package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runLine runs one command line and returns its exit code and output.
func runLine(args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// leafPaths returns the paths of the commands that do something, without those of package cobra.
func leafPaths(cmd *cobra.Command) []string {
	var paths []string
	for _, sub := range cmd.Commands() {
		switch {
		case sub.Name() == "help" || sub.Name() == "completion":
		case sub.HasSubCommands():
			paths = append(paths, leafPaths(sub)...)
		default:
			paths = append(paths, sub.CommandPath())
		}
	}
	return paths
}

func TestEveryCommandHasHelp(t *testing.T) {
	for _, path := range leafPaths(newRoot(nil, nil, nil)) {
		t.Run(path, func(t *testing.T) {
			args := append(strings.Fields(path)[1:], "--help")
			code, out, errOut := runLine(args...)
			assert.Zero(t, code)
			assert.Empty(t, errOut)
			assert.Contains(t, out, "Usage:")
			assert.Contains(t, out, "--json")
			if path != "flashdb demo" {
				assert.Contains(t, out, "Examples:")
			}
			for line := range strings.Lines(out) {
				assert.LessOrEqual(t, len([]rune(line)), 121, line)
			}
		})
	}
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"unknown command", []string{"perdict"}, "flashdb: command \"perdict\" is unknown: did you mean predict?\n"},
		{"nothing like it", []string{"zzz"}, "flashdb: command \"zzz\" is unknown: see `flashdb --help`\n"},
		{"unknown subcommand", []string{"decoder", "ad"}, "flashdb: command \"ad\" is unknown: did you mean add?\n"},
		{"unknown flag", []string{"stats", "db", "--jsn"}, "flashdb: unknown flag: --jsn: did you mean --json?\n"},
		{"no flag like it", []string{"stats", "db", "--zzz"}, "unknown flag: --zzz; see `flashdb stats --help`"},
		{"one dash", []string{"predict", "db", "c", "a", "-filter", "x"}, "unknown flag: -filter: did you mean --filter?"},
		{"no value", []string{"predict", "db", "c", "a", "--filter"}, "--filter stands without its value (expression); see `flashdb predict --help`"},
		{"not a time", []string{"serve", "db", "--rebuild-every", "5"}, "--rebuild-every \"5\": want a time with its unit, such as 30s, 5m or 1h; see"},
		{"a share above 1", []string{"rebuild", "db", "--if-drift", "5"}, "--if-drift \"5\": want at most 1, or 5%"},
		{"another share", []string{"rebuild", "db", "--tolerance", "5"}, "--tolerance \"5\": want at most 1, or 5%"},
		{"too large", []string{"predict", "db", "c", "a", "-k", "99999999999999999999"}, "flashdb: -k \"99999999999999999999\": the number is too large"},
		{"a key with a dash", []string{"get", "db", "c", "-dash"}, "a key that begins with - goes after --; see `flashdb get --help`"},
		{"too few arguments", []string{"create", "db"}, "flashdb: COLLECTION is missing; usage: flashdb create DIR COLLECTION --dim N [--normalize]"},
		{"too many arguments", []string{"demo", "x"}, "x is one argument too many; usage: flashdb demo"},
		{"not a number", []string{"create", "db", "c", "--dim", "many"}, "--dim \"many\": want a whole number; see"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errOut := runLine(c.args...)
			assert.Equal(t, exitFailed, code)
			assert.Empty(t, out)
			assert.Contains(t, errOut, c.want)
			assert.True(t, strings.HasPrefix(errOut, "flashdb: "), errOut)
			assert.Equal(t, 1, strings.Count(errOut, "\n"), errOut)
		})
	}
}

func TestNoCommandPrintsHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"decoder"}} {
		code, out, errOut := runLine(args...)
		assert.Zero(t, code)
		assert.Empty(t, errOut)
		assert.Contains(t, out, "Usage:")
	}
}

func TestTreesShareNoFlags(t *testing.T) {
	dir := t.TempDir() + "/db"
	code, _, errOut := runLine("create", dir, "c", "--dim", "2", "--json")
	require.Zero(t, code, errOut)
	code, out, _ := runLine("create", dir, "d")
	assert.Equal(t, exitFailed, code, "--dim of the line before must be forgotten")
	assert.Empty(t, out)
}

func TestInterruptIsOneLine(t *testing.T) {
	dir := t.TempDir() + "/db"
	code, _, errOut := runLine("create", dir, "c", "--dim", "2")
	require.Zero(t, code, errOut)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var o, e bytes.Buffer
	code = run(ctx, []string{"get", dir, "c", "a"}, strings.NewReader(""), &o, &e)
	assert.Equal(t, exitFailed, code)
	assert.Equal(t, "flashdb: interrupted\n", e.String())
}

func TestOneLine(t *testing.T) {
	err := errors.Join(errors.New("first "), nil, errors.New("\nsecond\n\nthird"))
	assert.Equal(t, "first; second; third", oneLine(err))
}
