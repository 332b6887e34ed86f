package graph

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/flashdb/flashdb/internal/codec"
)

// IsOGB tells whether a path is a folder as OGB lays out a data set for link prediction.
func IsOGB(path string) bool {
	found, err := filepath.Glob(filepath.Join(path, "split", "*", "test.pt"))
	return err == nil && len(found) > 0
}

// ReadOGB reads a data set of OGB: its nodes, its training edges, and the edges and negatives of
// its split.
func ReadOGB(dir string, opts *Options) (*Graph, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.TwoKinds || o.Relations || o.Times || o.Nodes != nil {
		return nil, fmt.Errorf("%s: a data set of OGB has one kind of node, by number", dir)
	}
	n, err := ogbNodes(dir)
	if err != nil {
		return nil, err
	}
	o.ByNumber = true
	if o.Direction == FindOut {
		o.Direction = Undirected // each edge is there once
	}
	for i := range n {
		o.Nodes = append(o.Nodes, strconv.Itoa(i))
	}
	b, err := NewBuilder(&o)
	if err != nil {
		return nil, err
	}
	splits, err := filepath.Glob(filepath.Join(dir, "split", "*"))
	if err != nil {
		return nil, err
	}
	if len(splits) != 1 {
		return nil, fmt.Errorf("%s has %d splits: want one folder in split", dir, len(splits))
	}
	trainFile := filepath.Join(splits[0], "train.pt")
	if _, err := os.Stat(trainFile); errors.Is(err, os.ErrNotExist) {
		r, err := Open(filepath.Join(dir, "raw", "edge.csv.gz"), &ReadOptions{Columns: Columns{Source: "1", Target: "2"}})
		if err != nil {
			return nil, err
		}
		if err := b.Add(r, Train); err != nil {
			return nil, err
		}
	} else if err := b.addOGB(trainFile, Train, parts); err != nil {
		return nil, err
	}
	if err := b.addOGB(filepath.Join(splits[0], "valid.pt"), Valid, ValidNegatives); err != nil {
		return nil, err
	}
	if err := b.addOGB(filepath.Join(splits[0], "test.pt"), Test, TestNegatives); err != nil {
		return nil, err
	}
	return b.Graph()
}

// addOGB adds the edges of a file of a split, and its negatives where there is a part for them.
func (b *Builder) addOGB(path string, part, negatives Part) error {
	arrays, err := codec.ReadIntegers(path)
	if err != nil {
		return err
	}
	for _, a := range arrays {
		to := part
		switch a.Name {
		case "edge":
		case "edge_neg":
			if to = negatives; to == parts {
				continue
			}
		default:
			continue // such as year and weight
		}
		p, ok := asPairs(a)
		if !ok || p.width != 2 {
			return fmt.Errorf("%s: %s has shape %v: want m x 2", path, a.Name, a.Shape)
		}
		r := &Reader{name: path}
		r.read(p)
		if err := b.Add(r, to); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(arrays, func(a codec.Integers) bool { return a.Name == "edge" }) {
		return fmt.Errorf("%s holds no array named edge", path)
	}
	return nil
}

// ogbNodes reads how many nodes there are.
func ogbNodes(dir string) (n int, err error) {
	path := filepath.Join(dir, "raw", "num-node-list.csv.gz")
	lines, err := codec.OpenLines(path, "")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lines.Close()) }()
	line, _, err := lines.Next()
	if errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("%s is empty: want the number of nodes", path)
	}
	if err != nil {
		return 0, err
	}
	n, err = strconv.Atoi(string(line))
	if err != nil || n < 2 || n > maxOGBNodes {
		return 0, fmt.Errorf("%s: %s is no number of nodes: want 2 to %d", path, quote(string(line)), maxOGBNodes)
	}
	return n, nil
}

// maxOGBNodes bounds what a few bytes may make the reader allocate: the largest data set of links
// has 3 million nodes.
const maxOGBNodes = 16 << 20
