package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) releaseAddCommand() *cobra.Command {
	var flags importFlags
	cmd := &cobra.Command{
		Use:   "add DIR NAME COLLECTION FILE [--keys nodes.tsv] [--tag TAG]...",
		Short: "Store the embeddings of a file in a staged release",
		Long: `Add stores every row of a file as the embedding of a node, as import does, but in a staged
release: docs/import.md describes the files. The whole file is checked before anything is
stored; then every 10,000 rows are one atomic write.

Of nodes that exist, tags, attributes and payload stay as they are. A node with a new key is
added with those that the file gives it. It is predicted once the release is published.
To continue an add that was interrupted, run it again: it goes on after the last batch.`,
		Example: `  flashdb release add shop.flash night items items.npy --keys items.tsv`,
		Args:    usage.Args(4, 4),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.validate(cmd); err != nil {
				return err
			}
			ctx := cmd.Context()
			return a.withCollection(ctx, args[0], args[2], flashdb.Options{FlushBytes: importFlushBytes}, func(db database, c collection) (err error) {
				if err := flags.open(ctx, a, db, c.Name(), args[3]); err != nil {
					return err
				}
				defer func() { err = errors.Join(err, flags.im.file.remove()) }()
				return a.releaseAdd(ctx, db, c, args[1], &flags.im)
			})
		},
	}
	flags.add(cmd)
	return cmd
}

// releaseAdd checks a file and then stores its rows in a staged release.
func (a *app) releaseAdd(ctx context.Context, db database, c collection, release string, im *importer) error {
	p := terminal.NewProgress(a.err)
	defer p.Clear()
	began := time.Now()
	into, err := fillable(ctx, db, release, c.Name())
	if err != nil {
		return err
	}
	im.schema = c.Schema()
	if err := im.loadKeys(); err != nil {
		return err
	}
	rows, err := im.check(ctx, p, nil)
	if err != nil {
		return err
	}
	im.end = im.start + rows
	state, err := im.resumeAdd(ctx, c, into)
	if err != nil {
		return err
	}
	if state.Stored > 0 {
		p.Clear()
		fmt.Fprintf(a.err, "continuing after %s that an earlier run stored\n", show.Count(state.Stored, "row"))
	}
	added, err := im.fill(ctx, db, c, &state, p)
	if err != nil {
		return goesOn(err)
	}
	if err := state.forget(ctx, c); err != nil {
		return err
	}
	p.Clear()
	elapsed := time.Since(began)
	if a.json {
		return a.emit(map[string]any{"release": release, "collection": c.Name(), "rows": rows, "new_nodes": added, "seconds": elapsed.Seconds()})
	}
	_, err = fmt.Fprintf(a.out, "added %s of %s to release %s in %s, %s new\n", show.Count(rows, "row"), c.Name(), show.Text(release), show.Duration(elapsed), show.Count(added, "node"))
	return err
}

// An applyRelease stores a batch in a release, and returns how many nodes it added.
type applyRelease func(ctx context.Context, release string, b *flashdb.Batch) (added int, err error)

// fill stores the rows that an earlier run has not, in batches. It notes after each how far it got,
// and returns how many nodes were new.
func (im *importer) fill(ctx context.Context, db database, c collection, state *addState, p *terminal.Progress) (added int, err error) {
	dim := im.schema.Dim
	size := min(batchRows, max(1, min(batchBytes, db.MaxBatchBytes()/2)/(4*dim)))
	before, seen := state.Stored, int64(0)
	skipped := make([]float32, dim)
	next := func() []float32 {
		if seen < before {
			return skipped
		}
		return make([]float32, dim)
	}
	apply := im.apply
	if apply == nil {
		apply = db.FillRelease
	}
	var nodes []flashdb.Node
	flush := func() error {
		var b flashdb.Batch
		b.Upsert(c.Name(), nodes...)
		n, err := apply(ctx, state.Release, &b)
		if err != nil {
			return err
		}
		added += n
		state.Stored += int64(len(nodes))
		nodes = nodes[:0]
		if state.Stored == im.end-im.start {
			return nil // there is nothing to go on with
		}
		return state.write(ctx, c)
	}
	_, err = im.scan(ctx, p, "add", next, func(r scannedRow) error {
		if seen++; seen <= before {
			return nil
		}
		if nodes = append(nodes, r.node); len(nodes) < size {
			return nil
		}
		return flush()
	})
	if err == nil && len(nodes) > 0 {
		err = flush()
	}
	return added, err
}

// fillable returns a release that rows of a collection can be stored in. It refuses others, before
// a file is read.
func fillable(ctx context.Context, db database, release, collection string) (r flashdb.ReleaseInfo, err error) {
	r, err = releaseNamed(ctx, db, release)
	switch {
	case errors.Is(err, flashdb.ErrNotFound):
		return r, fmt.Errorf("%w: `flashdb release stage` makes one", err)
	case err != nil:
		return r, err
	case r.State != flashdb.ReleaseStaged:
		return r, fmt.Errorf("release %s is %s, and only a staged one is filled", show.Text(release), r.State)
	case !slices.ContainsFunc(r.Collections, func(c flashdb.ReleaseCollection) bool { return c.Name == collection }):
		return r, fmt.Errorf("release %s does not name collection %s", show.Text(release), collection)
	}
	return r, nil
}

// metaAdd is the name under which a collection keeps how far release add got: see metaImport. It is
// not part of a release.
const metaAdd = reserved + "release-add"

// addState is the value of metaAdd.
type addState struct {
	Source  string    `json:"source"` // what is added: file and flags
	Release string    `json:"release"`
	Number  uint64    `json:"number"`
	Created time.Time `json:"created"` // as a later release may have the name, and the number, of a dropped one
	Stored  int64     `json:"stored"`  // rows, from the first selected one on
}

// resumeAdd returns what an earlier run of the same add to the same release left.
func (im *importer) resumeAdd(ctx context.Context, c collection, into flashdb.ReleaseInfo) (addState, error) {
	s := addState{Source: im.source(), Release: into.Name, Number: into.Number, Created: into.Created}
	text, err := c.Meta(ctx, metaAdd)
	if err != nil || text == "" || s.Source == "" {
		return s, err
	}
	var earlier addState
	if json.Unmarshal([]byte(text), &earlier) != nil || !earlier.Created.Equal(s.Created) {
		return s, nil
	}
	stored := earlier.Stored
	earlier.Stored, earlier.Created = 0, s.Created
	rows := uint64(0) // that the release has
	for _, of := range into.Collections {
		if of.Name == c.Name() {
			rows = of.Rows
		}
	}
	if earlier == s && stored > 0 && uint64(stored) <= rows {
		s.Stored = stored
	}
	return s, nil
}

// write stores the state.
func (s addState) write(ctx context.Context, c collection) error {
	if s.Source == "" {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return c.SetMeta(ctx, metaAdd, string(text))
}

// forget removes what write has stored.
func (s addState) forget(ctx context.Context, c collection) error {
	text, err := c.Meta(ctx, metaAdd)
	if err != nil || text == "" {
		return err
	}
	return c.SetMeta(ctx, metaAdd, "")
}
