package graph

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/internal/codec"
)

// pairs are edges by number, in an array of integers.
type pairs struct {
	data    []int64
	count   int
	width   int // 2, or 3 with the relation in the middle
	along   bool
	targets []int64 // if set, data holds only the sources
}

// at is one value of an edge.
func (p *pairs) at(edge, column int) int64 {
	switch {
	case p.targets != nil && column == 0:
		return p.data[edge]
	case p.targets != nil:
		return p.targets[edge]
	case p.along:
		return p.data[column*p.count+edge]
	}
	return p.data[edge*p.width+column]
}

// asPairs returns the edges of an array of 2 x m or m x 2 values, or with relations 3 x m or m x 3.
func asPairs(a codec.Integers) (*pairs, bool) {
	if len(a.Shape) != 2 {
		return nil, false
	}
	rows, columns := a.Shape[0], a.Shape[1]
	switch {
	case columns == 2 && rows != 2, columns == 3 && rows != 2 && rows != 3:
		return &pairs{data: a.Data, count: rows, width: columns}, true
	case rows == 2 || rows == 3: // edge_index, and what may be either
		return &pairs{data: a.Data, count: columns, width: rows, along: true}, true
	}
	return nil, false
}

// edgeNames are the usual names of an array of edges, the most common first.
var edgeNames = []string{"edge_index", "edge", "edges", ""}

// openArray opens a file of arrays; path may end in # and the name of one.
func (r *Reader) openArray(path string, columns Columns) error {
	if columns != (Columns{}) {
		return fmt.Errorf("%s: an array has no named columns", r.name)
	}
	arrays, wanted, err := readArrays(path)
	if err != nil {
		return err
	}
	p, err := pick(arrays, wanted)
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	r.read(p)
	return nil
}

// readArrays reads the arrays of a file, and returns the name of one that the path ends in.
func readArrays(path string) (arrays []codec.Integers, wanted string, err error) {
	if at := strings.LastIndexByte(path, '#'); at >= 0 {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			path, wanted = path[:at], path[at+1:]
		}
	}
	arrays, err = codec.ReadIntegers(path)
	return arrays, wanted, err
}

// OGB's names of the arrays of edges with negatives of their own: m sources, m targets, and m x n
// targets that are negatives.
const (
	sourceArray   = "source_node"
	targetArray   = "target_node"
	negativeArray = "target_node_neg"
)

// arrayNamed returns the array of a name. ok is false if there is none.
func arrayNamed(arrays []codec.Integers, name string) (a codec.Integers, ok bool) {
	at := slices.IndexFunc(arrays, func(a codec.Integers) bool { return a.Name == name })
	if at < 0 {
		return a, false
	}
	return arrays[at], true
}

// endsOf returns the edges of a file with an array of sources and one of targets, or nil for
// another file.
func endsOf(arrays []codec.Integers) (*pairs, error) {
	sources, hasSources := arrayNamed(arrays, sourceArray)
	targets, hasTargets := arrayNamed(arrays, targetArray)
	if !hasSources || !hasTargets {
		return nil, nil
	}
	if len(sources.Shape) != 1 || !slices.Equal(sources.Shape, targets.Shape) {
		return nil, fmt.Errorf("%s has shape %v and %s %v: want one number for each edge in both", sourceArray, sources.Shape, targetArray, targets.Shape)
	}
	return &pairs{data: sources.Data, count: sources.Shape[0], width: 2, targets: targets.Data}, nil
}

// pick returns the array of the name, or without a name the one that looks like edges.
func pick(arrays []codec.Integers, wanted string) (*pairs, error) {
	if wanted == "" {
		if p, err := endsOf(arrays); p != nil || err != nil {
			return p, err
		}
	}
	var names []string
	var fit []*pairs
	for _, a := range arrays {
		p, ok := asPairs(a)
		if wanted != "" && a.Name == wanted {
			if !ok {
				return nil, fmt.Errorf("array %s has shape %v: want 2 x m or m x 2", quote(a.Name), a.Shape)
			}
			return p, nil
		}
		if ok {
			names, fit = append(names, a.Name), append(fit, p)
		}
	}
	switch {
	case wanted != "":
		return nil, fmt.Errorf("holds no array of integers named %s", quote(wanted))
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) == 0:
		return nil, fmt.Errorf("holds no array of edges: want integers of shape 2 x m or m x 2, the first has %v", arrays[0].Shape)
	}
	for _, name := range edgeNames {
		for i := range names {
			if names[i] == name {
				return fit[i], nil
			}
		}
	}
	return nil, fmt.Errorf("holds %d arrays that may be edges (%s): name one after a #", len(fit), list(names))
}

// read makes r read the pairs.
func (r *Reader) read(p *pairs) {
	r.unit = "row"
	row := -1
	r.next = func(e *Edge) (int, error) {
		row++
		if row >= p.count {
			return row, io.EOF
		}
		source, target := p.at(row, 0), p.at(row, p.width-1)
		if source < 0 || target < 0 {
			return row, fmt.Errorf("node %d: numbers of nodes count from 0", min(source, target))
		}
		e.Source, e.Target = strconv.FormatInt(source, 10), strconv.FormatInt(target, 10)
		if p.width == 3 {
			e.Relation = strconv.FormatInt(p.at(row, 1), 10)
		}
		return row, nil
	}
	if p.width == 3 {
		r.layout.Columns.Relation = "2"
	}
}
