package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/internal/nearest"
)

// remark tells, beside the result, what the user should know.
func (a *app) remark(format string, args ...any) {
	fmt.Fprintf(a.err, "flashdb: "+format+"\n", args...)
}

// verb is how a command of this program is called from where the user is.
func (a *app) verb(name string) string {
	if a.shared != nil {
		return "`" + name + "`"
	}
	return "`flashdb " + name + "`"
}

// remarkOn tells what is odd about an answer: an index that could not be used, and tags of the
// filter that no node has.
func (a *app) remarkOn(ctx context.Context, db database, c collection, s flashdb.QueryStats) error {
	if s.IndexDamaged {
		a.remark("the index of %s is damaged, so that every node was scanned: run %s", c.Name(), a.verb("rebuild"))
	}
	if len(s.UnknownTags) == 0 {
		return nil
	}
	of, err := statsOf(ctx, db, c.Name())
	if err != nil {
		return err
	}
	tags := slices.Sorted(maps.Keys(of.Tags))
	names := slices.Clone(tags) // that a tag may be meant for
	for _, a := range of.Attributes {
		names = append(names, a.Name)
	}
	for _, tag := range s.UnknownTags {
		what := show.DidYouMean(nearest.Among(tag, names, 2))
		switch {
		case strings.HasPrefix(tag, "!"):
			what = "to leave a tag out, say not"
		case strings.ContainsAny(tag, "*="):
			what = "a tag is named as it is, without = and *"
		case len(tags) == 0:
			what = "no node has any tag"
		case what == "":
			what = fmt.Sprintf("%s lists the tags there are", a.verb("stats"))
		}
		a.remark("--filter: no node of %s has the tag %q: %s", c.Name(), tag, what)
	}
	return nil
}

// remarkOnIndex tells that a collection has grown large enough for an index, and has none.
func (a *app) remarkOnIndex(ctx context.Context, db database, c collection) error {
	of, err := statsOf(ctx, db, c.Name())
	if err == nil && of.Generation == 0 && of.Nodes >= indexFrom {
		a.remark("%s has %s and no index, so that queries scan: run %s", c.Name(), show.Count(of.Nodes, "node"), a.verb("rebuild"))
	}
	return err
}
