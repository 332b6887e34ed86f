package opensearch

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

// TestNames gives every short collection name names of its own. No index has the name of an alias.
func TestNames(t *testing.T) {
	const letters = "aAzZ09_.-"
	var collections []string
	last := []string{""}
	for range 4 {
		var next []string
		for _, s := range last {
			for _, c := range letters {
				next = append(next, s+string(c))
			}
		}
		collections, last = append(collections, next...), next
	}
	collections = append(collections, strings.Repeat("X", 64), "a-0123456789abcdef", "live-a", "_live-a", "to-a")
	taken := map[string]string{}
	for _, collection := range collections {
		n := remote.Name{Collection: collection, Version: "0123456789abcdef"}
		p, err := placeOf(n)
		require.NoError(t, err)
		for _, name := range []string{p.index, p.write, p.live, p.former} {
			of := collection + " " + name[:9]
			require.Empty(t, taken[name], "%s is the name of %s too", name, of)
			taken[name] = of
			assert.Equal(t, strings.ToLower(name), name)
			assert.LessOrEqual(t, len(name), 255)
		}
		encoded, err := encode(collection)
		require.NoError(t, err)
		version, ok := versionOf(p.index, encoded)
		assert.True(t, ok)
		assert.Equal(t, n.Version, version)
	}
	_, ok := versionOf("flashdb-a-b-0123456789abcdef", "a")
	assert.False(t, ok, "of another collection")
	_, ok = versionOf("flashdb-a-0123456789abcdeg", "a")
	assert.False(t, ok, "no version")
}

func TestNamesRefused(t *testing.T) {
	for _, n := range []remote.Name{
		{Collection: "", Version: "0123456789abcdef"},
		{Collection: "a*", Version: "0123456789abcdef"},
		{Collection: "a/b", Version: "0123456789abcdef"},
		{Collection: "ä", Version: "0123456789abcdef"},
		{Collection: strings.Repeat("a", 65), Version: "0123456789abcdef"},
		{Collection: "a", Version: ""},
		{Collection: "a", Version: "*"},
		{Collection: "a", Version: "0123456789ABCDEF"},
		{Collection: "a", Version: "0123456789abcdef0"},
	} {
		_, err := placeOf(n)
		assert.ErrorIs(t, err, flashdb.ErrInvalid, "%v", n)
	}
}

// TestIDs holds that ids differ and are not too long.
func TestIDs(t *testing.T) {
	taken := map[string]bool{describing: true}
	for i := range 20 {
		for _, key := range []string{fmt.Sprint(i), fmt.Sprintf("%0511d", i), fmt.Sprintf("%0512d", i), fmt.Sprintf("%01024d", i)} {
			id := idOf(key)
			assert.LessOrEqual(t, len(id), 512)
			assert.False(t, taken[id])
			taken[id] = true
		}
	}
	assert.NotEqual(t, describing, idOf("ersion"))
}

// TestScale holds that rows are indexed 1024 to 2048 long.
func TestScale(t *testing.T) {
	for _, norm := range []float32{1, .3, 2, 1023.9, 1024, 1e-38, 1e-45, 1e30, math.MaxFloat32} {
		scaled := math.Ldexp(float64(norm), exponentFor(norm))
		assert.GreaterOrEqual(t, scaled, 1024., "%v", norm)
		assert.Less(t, scaled, 2048., "%v", norm)
	}
	l := layout{dim: 4, exponent: exponentFor(1)}
	negative := float32(math.Copysign(0, -1))
	assert.Equal(t, "[1024,-512,-0,1e+16]", string(l.appendVector(nil, []float32{1, -.5, negative, math.MaxFloat32})))
}
