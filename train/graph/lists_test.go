package graph

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/codec"
)

// listsOf reads a file and returns "source>target: negatives" of each edge; nil if it has edges.
func listsOf(t testing.TB, path string, opts *ReadOptions, sure bool) (lists []string, err error) {
	t.Helper()
	l, ok, err := OpenLists(path, opts, sure)
	if err != nil || !ok {
		return nil, err
	}
	defer func() { require.NoError(t, l.Close()) }()
	var e List
	for {
		if err := l.Next(&e); errors.Is(err, io.EOF) {
			return lists, nil
		} else if err != nil {
			return lists, err
		}
		text := e.Source
		if e.Target != "" {
			text += ">" + e.Target
		}
		if e.Numbers != nil {
			lists = append(lists, fmt.Sprint(text, ": ", e.Numbers))
		} else {
			lists = append(lists, fmt.Sprint(text, ": ", e.Keys))
		}
	}
}

func TestLists(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		sure       bool
		want       []string // nil: edges
	}{
		"tabs":             {"n.tsv", "a\tb\tc\td\ne\tf\n", false, []string{"a: [b c d]", "e: [f]"}},
		"comments":         {"n.tsv", "# x\n% y\na\tb c\td\te\n", false, []string{"a: [b c d e]"}},
		"header":           {"n.csv", "source,neg_0,neg_1\na,b,c\n", false, []string{"a: [b c]"}},
		"header of pandas": {"n.csv", "source,0,1,2\n4,7,5,6\n", false, []string{"4: [7 5 6]"}},
		"filled up":        {"n.csv", "a,b,c,d\nb,c,,\n", false, []string{"a: [b c d]", "b: [c]"}},
		"blanks":           {"n.txt", "1 2 3 4\n2 1\n", false, []string{"1: [2 3 4]", "2: [1]"}},
		"narrow, sure":     {"n.tsv", "a\tb\n", true, []string{"a: [b]"}},
		"narrow":           {"n.tsv", "a\tb\tc\n", false, nil},
		"header of edges":  {"n.csv", "user,item,rating,time\n1,2,3,4\n", false, nil},
		"jsonl":            {"n.jsonl", `{"from": "a", "to": 7, "neg": [1, "b"]}` + "\n" + `{"neg": ["c"], "from": 3, "to": "d"}`, false, []string{"a>7: [1 b]", "3>d: [c]"}},
		"jsonl, no source": {"n.jsonl", `{"negatives": ["b"]}`, false, []string{": [b]"}},
		"jsonl of edges":   {"n.jsonl", `{"source": "a", "target": "b"}`, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := listsOf(t, file(t, c.file, c.text), nil, c.sure)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestListsOfArrays(t *testing.T) {
	test := filepath.Join("testdata", "ogbl_citation2", "split", "time", "test.pt")
	got, err := listsOf(t, test, nil, false)
	require.NoError(t, err)
	require.Len(t, got, 8)
	same, err := listsOf(t, filepath.Join("testdata", "citation_negatives.npy"), nil, false)
	require.NoError(t, err)
	for i := range got {
		require.True(t, strings.HasSuffix(got[i], same[i]), "%s, not %s", got[i], same[i])
	}
	named, err := listsOf(t, test+"#target_node_neg", nil, false)
	require.NoError(t, err)
	require.Equal(t, got, named)
	_, err = listsOf(t, test+"#source_node", nil, false)
	require.ErrorContains(t, err, `array "source_node" has shape [8]: want a row of negatives for each edge`)
	_, err = listsOf(t, test+"#x", nil, false)
	require.ErrorContains(t, err, `holds no array of integers named "x"`)

	edges, _, err := edgesOf(t, test, nil)
	require.NoError(t, err)
	require.Len(t, edges, 8)
	require.True(t, strings.HasPrefix(got[0], edges[0]+": "))

	table := func(name string, shape ...int) codec.Integers { return codec.Integers{Name: name, Shape: shape} }
	for name, c := range map[string]struct {
		arrays []codec.Integers
		sure   bool
		want   string // name of the array; empty: edges
	}{
		"rows":            {[]codec.Integers{table("", 4, 9)}, false, ""},
		"edges":           {[]codec.Integers{table("", 2, 9)}, false, "-"},
		"two edges, sure": {[]codec.Integers{table("", 2, 9)}, true, ""},
		"pairs":           {[]codec.Integers{table("", 9, 2)}, false, "-"},
		"named":           {[]codec.Integers{table("x", 9, 2), table("target_node_neg", 9, 2)}, false, "target_node_neg"},
		"two tables":      {[]codec.Integers{table("x", 9, 5), table("y", 9, 4)}, false, "-"},
	} {
		a, ok, err := pickLists(c.arrays, "", c.sure)
		require.NoError(t, err, name)
		require.Equal(t, c.want != "-", ok, name)
		if ok {
			require.Equal(t, c.want, a.Name, name)
		}
	}
	_, _, err = pickLists([]codec.Integers{table("x", 9, 5), table("y", 9, 4)}, "", true)
	require.EqualError(t, err, "holds 2 arrays of rows: name the negatives target_node_neg, or name one after a #")
}

func TestBadLists(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"source alone": {"n.tsv", "a\tb\nc\n", "n.tsv: line 2: no negatives: want a source and then its negatives"},
		"no source":    {"n.tsv", "a\tb\n\tc\n", "line 2: a key is empty"},
		"empty key":    {"n.csv", "a,b\nc,,d\n", "line 2: negative 1 is empty"},
		"long key":     {"n.tsv", "a\t" + strings.Repeat("k", maxKey+1) + "\n", "line 1: key \"kkk"},
		"empty":        {"n.tsv", "", "holds no edges"},
		"one column":   {"n.tsv", "a\n", "has 1 column"},
		"json list":    {"n.jsonl", "[1]\n", "want one object per line"},
		"json edges":   {"n.jsonl", `{"source": "a", "target": "b"}`, `line 1: no field is called negatives; the object has "source", "target"`},
		"json text":    {"n.jsonl", `{"source": "a", "negatives": "b"}`, `line 1: field "negatives" is "\"b\"": want an array of keys`},
		"json null":    {"n.jsonl", `{"source": "a", "negatives": [null]}`, `line 1: field "negatives" is "null": want text or a number`},
		"json missing": {"n.jsonl", `{"negatives": [1]}` + "\n{}", `line 2: no field is "negatives"`},
		"no array":     {"n.npy", "x", "not a file of arrays"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := listsOf(t, file(t, c.file, c.text), nil, true)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func FuzzLists(f *testing.F) {
	for _, s := range []string{
		"a\tb\tc\td\ne\tf\n", "# x\nsource,neg_0,neg_1\na,b,c\n", "source,0,1,2\n4,7,5,6\n", "a,b,c,d\nb,c,,\n", "1 2 3 4\n", "\"a,b\n", "",
		`{"source": "a", "target": 1, "negatives": [1, "b"]}`, `{"negatives": [[]]}`, `{"negatives": 1e400}`,
	} {
		for _, kind := range []string{"tsv", "csv", "jsonl", "txt"} {
			f.Add([]byte(s), kind, true)
			f.Add([]byte(s), kind, false)
		}
	}
	numbers, err := os.ReadFile(filepath.Join("testdata", "citation_negatives.npy"))
	require.NoError(f, err)
	f.Add(numbers, "npy", false)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, kind string, sure bool) {
		path := filepath.Join(dir, "n")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		l, ok, err := OpenLists(path, &ReadOptions{Format: kind}, sure)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
		}
		if !ok {
			return
		}
		var e List
		for {
			err := l.Next(&e)
			if err != nil {
				require.NotContains(t, err.Error(), "\n")
				break
			}
			require.Positive(t, len(e.Keys)+len(e.Numbers))
		}
		require.NoError(t, l.Close())
	})
}
