package flashdb_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/encoder"
)

// meanPlus returns an encoder of width 2 that adds to the mean: to the first value the first value
// of the mean of From, to the second the last feature. It ignores the rest of its input, and adds
// nothing negative.
func meanPlus(t testing.TB, pooled bool, features int) *encoder.Encoder {
	in := encoder.Input{Dim: 2, Pooled: pooled, Center: make([]float32, features)}
	for range features {
		in.Spread = append(in.Spread, 1)
	}
	w := encoder.Weights{Hidden: make([]float32, 2*in.Width()), HiddenBias: make([]float32, 2), Output: []float32{1, 0, 0, 1}, OutputBias: make([]float32, 2)}
	w.Hidden[3] = 1 // after the mean and count of To
	if features > 0 {
		w.Hidden[in.Width()+6+features-1] = 1
	}
	e, err := encoder.New("hops", in, w)
	require.NoError(t, err)
	return e
}

func TestEmbed(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", 2)
	require.NoError(t, c.Upsert(ctx, node("a", 1, 2), node("b", 3, 6), node("f", 10, 10)))
	embed := func(features []float32, to, from []string) ([]float32, error) {
		return c.Embed(ctx, flashdb.EmbedLinks{To: to, From: from}, features)
	}
	_, err := embed(nil, []string{"a"}, nil)
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	require.ErrorContains(t, err, "training stores one")

	require.NoError(t, c.PutEncoder(ctx, meanPlus(t, false, 1), flashdb.EncoderUse{Decoder: "d", Directed: true, Features: 1}))
	_, err = embed(nil, []string{"a"}, nil)
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	require.ErrorContains(t, err, `decoder "d" of collection "c" not found`)
	require.NoError(t, c.PutDecoder(ctx, "d", dotDecoder(t, 2)))
	d.reopen()
	c, err = d.Collection("c")
	require.NoError(t, err)

	for _, tc := range []struct {
		to, from []string
		features []float32
		want     []float32
	}{
		{to: []string{"a", "b"}, want: []float32{2, 4}},
		{from: []string{"f"}, want: []float32{20, 10}},
		{to: []string{"a"}, from: []string{"b"}, want: []float32{2 + 3, 4}},
		{to: []string{"a"}, features: []float32{7}, want: []float32{1, 9}},
		{features: []float32{7}, want: []float32{0, 7}},
	} {
		got, err := embed(tc.features, tc.to, tc.from)
		require.NoError(t, err)
		assert.Equal(t, tc.want, got)
	}
	for want, call := range map[string]func() ([]float32, error){
		`node "x" not found in collection "c"`: func() ([]float32, error) { return embed(nil, []string{"a", "x"}, nil) },
		"without links and without features":   func() ([]float32, error) { return embed(nil, nil, nil) },
		"2 features are given":                 func() ([]float32, error) { return embed([]float32{1, 2}, nil, nil) },
	} {
		_, err := call()
		require.ErrorContains(t, err, want)
	}
	require.ErrorIs(t, d.collection("wide", 3).PutEncoder(ctx, meanPlus(t, false, 0), flashdb.EncoderUse{}), flashdb.ErrDim)
	require.NoError(t, c.PutEncoder(ctx, nil, flashdb.EncoderUse{}))
	_, _, err = c.Encoder(ctx)
	require.ErrorIs(t, err, flashdb.ErrNotFound)
}

