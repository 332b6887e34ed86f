package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/prometheus"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) statsCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:        "stats DIR [COLLECTION]",
		SuggestFor: []string{"list", "ls", "info", "show", "collections", "describe"},
		Short:      "Print what a database holds: collections, index, decoders, sizes",
		Long: `Stats prints what a database holds. --format prometheus prints that and, when a running program
has the database open and serves its control socket, what that has done since it opened it:
queries and their times, durable changes, rebuilds.`,
		Example: `  flashdb stats papers.flash
  flashdb stats papers.flash --format prometheus`,
		Args: usage.Args(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "text" && format != "prometheus" {
				return fmt.Errorf("--format %q is unknown: use text or prometheus, or --json", format)
			}
			return a.withDB(cmd.Context(), args[0], flashdb.Options{ReadOnly: true}, func(db database) error {
				s, err := db.Stats(cmd.Context())
				if err != nil {
					return err
				}
				if len(args) > 1 {
					if _, err := collectionOf(cmd.Context(), db, args[1]); err != nil {
						return err
					}
					s.Collections = slices.DeleteFunc(s.Collections, func(c flashdb.CollectionStats) bool { return c.Name != args[1] })
				}
				if format == "prometheus" && !a.json {
					m, err := db.Metrics(cmd.Context())
					if err == nil {
						prometheus.Write(a.data(), s, m)
					}
					return err
				}
				scores, err := trainedScores(cmd.Context(), db, s)
				if err != nil {
					return err
				}
				if a.json {
					return a.emit(newJSONStats(s, scores))
				}
				scans, err := scansOf(cmd.Context(), db, s)
				if err != nil {
					return err
				}
				return a.printStats(s, scans, scores)
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or prometheus")
	completeWords(cmd, "format", "text", "prometheus")
	return cmd
}

// tagsIndent is where the values of a collection's table begin.
const tagsIndent = 12

// scansOf says, by collection, which decoders are answered by exact scans although there is an
// index.
func scansOf(ctx context.Context, db database, s flashdb.Stats) (map[string][]string, error) {
	scans := map[string][]string{}
	for _, of := range s.Collections {
		if of.Generation == 0 || len(of.Decoders) == 0 {
			continue
		}
		c, err := db.Collection(ctx, of.Name)
		if errors.Is(err, flashdb.ErrNotFound) {
			continue // dropped since
		}
		var all []flashdb.Calibration
		if err == nil {
			all, err = c.Calibrations(ctx)
		}
		if err != nil {
			return nil, err
		}
		for _, measured := range all {
			if text := describeScans(measured); text != "" {
				scans[of.Name] = append(scans[of.Name], text)
			}
		}
	}
	return scans, nil
}

// trainedScores returns what train measured, by collection.
func trainedScores(ctx context.Context, db database, s flashdb.Stats) (map[string]*storedScore, error) {
	scores := map[string]*storedScore{}
	for _, of := range s.Collections {
		c, err := db.Collection(ctx, of.Name)
		if errors.Is(err, flashdb.ErrNotFound) {
			continue // dropped since
		}
		var score *storedScore
		if err == nil {
			score, err = scoreOf(ctx, c)
		}
		if err != nil {
			return nil, err
		}
		if score != nil {
			scores[of.Name] = score
		}
	}
	return scores, nil
}

func (a *app) printStats(s flashdb.Stats, scans map[string][]string, scores map[string]*storedScore) error {
	fmt.Fprintf(a.out, "database %s: store %s, log %s, %s applied\n",
		show.Text(s.Dir), show.Bytes(s.Disk.Store), show.Bytes(s.Disk.WAL), show.Count(s.AppliedLSN, "write"))
	if s.Release != "" {
		fmt.Fprintf(a.out, "release %s is live, %s staged\n", show.Text(s.Release), show.Number(s.Staged))
	}
	for _, c := range s.Collections {
		fmt.Fprintf(a.out, "\ncollection %s\n", c.Name)
		err := a.table(0, func(w io.Writer) {
			if a.tables != nil {
				fmt.Fprintf(w, "collection\t%s\n", c.Name)
			}
			normalized := ""
			if c.Schema.Normalize {
				normalized = ", normalized"
			}
			fmt.Fprintf(w, "  nodes\t%s of dimension %d%s\n", show.Number(c.Nodes), c.Schema.Dim, normalized)
			if c.WithoutRow > 0 {
				fmt.Fprintf(w, "  without a row\t%s\n", show.Number(c.WithoutRow))
			}
			if c.Tombstones > 0 {
				fmt.Fprintf(w, "  deleted\t%s\n", show.Number(c.Tombstones))
			}
			if c.Links > 0 {
				fmt.Fprintf(w, "  links\t%s\n", show.Number(c.Links))
			}
			fmt.Fprintf(w, "  index\t%s\n", describeIndex(c))
			if c.Drift.Moved > 0 {
				fmt.Fprintf(w, "  drift\t%s\n", describeDrift(c))
			}
			fmt.Fprintf(w, "  decoders\t%s\n", orDash(shownList(c.Decoders, 20)))
			folded := func(name, text string) {
				if a.tables == nil {
					text = a.folded(strings.Repeat(" ", tagsIndent)+text, tagsIndent)[tagsIndent:]
				}
				fmt.Fprintf(w, "  %s\t%s\n", name, text)
			}
			if score := scores[c.Name]; score != nil {
				folded("score", show.Text(score.Decoder+": "+score.Text))
			}
			folded("tags", orDash(topTags(c.Tags, 8)))
			for _, attribute := range c.Attributes {
				folded("attribute", describeAttribute(attribute))
			}
			for _, text := range scans[c.Name] {
				folded("scans", text)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// indexFrom is how many nodes a rebuild builds an index for without --force: minIndexedRows of
// package flashdb.
const indexFrom = 20_000

func describeIndex(c flashdb.CollectionStats) string {
	switch {
	case c.IndexDamaged:
		return "damaged: queries scan every node exactly; run `flashdb rebuild`"
	case c.Generation == 0 && c.Nodes >= indexFrom:
		return "none: queries scan every node exactly; run `flashdb rebuild`, which makes them faster"
	case c.Generation == 0:
		return "none: queries scan every node exactly"
	}
	segments := ""
	if c.Segments > 0 {
		segments = fmt.Sprintf("; %s of them in %s", show.Number(c.SegmentRows), show.Count(c.Segments, "segment"))
	}
	return fmt.Sprintf("generation %d: %s in %s, %s%s; %s newer",
		c.Generation, show.Count(c.IndexedRows, "row"), show.Count(c.Lists, "list"), show.Bytes(c.IndexBytes), segments, show.Count(c.DeltaRows, "row"))
}

func describeDrift(c flashdb.CollectionStats) string {
	d := c.Drift
	s := fmt.Sprintf("%.3g%% of the rows moved: %s newer, %s of the index dead", 100*d.Moved, show.Number(c.DeltaRows+c.SegmentRows), show.Number(d.Dead))
	if d.Residual > 0 {
		s += fmt.Sprintf("; newer rows lie %.3gx as far from their centroids", d.Residual)
	}
	if d.RecallLoss >= .0005 {
		s += fmt.Sprintf("; recall may have lost %.3f", d.RecallLoss)
	}
	return s
}

// topTags lists the most frequent tags with their counts.
func topTags(tags map[string]uint64, most int) string {
	names := slices.SortedFunc(maps.Keys(tags), func(x, y string) int {
		return cmp.Or(cmp.Compare(tags[y], tags[x]), strings.Compare(x, y))
	})
	texts := make([]string, 0, most+1)
	for i, name := range names {
		if i == most {
			texts = append(texts, fmt.Sprintf("and %s more", show.Number(len(names)-most)))
			break
		}
		texts = append(texts, fmt.Sprintf("%s %s", show.Text(name), show.Number(tags[name])))
	}
	return strings.Join(texts, ", ")
}

type jsonStats struct {
	Dir         string           `json:"dir"`
	StoreBytes  int64            `json:"store_bytes"`
	WALBytes    int64            `json:"wal_bytes"`
	DurableLSN  uint64           `json:"durable_lsn"`
	AppliedLSN  uint64           `json:"applied_lsn"`
	Release     string           `json:"release,omitempty"`
	Staged      int              `json:"staged_releases,omitempty"`
	Collections []jsonCollection `json:"collections"`
}

type jsonCollection struct {
	Name        string            `json:"name"`
	Dim         int               `json:"dim"`
	Normalize   bool              `json:"normalize"`
	Nodes       uint64            `json:"nodes"`
	WithoutRow  uint64            `json:"without_row,omitempty"`
	Tombstones  uint64            `json:"tombstones"`
	Links       uint64            `json:"links"`
	Generation  uint64            `json:"generation"`
	IndexedRows uint64            `json:"indexed_rows"`
	Lists       int               `json:"lists"`
	IndexBytes  int64             `json:"index_bytes"`
	Damaged     bool              `json:"index_damaged"`
	BuildLSN    uint64            `json:"build_lsn"`
	Written     *time.Time        `json:"written,omitempty"`
	Segments    int               `json:"segments"`
	SegmentRows uint64            `json:"segment_rows"`
	DeltaRows   uint64            `json:"delta_rows"`
	Drift       jsonDrift         `json:"drift"`
	Decoders    []string          `json:"decoders"`
	Tags        map[string]uint64 `json:"tags"`
	Attributes  []jsonAttribute   `json:"attributes,omitempty"`
	Score       *jsonTrained      `json:"score,omitempty"`
}

// A jsonTrained is what train measured of a decoder.
type jsonTrained struct {
	Decoder  string          `json:"decoder"`
	HeldOut  json.RawMessage `json:"held_out"`
	Dot      json.RawMessage `json:"dot"`
	NewNodes json.RawMessage `json:"new_nodes,omitempty"`
}

type jsonDrift struct {
	Moved      float64 `json:"moved"`
	DeadRows   uint64  `json:"dead_rows"`
	OldestLSN  uint64  `json:"oldest_lsn"`
	Residual   float64 `json:"residual"`
	RecallLoss float64 `json:"recall_loss"`
}

func newJSONStats(s flashdb.Stats, scores map[string]*storedScore) jsonStats {
	j := jsonStats{
		Dir: s.Dir, StoreBytes: s.Disk.Store, WALBytes: s.Disk.WAL,
		DurableLSN: s.DurableLSN, AppliedLSN: s.AppliedLSN, Release: show.JSON(s.Release), Staged: s.Staged, Collections: []jsonCollection{},
	}
	for _, c := range s.Collections {
		jc := jsonCollection{
			Name: c.Name, Dim: c.Schema.Dim, Normalize: c.Schema.Normalize, Nodes: c.Nodes, WithoutRow: c.WithoutRow, Tombstones: c.Tombstones, Links: c.Links,
			Generation: c.Generation, IndexedRows: c.IndexedRows, Lists: c.Lists, IndexBytes: c.IndexBytes, Damaged: c.IndexDamaged, BuildLSN: c.BuildLSN,
			Segments: c.Segments, SegmentRows: c.SegmentRows, DeltaRows: c.DeltaRows, Drift: jsonDrift{c.Drift.Moved, c.Drift.Dead, c.Drift.OldestLSN, c.Drift.Residual, c.Drift.RecallLoss}, Decoders: show.JSONs(c.Decoders), Tags: map[string]uint64{},
		}
		if !c.Written.IsZero() {
			written := c.Written.UTC().Truncate(time.Second)
			jc.Written = &written
		}
		maps.Copy(jc.Tags, c.Tags)
		jc.Attributes = newJSONAttributes(c.Attributes)
		if s := scores[c.Name]; s != nil {
			jc.Score = &jsonTrained{show.JSON(s.Decoder), s.HeldOut, s.Dot, s.NewNodes}
		}
		j.Collections = append(j.Collections, jc)
	}
	return j
}
