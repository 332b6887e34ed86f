package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// testAttributes compares filters of attributes with those of the embedded database.
func testAttributes(t *testing.T, p *pair) {
	ctx := context.Background()
	for _, text := range []string{
		"price < 20", "price <= -10.5", "price > 20 and price < 30.25", "price >= 1000", "price = 0", "price != 0", "price<-80",
		"sold", "not sold", "sold = false", "has price", "not has price", "mod1 and sold", `"sold"`,
		`brand = "b A"`, `brand != "b A"`, `brand in ("b A", "b C")`, `brand not in ("b A", "b C")`, `brand > "b B"`, `brand <= "b B"`, `brand > "b"`,
		"released >= 2025-02-01", "released < 2025-01-03", "released = 2025-01-05", "released > 2025-01-05", "released <= 2025-01-05", "released != 2025-01-05",
		"released > 2025-01-05T10:00:00Z", "released > 9999-12-31", "released in (2025-01-05, 2025-01-07)",
		`price < 20 and (brand in ("b A", "b B") or not sold) and released >= 2025-01-01`,
	} {
		o := &flashdb.PredictOptions{Exact: true, Filter: text, IncludeLinked: true}
		want, err := p.local.Predict(ctx, "n1", pairRows, o)
		require.NoError(t, err, text)
		got, err := p.remote.Predict(ctx, "n1", pairRows, o)
		require.NoError(t, err, text)
		assertSame(t, want.Hits, got.Hits, text)
		approximate, err := p.remote.Predict(ctx, "n1", 10, &flashdb.PredictOptions{Filter: text, IncludeLinked: true})
		require.NoError(t, err, text)
		assert.Len(t, approximate.Hits, min(10, len(want.Hits)), text)
	}

	want, err := p.local.Get(ctx, "n1")
	require.NoError(t, err)
	got, err := p.remote.Get(ctx, "n1")
	require.NoError(t, err)
	assert.Equal(t, want.Attributes, got.Attributes)
	assert.Equal(t, want.Tags, got.Tags)
	res, err := p.remote.Predict(ctx, "n5", 1, &flashdb.PredictOptions{Exact: true, WithNode: true, Filter: "has price"})
	require.NoError(t, err)
	of, err := p.local.Get(ctx, res.Hits[0].Key)
	require.NoError(t, err)
	assert.Equal(t, of.Attributes, res.Hits[0].Attributes)
	assert.Equal(t, of.Tags, res.Hits[0].Tags)

	node := flashdb.Node{Key: "costly", Embedding: want.Embedding, Attributes: flashdb.Attributes{"price": 1e6, "released": time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}}
	require.NoError(t, p.remote.Upsert(ctx, node))
	require.NoError(t, p.remote.Refresh(ctx))
	res, err = p.remote.Predict(ctx, "n1", 5, &flashdb.PredictOptions{Exact: true, Filter: "price > 1000"})
	require.NoError(t, err)
	require.Len(t, res.Hits, 1)
	assert.Equal(t, "costly", res.Hits[0].Key)
	for says, attributes := range map[string]flashdb.Attributes{
		"in this version a number": {"price": "costly"},
		"no such attribute":        {"colour": "red"},
		"zero byte":                {"brand": "b\x00"},
	} {
		node.Attributes = attributes
		err := p.remote.Upsert(ctx, node)
		require.ErrorIs(t, err, flashdb.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
	require.ErrorIs(t, p.remote.Upsert(ctx, flashdb.Node{Key: "x", Embedding: want.Embedding, Tags: []string{"\x02brand\x02b"}}), flashdb.ErrInvalid)
}
