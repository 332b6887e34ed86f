package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) dropCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:        "drop DIR COLLECTION [--yes]",
		SuggestFor: []string{"delete-collection", "remove-collection"},
		Short:      "Drop a collection with its nodes, links, decoders and index",
		Long: `Drop removes a collection with its nodes, links, decoders and index, for good. On a terminal it
says what will be removed and asks; anywhere else it needs --yes. It waits for a rebuild under
way. The space in flash.db is reused; ` + "`flashdb compact`" + ` gives it back to the file system.`,
		Example: `  flashdb drop papers.flash abstracts
  flashdb drop papers.flash abstracts --yes --json`,
		Args: usage.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes && a.ask == nil && !terminal.Is(a.in) {
				return fmt.Errorf("drop %s: standard input is not a terminal, so that flashdb cannot ask: add --yes to drop it for good", show.Text(args[1]))
			}
			return a.drop(cmd.Context(), args[0], args[1], yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask (needed when standard input is not a terminal)")
	return cmd
}

func (a *app) drop(ctx context.Context, dir, name string, yes bool) error {
	return a.withCollection(ctx, dir, name, flashdb.Options{}, func(db database, _ collection) error {
		what, err := statsOf(ctx, db, name)
		if err != nil {
			return err
		}
		if !yes {
			if err := a.mayDrop(ctx, what); err != nil {
				return err
			}
		}
		if err := db.DropCollection(ctx, name); err != nil {
			return err
		}
		if a.json {
			return a.emit(struct {
				Done       string   `json:"done"`
				Collection string   `json:"collection"`
				Nodes      uint64   `json:"nodes"`
				Decoders   []string `json:"decoders"`
				IndexBytes int64    `json:"index_bytes"`
			}{"drop", name, what.Nodes, show.JSONs(what.Decoders), what.IndexBytes})
		}
		_, err = fmt.Fprintf(a.out, "dropped collection %s of %s: %s\n", name, show.Text(dir), describeHolding(what))
		return err
	})
}

// statsOf describes one collection.
func statsOf(ctx context.Context, db database, name string) (flashdb.CollectionStats, error) {
	s, err := db.Stats(ctx)
	if err != nil {
		return flashdb.CollectionStats{}, err
	}
	i := slices.IndexFunc(s.Collections, func(c flashdb.CollectionStats) bool { return c.Name == name })
	if i < 0 { // dropped since it was found
		return flashdb.CollectionStats{}, fmt.Errorf("collection %q %w", name, flashdb.ErrNotFound)
	}
	return s.Collections[i], nil
}

// describeHolding says what goes with a collection.
func describeHolding(c flashdb.CollectionStats) string {
	index := "no index"
	if c.IndexBytes > 0 {
		index = show.Bytes(c.IndexBytes) + " of index"
	}
	return fmt.Sprintf("%s, %s, %s", show.Count(c.Nodes, "node"), show.Count(len(c.Decoders), "decoder"), index)
}

// mayDrop asks the person at the terminal; anything but yes is an error.
func (a *app) mayDrop(ctx context.Context, what flashdb.CollectionStats) error {
	ask := a.ask
	if ask == nil {
		ask = a.askHere
	}
	text, err := ask(ctx, fmt.Sprintf("drop collection %s for good: %s? [y/N] ", what.Name, describeHolding(what)))
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was dropped")
}

// askHere asks on the terminal of the command.
func (a *app) askHere(ctx context.Context, question string) (string, error) {
	fmt.Fprint(a.err, question)
	line := make(chan string, 1)
	go func() { // which an interrupt leaves behind, reading: the program ends
		text, _ := bufio.NewReader(a.in).ReadString('\n')
		line <- text
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.err)
		return "", ctx.Err()
	case text := <-line:
		return text, nil
	}
}
