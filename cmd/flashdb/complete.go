package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

// mostKeys is how many keys completion offers. Of more it offers none: a shell would take what the
// first ones have in common for what all have.
const mostKeys = 1000

// A completer knows what words may become that name things of a collection. What cannot be found
// out is not offered: an error has no place in a completion.
type completer struct {
	db         database
	collection string
	sources    string // of --source-collection; empty: the collection
}

// flagValues returns what a flag may be: the words it knows, or what the name of its value says.
func (c completer) flagValues(ctx context.Context, cmd *cobra.Command, f *pflag.Flag, last string) (words []string) {
	if known, ok := cmd.GetFlagCompletionFunc(f.Name); ok {
		words, _ = known(cmd, nil, last)
		return slices.Clone(words)
	}
	return c.valuesOf(ctx, flagMeans(f), last)
}

// argumentValues returns what an argument of a command may be, by the name that its usage gives it.
func (c completer) argumentValues(ctx context.Context, cmd *cobra.Command, position int, last string) []string {
	return c.valuesOf(ctx, argumentMeans(cmd, position), last)
}

// A meaning is what a word of a command line names.
type meaning int

const (
	meansOther meaning = iota
	meansDir           // a database
	meansCollection
	meansDecoder
	meansKey
	meansSource // a key of --source-collection
	meansTag
	meansFilter         // tags and attributes
	meansAttribute      // its name
	meansAttributeValue // name=value
	meansFile
)

// flagMeans tells what the value of a flag names, by the name its usage gives it.
func flagMeans(f *pflag.Flag) meaning {
	value, _ := pflag.UnquoteUsage(f)
	switch {
	case f.Name == "decoder":
		return meansDecoder
	case f.Name == "collection", value == "collection":
		return meansCollection
	case value == "expression":
		return meansFilter
	case value == "tag":
		return meansTag
	case value == "attribute":
		return meansAttribute
	case value == "name=value":
		return meansAttributeValue
	case value == "key":
		return meansKey
	case strings.EqualFold(value, "file"):
		return meansFile
	case value == "directory":
		return meansDir
	}
	return meansOther
}

// argumentMeans tells what an argument names, by the name its command's usage gives it.
func argumentMeans(cmd *cobra.Command, position int) meaning {
	names := usage.ArgumentNames(cmd)
	if words := strings.Fields(cmd.Use)[1:]; position < len(words) && words[position] == "[COLLECTION]" {
		return meansCollection
	}
	if len(names) == 0 || (position >= len(names) && !strings.HasSuffix(names[len(names)-1], "...")) {
		return meansOther
	}
	switch strings.TrimSuffix(names[min(position, len(names)-1)], "...") {
	case "DIR":
		return meansDir
	case "COLLECTION":
		return meansCollection
	case "KEY", "SOURCE":
		return meansSource
	case "CANDIDATE":
		return meansKey
	case "NAME":
		return meansDecoder
	case "FILE", "EDGES":
		return meansFile
	}
	return meansOther
}

// valuesOf returns what a word may become, in no order; what does not begin with last may be among
// it.
func (c completer) valuesOf(ctx context.Context, m meaning, last string) (words []string) {
	switch m {
	case meansCollection:
		words, _ = c.db.Collections(ctx)
	case meansDecoder:
		words, _ = c.decoders(ctx)
	case meansKey:
		words = c.keys(ctx, c.collection, last)
	case meansSource:
		words = c.keys(ctx, cmp.Or(c.sources, c.collection), last)
	case meansTag:
		words = c.tags(ctx, last)
	case meansFilter:
		words = append(c.tags(ctx, last), c.attributes(ctx, last[:strings.LastIndexAny(last, " (")+1], "")...)
	case meansAttribute:
		words = c.attributes(ctx, "", "")
	case meansAttributeValue:
		words = c.attributes(ctx, "", "=")
	case meansFile:
		words = filesLike(last)
	}
	return slices.Clone(words)
}

func (c completer) decoders(ctx context.Context) ([]string, error) {
	of, err := c.db.Collection(ctx, c.collection)
	if err != nil {
		return nil, err
	}
	return of.Decoders(ctx)
}

