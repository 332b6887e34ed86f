package tests

import (
	"context"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/flashdb/flashdb"
)

var attributeNames = []string{"price", "brand", "sold", "released"}

// attributes draws the attributes of a node: of a third of them none. Names begin with a prefix, as
// concurrent writers must not know of each other's.
func attributes(rng *rand.Rand, prefix string) flashdb.Attributes {
	if rng.IntN(3) == 0 {
		return nil
	}
	all := flashdb.Attributes{}
	for i, name := range attributeNames {
		if rng.IntN(3) > 0 {
			all[prefix+name] = []any{
				float64(rng.IntN(100)) / 4, string(rune('A' + rng.IntN(20))), rng.IntN(2) == 0, time.UnixMicro(rng.Int64N(1 << 50)).UTC(),
			}[i]
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// setOrRemoved draws a change of attributes.
func setOrRemoved(rng *rand.Rand, prefix string) flashdb.Attributes {
	all := flashdb.Attributes{}
	maps.Copy(all, attributes(rng, prefix))
	for _, name := range attributeNames {
		if rng.IntN(4) == 0 {
			all[prefix+name] = nil
		}
	}
	return all
}

func setAttributesWrite(key string, change flashdb.Attributes) write {
	return write{
		"set attributes", func(ctx context.Context, c *flashdb.Collection) error { return c.SetAttributes(ctx, key, change) },
		func(b *flashdb.Batch, name string, _ *model) { b.SetAttributes(name, key, change) },
		func(m *model) {
			n := m.nodes[key]
			all := flashdb.Attributes{}
			maps.Copy(all, n.Attributes)
			for name, x := range change {
				if all[name] = x; x == nil {
					delete(all, name)
				}
			}
			n.Attributes = all
			m.nodes[key] = n
		},
		nil,
	}
}
