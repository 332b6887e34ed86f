package graph

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/internal/codec"
)

// IsOGB tells whether a path is a folder as OGB lays out a data set for link prediction, or what is
// left of one.
func IsOGB(path string) bool {
	for _, pattern := range []string{filepath.Join("split", "*", "test.pt"), filepath.Join("raw", nodeList)} {
		if found, err := filepath.Glob(filepath.Join(path, pattern)); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// nodeList is the file of raw that has the number of nodes.
const nodeList = "num-node-list.csv.gz"

// ReadOGB reads a data set of OGB: its nodes, its training edges, and the edges and negatives of
// its split. The name of the folder says which data set it is, for Graph.HitsAt. A split is one of
// two layouts: edge and edge_neg, one list of negatives for all edges; or, as ogbl-citation2 has
// it, source_node, target_node and target_node_neg, negatives of each edge. Edges of the first have
// no direction, those of the second have one, unless the options say otherwise.
//
// While a file of the split is read it is held at most twice: as it is, and as int64. The negatives
// of the graph take 4 bytes each.
func ReadOGB(dir string, opts *Options) (*Graph, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	o.Relations = false // as of any file without a column of them
	if o.TwoKinds || o.Times || o.Nodes != nil {
		return nil, fmt.Errorf("%s: a data set of OGB has one kind of node, by number", dir)
	}
	n, err := ogbNodes(dir)
	if err != nil {
		return nil, err
	}
	o.ByNumber = true
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
		return nil, fmt.Errorf("%s has %d splits: want one folder in split, with valid.pt and test.pt", dir, len(splits))
	}
	trainFile := filepath.Join(splits[0], "train.pt")
	if _, err := os.Stat(trainFile); errors.Is(err, os.ErrNotExist) {
		rawFile := filepath.Join(dir, "raw", "edge.csv.gz")
		r, err := Open(rawFile, &ReadOptions{Columns: Columns{Source: "1", Target: "2"}})
		if errors.Is(err, os.ErrNotExist) {
			return nil, missing(rawFile)
		}
		if err != nil {
			return nil, err
		}
		if err := b.Add(r, Train); err != nil {
			return nil, err
		}
	} else if _, err := b.addOGB(trainFile, Train, parts); err != nil {
		return nil, err
	}
	if _, err := b.addOGB(filepath.Join(splits[0], "valid.pt"), Valid, ValidNegatives); err != nil {
		return nil, err
	}
	each, err := b.addOGB(filepath.Join(splits[0], "test.pt"), Test, TestNegatives)
	if err != nil {
		return nil, err
	}
	if o.Direction == FindOut { // each edge is there once, so that it cannot be found out
		b.o.Direction = Undirected
		if each {
			b.o.Direction = Directed
		}
	}
	g, err := b.Graph()
	if err == nil {
		g.HitsAt = hitsAt[strings.ReplaceAll(filepath.Base(filepath.Clean(dir)), "_", "-")]
	}
	return g, err
}

// hitsAt is the k of OGB's official Hits@k, by the name of the data set and of its folder.
var hitsAt = map[string]int{"ogbl-ddi": 20, "ogbl-collab": 50, "ogbl-ppa": 100}

// addOGB adds the edges of a file of a split, and its negatives where there is a part for them.
// each tells that the file is laid out for negatives of each edge.
func (b *Builder) addOGB(path string, part, negatives Part) (each bool, err error) {
	if err := b.mayRead(path); err != nil {
		return false, err
	}
	arrays, err := codec.ReadIntegers(path)
	if err != nil {
		return false, err
	}
	ends, err := endsOf(arrays)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if ends == nil {
		return false, b.addShared(path, arrays, part, negatives)
	}
	r := &Reader{name: path}
	r.read(ends)
	if err := b.Add(r, part); err != nil {
		return true, err
	}
	if lists, ok := arrayNamed(arrays, negativeArray); ok && negatives != parts {
		if b.lists[part], err = candidates(lists, ends.count, len(b.o.Nodes)); err != nil {
			return true, fmt.Errorf("%s: %w", path, err)
		}
	}
	return true, b.fits()
}

// mayRead refuses a file whose arrays take more memory than is allowed while they are read: the
// arrays as they are stored, and as int64.
func (b *Builder) mayRead(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return missing(path)
	}
	if err != nil {
		return err
	}
	if need := 2 * info.Size(); b.o.MemoryBytes > 0 && need > b.o.MemoryBytes {
		return fmt.Errorf("%s: to read it takes up to %.3g MB, more than the %.3g MB of memory allowed: allow more",
			path, float64(need)/1e6, float64(b.o.MemoryBytes)/1e6)
	}
	return nil
}

func missing(path string) error {
	return fmt.Errorf("%s is missing: want the files of the data set as OGB lays them out", path)
}

// candidates are the rows of an array with the negatives of each edge, as numbers of nodes.
func candidates(a codec.Integers, edges, nodes int) ([][]uint32, error) {
	if len(a.Shape) != 2 || a.Shape[0] != edges || a.Shape[1] == 0 {
		return nil, fmt.Errorf("%s has shape %v: want a row for each of %d edges", a.Name, a.Shape, edges)
	}
	width := a.Shape[1]
	all := make([]uint32, len(a.Data))
	for i, node := range a.Data {
		if node < 0 || node >= int64(nodes) {
			return nil, fmt.Errorf("%s: row %d: no node has number %d: there are %d", a.Name, i/width, node, nodes)
		}
		all[i] = uint32(node)
	}
	lists := make([][]uint32, edges)
	for i := range lists {
		lists[i] = all[i*width : (i+1)*width : (i+1)*width]
	}
	return lists, nil
}

// addShared adds the edges of a file whose negatives are one list for all.
func (b *Builder) addShared(path string, arrays []codec.Integers, part, negatives Part) error {
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
		if len(a.Shape) != 2 || a.Shape[1] != 2 {
			return fmt.Errorf("%s: %s has shape %v: want m x 2", path, a.Name, a.Shape)
		}
		r := &Reader{name: path}
		r.read(&pairs{data: a.Data, count: a.Shape[0], width: 2})
		if err := b.Add(r, to); err != nil {
			return err
		}
	}
	if _, ok := arrayNamed(arrays, "edge"); !ok {
		return fmt.Errorf("%s holds no array named edge, nor %s and %s", path, sourceArray, targetArray)
	}
	return nil
}

// ogbNodes reads how many nodes there are.
func ogbNodes(dir string) (n int, err error) {
	path := filepath.Join(dir, "raw", nodeList)
	lines, err := codec.OpenLines(path, "")
	if errors.Is(err, os.ErrNotExist) {
		return 0, missing(path)
	}
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
