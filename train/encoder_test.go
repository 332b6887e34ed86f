package train_test

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// trained returns a small model of a graph with features and its encoder.
func trained(t testing.TB, g *train.Graph) *train.Model {
	t.Helper()
	m, err := train.Run(context.Background(), g, train.Split{}, small())
	require.NoError(t, err)
	return m
}

// TestEncoderEmbedsNewNodes holds a tenth of the nodes out, embeds them from half of their links,
// and ranks the other half. Chance is an AUC of .5 and an MRR of .05.
func TestEncoderEmbedsNewNodes(t *testing.T) {
	const nodes, groups = 800, 16
	whole := communities(nodes, groups, 9000, 5)
	isNew := func(n uint32) bool { return n%10 == 3 }
	known := &train.Graph{Nodes: nodes, Directed: true}
	links := map[uint32][]train.Edge{}
	for _, e := range whole.Edges {
		switch {
		case !isNew(e.Source) && !isNew(e.Target):
			known.Edges = append(known.Edges, e)
		case isNew(e.Source) && !isNew(e.Target):
			links[e.Source] = append(links[e.Source], e)
		}
	}
	m := trained(t, known)
	d := m.Dim
	task := m.Task(nil)
	task.Embeddings = append([]float32(nil), m.Embeddings...)
	for node, own := range links {
		var n train.Newcomer
		for _, e := range own[:len(own)/2] {
			n.To = append(n.To, m.Embeddings[int(e.Target)*d:(int(e.Target)+1)*d]...)
		}
		if len(n.To) == 0 {
			continue
		}
		require.NoError(t, m.Encoder.Embed(task.Embeddings[int(node)*d:(int(node)+1)*d], n))
		task.Edges = append(task.Edges, own[len(own)/2:]...)
	}
	r, err := train.Evaluate(context.Background(), task)
	require.NoError(t, err)
	assert.Greater(t, r.AUC, 0.85)
	assert.Greater(t, r.MRR, 0.15)
}

func TestEncoderBlob(t *testing.T) {
	g := communities(200, 4, 1500, 6)
	g.FeatureDim = 3
	for i := range 200 {
		g.Features = append(g.Features, float32(i%4), 7, float32(i%3))
	}
	m := trained(t, g)
	blob, err := m.Encoder.MarshalBinary()
	require.NoError(t, err)
	var back train.Encoder
	require.NoError(t, back.UnmarshalBinary(blob))
	n := train.Newcomer{To: m.Embeddings[:2*m.Dim], From: m.Embeddings[5*m.Dim : 6*m.Dim], Features: []float32{1, 7, 2}}
	want, got := make([]float32, m.Dim), make([]float32, m.Dim)
	require.NoError(t, m.Encoder.Embed(want, n))
	require.NoError(t, back.Embed(got, n))
	assert.Equal(t, want, got)
	again, err := back.MarshalBinary()
	require.NoError(t, err)
	assert.Equal(t, blob, again)
	for i := range blob {
		bad := append([]byte(nil), blob...)
		bad[i] ^= 0x10
		require.Error(t, new(train.Encoder).UnmarshalBinary(bad), "byte %d", i)
		require.Error(t, new(train.Encoder).UnmarshalBinary(blob[:i]), "cut at %d", i)
	}
}

func TestEncoderRefuses(t *testing.T) {
	g := communities(100, 4, 600, 7)
	m := trained(t, g)
	dst := make([]float32, m.Dim)
	for name, call := range map[string]func() error{
		"an embedding has 16 values": func() error { return m.Encoder.Embed(dst[:3], train.Newcomer{To: dst}) },
		"no rows of 16":              func() error { return m.Encoder.Embed(dst, train.Newcomer{To: dst[:5]}) },
		"trained with 0":             func() error { return m.Encoder.Embed(dst, train.Newcomer{Features: dst[:2]}) },
		"without links":              func() error { return m.Encoder.Embed(dst, train.Newcomer{}) },
	} {
		assert.ErrorContains(t, call(), name)
	}
}

func FuzzEncoder(f *testing.F) {
	g := communities(60, 4, 300, 8)
	g.FeatureDim, g.Features = 1, make([]float32, 60)
	blob, err := trained(f, g).Encoder.MarshalBinary()
	require.NoError(f, err)
	f.Add(blob)
	f.Add(blob[:20])
	f.Fuzz(func(t *testing.T, blob []byte) {
		if len(blob) > 4 { // a fuzzer cannot guess a checksum
			body := blob[:len(blob)-4]
			blob = binary.LittleEndian.AppendUint32(append([]byte(nil), body...), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		}
		var e train.Encoder
		if e.UnmarshalBinary(blob) != nil {
			return
		}
		again, err := e.MarshalBinary()
		require.NoError(t, err)
		var twice train.Encoder
		require.NoError(t, twice.UnmarshalBinary(again))
		require.LessOrEqual(t, e.Dim(), decoder.MaxDim)
		dst := make([]float32, e.Dim())
		require.NoError(t, e.Embed(dst, train.Newcomer{To: make([]float32, 3*e.Dim())}))
	})
}
