package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
	"github.com/flashdb/flashdb/decoder"
)

// A rankedWorld is two collections whose ranks are found again by comparing every pair. Values are
// whole, so that there are ties, and every score is exact.
type rankedWorld struct {
	dir, edges   string
	users, items map[string][]float32
	known        map[[2]string]bool
	asked        [][2]string
}

func newRankedWorld(t *testing.T, twoKinds bool) rankedWorld {
	t.Helper()
	const dim = 3
	rng := rand.New(rand.NewPCG(11, 12))
	w := rankedWorld{dir: filepath.Join(t.TempDir(), "db"), users: map[string][]float32{}, items: map[string][]float32{}, known: map[[2]string]bool{}}
	db, err := flashdb.Open(w.dir, nil)
	require.NoError(t, err)
	fill := func(name string, n int, into map[string][]float32) *flashdb.Collection {
		c, err := db.CreateCollection(name, flashdb.Schema{Dim: dim})
		require.NoError(t, err)
		for i := range n {
			v := make([]float32, dim)
			for j := range v {
				v[j] = float32(rng.IntN(7) - 3)
			}
			key := fmt.Sprintf("%s%d", name, i)
			into[key] = v
			require.NoError(t, c.Upsert(t.Context(), flashdb.Node{Key: key, Embedding: v}))
		}
		return c
	}
	items := fill("items", 60, w.items)
	_, err = items.Delete(t.Context(), "items7") // ids have a gap
	require.NoError(t, err)
	delete(w.items, "items7")
	from, prefix := "", "items"
	if twoKinds {
		fill("users", 20, w.users)
		from, prefix = "users", "users"
	} else {
		w.users = w.items
	}
	dot, err := decoder.NewDot(dim)
	require.NoError(t, err)
	require.NoError(t, items.PutDecoder(t.Context(), "dot", dot))
	var lines strings.Builder
	for i := range 80 {
		e := [2]string{fmt.Sprintf("%s%d", prefix, rng.IntN(20)), fmt.Sprintf("items%d", rng.IntN(60))}
		if e[0] == "items7" || e[1] == "items7" || e[0] == e[1] || w.known[e] {
			continue
		}
		w.known[e] = true
		if i%2 == 0 {
			w.asked = append(w.asked, e)
			fmt.Fprintf(&lines, "%s\t%s\n", e[0], e[1])
			continue
		}
		require.NoError(t, items.Link(t.Context(), flashdb.Edge{SourceCollection: from, Source: e[0], Target: e[1]}))
	}
	require.NoError(t, db.Close())
	w.edges = filepath.Join(t.TempDir(), "edges.tsv")
	require.NoError(t, os.WriteFile(w.edges, []byte(lines.String()), 0o600))
	return w
}

func (w rankedWorld) score(source, target string) (s float32) {
	for i, x := range w.users[source] {
		s += x * w.items[target][i]
	}
	return s
}

// want is the mean reciprocal rank, and the share of ranks of at most 5, half a place a tie.
func (w rankedWorld) want() (mrr, hits float64) {
	for _, e := range w.asked {
		rank := 1.0
		for key := range w.items {
			if key == e[0] || key == e[1] || w.known[[2]string{e[0], key}] {
				continue
			}
			switch s, of := w.score(e[0], key), w.score(e[0], e[1]); {
			case s > of:
				rank++
			case s == of:
				rank += .5
			}
		}
		mrr += 1 / rank
		if rank <= 5 {
			hits++
		}
	}
	n := float64(len(w.asked))
	return mrr / n, hits / n
}

func TestEvalEdges(t *testing.T) {
	for name, twoKinds := range map[string]bool{"one kind": false, "two kinds": true} {
		t.Run(name, func(t *testing.T) {
			w := newRankedWorld(t, twoKinds)
			mrr, hits := w.want()
			args := []string{"eval", w.dir, "items", "--edges", w.edges, "--metric", "mrr,hits@5", "--json"}
			if twoKinds {
				args = append(args, "--source-collection", "users")
			}
			ask := func() {
				code, out, errOut := runLine(args...)
				require.Zero(t, code, errOut)
				var got struct {
					Edges int     `json:"edges"`
					MRR   float64 `json:"mrr"`
					Hits  float64 `json:"hits@5"`
				}
				require.NoError(t, json.Unmarshal([]byte(out), &got))
				require.Equal(t, len(w.asked), got.Edges)
				assert.InDelta(t, mrr, got.MRR, 1e-9)
				assert.InDelta(t, hits, got.Hits, 1e-9)
			}
			ask()
			// The same of a database that another process has open.
			db, err := flashdb.Open(w.dir, nil)
			require.NoError(t, err)
			_, err = control.Serve(db, nil)
			require.NoError(t, err)
			ask()
			require.NoError(t, db.Close())
		})
	}
}

