package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/shell"
)

// complete returns what the word at the cursor may become. What cannot be found out is not offered:
// an error has no place in a completion.
func (s *session) complete(ctx context.Context, p shell.Partial) []string {
	var words []string
	switch {
	case len(p.Words) == 0:
		words = []string{"use", "quit", ".help", ".mode", ".output", ".quit", ".read", ".timer"}
		for _, cmd := range s.tree().Commands() {
			words = append(words, cmd.Name())
		}
	case p.Words[0] == "use":
		words, _ = s.db.Collections(ctx)
	case p.Words[0] == ".mode":
		words = outputModes
	case p.Words[0] == ".timer":
		words = []string{"on", "off"}
	case p.Words[0] == ".read", p.Words[0] == ".output":
		return filesLike(p.Last)
	default:
		words = s.completeVerb(ctx, p)
	}
	words = slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, p.Last) })
	slices.Sort(words)
	return slices.Compact(words)
}

func (s *session) completeVerb(ctx context.Context, p shell.Partial) (words []string) {
	cmd, _, err := s.tree().Find(p.Words)
	if err != nil || (cmd.HasSubCommands() && len(p.Words) > len(strings.Fields(cmd.CommandPath()))) {
		return nil // no such verb
	}
	if cmd.HasSubCommands() {
		for _, sub := range cmd.Commands() {
			words = append(words, sub.Name())
		}
		return words
	}
	if name, value, ok := strings.Cut(p.Last, "="); ok && strings.HasPrefix(name, "--") {
		if f := flagNamed(cmd, name); f != nil {
			for _, word := range s.completer().flagValues(ctx, cmd, f, value) {
				words = append(words, name+"="+word)
			}
			return words
		}
	}
	position, open := positionOf(cmd, p.Words)
	switch {
	case open != nil:
		return s.completer().flagValues(ctx, cmd, open, p.Last)
	case slices.Contains(p.Words, "--"): // nothing after it is a flag
	case strings.HasPrefix(p.Last, "-"):
		cmd.Flags().VisitAll(func(f *pflag.Flag) { words = append(words, "--"+f.Name) })
		return append(words, "--json", "--help")
	}
	if cmd.Name() == "help" {
		for _, verb := range s.tree().Commands() {
			words = append(words, verb.Name())
		}
		return words
	}
	c := s.completer()
	c.sources = sourcesIn(p.Words)
	return c.argumentValues(ctx, cmd, position, p.Last)
}

func (s *session) completer() completer { return completer{db: s.db, collection: s.collection} }

// sourcesIn returns the value of --source-collection among words, or nothing.
func sourcesIn(words []string) string {
	for i, word := range words {
		if name, value, ok := strings.Cut(word, "="); ok && name == "--source-collection" {
			return value
		}
		if word == "--source-collection" && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}

// flagNamed returns the flag that a word names, or nil.
func flagNamed(cmd *cobra.Command, word string) *pflag.Flag {
	if name, ok := strings.CutPrefix(word, "--"); ok {
		return cmd.Flags().Lookup(name)
	}
	if len(word) == 2 && word[0] == '-' {
		return cmd.Flags().ShorthandLookup(word[1:])
	}
	return nil
}

// positionOf returns how many arguments of a command the words hold already, and the flag whose
// value comes next, if any.
func positionOf(cmd *cobra.Command, words []string) (position int, open *pflag.Flag) {
	words = words[min(len(words), len(strings.Fields(cmd.CommandPath()))):]
	for i, word := range words {
		switch f := flagNamed(cmd, word); {
		case open != nil:
			open = nil
		case f != nil && f.Value.Type() != "bool":
			open = f
		case !strings.HasPrefix(word, "-") || slices.Contains(words[:i], "--"):
			position++
		}
	}
	return position, open
}
