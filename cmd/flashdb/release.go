package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/internal/attr"
)

func (a *app) releaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Replace embeddings, decoders and indexes all at once, and go back",
		Long: `A release holds the embeddings, decoders, encoders and indexes of one or several collections.
Keys, tags, payloads and links are of the nodes, and the same in every release. One release is
live: it is what queries use. Others are staged: they are filled and indexed beside it, also
while another process answers queries, and then published in one step. The release that was
live before is kept, and rollback goes back to it. docs/releases.md has the details.

  flashdb release stage shop.flash night users items
  flashdb release add shop.flash night users users.npy --keys users.tsv
  flashdb release add shop.flash night items items.npy --keys items.tsv
  flashdb release decoder shop.flash night items buys decoder.safetensors
  flashdb release build shop.flash night
  flashdb release publish shop.flash night`,
		Args: usage.NoCommand,
		RunE: help,
	}
	cmd.AddCommand(
		a.releaseStageCommand(), a.releaseAddCommand(), a.releaseDecoderCommand(), a.releaseBuildCommand(), a.releaseCompareCommand(),
		a.releasePublishCommand(), a.releaseRollbackCommand(), a.releaseListCommand(), a.releaseDropCommand(),
	)
	return cmd
}

func (a *app) releaseStageCommand() *cobra.Command {
	var cut string
	cmd := &cobra.Command{
		Use:   "stage DIR NAME COLLECTION... [--cut TIME]",
		Short: "Begin a release over some collections",
		Long: `Stage makes an empty release. Nothing changes for queries and writes until it is published.
With --cut it says when the data was cut that the release is trained on. Compare and publish
rank the links that were recorded since then in both releases.`,
		Example: `  flashdb release stage shop.flash night users items
  flashdb release stage shop.flash night users items --cut 2026-03-01T02:00:00Z`,
		Args: usage.Args(3, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := cutTime(cut)
			if err != nil {
				return err
			}
			return a.withDB(cmd.Context(), args[0], flashdb.Options{}, func(db database) error {
				return a.releaseStage(cmd.Context(), db, args[1], args[2:], at)
			})
		},
	}
	cmd.Flags().StringVar(&cut, "cut", "", "`time` at which the data was cut, such as 2026-03-01T02:00:00Z; a day begins in UTC (default now)")
	return cmd
}

// cutTime reads --cut. It returns the zero time where that is not given.
func cutTime(text string) (at time.Time, err error) {
	if text == "" {
		return at, nil
	}
	if at, _, err = attr.ParseTime(text); err == nil && at.After(time.Now()) {
		err = fmt.Errorf("%s is not over yet", shownTime(at))
	}
	if err != nil {
		return at, fmt.Errorf("--cut: %w", err)
	}
	return at, nil
}

func shownTime(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func (a *app) releaseStage(ctx context.Context, db database, name string, collections []string, cut time.Time) error {
	if err := db.StageRelease(ctx, name, collections...); err != nil {
		return err
	}
	if !cut.IsZero() {
		if err := db.SetCut(ctx, name, cut); err != nil {
			return err
		}
	}
	if a.json {
		line := map[string]any{"release": name, "state": flashdb.ReleaseStaged, "collections": collections}
		if !cut.IsZero() {
			line["cut"] = cut.UTC()
		}
		return a.emit(line)
	}
	of := ""
	if !cut.IsZero() {
		of = "; its data was cut at " + shownTime(cut)
	}
	_, err := fmt.Fprintf(a.out, "staged release %s of %s%s\n", show.Text(name), strings.Join(collections, ", "), of)
	return err
}

func (a *app) releaseDecoderCommand() *cobra.Command {
	var flags decoderFlags
	cmd := &cobra.Command{
		Use:     "decoder DIR NAME COLLECTION DECODER FILE [--spec FILE | --layout NAME] [--check FILE]",
		Short:   "Store a decoder in a staged release",
		Long:    `Decoder stores trained weights in a staged release. File and flags are those of decoder add.`,
		Example: `  flashdb release decoder shop.flash night items buys decoder.safetensors --check scores.jsonl`,
		Args:    usage.Args(5, 5),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			d, checked, err := flags.read(a, cmd, []string{args[0], args[2], args[3], args[4]})
			if err != nil {
				return err
			}
			return a.withDB(ctx, args[0], flashdb.Options{}, func(db database) error {
				var b flashdb.Batch
				b.PutDecoder(args[2], args[3], d)
				if _, err := db.FillRelease(ctx, args[1], &b); err != nil {
					return err
				}
				if a.json {
					return a.emit(newJSONDecoder(args[3], d, &checked))
				}
				return a.printAdded(args[3], d, checked)
			})
		},
	}
	flags.add(cmd)
	return cmd
}

func (a *app) releaseBuildCommand() *cobra.Command {
	var opts flashdb.RebuildOptions
	var memory sizeFlag
	cmd := &cobra.Command{
		Use:   "build DIR NAME",
		Short: "Build and calibrate the indexes of a staged release",
		Long: `Build builds the index of each collection of a staged release, and calibrates its decoders.
Below 20,000 embeddings queries scan every node: an index is built only with --force. Run it
again after more was added.`,
		Example: `  flashdb release build shop.flash night`,
		Args:    usage.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withDB(ctx, args[0], flashdb.Options{MemoryBytes: int64(memory)}, func(db database) error {
				if err := a.budgetFor(db, memory); err != nil {
					return err
				}
				return a.releaseBuild(ctx, db, args[1], opts)
			})
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&opts.Force, "force", false, "build below 20,000 embeddings or without changes")
	addBuildFlags(fs, &opts, &memory)
	return cmd
}