func (c completer) keys(ctx context.Context, collection, prefix string) []string {
	of, err := c.db.Collection(ctx, collection)
	if err != nil {
		return nil
	}
	keys, err := of.KeysWithPrefix(ctx, prefix, mostKeys+1)
	if err != nil || len(keys) > mostKeys {
		return nil
	}
	return keys
}

// tags completes the last tag of a filter expression.
func (c completer) tags(ctx context.Context, expression string) (words []string) {
	stats, err := c.db.Stats(ctx)
	if err != nil {
		return nil
	}
	head := expression[:strings.LastIndexAny(expression, " (")+1]
	for _, of := range stats.Collections {
		if of.Name == c.collection {
			for tag := range of.Tags {
				words = append(words, head+tag)
			}
		}
	}
	return words
}

// attributes returns the names of attributes between two texts.
func (c completer) attributes(ctx context.Context, head, tail string) (words []string) {
	stats, err := c.db.Stats(ctx)
	if err != nil {
		return nil
	}
	for _, of := range stats.Collections {
		if of.Name == c.collection {
			for _, a := range of.Attributes {
				name := a.Name
				if tail == "" && strings.ContainsAny(name, " ()\"") {
					name = strconv.Quote(name)
				}
				words = append(words, head+name+tail)
			}
		}
	}
	return words
}

// filesLike returns the files whose names begin with prefix; directories end in a separator.
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

// completePatience is how long the completion of a shell may look for words.
const completePatience = 500 * time.Millisecond

// completeNames lets bash, zsh, fish and PowerShell complete what the arguments and flags of a
// command, and of those below it, name.
func (a *app) completeNames(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.completeNames(sub)
	}
	if cmd.HasSubCommands() {
		return
	}
	if len(usage.ArgumentNames(cmd)) > 0 {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, last string) ([]string, cobra.ShellCompDirective) {
			return a.completeWord(cmd, args, argumentMeans(cmd, len(args)), last)
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, known := cmd.GetFlagCompletionFunc(f.Name); known || f.Value.Type() == "bool" {
			return
		}
		err := cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, args []string, last string) ([]string, cobra.ShellCompDirective) {
			return a.completeWord(cmd, args, flagMeans(f), last)
		})
		if err != nil {
			panic("flashdb: complete a flag: " + err.Error()) // it has none
		}
	})
}

// completeWord returns what a word may become in the shell's own completion. Its database is asked
// if nobody holds it, or its owner answers; neither is waited for, and nothing is written.
func (a *app) completeWord(cmd *cobra.Command, args []string, m meaning, last string) ([]string, cobra.ShellCompDirective) {
	switch {
	case m == meansFile:
		return nil, cobra.ShellCompDirectiveDefault
	case m == meansDir:
		return nil, cobra.ShellCompDirectiveFilterDirs
	case m == meansOther, len(args) == 0, cmd.Name() == "create":
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completePatience)
	defer cancel()
	found := make(chan []string, 1)
	go func() { found <- a.namesLike(ctx, cmd, args, m, last) }()
	select {
	case words := <-found:
		return words, cobra.ShellCompDirectiveNoFileComp
	case <-ctx.Done():
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// namesLike asks the database that the arguments name.
func (a *app) namesLike(ctx context.Context, cmd *cobra.Command, args []string, m meaning, last string) []string {
	quiet := app{in: noInput{}, out: io.Discard, err: io.Discard}
	opts := flashdb.Options{ReadOnly: true, MustExist: true, LockTimeout: time.Millisecond, LazyChecksums: true}
	db, err := quiet.open(ctx, args[0], opts)
	if err != nil {
		return nil
	}
	c := completer{db: db}
	if names := usage.ArgumentNames(cmd); len(args) > 1 && len(names) > 1 && names[1] == "COLLECTION" {
		c.collection = args[1]
	}
	if from := cmd.Flags().Lookup("source-collection"); from != nil {
		c.sources = from.Value.String()
	}
	words := slices.DeleteFunc(c.valuesOf(ctx, m, last), func(word string) bool {
		return !strings.HasPrefix(word, last) || show.Text(word) != word // a tab would end the word
	})
	slices.Sort(words)
	if db.Close() != nil {
		return nil
	}
	return words
}
