// Package usage checks the arguments and flags of a command line, and says what is wrong with them
// in the words of the command's own usage.
package usage

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

// ArgumentNames returns the arguments that a command's usage names; the last one ends in "..." when
// there may be more of it.
func ArgumentNames(cmd *cobra.Command) []string {
	var names []string
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.ToUpper(word) != word || strings.ContainsAny(word, "[-|") {
			break
		}
		names = append(names, word)
	}
	return names
}

// Of is the usage of a command, in one line.
func Of(cmd *cobra.Command) string { return strings.TrimSpace(cmd.UseLine()) }

// Args returns an argument check that answers a wrong number of arguments with what is missing, or
// too many, and the command's usage. most < 0 means any number from least on.
func Args(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			names := ArgumentNames(cmd)
			// The shell's usage leaves out the arguments that it fills in.
			at := len(args) - GivenByShell(cmd)
			if at < 0 || at >= len(names) {
				return fmt.Errorf("an argument is missing; usage: %s", Of(cmd))
			}
			return fmt.Errorf("%s is missing; usage: %s", strings.TrimSuffix(names[at], "..."), Of(cmd))
		case most >= 0 && len(args) > most:
			return fmt.Errorf("%s is one argument too many; usage: %s", show.Text(args[most]), Of(cmd))
		}
		return nil
	}
}

// NoCommand is the argument check of a command that only has others below it.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2 // letters to change
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("command %q is unknown: did you mean %s?", args[0], strings.Join(near, " or "))
	}
	if cmd.HasParent() { // there are few
		var names []string
		for _, sub := range cmd.Commands() {
			names = append(names, sub.Name())
		}
		return fmt.Errorf("command %q is unknown: %s is followed by %s", args[0], cmd.Name(), strings.Join(names, ", "))
	}
	help := ".help"
	if path := strings.TrimSpace(cmd.CommandPath()); path != "" {
		help = path + " --help"
	}
	return fmt.Errorf("command %q is unknown: see `%s`", args[0], help)
}

// shellGiven is the annotation of a command of the shell that says how many arguments the shell
// fills in.
const shellGiven = "shell-given"

// GivenByShell returns how many of a command's arguments the shell fills in: DIR, and the
// COLLECTION in use.
func GivenByShell(cmd *cobra.Command) int { return len(cmd.Annotations[shellGiven]) }

// Shorten takes from a command, and those below it, the arguments that the shell fills in, in its
// usage and its examples.
//
// The collection that create makes and drop takes away is said each time.
func Shorten(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		Shorten(sub)
	}
	path := strings.Fields(cmd.CommandPath())
	names := ArgumentNames(cmd)
	given := 0
	if len(names) > 0 && names[0] == "DIR" {
		given = 1
		if len(names) > 1 && names[1] == "COLLECTION" && cmd.Name() != "create" && cmd.Name() != "drop" {
			given = 2
		}
	}
	cmd.Annotations = map[string]string{shellGiven: strings.Repeat("+", given)}
	use := strings.Fields(cmd.Use)
	cmd.Use = strings.Join(append(use[:1], use[1+given:]...), " ")
	var examples []string
	for line := range strings.Lines(cmd.Example) {
		if words := strings.Split(strings.TrimSpace(line), " "); len(words) >= len(path)+given && words[0] == path[0] {
			words = append(words[1:len(path)], words[len(path)+given:]...)
			examples = append(examples, "  "+strings.Join(words, " "))
		}
	}
	cmd.Example = strings.Join(examples, "\n")
}
