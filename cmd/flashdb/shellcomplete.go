package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flashdb/flashdb/internal/shell"
)

// mostKeys is how many keys completion offers.
const mostKeys = 100

// complete returns what the word at the cursor may become. What cannot be found
// out is not offered: an error has no place in a completion.
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
			for _, word := range s.flagValues(ctx, cmd, f, value) {
				words = append(words, name+"="+word)
			}
			return words
		}
	}
	position, open := positionOf(cmd, p.Words)
	switch {
	case open != nil:
		return s.flagValues(ctx, cmd, open, p.Last)
	case slices.Contains(p.Words, "--"): // nothing after it is a flag
	case strings.HasPrefix(p.Last, "-"):
		cmd.Flags().VisitAll(func(f *pflag.Flag) { words = append(words, "--"+f.Name) })
		return append(words, "--json", "--help")
	}
	return s.argumentValues(ctx, cmd, position, p.Last)
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

// positionOf returns how many arguments of a command the words hold already,
// and the flag whose value comes next, if any.
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

// flagValues returns what a flag may be: the words it knows, or what the name of
// its value says.
func (s *session) flagValues(ctx context.Context, cmd *cobra.Command, f *pflag.Flag, last string) (words []string) {
	if known, ok := cmd.GetFlagCompletionFunc(f.Name); ok {
		words, _ = known(cmd, nil, last)
		return slices.Clone(words)
	}
	value, _ := pflag.UnquoteUsage(f)
	switch {
	case f.Name == "decoder":
		words, _ = s.decoders(ctx)
	case f.Name == "collection", value == "collection":
		words, _ = s.db.Collections(ctx)
	case value == "expression", value == "tag":
		words = s.tags(ctx, last)
	case value == "key":
		words = s.keys(ctx, last)
	case strings.EqualFold(value, "file"):
		words = filesLike(last)
	}
	return slices.Clone(words)
}

// argumentValues returns what an argument of a command may be, by the name that
// its usage gives it.
func (s *session) argumentValues(ctx context.Context, cmd *cobra.Command, position int, last string) (words []string) {
	names := argumentNames(cmd)
	if cmd.Name() == "help" {
		for _, verb := range s.tree().Commands() {
			words = append(words, verb.Name())
		}
		return words
	}
	if len(names) == 0 || (position >= len(names) && !strings.HasSuffix(names[len(names)-1], "...")) {
		return nil
	}
	switch strings.TrimSuffix(names[min(position, len(names)-1)], "...") {
	case "KEY", "SOURCE", "CANDIDATE":
		words = s.keys(ctx, last)
	case "NAME":
		words, _ = s.decoders(ctx)
	case "FILE", "EDGES":
		words = filesLike(last)
	}
	return slices.Clone(words)
}

func (s *session) decoders(ctx context.Context) ([]string, error) {
	c, err := s.db.Collection(ctx, s.collection)
	if err != nil {
		return nil, err
	}
	return c.Decoders(ctx)
}

func (s *session) keys(ctx context.Context, prefix string) []string {
	c, err := s.db.Collection(ctx, s.collection)
	if err != nil {
		return nil
	}
	keys, _ := c.KeysWithPrefix(ctx, prefix, mostKeys)
	return keys
}

// tags completes the last tag of a filter expression.
func (s *session) tags(ctx context.Context, expression string) (words []string) {
	stats, err := s.db.Stats(ctx)
	if err != nil {
		return nil
	}
	head := expression[:strings.LastIndexAny(expression, " (")+1]
	for _, c := range stats.Collections {
		if c.Name == s.collection {
			for tag := range c.Tags {
				words = append(words, head+tag)
			}
		}
	}
	return words
}

// filesLike returns the files whose names begin with prefix; directories end in
// a separator.
func filesLike(prefix string) []string {
	names, _ := filepath.Glob(escapeGlob(prefix) + "*")
	for i, name := range names {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			names[i] += string(filepath.Separator)
		}
	}
	return names
}

// escapeGlob takes the meaning from the characters of a pattern.
func escapeGlob(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(`*?[\`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
