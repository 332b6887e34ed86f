package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/internal/nearest"
)

func (a *app) keysCommand() *cobra.Command {
	var prefix, contains string
	most := 10
	cmd := &cobra.Command{
		Use:        "keys DIR COLLECTION [--prefix TEXT] [--contains TEXT] [-n N]",
		SuggestFor: []string{"find", "grep"},
		Short:      "Find keys",
		Long: `Keys prints the first keys of a collection, one on each line. --prefix finds those that begin
with a text, in the order of their bytes. --contains finds those that hold a text, whatever its
case, in the order in which the nodes were inserted.`,
		Example: `  flashdb keys papers.flash papers
  flashdb keys papers.flash papers --prefix 1706.
  flashdb keys papers.flash papers --contains attention -n 50`,
		Args: usage.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if most < 1 {
				return fmt.Errorf("-n is %d: want a positive number", most)
			}
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: true}, func(_ database, c collection) error {
				keys, err := findKeys(cmd.Context(), c, prefix, contains, most+1)
				if err != nil {
					return err
				}
				more := len(keys) > most
				if err := a.printKeys(keys[:min(len(keys), most)]); err != nil {
					return err
				}
				if len(keys) == 0 && prefix+contains != "" {
					a.remark("no key of %s %s", c.Name(), soughtKeys(prefix, contains))
				}
				if more {
					a.remark("there are more: say -n %d", 10*most)
				}
				return nil
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&prefix, "prefix", "", "keys that begin with this `text`")
	fs.StringVar(&contains, "contains", "", "keys that hold this `text`, in upper or lower case")
	fs.IntVarP(&most, "limit", "n", most, "number of keys at most")
	return cmd
}

// findKeys returns the first keys that begin with prefix and hold a text.
func findKeys(ctx context.Context, c collection, prefix, contains string, most int) ([]string, error) {
	if contains == "" && prefix != "" {
		return c.KeysWithPrefix(ctx, prefix, most)
	}
	contains = strings.ToLower(contains)
	var keys []string
	for key, err := range c.Keys(ctx) {
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(key, prefix) && strings.Contains(strings.ToLower(key), contains) {
			keys = append(keys, key)
		}
		if len(keys) == most {
			break
		}
	}
	return keys, nil
}

// soughtKeys says what was looked for.
func soughtKeys(prefix, contains string) string {
	var what []string
	if prefix != "" {
		what = append(what, fmt.Sprintf("begins with %q", prefix))
	}
	if contains != "" {
		what = append(what, fmt.Sprintf("holds %q", contains))
	}
	return strings.Join(what, " and ")
}

func (a *app) printKeys(keys []string) error {
	if a.json {
		for _, key := range keys {
			if err := a.emit(map[string]string{"key": show.JSON(key)}); err != nil {
				return err
			}
		}
		return nil
	}
	return a.table(0, func(w io.Writer) {
		for _, key := range keys {
			fmt.Fprintln(w, show.Text(key))
		}
	})
}

// nearKeyPatience is how long keys like an unknown one are looked for.
const nearKeyPatience = 2 * time.Second

// nearKeys adds to the error of a key that is not known those of c which are like it.
func (a *app) nearKeys(ctx context.Context, c collection, err error, keys ...string) error {
	if !errors.Is(err, flashdb.ErrNotFound) {
		return err
	}
	for _, key := range keys {
		if !strings.Contains(err.Error(), fmt.Sprintf("node %q", key)) {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, nearKeyPatience)
		defer cancel()
		near := nearest.New(key, 3)
		for key, err := range c.Keys(ctx) {
			if err != nil {
				break // what was found until then is told
			}
			near.Add(key)
		}
		words := near.Words()
		if slices.Contains(words, key) { // it is there: something else of it is not
			return err
		}
		if len(words) == 0 && strings.Contains(key, ",") {
			return fmt.Errorf("%w: several keys are separated by blanks", err)
		} else if len(words) > 0 {
			return fmt.Errorf("%w: %s", err, show.DidYouMean(words))
		}
		return fmt.Errorf("%w: %s finds keys", err, a.verb("keys"))
	}
	return err
}

// nearSource is nearKeys for sources, which were looked for in c itself unless from is another
// collection. It says so if another one has them.
func (a *app) nearSource(ctx context.Context, db database, c, from collection, err error, keys ...string) error {
	if from.Name() != c.Name() || !errors.Is(err, flashdb.ErrNotFound) {
		return a.nearKeys(ctx, from, err, keys...)
	}
	names, lerr := db.Collections(ctx)
	if lerr != nil {
		return err
	}
	for _, key := range keys {
		for _, name := range names {
			if name == c.Name() || !strings.Contains(err.Error(), fmt.Sprintf("node %q", key)) {
				continue
			}
			other, oerr := db.Collection(ctx, name)
			if oerr != nil {
				continue
			}
			if _, oerr = other.Get(ctx, key); oerr == nil {
				return fmt.Errorf("%w: %s has it: --source-collection %s", err, name, name)
			}
		}
	}
	return a.nearKeys(ctx, from, err, keys...)
}
