package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/train"
	"github.com/flashdb/flashdb/train/graph"
)

// ddiGraph is the one data set of the paper that is small.
const ddiGraph = "ogbl-ddi"

// A paperRule is how a graph's test links are measured.
type paperRule struct {
	Hits  []int `json:"hits"`  // the k of Hits@k among one list of negatives, the official one first
	Lists int   `json:"lists"` // negatives of each link, for the MRR; 0: no MRR
}

// paperGraphInfo is a row of table 1.
type paperGraphInfo struct {
	Nodes     int    `json:"nodes"`
	Sources   int    `json:"sources"` // where they are another kind of node
	Edges     int    `json:"edges"`   // of the training
	Valid     int    `json:"valid"`
	Test      int    `json:"test"`
	Negatives int    `json:"negatives"` // in the one list
	Lists     int    `json:"lists"`     // of each test link
	HitsAt    int    `json:"hits_at"`   // k of the official Hits@k, by which epochs are chosen too; 0: none
	Directed  bool   `json:"directed"`
	Official  bool   `json:"official"` // split and negatives are OGB's
	Split     string `json:"split"`
}

// A paperGraph is a graph with its split and what its test links are ranked among.
type paperGraph struct {
	name      string
	rule      paperRule
	g         *train.Graph
	split     train.Split
	negatives []train.Edge // one list for all test links
	lists     [][]uint32   // of each test link; nil where the rule has none
	official  bool
}

// paperStandIns says which data set of the paper a graph stands for.
var paperStandIns = map[string]string{
	"go-stdlib": "ogbl-collab",
	"debian":    "ogbl-ppa",
	"genes":     "ogbl-citation2 (2.9M nodes)",
}

// paperFolder is the folder of a graph: of the data, or of the demo's graph. OGB unpacks its data
// sets into folders whose names have underscores.
func paperFolder(data, name string) string {
	if data == "" {
		return demoFolder
	}
	dir := filepath.Join(data, name)
	if unpacked := filepath.Join(data, strings.ReplaceAll(name, "-", "_")); !isFolder(dir) && isFolder(unpacked) {
		return unpacked
	}
	return dir
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// hasGraph reports whether the data holds a graph.
func hasGraph(data, name string) bool {
	if data == "" {
		return name == demoGraph
	}
	return isFolder(paperFolder(data, name))
}

// openPaperGraph reads a graph: a folder of OGB, or one that dataset.go describes, with train.tsv
// and test.tsv, or those with .zst.
func openPaperGraph(data, name string, links int) (*paperGraph, error) {
	dir := paperFolder(data, name)
	p := &paperGraph{name: name}
	var err error
	if graph.IsOGB(dir) || strings.HasPrefix(name, "ogbl-") {
		err = p.readOGB(dir)
	} else {
		err = p.readEdges(data, links)
	}
	if err != nil {
		return nil, fmt.Errorf("graph %q: %w", name, err)
	}
	return p, nil
}

// readOGB takes the data set's own split and negatives.
func (p *paperGraph) readOGB(dir string) error {
	g, err := graph.ReadOGB(dir, nil)
	if err != nil {
		return err
	}
	p.g, p.official = &g.Graph, true
	p.split = train.Split{Train: g.Edges, Valid: g.Valid, Test: g.Test, ValidNegatives: g.ValidNegatives, ValidCandidates: g.ValidCandidates}
	if g.TestCandidates != nil {
		p.lists, p.rule.Lists = g.TestCandidates, len(g.TestCandidates[0])
		return nil
	}
	if len(g.Test) == 0 {
		return errors.New("all edges of test.pt are left out: they are repeats or self loops, or in the training")
	}
	if len(g.TestNegatives) == 0 {
		return errors.New("the test split has no negatives, named edge_neg or target_node_neg")
	}
	k := cmp.Or(g.HitsAt, 50)
	p.rule.Hits = []int{k}
	for _, other := range []int{20, 50, 100} {
		if other != k {
			p.rule.Hits = append(p.rule.Hits, other)
		}
	}
	p.negatives = g.TestNegatives
	return nil
}

// What a graph without a split of OGB's is ranked among: as many negatives in one list as
// ogbl-collab has, and as many for each link as ogbl-citation2 has.
const (
	sharedNegatives = 100_000
	ownNegatives    = 1000
	validShare      = 0.05
)

// readEdges takes the files of edges and draws negatives. Of more test links than links, unless
// that is 0, as many are drawn.
func (p *paperGraph) readEdges(data string, links int) error {
	d := &dataset{name: p.name, dir: paperFolder(data, p.name)} // its decoder is of no use here
	if err := d.readInfo(); err != nil {
		return err
	}
	if d.info.Nodes < 2 || d.info.CandidatesFrom < 0 || d.candidates() < 2 {
		return fmt.Errorf("%s: %d nodes with candidates from row %d: nothing to learn", d.path("info.json"), d.info.Nodes, d.info.CandidatesFrom)
	}
	keys := make([]string, d.info.Nodes)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	b, err := graph.NewBuilder(&graph.Options{Nodes: keys, ByNumber: true, Direction: graph.Directed})
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name string
		part graph.Part
	}{{"train.tsv", graph.Train}, {"test.tsv", graph.Test}} {
		path := d.path(file.name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			path += ".zst"
		}
		r, err := graph.Open(path, nil)
		if err != nil {
			return err
		}
		if err := b.Add(r, file.part); err != nil {
			return err
		}
	}
	g, err := b.Graph()
	if err != nil {
		return err
	}
	p.g, p.rule = &g.Graph, paperRule{Hits: []int{50, 20, 100}, Lists: ownNegatives}
	p.g.Sources = int(d.info.CandidatesFrom)
	p.g.Directed = p.g.Sources == 0
	p.split = train.RandomSplit(p.g, validShare, 0, 1)
	p.split.Test = g.Test
	rng := rand.New(rand.NewPCG(1, 0))
	if links > 0 && len(p.split.Test) > links {
		rng.Shuffle(len(p.split.Test), func(i, j int) {
			p.split.Test[i], p.split.Test[j] = p.split.Test[j], p.split.Test[i]
		})
		p.split.Test = p.split.Test[:links]
	}
	p.draw(rng)
	return nil
}