// TestEvalEdgesWithoutRow: nodes that the live release has no embedding of are no candidates, and
// their edges are counted and left out.
func TestEvalEdgesWithoutRow(t *testing.T) {
	for name, twoKinds := range map[string]bool{"one kind": false, "two kinds": true} {
		t.Run(name, func(t *testing.T) {
			w := newRankedWorld(t, twoKinds)
			ctx := t.Context()
			db, err := flashdb.Open(w.dir, nil)
			require.NoError(t, err)
			names := []string{"items", "users"}
			if !twoKinds {
				names = names[:1]
			}
			r, err := db.StageRelease(ctx, "next", names...)
			require.NoError(t, err)
			for i, rows := range []map[string][]float32{w.items, w.users}[:len(names)] {
				var nodes []flashdb.Node
				for key, row := range rows {
					if strings.HasSuffix(key, "3") { // 3, 13, and so on
						delete(rows, key)
						continue
					}
					nodes = append(nodes, flashdb.Node{Key: key, Embedding: row})
				}
				_, err = r.Put(ctx, names[i], nodes...)
				require.NoError(t, err)
			}
			dot, err := decoder.NewDot(3)
			require.NoError(t, err)
			require.NoError(t, r.PutDecoder(ctx, "items", "dot", dot))
			_, err = db.Publish(ctx, "next", &flashdb.PublishOptions{Force: true})
			require.NoError(t, err)

			asked := len(w.asked)
			w.asked = slices.DeleteFunc(w.asked, func(e [2]string) bool {
				return strings.HasSuffix(e[0], "3") || strings.HasSuffix(e[1], "3")
			})
			left := asked - len(w.asked)
			require.Positive(t, left)
			mrr, _ := w.want()
			args := []string{"eval", w.dir, "items", "--edges", w.edges, "--metric", "mrr", "--json"}
			if twoKinds {
				args = append(args, "--source-collection", "users")
			}
			ask := func() {
				code, out, errOut := runLine(args...)
				require.Zero(t, code, errOut)
				var got struct {
					Edges   int     `json:"edges"`
					LeftOut int     `json:"left_out"`
					MRR     float64 `json:"mrr"`
				}
				require.NoError(t, json.Unmarshal([]byte(out), &got))
				assert.Equal(t, len(w.asked), got.Edges)
				assert.Equal(t, left, got.LeftOut)
				assert.InDelta(t, mrr, got.MRR, 1e-9)
				assert.Contains(t, errOut, fmt.Sprintf("%d edges left out: a node of each has no embedding in the live release", left))
				assert.Contains(t, errOut, "6 nodes of items without an embedding in the live release: none is a candidate")
			}
			_, err = control.Serve(db, nil)
			require.NoError(t, err)
			ask()
			require.NoError(t, db.Close())
			ask()
		})
	}
}

// TestTrainOfCitation: the MRR that train prints of a folder in the layout of ogbl-citation2 is
// that of its test edges among their own negatives, by inner products of the embeddings it stored.
func TestTrainOfCitation(t *testing.T) {
	const data = "../../train/graph/testdata/"
	dir := filepath.Join(t.TempDir(), "db")
	code, out, errOut := runLine("train", dir, "c", data+"ogbl_citation2", "--epochs", "2", "--decoder", "dot", "--json")
	require.Zero(t, code, errOut)
	var trained struct {
		HeldOut struct {
			Edges int     `json:"edges"`
			MRR   float64 `json:"mrr"`
		} `json:"held_out"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &trained))
	text, err := os.ReadFile(data + "citation_expected.json")
	require.NoError(t, err)
	var want struct {
		Test struct {
			Sources   []uint32   `json:"source_node"`
			Targets   []uint32   `json:"target_node"`
			Negatives [][]uint32 `json:"target_node_neg"`
		}
	}
	require.NoError(t, json.Unmarshal(text, &want))
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	c, err := db.Collection("c")
	require.NoError(t, err)
	score := func(source, target uint32) (sum float64) {
		x, err := c.Get(t.Context(), fmt.Sprint(source))
		require.NoError(t, err)
		y, err := c.Get(t.Context(), fmt.Sprint(target))
		require.NoError(t, err)
		for i, value := range x.Embedding {
			sum += float64(value) * float64(y.Embedding[i])
		}
		return sum
	}
	mrr := 0.0
	for i, source := range want.Test.Sources {
		rank, of := 1.0, score(source, want.Test.Targets[i])
		for _, node := range want.Test.Negatives[i] {
			switch s := score(source, node); {
			case node == want.Test.Targets[i]:
				rank += .5
			case s > of:
				rank++
			}
		}
		mrr += 1 / rank
	}
	assert.Equal(t, 8, trained.HeldOut.Edges)
	assert.InDelta(t, mrr/8, trained.HeldOut.MRR, 1e-9)
}

func TestSizeFlag(t *testing.T) {
	for text, want := range map[string]int64{"4GB": 4e9, "500mb": 5e8, "1.5 GiB": 3 << 29, "2g": 2e9, "1000kB": 1e6, "8000000B": 8e6} {
		var f sizeFlag
		require.NoError(t, f.Set(text), text)
		assert.EqualValues(t, want, f, text)
	}
	for _, text := range []string{"", "GB", "-1GB", "0", "NaN", "4XB", "1e30", "4", "999kB"} {
		var f sizeFlag
		assert.Error(t, f.Set(text), text)
	}
	assert.EqualValues(t, 2048<<10, availableIn([]byte("MemFree: 1 kB\nMemAvailable:    2048 kB\n")))
	assert.Zero(t, availableIn([]byte("MemAvailable: some kB\n")))
}