// releaseBuild builds a release and prints what came of each collection.
func (a *app) releaseBuild(ctx context.Context, db database, release string, opts flashdb.RebuildOptions) error {
	p := terminal.NewProgress(a.err)
	defer p.Clear()
	opts.Workers = cmp.Or(opts.Workers, a.buildWorkers(db))
	opts.Progress = func(stage string, done, total int64) { p.Update("build "+show.Text(release)+": "+stage, done, total) }
	built, err := db.BuildRelease(ctx, release, &opts)
	if err != nil {
		return err
	}
	p.Clear()
	for _, b := range built {
		if err := a.printRebuild(b.Collection, &b.Embedded, b.RebuildResult, p); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) releaseRollbackCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rollback DIR",
		Short: "Go back to the release that was live before",
		Long: `Rollback makes the former release the live one again, in one step. What was live is staged
then, and can be published again or dropped.`,
		Example: `  flashdb release rollback shop.flash`,
		Args:    usage.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withDB(cmd.Context(), args[0], flashdb.Options{}, func(db database) error {
				name, err := db.Rollback(cmd.Context())
				if err != nil {
					return err
				}
				if a.json {
					return a.emit(map[string]any{"release": name, "state": flashdb.ReleaseLive})
				}
				_, err = fmt.Fprintf(a.out, "release %s is live again\n", show.Text(name))
				return err
			})
		},
	}
}

func (a *app) releaseDropCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "drop DIR NAME",
		Short: "Remove a staged release or the former one",
		Long: `Drop removes a release that is not live: its embeddings, decoders and indexes. Nodes that
add has made stay. The space in flash.db is used again; compact gives it back to the file
system.`,
		Example: `  flashdb release drop shop.flash night`,
		Args:    usage.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withDB(cmd.Context(), args[0], flashdb.Options{}, func(db database) error {
				if err := db.DropRelease(cmd.Context(), args[1]); err != nil {
					return err
				}
				if a.json {
					return a.emit(map[string]any{"release": args[1], "dropped": true})
				}
				_, err := fmt.Fprintf(a.out, "dropped release %s\n", show.Text(args[1]))
				return err
			})
		},
	}
}

func (a *app) releaseListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list DIR",
		Short:   "List the releases and what they hold",
		Example: `  flashdb release list shop.flash --json`,
		Args:    usage.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withDB(cmd.Context(), args[0], flashdb.Options{ReadOnly: true}, func(db database) error {
				all, err := db.Releases(cmd.Context())
				if err != nil {
					return err
				}
				return a.printReleases(all)
			})
		},
	}
}

// releaseNamed returns a release, or an error that matches ErrNotFound.
func releaseNamed(ctx context.Context, db database, name string) (flashdb.ReleaseInfo, error) {
	all, err := db.Releases(ctx)
	if err != nil {
		return flashdb.ReleaseInfo{}, err
	}
	i := slices.IndexFunc(all, func(r flashdb.ReleaseInfo) bool { return r.Name == name })
	if i < 0 {
		return flashdb.ReleaseInfo{}, fmt.Errorf("release %s: %w", show.Text(name), flashdb.ErrNotFound)
	}
	return all[i], nil
}

// A jsonRelease is one line of release list.
type jsonRelease struct {
	Release     string                  `json:"release"`
	Number      uint64                  `json:"number"`
	State       string                  `json:"state"`
	Created     *time.Time              `json:"created,omitempty"`
	Cut         *time.Time              `json:"cut,omitempty"`
	Published   *time.Time              `json:"published,omitempty"`
	Collections []jsonReleaseCollection `json:"collections"`
}

type jsonReleaseCollection struct {
	Name       string   `json:"name"`
	Rows       uint64   `json:"rows"`
	WithoutRow uint64   `json:"without_row"`
	Decoders   []string `json:"decoders"`
	Encoder    bool     `json:"encoder"`
	Generation uint64   `json:"generation"`
}

func (a *app) printReleases(all []flashdb.ReleaseInfo) error {
	if a.json {
		for _, r := range all {
			line := jsonRelease{Release: r.Name, Number: r.Number, State: r.State}
			if !r.Created.IsZero() {
				cut := r.Cut.UTC()
				line.Created, line.Cut = &r.Created, &cut
			}
			if !r.Published.IsZero() {
				line.Published = &r.Published
			}
			for _, c := range r.Collections {
				line.Collections = append(line.Collections, jsonReleaseCollection{c.Name, c.Rows, c.WithoutRow, show.JSONs(c.Decoders), c.Encoder, c.Generation})
			}
			if err := a.emit(line); err != nil {
				return err
			}
		}
		return nil
	}
	return a.titled(func(w io.Writer) {
		fmt.Fprintln(w, "release\tstate\tcollection\trows\twithout a row\tdecoders\tindex")
		for _, r := range all {
			name, state := show.Text(r.Name), r.State
			if len(r.Collections) == 0 {
				fmt.Fprintf(w, "%s\t%s\t\t\t\t\t\n", name, state)
			}
			for _, c := range r.Collections {
				index := "none"
				if c.Generation != 0 {
					index = fmt.Sprint("generation ", c.Generation)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, state, c.Name, show.Number(c.Rows), show.Number(c.WithoutRow), shownList(c.Decoders, len(c.Decoders)), index)
				name, state = "", ""
			}
		}
	})
}
