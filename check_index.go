package flashdb

import (
	"context"
	"errors"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/storage"
)

// index verifies the generation of a collection, by itself and against the store.
func (c *checked) index(ctx context.Context, live *roaring.Bitmap) error {
	db, info, found := c.db, c.info, c.found
	gen, err := db.mapGeneration(c.release, info)
	if err != nil {
		found("collection %q: index: %v (queries scan exactly; rebuild repairs it)", info.Name, err)
		return nil
	}
	defer gen.Release()
	if err := gen.Check(); err != nil {
		found("collection %q: index: %v (rebuild repairs it)", info.Name, err)
		return nil
	}
	dirty := roaring.New()
	err = db.store.DirtyOf(c.release, info.UID, func(id uint32, _ uint64) error {
		dirty.Add(id)
		return nil
	})
	if err != nil {
		return err
	}
	err = gen.Guard(func() error {
		c.coverage(gen, live, dirty)
		if err := c.keys(gen, live); err != nil {
			return err
		}
		return c.rows(ctx, gen, roaring.AndNot(live, dirty))
	})
	var corrupt *CorruptError
	if errors.As(err, &corrupt) && gen.Has(corrupt.File) {
		found("collection %q: index: %v (rebuild repairs it)", info.Name, err)
		return nil
	}
	return err
}

// coverage verifies that each live node is in the generation or the delta, so that queries can
// find it, and that the generation holds no id that was never given out.
func (c *checked) coverage(gen *ivf.Index, live, dirty *roaring.Bitmap) {
	info, found := c.info, c.found
	covered := roaring.New()
	for _, of := range gen.Files() {
		covered.AddMany(of.IDs())
	}
	if !covered.IsEmpty() && covered.Maximum() >= info.NextID {
		found("collection %q: index: it holds id %d, and the next id is %d (rebuild repairs it)", info.Name, covered.Maximum(), info.NextID)
	}
	covered.Or(dirty)
	if missing := roaring.AndNot(live, covered); !missing.IsEmpty() {
		found("collection %q: index: %d live nodes are neither in the generation nor in the delta, the first has id %d (rebuild repairs it)",
			info.Name, missing.GetCardinality(), missing.Minimum())
	}
}

// keys compares the keys in the generation with those in the store. Queries take the keys of
// their hits from the generation.
func (c *checked) keys(gen *ivf.Index, live *roaring.Bitmap) error {
	db, info, found := c.db, c.info, c.found
	const page = 4096 // ids read in one transaction
	var wrong mismatch
	for ids := range slices.Chunk(gen.Files()[0].IDs(), page) { // segments have no keys
		err := db.store.View(func(v *storage.View) error {
			for _, id := range ids {
				key, ok := gen.Key(id)
				if !ok || !live.Contains(id) {
					continue
				}
				if stored, _ := v.Key(info.UID, id); stored != string(key) {
					wrong.add(id)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	wrong.report(info.Name, "keys", found)
	return nil
}

// mismatch counts ids for which the index and the store differ.
type mismatch struct {
	n     int
	first uint32 // the lowest
}

func (m *mismatch) add(id uint32) {
	if m.n == 0 || id < m.first {
		m.first = id
	}
	m.n++
}

func (m *mismatch) report(collection, what string, found func(string, ...any)) {
	if m.n > 0 {
		found("collection %q: index: %d %s are not those of the store, the first has id %d (rebuild repairs it)", collection, m.n, what, m.first)
	}
}

// rows compares the rows in the generation with those in the store. It passes over the rows
// that the delta hides.
func (c *checked) rows(ctx context.Context, gen *ivf.Index, served *roaring.Bitmap) error {
	db, info, found := c.db, c.info, c.found
	if !gen.Info().HasRows {
		return nil
	}
	dim := info.Schema.Dim
	stored := make([]float32, dim)
	var wrong mismatch
	err := gen.Rows(ctx, func(ids []uint32, rows []float32) error {
		return db.store.ViewOf(c.release, func(v *storage.View) error {
			for i, id := range ids {
				if served.Contains(id) && (!v.Row(stored, info.UID, id) || !slices.Equal(stored, rows[i*dim:(i+1)*dim])) {
					wrong.add(id)
				}
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	wrong.report(info.Name, "rows", found)
	return nil
}
