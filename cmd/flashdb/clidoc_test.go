package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

var updateDoc = flag.Bool("update", false, "rewrite docs/cli.md from the commands")

const cliDocHead = `# The command line

Made from the commands by ` + "`go test ./cmd/flashdb -run TestCLIDoc -update`" + `;
` + "`flashdb help COMMAND`" + ` prints the same.

Every command prints text for people, or with ` + "`--json`" + ` [one object, or one on each
line](json.md), for programs. Results go to standard output, progress and remarks to standard error.
An error is one line, and nothing is left half done. Off a terminal, long work reports its progress
in lines, first after some seconds and then ever less often.

| exit code | meaning |
|--:|---|
| 0 | done, or nothing to do |
| 1 | an error; ` + "`check`" + `: something is wrong |
| 2 | ` + "`rebuild`" + `: the new index has a lower recall at the same cost; the served one stays. ` + "`release compare`, `release publish`, `train --release`" + `: the release is worse than the live one, which stays |
| 3 | another process has the database open and serves no control socket |

SIGINT and SIGTERM end a command in good order. A second signal ends the process at once. So does a
command that has not ended ten seconds after the first, such as one that waits for the other end of
a pipe. The next open then finds the database as after a crash.

A file that a command writes appears when it is complete; until then an earlier one stays. It must
not lie in the directory of a database, by whatever path. A device or a named pipe is written to
directly.

A score that overflows is printed as Infinity, -Infinity or NaN in text, CSV and TSV, and as such a
text in JSON; a .parquet has the numbers themselves.

Text is coloured on a terminal only, unless ` + "`NO_COLOR`" + ` is set; ` + "`--color always`" + ` and
` + "`never`" + ` overrule this.

If another process has the database open, a command asks that process through its [control
socket](control.md). ` + "`flashdb completion bash`" + ` (zsh, fish, powershell) prints a script for the
completion of the shell: of verbs and flags, and of the collections, decoders, tags and keys of a
database that no process has open, or whose owner answers.

`

// TestCLIDoc keeps docs/cli.md what the commands say.
func TestCLIDoc(t *testing.T) {
	var b strings.Builder
	b.WriteString(cliDocHead)
	root := newRoot(nil, nil, nil)
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "**%s** ", strings.TrimSuffix(g.Title, ":"))
		var names []string
		for _, cmd := range root.Commands() {
			if cmd.GroupID == g.ID && isDescribed(cmd) {
				names = append(names, fmt.Sprintf("[%s](#%s)", cmd.Name(), cmd.Name()))
			}
		}
		b.WriteString(strings.Join(names, ", ") + "\n\n")
	}
	for _, g := range root.Groups() {
		for _, cmd := range root.Commands() {
			if cmd.GroupID == g.ID && isDescribed(cmd) {
				describeCommand(&b, cmd, "##")
			}
		}
	}
	name := filepath.Join("..", "..", "docs", "cli.md")
	if *updateDoc {
		require.NoError(t, os.WriteFile(name, []byte(b.String()), 0o644))
	}
	have, err := os.ReadFile(name)
	require.NoError(t, err)
	written := strings.Split(strings.ReplaceAll(string(have), "\r\n", "\n"), "\n")
	for i, line := range strings.Split(b.String(), "\n") {
		if i >= len(written) || written[i] != line { // not the whole text of both
			t.Fatalf("docs/cli.md:%d: the commands say %q: run `go test ./cmd/flashdb -run TestCLIDoc -update`", i+1, line)
		}
	}
	require.Len(t, written, strings.Count(b.String(), "\n")+1)
}

// isDescribed leaves out the commands of package cobra.
func isDescribed(cmd *cobra.Command) bool { return cmd.Name() != "help" && cmd.Name() != "completion" }

func describeCommand(b *strings.Builder, cmd *cobra.Command, level string) {
	fmt.Fprintf(b, "%s %s\n\n", level, strings.TrimPrefix(cmd.CommandPath(), "flashdb "))
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(b, "%s\n\n", text)
	if cmd.HasSubCommands() {
		for _, sub := range cmd.Commands() {
			describeCommand(b, sub, level+"#")
		}
		return
	}
	fmt.Fprintf(b, "    %s\n\n", cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(b, "```sh\n%s\n```\n\n", strings.TrimSpace(strings.ReplaceAll(cmd.Example, "\n  ", "\n")))
	}
	first := true
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if first {
			b.WriteString("| flag | meaning |\n|---|---|\n")
			first = false
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + kind
		}
		if d := f.DefValue; d != "" && d != "0" && d != "false" && d != "[]" && d != "0s" && !strings.Contains(usage, "default") {
			usage += " (default " + d + ")"
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, strings.ReplaceAll(usage, "|", `\|`))
	})
	if !first {
		b.WriteString("\n")
	}
}
