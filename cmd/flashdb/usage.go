package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// argumentNames returns the arguments that a command's usage names; the last
// one ends in "..." when there may be more of it.
func argumentNames(cmd *cobra.Command) []string {
	var names []string
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.ToUpper(word) != word || strings.ContainsAny(word, "[-|") {
			break
		}
		names = append(names, word)
	}
	return names
}

func usageOf(cmd *cobra.Command) string { return strings.TrimSpace(cmd.UseLine()) }

// args returns an argument check that answers a wrong number of arguments with
// what is missing, or too many, and the command's usage. most < 0 means any
// number from least on.
func args(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			names := argumentNames(cmd)
			// The shell's usage leaves out the arguments that it fills in.
			at := len(args) - givenByShell(cmd)
			if at < 0 || at >= len(names) {
				return fmt.Errorf("an argument is missing; usage: %s", usageOf(cmd))
			}
			return fmt.Errorf("%s is missing; usage: %s", strings.TrimSuffix(names[at], "..."), usageOf(cmd))
		case most >= 0 && len(args) > most:
			return fmt.Errorf("%s is one argument too many; usage: %s", shown(args[most]), usageOf(cmd))
		}
		return nil
	}
}

// noCommand is the argument check of a command that only has others below it.
func noCommand(cmd *cobra.Command, args []string) error {
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

// shellGiven is the annotation of a command of the shell that says how many
// arguments the shell fills in.
const shellGiven = "shell-given"

// givenByShell returns how many of a command's arguments the shell fills in: DIR,
// and the COLLECTION in use.
func givenByShell(cmd *cobra.Command) int { return len(cmd.Annotations[shellGiven]) }

// shorten takes from a command, and those below it, the arguments that the shell
// fills in, in its usage and its examples.
//
// The collection that create makes and drop takes away is said each time.
func shorten(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		shorten(sub)
	}
	path := strings.Fields(cmd.CommandPath())
	names := argumentNames(cmd)
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
