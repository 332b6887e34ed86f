package graph

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/train"
)

func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// edgesOf reads a file and returns "source>target:relation" of each edge.
func edgesOf(t testing.TB, path string, opts *ReadOptions) (edges []string, l Layout, err error) {
	t.Helper()
	r, err := Open(path, opts)
	if err != nil {
		return nil, Layout{}, err
	}
	defer func() { require.NoError(t, r.Close()) }()
	var e Edge
	for {
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			return edges, r.Layout(), nil
		} else if err != nil {
			return edges, r.Layout(), err
		}
		text := e.Source + ">" + e.Target
		if e.Relation != "" {
			text += ":" + e.Relation
		}
		edges = append(edges, text)
	}
}

// triples is a knowledge graph of 40 lines, 2 relations.
func triples(name func(i int) string) string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", name(i), name(1000+i%2), name(i+1))
	}
	return b.String()
}

func TestWhatFilesAre(t *testing.T) {
	number := func(i int) string { return fmt.Sprint(i) }
	ratings, times := "", ""
	for i := range 40 {
		ratings += fmt.Sprintf("u%d i%d %d\n", i, i%30, 1+i%5)
		times += fmt.Sprintf("%d %d %d\n", i, i%3, 1_500_000_000+i)
	}
	for name, c := range map[string]struct {
		file, text string
		first      string // edge
		count      int
		layout     Layout
	}{
		"tabs":               {"e.tsv", "a\tb\nc d\te\n", "a>b", 2, Layout{Separator: "tabs", Columns: Columns{"1", "2", "", ""}}},
		"csv":                {"e.csv", "a,b\n\"c, d\",e\n", "a>b", 2, Layout{Separator: "commas", Columns: Columns{"1", "2", "", ""}}},
		"blanks":             {"e.txt", "a  b\nc d\n", "a>b", 2, Layout{Separator: "blanks", Columns: Columns{"1", "2", "", ""}}},
		"semicolons":         {"e.csv", "a;b\nc;d\n", "a>b", 2, Layout{Separator: "semicolons", Columns: Columns{"1", "2", "", ""}}},
		"MovieLens":          {"ratings.dat", "1::1193::5::978300760\n1::661::3::978302109\n", "1>1193", 2, Layout{Separator: "double colons", Columns: Columns{"1", "2", "", ""}, Unread: []string{"3", "4"}}},
		"MovieLens csv":      {"ratings.csv", "userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n", "1>31", 1, Layout{Separator: "commas", Header: true, Columns: Columns{"userId", "movieId", "", ""}, Unread: []string{"rating", "timestamp"}}},
		"SNAP":               {"web.txt", "# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n0\t11\n0\t2\n", "0>11", 2, Layout{Separator: "tabs", Comments: 2, Columns: Columns{"1", "2", "", ""}}},
		"KONECT":             {"out.x", "% sym unweighted\n1 2\n2 3\n", "1>2", 2, Layout{Separator: "blanks", Comments: 1, Columns: Columns{"1", "2", "", ""}}},
		"pages":              {"musae.csv", "id_1,id_2\n0,18427\n1,21708\n", "0>18427", 2, Layout{Separator: "commas", Header: true, Columns: Columns{"id_1", "id_2", "", ""}}},
		"pandas":             {"e.csv", ",source,target\n0,a,b\n1,c,d\n", "a>b", 2, Layout{Separator: "commas", Header: true, Columns: Columns{"source", "target", "", ""}}},
		"turned round":       {"e.csv", "rating,item,user\n5,x,ann\n", "ann>x", 1, Layout{Separator: "commas", Header: true, Columns: Columns{"user", "item", "", ""}, Unread: []string{"rating"}}},
		"triples":            {"train.txt", triples(func(i int) string { return fmt.Sprintf("/m/%d", i) }), "/m/0>/m/1:/m/1000", 40, Layout{Separator: "tabs", Columns: Columns{"1", "3", "2", ""}}},
		"triples of numbers": {"train.tsv", triples(number), "0>1:1000", 40, Layout{Separator: "tabs", Columns: Columns{"1", "3", "2", ""}}},
		"ratings":            {"e.txt", ratings, "u0>i0", 40, Layout{Separator: "blanks", Columns: Columns{"1", "2", "", ""}, Unread: []string{"3"}}},
		"times":              {"e.txt", times, "0>0", 40, Layout{Separator: "blanks", Columns: Columns{"1", "2", "", ""}, Unread: []string{"3"}}},
		"CRLF":               {"e.tsv", "a\tb\r\nc\td\r\n", "a>b", 2, Layout{Separator: "tabs", Columns: Columns{"1", "2", "", ""}}},
		"jsonl":              {"e.jsonl", "{\"when\": 3, \"to\": 7, \"from\": \"a\"}\n{\"from\": \"b\", \"to\": 8}\n", "a>7", 2, Layout{Columns: Columns{"from", "to", "", ""}, Unread: []string{"when"}}},
		"jsonl, not named":   {"edges", "{\"from\": \"a\", \"to\": 7}\n", "a>7", 1, Layout{Columns: Columns{"from", "to", "", ""}}},
		"json by line":       {"e.json", "{\"from\": \"a\", \"to\": 7}\n", "a>7", 1, Layout{Columns: Columns{"from", "to", "", ""}}},
		"MatrixMarket":       {"e.mtx", "%%MatrixMarket matrix coordinate real general\n% by\n9 9 2\n1 2 .5\n3 4 1\n", "1>2", 2, Layout{Separator: "blanks", Comments: 3, Columns: Columns{"1", "2", "", ""}, Unread: []string{"3"}}},
		"comma in a key":     {"e.txt", "a,b c\nd e\nf g\n", "a,b>c", 3, Layout{Separator: "blanks", Columns: Columns{"1", "2", "", ""}}},
		"trailing tabs":      {"e.tsv", "a\tb\t\nc\td\t \n", "a>b", 2, Layout{Separator: "tabs", Columns: Columns{"1", "2", "", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			edges, layout, err := edgesOf(t, file(t, c.file, c.text), nil)
			require.NoError(t, err)
			require.Len(t, edges, c.count)
			require.Equal(t, c.first, edges[0])
			require.Equal(t, c.layout, layout)
		})
	}
}

func TestBadEdges(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		opts       ReadOptions
		want       string
	}{
		"one column":       {"e.tsv", "a\nb\n", ReadOptions{}, `line "a" has 1 column: want a source and a target`},
		"mixed separators": {"e.tsv", "a\tb\nc,d\n", ReadOptions{}, "e.tsv: line 2: 1 column, where the first line has 2, separated by tabs: this one has commas: separate all lines in one way"},
		"blanks in names":  {"e.txt", "a b\nNew York Boston\n", ReadOptions{}, "line 2: 3 columns, where the first line has 2, separated by blanks"},
		"empty":            {"e.tsv", "", ReadOptions{}, "holds no edges"},
		"comments alone":   {"e.tsv", "# a\n", ReadOptions{}, "holds no edges: all of its lines begin with # or %, as comments do"},
		"comment inside":   {"e.tsv", "a\tb\n# half\nc\td\n", ReadOptions{}, "line 2: 1 column, where the first line has 2, separated by tabs: comments are read before the first edge only: remove this one"},
		"adjacency":        {"e.txt", "a b c d\nb c\n", ReadOptions{}, "line 2: 2 columns, where the first line has 4, separated by blanks: want one edge per line"},
		"old line ends":    {"e.tsv", "a\tb\rc\td\r", ReadOptions{}, "line 1: a carriage return without a newline: want lines that end in a newline"},
		"binary":           {"e.tsv", "a\tb\nc\x00\td\n", ReadOptions{}, "line 2: a zero byte, as no text has"},
		"json in all":      {"e.json", "[{\"source\": 1, \"target\": 2}]\n", ReadOptions{}, "line 1: want one object per line"},
		"json in a text":   {"edges", "[{\"source\": 1, \"target\": 2}]\n", ReadOptions{}, "line 1: want one object per line"},
		"header alone":     {"e.csv", "source,target\n", ReadOptions{Columns: Columns{Source: "source"}}, "holds a header and no edges"},
		"no such column":   {"e.csv", "a,b\n1,2\n", ReadOptions{Columns: Columns{Source: "x"}}, `no column is "x"; the header has "a", "b"`},
		"no such number":   {"e.csv", "1,2\n1,2\n", ReadOptions{Columns: Columns{Source: "3"}}, "no column 3: the first line has 2 columns"},
		"same column":      {"e.csv", "1,2\n1,2\n", ReadOptions{Columns: Columns{Source: "2", Target: "2"}}, "the same column"},
		"empty key":        {"e.tsv", "a\tb\n\tc\n", ReadOptions{}, "line 2: a key is empty"},
		"long key":         {"e.tsv", "a\tb\na\t" + strings.Repeat("k", maxKey+1) + "\n", ReadOptions{}, "has 1025 bytes, at most 1024 are allowed"},
		"bad time":         {"e.tsv", "a\tb\t3\na\tc\tsoon\n", ReadOptions{Columns: Columns{Time: "3"}}, `line 2: "soon" is no time`},
		"json list":        {"e.jsonl", "[1, 2]\n", ReadOptions{}, "want one object per line"},
		"json field":       {"e.jsonl", "{\"source\": 1, \"target\": 2}\n{\"source\": 1}\n", ReadOptions{}, `line 2: no field is "target"`},
		"json value":       {"e.jsonl", "{\"source\": [1], \"target\": 2}\n", ReadOptions{}, `line 1: field "source" is "[1]": want text or a number`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := edgesOf(t, file(t, c.file, c.text), &c.opts)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func build(t testing.TB, opts *Options, files map[Part]string) (*Graph, error) {
	t.Helper()
	b, err := NewBuilder(opts)
	if err != nil {
		return nil, err
	}
	for part := Train; part < parts; part++ {
		if text, ok := files[part]; ok {
			r, err := Open(file(t, fmt.Sprintf("part%d.tsv", part), text), nil)
			require.NoError(t, err)
			if err := b.Add(r, part); err != nil {
				return nil, err
			}
		}
	}
	return b.Graph()
}

// named is an edge list by key.
func named(g *Graph, edges []train.Edge) (names []string) {
	for _, e := range edges {
		names = append(names, g.Keys[e.Source]+">"+g.Keys[e.Target])
	}
	return names
}

func TestCleaning(t *testing.T) {
	files := map[Part]string{
		Train: "b\ta\na\tb\na\ta\nb\ta\nc\td\n", // b>a thrice, once reversed; a self loop
		Test:  "d\tc\nd\ta\nd\ta\na\tnobody\nd\td\n",
	}
	g, err := build(t, &Options{Direction: Undirected}, files)
	require.NoError(t, err)
	require.NoError(t, g.Validate())
	assert.Equal(t, []string{"b", "a", "c", "d"}, g.Keys)
	assert.Equal(t, []string{"b>a", "c>d"}, named(g, g.Edges))
	assert.Equal(t, []string{"d>a"}, named(g, g.Test))
	assert.Equal(t, Cleaned{Lines: 5, SelfLoops: 2, Repeats: 3, Reversed: 1, Leaked: 1, Unknown: 1}, g.Cleaned)
	count, largest := g.Components()
	assert.Equal(t, []int{2, 2}, []int{count, largest})

	g, err = build(t, &Options{Direction: Directed}, files)
	require.NoError(t, err)
	assert.Equal(t, []string{"b>a", "a>b", "c>d"}, named(g, g.Edges))
	assert.Equal(t, []string{"d>c", "d>a"}, named(g, g.Test))

	// Found out: two of three edges lead back.
	g, err = build(t, nil, files)
	require.NoError(t, err)
	assert.False(t, g.Directed)
	assert.InDelta(t, 2./3, g.LeadBack, 1e-9)
	g, err = build(t, nil, map[Part]string{Train: "a\tb\nb\tc\nc\ta\na\tc\n"})
	require.NoError(t, err)
	assert.False(t, g.Directed)
	g, err = build(t, nil, map[Part]string{Train: "a\tb\nb\tc\nc\ta\nd\tc\na\tc\n"})
	require.NoError(t, err)
	assert.True(t, g.Directed)
	assert.InDelta(t, .4, g.LeadBack, 1e-9)

	// Of two kinds a key may be in both: two nodes, and no self loop.
	g, err = build(t, &Options{TwoKinds: true}, map[Part]string{Train: "ann\tx\nx\tx\nann\ty\n"})
	require.NoError(t, err)
	require.NoError(t, g.Validate())
	assert.Equal(t, 2, g.Sources)
	assert.Equal(t, []string{"ann", "x", "x", "y"}, g.Keys)
	assert.Equal(t, []string{"ann>x", "ann>y", "x>x"}, named(g, g.Edges))
	assert.Equal(t, Cleaned{Lines: 3, BothKinds: 1}, g.Cleaned)
}

func TestBadGraphs(t *testing.T) {
	for name, c := range map[string]struct {
		opts  Options
		files map[Part]string
		want  string
	}{
		"self loops alone": {Options{}, map[Part]string{Train: "a\ta\n"}, "part0.tsv: no edges are left: all of them are self loops (1), which are left out"},
		"memory":           {Options{MemoryBytes: 10}, map[Part]string{Train: "a\tb\n"}, "take more than the 1e-05 MB of memory allowed"},
		"node twice":       {Options{Nodes: []string{"a", "a"}}, nil, `key "a" names node 0 and node 1`},
		"no such node":     {Options{Nodes: []string{"a"}}, map[Part]string{Train: "a\tb\n"}, `line 1: no node is "b"`},
		"no such number":   {Options{Nodes: []string{"a"}, ByNumber: true}, map[Part]string{Train: "0\t1\n"}, "line 1: no node has number 1: there are 1"},
		"no number":        {Options{Nodes: []string{"a"}, ByNumber: true}, map[Part]string{Train: "a\t1\n"}, `line 1: "a" is not the number of a node`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := build(t, &c.opts, c.files)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestSplitByTime(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "a%d\tb%d\t%d\n", i, i%7, (i*37)%100)
	}
	b, err := NewBuilder(&Options{Times: true})
	require.NoError(t, err)
	r, err := Open(file(t, "e.tsv", text.String()), &ReadOptions{Columns: Columns{Time: "3"}})
	require.NoError(t, err)
	require.NoError(t, b.Add(r, Train))
	g, err := b.Graph()
	require.NoError(t, err)
	b, err = NewBuilder(&Options{Times: true})
	require.NoError(t, err)
	r, err = Open(file(t, "e.tsv", text.String()), &ReadOptions{Times: true})
	require.NoError(t, err)
	require.ErrorContains(t, b.Add(r, Train), "e.tsv has no column of times by a usual name: name the column")
	split, err := g.SplitByTime(.1, .2)
	require.NoError(t, err)
	assert.Equal(t, []int{70, 10, 20}, []int{len(split.Train), len(split.Valid), len(split.Test)})
	latest := func(edges []train.Edge) (low, high float64) {
		low = math.Inf(1)
		for _, e := range edges {
			for i, other := range g.Edges {
				if other == e {
					low, high = min(low, g.Times[i]), max(high, g.Times[i])
				}
			}
		}
		return low, high
	}
	for i, want := range [][2]float64{{0, 69}, {70, 79}, {80, 99}} {
		low, high := latest([][]train.Edge{split.Train, split.Valid, split.Test}[i])
		assert.Equal(t, want, [2]float64{low, high})
	}
}

func TestFeatures(t *testing.T) {
	rows := func(keys []string, values ...float32) func(dst []float32) (string, bool, error) {
		i := 0
		return func(dst []float32) (string, bool, error) {
			if i == len(values) {
				return "", false, nil
			}
			dst[0] = values[i]
			i++
			if keys == nil {
				return "", true, nil
			}
			return keys[i-1], true, nil
		}
	}
	g, err := build(t, nil, map[Part]string{Train: "1\t0\n0\t2\n"})
	require.NoError(t, err)
	unused, err := g.SetFeatures("f.npy", 1, rows(nil, 10, 11, 12, 13))
	require.NoError(t, err)
	assert.Equal(t, 1, unused)
	assert.Equal(t, []float32{11, 10, 12}, g.Features, "by number, whatever the order of the nodes")
	_, err = g.SetFeatures("f.csv", 1, rows([]string{"0", "1"}, 10, 11))
	assert.EqualError(t, err, `f.csv has no row for node "2": want features of every node`)
	_, err = g.SetFeatures("f.npy", 1, rows(nil, 10, float32(math.NaN())))
	assert.EqualError(t, err, "f.npy: row 1: value 0 is NaN as a float32: want finite numbers")
	_, err = g.SetFeatures("f.csv", 1, rows([]string{"0", "0"}, 10, 11))
	assert.EqualError(t, err, `f.csv: row 1: node "0" has features already`)
	_, err = g.SetFeatures("f.npy", 1, rows(nil, 10))
	assert.EqualError(t, err, `f.npy has no row for node "1": want features of every node; its 1 rows of 1 values have no keys, and count as those of nodes 0, 1, 2 and so on`)
	_, err = g.SetSourceFeatures("f.npy", 1, rows(nil, 10))
	assert.EqualError(t, err, "f.npy: features of sources are for two kinds of nodes")

	// With two kinds each has places of its own, and zeros in those of the other.
	g, err = build(t, &Options{TwoKinds: true}, map[Part]string{Train: "a\tx\nb\ty\na\ty\n"})
	require.NoError(t, err)
	_, err = g.SetSourceFeatures("s.csv", 1, rows([]string{"b", "a"}, 2, 1))
	require.NoError(t, err)
	_, err = g.SetFeatures("t.csv", 1, rows([]string{"x", "y"}, 3, 4))
	require.NoError(t, err)
	assert.Equal(t, 2, g.FeatureDim)
	assert.Equal(t, []float32{1, 0, 2, 0, 0, 3, 0, 4}, g.Features)
	_, err = g.SetFeatures("t.csv", 1, rows([]string{"a", "x"}, 2, 1))
	assert.EqualError(t, err, `t.csv has no row for node "y": want features of every node`)
}

// OGB's own folder, in small: the files that torch.save wrote are fixtures of package codec.
func TestOGB(t *testing.T) {
	dir := t.TempDir()
	zip := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		f, err := os.Create(path)
		require.NoError(t, err)
		w := gzip.NewWriter(f)
		_, err = w.Write([]byte(text))
		require.NoError(t, errors.Join(err, w.Close(), f.Close()))
	}
	require.False(t, IsOGB(dir))
	zip("raw/edge.csv.gz", "0,1\n1,2\n2,3\n3,4\n")
	zip("raw/num-node-list.csv.gz", "9\n")
	split := filepath.Join(dir, "split", "target")
	require.NoError(t, os.MkdirAll(split, 0o700))
	fixture, err := os.ReadFile(filepath.Join("..", "..", "internal", "codec", "testdata", "torch", "split.pt"))
	require.NoError(t, err)
	// Its last edge leads from -4 to 2^40: here from 5 to 0.
	sound := strings.Replace(string(fixture), "\xc3\xbc"+strings.Repeat("\xc3\xbf", 7), "\x05"+strings.Repeat("\x00", 7), 1)
	for name, text := range map[string]string{"valid.pt": sound, "test.pt": sound} {
		require.NoError(t, os.WriteFile(filepath.Join(split, name), []byte(text), 0o600))
	}
	require.True(t, IsOGB(dir))
	_, err = Read(dir, nil)
	require.Error(t, err, "the length of the text in the pickle is no longer right")

	require.NoError(t, os.WriteFile(filepath.Join(split, "valid.pt"), fixture, 0o600))
	_, err = Read(dir, nil)
	require.ErrorContains(t, err, "row 2: node -4: numbers of nodes count from 0")
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"a\tb\n", "# x\nsource,target\n1,2\n", "1::2::3\n", "{\"source\": 1, \"target\": \"x\"}\n", "a b c\na b d\n", "\"a,b\n", ""} {
		for _, kind := range []string{"tsv", "csv", "jsonl", "txt"} {
			f.Add([]byte(s), kind)
		}
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, kind string) {
		path := filepath.Join(dir, "e")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		r, err := Open(path, &ReadOptions{Format: kind, Times: true})
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		b, err := NewBuilder(nil)
		require.NoError(t, err)
		if err := b.Add(r, Train); err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		g, err := b.Graph()
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(g.Edges), len(data))
		if g.Nodes > 1 {
			require.NoError(t, g.Validate())
		}
	})
}
