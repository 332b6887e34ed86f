package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flashdb/flashdb/internal/shell"
)

// mostKeys is how many keys completion offers.
const mostKeys = 100

// flagWords are the values of flags that have a few.
var flagWords = map[string][]string{
	"mode":         {"auto", "paper", "exact"},
	"seed":         {"ones", "source", "both"},
	"anchors-from": {"round", "all", "both"},
	"metric":       {"ip", "cosine", "l2"},
}

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
	if err != nil {
		return nil
	}
	if cmd.HasSubCommands() {
		for _, sub := range cmd.Commands() {
			words = append(words, sub.Name())
		}
		return words
	}
	if name, ok := strings.CutPrefix(p.Words[len(p.Words)-1], "--"); ok && !strings.Contains(name, "=") {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.Type() != "bool" {
			return s.flagValues(ctx, f, p.Last)
		}
	}
	if strings.HasPrefix(p.Last, "-") {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { words = append(words, "--"+f.Name) })
		return append(words, "--json", "--help")
	}
	return s.argumentValues(ctx, cmd, p.Last)
}

// flagValues returns what a flag may be.
func (s *session) flagValues(ctx context.Context, f *pflag.Flag, last string) (words []string) {
	switch f.Name {
	case "decoder":
		words, _ = s.decoders(ctx)
	case "collection", "source-collection", "sources":
		words, _ = s.db.Collections(ctx)
	case "filter", "tag":
		words = s.tags(ctx, last)
	case "exclude":
		words = s.keys(ctx, last)
	default:
		if words = flagWords[f.Name]; words == nil && f.Value.Type() == "string" {
			words = filesLike(last)
		}
	}
	return slices.Clone(words)
}

// argumentValues returns what the arguments of a command may be, by the names
// that its usage gives them.
func (s *session) argumentValues(ctx context.Context, cmd *cobra.Command, last string) (words []string) {
	for _, name := range strings.Fields(cmd.Use)[1:] {
		switch strings.Trim(name, ".") {
		case "KEY", "SOURCE", "CANDIDATE", "TARGET":
			words = append(words, s.keys(ctx, last)...)
		case "NAME":
			names, _ := s.decoders(ctx)
			words = append(words, names...)
		case "FILE", "EDGES":
			words = append(words, filesLike(last)...)
		}
	}
	return words
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