// TestEmbedAcross embeds a user from items and an item from users, by features of both kinds.
func TestEmbedAcross(t *testing.T) {
	ctx := context.Background()
	d, users, items := emptyShop(t)
	var b flashdb.Batch
	b.Upsert("users", node("ann", 1, 1))
	b.Upsert("items", node("dune", 2, 2), node("emma", 4, 4))
	b.PutDecoder("items", "d", dotDecoder(t, 2))
	// The last of three features is the second of the items.
	b.PutEncoder("users", meanPlus(t, false, 3), flashdb.EncoderUse{Decoder: "d", Targets: "items", Neighbours: "items", Features: 1})
	b.PutEncoder("items", meanPlus(t, false, 3), flashdb.EncoderUse{Decoder: "d", Neighbours: "users", FirstFeature: 1, Features: 2})
	require.NoError(t, d.Apply(ctx, &b))

	got, err := users.Embed(ctx, flashdb.EmbedLinks{To: []string{"dune", "emma"}}, []float32{9})
	require.NoError(t, err)
	assert.Equal(t, []float32{3, 3}, got, "links of a source lead to its neighbours")
	got, err = items.Embed(ctx, flashdb.EmbedLinks{To: []string{"ann"}}, []float32{5, 6})
	require.NoError(t, err)
	assert.Equal(t, []float32{2, 7}, got, "links of a target come from its neighbours")
	_, err = items.Embed(ctx, flashdb.EmbedLinks{From: []string{"ann"}}, nil)
	require.ErrorIs(t, err, flashdb.ErrInvalid)

	for _, c := range []*flashdb.Collection{users, items} {
		_, use, err := c.Encoder(ctx)
		require.NoError(t, err)
		other := map[string]string{"users": "dune", "items": "ann"}[c.Name()]
		through, edges := use.Edges(c.Name(), "zoe", flashdb.EmbedLinks{To: []string{other}})
		want := flashdb.Edge{SourceCollection: "users", Source: "zoe", Target: "dune"}
		if c == items {
			want = flashdb.Edge{SourceCollection: "users", Source: "ann", Target: "zoe"}
		}
		assert.Equal(t, "items", through)
		assert.Equal(t, []flashdb.Edge{want}, edges)
	}
}

func TestEncoderUseEdges(t *testing.T) {
	links := flashdb.EmbedLinks{To: []string{"a"}, From: []string{"b"}}
	through, edges := flashdb.EncoderUse{OneWay: true}.Edges("c", "x", links)
	assert.Equal(t, "c", through)
	assert.Equal(t, []flashdb.Edge{{Source: "x", Target: "a"}, {Source: "b", Target: "x"}}, edges)
	_, edges = flashdb.EncoderUse{}.Edges("c", "x", links)
	assert.Equal(t, []flashdb.Edge{{Source: "x", Target: "a"}, {Source: "a", Target: "x"}, {Source: "b", Target: "x"}, {Source: "x", Target: "b"}}, edges)
}

// TestEncoderOfAnyDecoderName: the name of a decoder may be any bytes. A use that an earlier
// version stored is read.
func TestEncoderOfAnyDecoderName(t *testing.T) {
	ctx := context.Background()
	c := openDB(t).collection("c", 2)
	for _, name := range []string{"d", "é", "\xff\x00d", "<&>\u2028"} {
		require.NoError(t, c.PutDecoder(ctx, name, dotDecoder(t, 2)))
		require.NoError(t, c.PutEncoder(ctx, meanPlus(t, false, 0), flashdb.EncoderUse{Decoder: name, OneWay: true}))
		_, use, err := c.Encoder(ctx)
		require.NoError(t, err)
		require.Equal(t, flashdb.EncoderUse{Decoder: name, Targets: "c", Neighbours: "c", OneWay: true}, use)
	}
	require.NoError(t, c.SetMeta(ctx, "flashdb.encoder_uses", `{"decoder":"d","of":"","neighbours":"c","directed":true,"one_way":false}`))
	_, use, err := c.Encoder(ctx)
	require.NoError(t, err)
	require.Equal(t, flashdb.EncoderUse{Decoder: "d", Targets: "c", Neighbours: "c", Directed: true}, use)
}

// TestDamagedEncoderUse checks that a value which SetMeta stored under the name of the use is
// refused without a panic.
func TestDamagedEncoderUse(t *testing.T) {
	ctx := context.Background()
	c := openDB(t).collection("c", 2)
	require.NoError(t, c.PutDecoder(ctx, "d", dotDecoder(t, 2)))
	for _, text := range []string{"{", `{"decoder": "d", "first_feature": 9223372036854775807, "features": 1}`, `{"decoder": "d", "features": -1}`} {
		require.NoError(t, c.PutEncoder(ctx, meanPlus(t, false, 1), flashdb.EncoderUse{}))
		require.NoError(t, c.SetMeta(ctx, "flashdb.encoder_uses", text))
		_, err := c.Embed(ctx, flashdb.EmbedLinks{}, []float32{1})
		require.ErrorIs(t, err, flashdb.ErrCorrupt, text)
	}
}
