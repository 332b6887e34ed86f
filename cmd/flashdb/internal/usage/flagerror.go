package usage

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flashdb/flashdb/internal/nearest"
)

// FlagError says what is wrong with the flags of a command line, and what to do.
func FlagError(cmd *cobra.Command, err error) error {
	see := fmt.Sprintf("see `%s --help`", strings.TrimSpace(cmd.CommandPath()))
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		letters := unknown.GetSpecifiedShortnames()
		word, _, _ := strings.Cut(letters, "=")
		if cmd.Flags().Lookup(word) != nil {
			return fmt.Errorf("unknown flag: -%s: did you mean --%s?", word, word)
		}
		if other := otherwise(cmd, word); other != "" {
			return fmt.Errorf("unknown flag: -%s: did you mean %s?", letters, dashed(cmd.Flags().Lookup(other)))
		}
		return fmt.Errorf("unknown flag: -%s; a key that begins with - goes after --; %s", letters, see)
	case errors.As(err, &unknown):
		near := nearest.Among(unknown.GetSpecifiedName(), flagNames(cmd), 2)
		if other := otherwise(cmd, unknown.GetSpecifiedName()); other != "" {
			near = []string{other}
		}
		if len(near) == 0 {
			return fmt.Errorf("unknown flag: --%s; %s", unknown.GetSpecifiedName(), see)
		}
		return fmt.Errorf("unknown flag: --%s: did you mean --%s?", unknown.GetSpecifiedName(), strings.Join(near, " or --"))
	case errors.As(err, &bare):
		kind, _ := pflag.UnquoteUsage(bare.GetFlag())
		return fmt.Errorf("%s stands without its value (%s); %s", dashed(bare.GetFlag()), kind, see)
	case errors.As(err, &bad):
		return fmt.Errorf("%s %q: %s; %s", dashed(bad.GetFlag()), bad.GetValue(), wantOf(bad.GetFlag(), bad.Unwrap()), see)
	}
	return fmt.Errorf("%w; %s", err, see)
}

// otherNames are what other programs call the flags of this one.
var otherNames = map[string]string{
	"n": "k", "top": "k", "limit": "k", "number": "k", "topk": "k", "top-k": "k",
	"f": "filter", "where": "filter", "tags": "filter", "tag": "filter",
	"force": "yes", "y": "yes", "format": "json", "j": "json", "output": "out",
	"dimension": "dim", "dims": "dim", "d": "dim", "vector": "embedding", "values": "embedding", "model": "decoder",
}

// otherwise returns the flag of a command that others call by a name, or "".
func otherwise(cmd *cobra.Command, name string) string {
	if other := otherNames[name]; other != "" && cmd.Flags().Lookup(other) != nil {
		return other
	}
	return ""
}

// dashed is the name of a flag as it is typed.
func dashed(f *pflag.Flag) string {
	if len(f.Name) == 1 {
		return "-" + f.Name
	}
	return "--" + f.Name
}

// wantOf says what a flag takes whose value could not be read.
func wantOf(f *pflag.Flag, err error) string {
	if errors.Is(err, strconv.ErrRange) {
		return "the number is too large"
	}
	switch f.Value.Type() {
	case "int", "int64":
		return "want a whole number"
	case "uint64":
		return "want a whole number, 0 or more"
	case "float32", "float64":
		return "want a number"
	case "duration":
		return "want a time with its unit, such as 30s, 5m or 1h"
	case "bool":
		return "want true or false, or no value at all"
	}
	return err.Error()
}

// flagNames lists the flags that a command has.
func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
