package flashdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/encoder"
	"github.com/flashdb/flashdb/storage"
)

// embedMissing embeds, in the staged release of the handle, the live nodes that have no embedding
// there and are linked to some that have one. It returns how many. Without an encoder it does
// nothing. Links with a relation do not count, as in Embed.
func (c *Collection) embedMissing(ctx context.Context) (embedded int, err error) {
	var e *encoder.Encoder
	var use EncoderUse
	var missing *roaring.Bitmap
	err = c.view(func(v *storage.View) error {
		info, ok := v.Collection(c.name)
		if !ok {
			return c.gone()
		}
		if e, use, err = c.encoder(v); err != nil {
			return err
		}
		missing = liveIDs(v, info)
		if held := v.RowIDs(c.uid); held != nil {
			missing.AndNot(held)
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil || missing.IsEmpty() {
		return 0, err
	}
	near, err := c.sibling(use.Neighbours)
	if err != nil {
		return 0, err
	}
	links := map[uint32]*EmbedLinks{}
	between := near.uid != c.uid
	if !between || use.Targets != c.name {
		err = c.linksOut(ctx, near, missing, links)
	}
	if err == nil && (between && use.Targets == c.name || !between && (use.Directed || use.OneWay)) {
		err = c.linksIn(ctx, near, missing, links, !between && use.Directed)
	}
	if err != nil {
		return 0, err
	}
	return c.embedFrom(ctx, e, use, missing, links)
}

// idsPerPage is how many ids are looked at in one transaction.
const idsPerPage = 1024

// linksOut adds the links of nodes to neighbours that have an embedding.
func (c *Collection) linksOut(ctx context.Context, near *Collection, ids *roaring.Bitmap, links map[uint32]*EmbedLinks) error {
	it := ids.Iterator()
	for it.HasNext() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := c.view(func(v *storage.View) error {
			for n := 0; n < idsPerPage && it.HasNext(); n++ {
				id := it.Next()
				if to := embeddedKeys(v, near.uid, v.Links(c.uid, id, near.uid)); len(to) > 0 {
					embedLinksOf(links, id).To = to
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// linksIn adds the links of neighbours that have an embedding to nodes. It reads those of all
// neighbours, because a link is stored at its source.
func (c *Collection) linksIn(ctx context.Context, near *Collection, ids *roaring.Bitmap, links map[uint32]*EmbedLinks, directed bool) error {
	for from, more := uint64(0), true; more; from += idsPerPage {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := c.view(func(v *storage.View) error {
			info, ok := v.Collection(near.name)
			more = ok && from+idsPerPage < uint64(info.NextID)
			for id := from; ok && id < min(uint64(info.NextID), from+idsPerPage); id++ {
				targets := v.Links(near.uid, uint32(id), c.uid)
				if targets == nil || !targets.Intersects(ids) || hasNoRow(v, near.uid, uint32(id)) {
					continue
				}
				key, ok := v.Key(near.uid, uint32(id))
				for it := roaring.And(targets, ids).Iterator(); ok && it.HasNext(); {
					if l := embedLinksOf(links, it.Next()); directed {
						l.From = append(l.From, key)
					} else {
						l.To = append(l.To, key)
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func embedLinksOf(links map[uint32]*EmbedLinks, id uint32) *EmbedLinks {
	if links[id] == nil {
		links[id] = &EmbedLinks{}
	}
	return links[id]
}

// embeddedKeys returns the keys of the live nodes among ids that have an embedding.
func embeddedKeys(v *storage.View, uid uint32, ids *roaring.Bitmap) (keys []string) {
	if ids == nil {
		return nil
	}
	for it := ids.Iterator(); it.HasNext(); {
		id := it.Next()
		if key, ok := v.Key(uid, id); ok && !hasNoRow(v, uid, id) {
			keys = append(keys, key)
		}
	}
	return keys
}

// embedFrom embeds nodes from their links and puts them into the staged release.
func (c *Collection) embedFrom(ctx context.Context, e *encoder.Encoder, use EncoderUse, ids *roaring.Bitmap, links map[uint32]*EmbedLinks) (embedded int, err error) {
	it := ids.Iterator()
	for it.HasNext() {
		if ctx.Err() != nil {
			return embedded, context.Cause(ctx)
		}
		var rows []storage.IDRow
		err := c.view(func(v *storage.View) error {
			for n := 0; n < idsPerPage && it.HasNext(); n++ {
				id := it.Next()
				if links[id] == nil {
					continue
				}
				row, err := c.embedWith(v, e, use, *links[id], nil)
				if err == nil && c.schema.Normalize {
					row, err = unit(row)
				}
				if err != nil {
					return fmt.Errorf("node with id %d: %w", id, err)
				}
				rows = append(rows, storage.IDRow{ID: id, Row: row})
			}
			return nil
		})
		if err != nil {
			return embedded, err
		}
		if len(rows) == 0 {
			continue
		}
		if err := c.db.store.PutEmbeddedRows(c.release, c.uid, rows); err != nil {
			return embedded, err
		}
		embedded += len(rows)
	}
	if embedded == 0 {
		return 0, nil
	}
	return embedded, c.refresh(true)
}
