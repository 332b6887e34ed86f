package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) getCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "get DIR COLLECTION KEY...",
		Short:   "Print nodes: tags, attributes, payload, known links, embedding",
		Example: `  flashdb get papers.flash papers 1706.03762 --json`,
		Args:    usage.Args(3, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: true}, func(db database, c collection) error {
				for i, key := range args[2:] {
					if i > 0 && !a.json {
						fmt.Fprintln(a.out)
					}
					if err := a.get(cmd.Context(), db, c, key); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func (a *app) get(ctx context.Context, db database, c collection, key string) error {
	n, err := c.Get(ctx, key)
	if err != nil {
		return a.nearKeys(ctx, c, err, key)
	}
	links, err := c.Linked(ctx, flashdb.Edge{Source: key})
	if err != nil {
		return err
	}
	across, err := linksAcross(ctx, db, c, key)
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(newJSONNode(n, links, across))
	}
	return a.table(0, func(w io.Writer) {
		fmt.Fprintf(w, "key\t%s\n", show.Text(n.Key))
		fmt.Fprintf(w, "tags\t%s\n", orDash(shownList(n.Tags, len(n.Tags))))
		if len(n.Attributes) > 0 {
			fmt.Fprintf(w, "attributes\t%s\n", shownAttributes(n.Attributes))
		}
		fmt.Fprintf(w, "payload\t%s\n", orDash(show.Clip(show.Text(string(n.Payload)), 100)))
		fmt.Fprintf(w, "links\t%s\n", orDash(countedList(links)))
		for _, name := range slices.Sorted(maps.Keys(across)) {
			fmt.Fprintf(w, "links to %s\t%s\n", name, countedList(across[name]))
		}
		fmt.Fprintf(w, "embedding\t%s\n", summarize(n.Embedding))
	})
}

// linksAcross returns the links of a node to those of other collections, by their names.
func linksAcross(ctx context.Context, db database, c collection, key string) (map[string][]string, error) {
	names, err := db.Collections(ctx)
	if err != nil {
		return nil, err
	}
	across := map[string][]string{}
	for _, name := range names {
		if name == c.Name() {
			continue
		}
		other, err := db.Collection(ctx, name)
		if err != nil {
			return nil, err
		}
		links, err := other.Linked(ctx, flashdb.Edge{SourceCollection: c.Name(), Source: key})
		if err != nil {
			return nil, err
		}
		if len(links) > 0 {
			across[name] = links
		}
	}
	return across, nil
}

// countedList shows the first of some texts and how many there are.
func countedList(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s", show.Number(len(texts)), shownList(texts, 8))
}

// embedded returns a node with its embedding. Of a node that the live release has none for it
// returns an error that matches ErrNotFound.
func embedded(ctx context.Context, c collection, key string) (flashdb.Node, error) {
	n, err := c.Get(ctx, key)
	if err == nil && len(n.Embedding) == 0 {
		err = fmt.Errorf("embedding of node %q %w: the live release has none", key, flashdb.ErrNotFound)
	}
	return n, err
}

// A jsonNode is a node as `get --json` prints it. A payload that is not UTF-8 is in PayloadBase64.
type jsonNode struct {
	Key           string              `json:"key"`
	Embedding     []float32           `json:"embedding"`
	Tags          []string            `json:"tags"`
	Attributes    map[string]any      `json:"attributes,omitempty"`
	Links         []string            `json:"links"`
	LinksTo       map[string][]string `json:"links_to,omitempty"` // nodes of other collections, by their names
	Payload       string              `json:"payload,omitempty"`
	PayloadBase64 string              `json:"payload_base64,omitempty"`
}

func newJSONNode(n flashdb.Node, links []string, across map[string][]string) jsonNode {
	j := jsonNode{Key: show.JSON(n.Key), Embedding: n.Embedding, Tags: []string{}, Links: show.JSONs(links)}
	j.Tags = append(j.Tags, n.Tags...)
	j.Attributes = jsonAttributes(n.Attributes)
	if len(across) > 0 {
		j.LinksTo = map[string][]string{}
	}
	for name, keys := range across {
		j.LinksTo[name] = show.JSONs(keys)
	}
	if utf8.Valid(n.Payload) {
		j.Payload = string(n.Payload)
	} else {
		j.PayloadBase64 = base64.StdEncoding.EncodeToString(n.Payload)
	}
	return j
}

// shownList joins the first most texts, and counts the rest.
func shownList(texts []string, most int) string {
	var b strings.Builder
	for i, t := range texts {
		if i == most {
			fmt.Fprintf(&b, ", and %s more", show.Number(len(texts)-most))
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(show.Text(t))
	}
	return b.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// summarize writes the first values of an embedding and its length.
func summarize(v []float32) string {
	var b strings.Builder
	var sum float64
	for i, x := range v {
		sum += float64(x) * float64(x)
		if i < 8 {
			fmt.Fprintf(&b, "%.4g ", x)
		}
	}
	if len(v) > 8 {
		b.WriteString("... ")
	}
	return fmt.Sprintf("%s(%s, norm %.4g)", b.String(), show.Count(len(v), "value"), math.Sqrt(sum))
}

// done reports one finished change.
func (a *app) done(verb, key string, nodes int, format string, args ...any) error {
	if a.json {
		return a.emit(map[string]any{"done": verb, "key": show.JSON(key), "nodes": nodes})
	}
	_, err := fmt.Fprintf(a.out, format, args...)
	return err
}

func (a *app) deleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:        "delete DIR COLLECTION KEY...",
		SuggestFor: []string{"remove", "rm", "del"},
		Short:      "Delete nodes with their tags, attributes, payload and links",
		Long:       "Delete removes nodes with their tags, attributes, payload and links, all in one atomic batch.\nA key that does not exist is skipped and counted.",
		Example:    `  flashdb delete papers.flash papers 2209.10100`,
		Args:       usage.Args(3, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{}, func(_ database, c collection) error {
				keys := args[2:]
				deleted, err := c.Delete(cmd.Context(), keys...)
				if err != nil {
					return err
				}
				missing := len(keys) - deleted
				if a.json {
					return a.emit(map[string]any{"done": "delete", "nodes": deleted, "missing": missing})
				}
				note := ""
				if missing > 0 {
					note = fmt.Sprintf(" (%s not found)", show.Count(missing, "key"))
				}
				_, err = fmt.Fprintf(a.out, "deleted %s%s\n", show.Count(deleted, "node"), note)
				return err
			})
		},
	}
}
