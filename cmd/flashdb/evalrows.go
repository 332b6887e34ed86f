package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/train"
	"github.com/flashdb/flashdb/train/graph"
)

type edgeOf = graph.Edge

// readEmbeddings fills in the rows of the task: the sources of the edges where they are of another
// collection, then every node of the target. It renumbers edges, negatives and the task's lists of
// candidates.
func (k *ranking) readEmbeddings(ctx context.Context, edges, negatives []idPair) error {
	first := map[uint32]uint32{} // the row of each source
	if k.sources != nil {
		for _, pairs := range [][]idPair{edges, negatives} {
			for _, e := range pairs {
				if _, ok := first[e.source]; ok {
					continue
				}
				first[e.source] = uint32(len(first))
				n, err := embedded(ctx, k.sources, k.of.keys[e.source])
				if err != nil {
					return err
				}
				k.task.Embeddings = append(k.task.Embeddings, n.Embedding...)
				k.sourceKeys = append(k.sourceKeys, n.Key)
			}
		}
		k.task.Sources = len(first)
	}
	if err := k.readTargets(ctx); err != nil {
		return err
	}
	changed := false
	number := func(id uint32) uint32 {
		changed = changed || k.numbers[id] < 0
		return uint32(k.numbers[id])
	}
	renumber := func(pairs []idPair) (out []train.Edge) {
		for _, e := range pairs {
			source, isSource := first[e.source]
			if !isSource { // sources are nodes of the target
				source = number(e.source)
			}
			out = append(out, train.Edge{Source: source, Target: number(e.target)})
		}
		return out
	}
	k.task.Edges, k.task.NegativeEdges = renumber(edges), renumber(negatives)
	for _, list := range k.task.Candidates {
		for i, id := range list {
			list[i] = number(id)
		}
	}
	if changed {
		return errors.New("nodes have lost their embedding meanwhile, as when a release is published: run it again")
	}
	return nil
}

// readTargets appends the embedding of every node of the target.
func (k *ranking) readTargets(ctx context.Context) error {
	k.numbers = make([]int32, len(k.nodes.keys))
	total := int64(len(k.nodes.keys))
	add := func(id int, n flashdb.Node) error {
		if len(n.Embedding) == 0 {
			k.numbers[id] = -1
			return nil
		}
		k.numbers[id] = int32(len(k.task.Embeddings) / k.task.Dim)
		k.task.Embeddings = append(k.task.Embeddings, n.Embedding...)
		if id%1024 == 0 {
			k.progress.Update("read "+k.target.Name(), int64(id), total)
		}
		return nil
	}
	return eachNode(ctx, k.db, k.target, k.nodes.keys, add)
}

// knownLinks are no candidates of their sources.
func (k *ranking) knownLinks(ctx context.Context, edges []idPair) error {
	if k.named != nil {
		return k.knownTriples(ctx, edges)
	}
	var of flashdb.Edge
	if k.sources != nil {
		of.SourceCollection = k.sources.Name()
	}
	asked := map[train.Edge]bool{}
	for _, e := range k.task.Edges {
		asked[train.Edge{Source: e.Source, Target: e.Target}] = true
	}
	seen := map[uint32]bool{}
	for i, e := range edges {
		if seen[e.source] {
			continue
		}
		seen[e.source] = true
		of.Source = k.of.keys[e.source]
		linked, err := k.target.Linked(ctx, of)
		if err != nil {
			return err
		}
		for _, key := range linked {
			id, err := k.nodes.byKey(key)
			if err != nil {
				continue // newer than the keys
			}
			if k.numbers[id] < 0 {
				continue // no candidate
			}
			link := train.Edge{Source: k.task.Edges[i].Source, Target: uint32(k.numbers[id])}
			if asked[link] {
				k.report.known++
			}
			k.task.Known = append(k.task.Known, link)
		}
		if i%1024 == 0 {
			k.progress.Update("read links", int64(i), int64(len(edges)))
		}
	}
	return nil
}

func (k *ranking) print(m *train.Metrics, want metricSet) error {
	j := newJSONMetrics(m, k.report.against)
	j.only(want)
	r := k.report
	if r.unknown > 0 {
		k.remark("%s left out: their nodes are not in the collection", show.Count(r.unknown, "edge"))
	}
	if r.rowless > 0 {
		k.remark("%s left out: a node of each has no embedding in the live release", show.Count(r.rowless, "edge"))
	}
	if n := len(k.nodes.rowless); n > 0 {
		k.remark("%s of %s without an embedding in the live release: none is a candidate", show.Count(n, "node"), k.target.Name())
	}
	if r.ownTargets > 0 {
		k.remark("the target of %s is among its own negatives: it counts half a place, as any tie", show.Count(r.ownTargets, "edge"))
	}
	if r.known > 0 {
		k.remark("%s of the edges are known links: a model that was trained on them looks better than it is", show.Number(r.known))
	}
	if k.json {
		j.LeftOut, j.Known, j.Seconds = r.unknown+r.rowless+r.selfLoops, r.known, r.seconds
		return k.emit(j)
	}
	fmt.Fprintf(k.out, "%s of %s, ranked among %s\n", show.Count(m.Edges, "edge"), k.r.edges.file, r.against)
	return k.table(0, func(w io.Writer) {
		if j.Tails == nil {
			fmt.Fprintf(w, "  all\t%s\n", j.text())
		} else {
			fmt.Fprintf(w, "  both ends\t%s\n  tails\t%s\n  heads\t%s\n", j.text(), j.Tails.text(), j.Heads.text())
		}
		for _, d := range j.Degrees {
			fmt.Fprintf(w, "  sources of %s known: %s\t%s\n", degreeText(d), show.Count(d.Edges, "edge"), d.text())
		}
	})
}

func degreeText(d jsonDegree) string {
	if d.From == d.To {
		return show.Count(d.From, "link")
	}
	return fmt.Sprintf("%s to %s", show.Number(d.From), show.Count(d.To, "link"))
}