// draw makes the negatives: of the sources of test links, with targets that no edge leads to.
func (p *paperGraph) draw(rng *rand.Rand) {
	known := p.known()
	target := func(source uint32) uint32 {
		for {
			t := uint32(p.g.Sources + rng.IntN(p.g.Nodes-p.g.Sources))
			if _, linked := slices.BinarySearch(known[source], t); !linked && t != source {
				return t
			}
		}
	}
	for _, e := range p.split.Test {
		known[e.Source] = append(known[e.Source], e.Target)
	}
	for _, list := range known {
		slices.Sort(list)
	}
	for range sharedNegatives {
		source := p.split.Test[rng.IntN(len(p.split.Test))].Source
		p.negatives = append(p.negatives, train.Edge{Source: source, Target: target(source)})
	}
	p.lists = make([][]uint32, len(p.split.Test))
	for i, e := range p.split.Test {
		for range p.rule.Lists {
			p.lists[i] = append(p.lists[i], target(e.Source))
		}
	}
}

// known returns the nodes that each source is linked to by training and validation edges, in
// ascending order.
func (p *paperGraph) known() [][]uint32 {
	known := make([][]uint32, p.g.Nodes)
	for _, edges := range [][]train.Edge{p.split.Train, p.split.Valid} {
		for _, e := range edges {
			known[e.Source] = append(known[e.Source], e.Target)
			if !p.g.Directed && p.g.Sources == 0 {
				known[e.Target] = append(known[e.Target], e.Source)
			}
		}
	}
	for _, list := range known {
		slices.Sort(list)
	}
	return known
}

// info describes the graph for table 1.
func (p *paperGraph) info() paperGraphInfo {
	i := paperGraphInfo{
		Nodes: p.g.Nodes, Sources: p.g.Sources, Edges: len(p.split.Train), Valid: len(p.split.Valid), Test: len(p.split.Test),
		Negatives: len(p.negatives), Lists: p.rule.Lists, Directed: p.g.Directed, Official: p.official, Split: "random",
	}
	if p.official {
		i.Split = "OGB's"
	}
	i.HitsAt = p.hitsAt()
	return i
}

// hitsAt is the k of the official Hits@k; 0: the graph has none.
func (p *paperGraph) hitsAt() int {
	if len(p.rule.Hits) == 0 {
		return 0
	}
	return p.rule.Hits[0]
}
