package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/train/graph"
)

// readNegatives reads the file of negatives: those of each edge, as the candidates of the task, or
// one list for all edges, which it returns.
func (k *ranking) readNegatives(ctx context.Context, edges *edgeList) (shared []idPair, err error) {
	s := k.r.edges
	s.file, s.format = k.r.negatives, ""
	lists, remove, err := k.openLists(s)
	if err != nil {
		return nil, err
	}
	if lists != nil {
		defer func() { err = errors.Join(err, lists.Close(), remove()) }()
		if err := k.readLists(ctx, lists, edges, k.r.byRow || s.isNumbered()); err != nil {
			return nil, err
		}
		k.report.against = listsText(k.task.Candidates) + ", of " + k.r.negatives
		return nil, nil
	}
	if _, err := k.r.wanted(true); err != nil {
		return nil, err
	}
	l, err := k.read(ctx, s)
	if err != nil {
		return nil, err
	}
	k.report.against = show.Count(len(l.pairs), "negative") + " of " + k.r.negatives
	return l.pairs, nil
}

// openLists opens a file of the negatives of each edge; it returns nil for one list for all. The
// caller calls remove when all is read.
func (k *ranking) openLists(s edgeSource) (l *graph.Lists, remove func() error, err error) {
	sure := k.r.perEdge
	if !sure && (s.file == standardInput || (s.columns != (graph.Columns{}) && !s.isNumbered())) {
		return nil, nil, nil // it is read once, or its columns are those of edges
	}
	if s.file == standardInput {
		s.format = formatTSV
	}
	file, err := k.openInput(s.file, s.format)
	if err != nil {
		return nil, nil, err
	}
	if file.isParquet() {
		if sure {
			err = fmt.Errorf("%s: negatives of each edge are not read from Parquet: want .npy, .npz, .pt, .jsonl or text", file.name)
		}
		return nil, nil, errors.Join(err, file.remove())
	}
	l, ok, err := graph.OpenLists(file.path, &graph.ReadOptions{Name: file.name, Format: file.format}, sure)
	if !ok || err != nil {
		return nil, nil, errors.Join(err, file.remove())
	}
	return l, file.remove, nil
}

// readLists fills in the candidates of the task, by id.
func (k *ranking) readLists(ctx context.Context, lists *graph.Lists, edges *edgeList, byRow bool) error {
	var l graph.List
	rows := 0
	for ; ; rows++ {
		if err := lists.Next(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if rows%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			k.progress.Update("read "+k.r.negatives, int64(rows), int64(edges.lines))
		}
		at := len(k.task.Candidates)
		if at == len(edges.pairs) || edges.places[at] != rows {
			continue // the edge is left out
		}
		list, err := k.candidates(&l, edges.pairs[at], rows, byRow)
		if err != nil {
			return lists.Fault(err)
		}
		k.task.Candidates = append(k.task.Candidates, list)
	}
	if rows != edges.lines {
		return fmt.Errorf("%s has negatives of %s, and %s %s: want a line or row for each edge, in their order",
			k.r.negatives, show.Count(rows, "edge"), k.r.edges.file, show.Count(edges.lines, "edge"))
	}
	return nil
}

// candidates resolves the negatives of an edge, the row-th of its file. Where the file names the
// ends of the edge they must be the same.
func (k *ranking) candidates(l *graph.List, edge idPair, row int, byRow bool) ([]uint32, error) {
	for _, end := range []struct {
		what, key string
		of        *nodeIndex
		id        uint32
	}{{"source", l.Source, k.of, edge.source}, {"target", l.Target, k.nodes, edge.target}} {
		if end.key == "" {
			continue
		}
		id, err := end.of.find(end.key, byRow)
		if err != nil {
			return nil, fmt.Errorf("%w%s", err, k.rowHint(byRow))
		}
		if id != end.id {
			return nil, fmt.Errorf("the %s is %s, but %s of edge %d of %s: want the negatives of each edge, in the order of the edges",
				end.what, show.Text(end.key), show.Text(end.of.keys[end.id]), row+1, k.r.edges.file)
		}
	}
	list := make([]uint32, 0, len(l.Keys)+len(l.Numbers))
	for _, key := range l.Keys {
		id, err := k.nodes.find(key, byRow)
		if err != nil {
			return nil, fmt.Errorf("%w%s", err, k.listHint(byRow))
		}
		list = append(list, id)
	}
	for _, number := range l.Numbers {
		id, err := k.nodes.byRow(number)
		if err != nil {
			return nil, err
		}
		list = append(list, id)
	}
	list = slices.DeleteFunc(list, func(id uint32) bool { return k.nodes.rowless[id] })
	if slices.Contains(list, edge.target) {
		k.report.ownTargets++
	}
	return list, nil
}

// listHint says what else a line may be whose negatives are no nodes.
func (k *ranking) listHint(byRow bool) string {
	if k.r.perEdge {
		return k.rowHint(byRow)
	}
	return ": a line of 4 columns or more is a source and its negatives; if it is an edge, name its columns, as in --source-column 1 --target-column 2"
}

// listsText says how many negatives the edges have.
func listsText(lists [][]uint32) string {
	least, most := len(lists[0]), 0
	for _, list := range lists {
		least, most = min(least, len(list)), max(most, len(list))
	}
	if least == most {
		return show.Count(most, "negative") + " each"
	}
	return fmt.Sprintf("%s to %s each", strconv.Itoa(least), show.Count(most, "negative"))
}
