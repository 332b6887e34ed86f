package flashdb

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/calibrate"
	"github.com/flashdb/flashdb/storage"
)

// PutDecoder stores a trained decoder under a name of 1 to 1024 bytes. It replaces an earlier
// decoder of that name.
//
// If an index is served, the decoder is then calibrated, for Options.CalibrateTime at most: see
// Calibrate. The decoder is durable before that. A calibration that fails or that ctx ends is
// logged and is no error.
func (c *Collection) PutDecoder(ctx context.Context, name string, d decoder.Decoder) error {
	if _, err := c.write(ctx, write{kind: writeDecoder, name: name, decoder: d}); err != nil {
		return err
	}
	leave, err := c.db.enter()
	if err != nil {
		return nil // it is stored
	}
	defer leave()
	c.calibrateStored(ctx, name)
	return nil
}

// calibrateStored calibrates a decoder that was just stored.
func (c *Collection) calibrateStored(ctx context.Context, name string) {
	if err := c.calibrateNew(ctx, name); err != nil {
		c.db.slog.Warn("decoder stored, but not calibrated", "collection", c.name, "decoder", name, "err", err)
	}
}

// decoderBlob checks a decoder and returns it as closed meanwhile, but the decoder is stored.
func (c *Collection) decoderBlob(name string, d decoder.Decoder) ([]byte, error) {
	if err := validateKey(name); err != nil {
		return nil, err
	}
	if d == nil {
		return nil, fmt.Errorf("%w: decoder %q is nil", ErrInvalid, name)
	}
	if d.Dim() != c.schema.Dim {
		return nil, fmt.Errorf("%w: decoder %q takes embeddings of %d values, the collection holds %d", ErrDim, name, d.Dim(), c.schema.Dim)
	}
	return decoder.Marshal(d), nil
}

// DropDecoder removes a decoder, or returns ErrNotFound.
func (c *Collection) DropDecoder(ctx context.Context, name string) error {
	_, err := c.write(ctx, write{kind: writeNoDecoder, name: name})
	return err
}

func (c *Collection) dropDecoder(r *record, name string) error {
	if _, ok := r.changes.Decoder(c.uid, name); !ok {
		return fmt.Errorf("decoder %q %w", name, ErrNotFound)
	}
	return r.emit(storage.DropDecoder{UID: c.uid, Name: name})
}

// Decoders returns the names of the stored decoders, sorted.
func (c *Collection) Decoders(ctx context.Context) ([]string, error) {
	var names []string
	err := c.viewed(ctx, func(v *storage.View) error {
		names = v.Decoders(c.uid)
		return nil
	})
	return names, err
}

func (c *Collection) storedDecoders() (names []string, err error) {
	err = c.view(func(v *storage.View) error {
		names = v.Decoders(c.uid)
		return nil
	})
	return names, err
}

// Decoder returns a stored decoder. The empty name means the only one.
func (c *Collection) Decoder(name string) (decoder.Decoder, error) {
	leave, err := c.db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	return c.decoder(name)
}

func (c *Collection) decoder(name string) (decoder.Decoder, error) {
	t, err := c.trained(name)
	if err != nil {
		return nil, err
	}
	return t.Decoder, nil
}

// A trained is a stored decoder in memory, with its calibrations. It is immutable.
type trained struct {
	decoder.Decoder
	name  string
	hash  uint64 // of its blob
	plans calibrate.Set
}

// of returns the decoder for a relation. It returns the same value for the same relation.
func (t *trained) of(relation string, reverse bool) (decoder.Decoder, error) {
	d, err := decoder.ForRelation(t.Decoder, relation, reverse)
	if err != nil {
		return nil, fmt.Errorf("%w: decoder %q: %w", ErrInvalid, t.name, err)
	}
	return d, nil
}

// trained returns a decoder by its name, or the only one where name is empty. A decoder is parsed
// once.
func (c *Collection) trained(name string) (*trained, error) {
	c.decodersMu.Lock()
	defer c.decodersMu.Unlock()
	if name == "" && c.only != nil {
		return c.only, nil
	}
	only := name == ""
	if only {
		var err error
		if name, err = c.onlyDecoder(); err != nil {
			return nil, err
		}
	}
	t, err := c.parsed(name)
	if only && err == nil {
		c.only = t
	}
	return t, err
}

// viewedWith calls fn with a decoder and a view of the store, both as of the same write. They must
// agree, because a batch may hold rows and the decoder that was trained on them.
func (c *Collection) viewedWith(ctx context.Context, name string, fn func(v *storage.View, t *trained) error) error {
	for {
		at, open := c.served.applied() // the decoder looked up next is as of this batch or a later one
		if !open {
			return c.gone()
		}
		t, err := c.trained(name)
		if err != nil {
			return err
		}
		later := false
		err = c.view(func(v *storage.View) error {
			info, ok := v.Collection(c.name)
			if !ok || info.UID != c.uid {
				return fmt.Errorf("collection %q %w: it was dropped", c.name, ErrNotFound)
			}
			if later = at != (moment{v.LSN(c.uid), info.Stamp}); later {
				return ctx.Err()
			}
			return fn(v, t)
		})
		if err != nil || !later {
			return err
		}
		runtime.Gosched()
	}
}

// onlyDecoder returns the name of the decoder of a collection that has exactly one.
func (c *Collection) onlyDecoder() (string, error) {
	names, err := c.storedDecoders()
	switch {
	case err != nil:
		return "", fmt.Errorf("collection %q: %w", c.name, err)
	case len(names) == 0:
		return "", fmt.Errorf("collection %q: decoder %w: none is stored: `flashdb decoder add` stores one", c.name, ErrNotFound)
	case len(names) > 1:
		return "", fmt.Errorf("collection %q: %w: it has several decoders, name one of %s", c.name, ErrInvalid, strings.Join(names, ", "))
	}
	return names[0], nil
}

// parsed returns a decoder by its name, from memory if it was parsed before. The caller holds
// decodersMu.
func (c *Collection) parsed(name string) (*trained, error) {
	if t := c.decoders[name]; t != nil {
		return t, nil
	}
	var blob []byte
	err := c.view(func(v *storage.View) error {
		stored, ok := v.Decoder(c.uid, name)
		if !ok {
			has := "none"
			if names := v.Decoders(c.uid); len(names) > 0 {
				has = strings.Join(names, ", ")
			}
			return fmt.Errorf("decoder %q %w in collection %q, which has %s", name, ErrNotFound, c.name, has)
		}
		blob = stored
		return nil
	})
	if err != nil {
		return nil, err
	}
	d, err := decoder.Unmarshal(blob)
	if err != nil {
		return nil, fmt.Errorf("decoder %q of collection %q: %w", name, c.name, err)
	}
	t := &trained{Decoder: d, name: name, hash: hashOf(blob)}
	if t.plans, err = c.plansOf(t); err != nil {
		c.db.slog.Warn("calibration not usable: calibrate the decoder again", "collection", c.name, "decoder", name, "err", err)
	}
	c.decoders[name] = t
	return t, nil
}

// forgetDecoder drops a parsed decoder after the stored one has changed.
func (c *Collection) forgetDecoder(name string) {
	c.decodersMu.Lock()
	defer c.decodersMu.Unlock()
	delete(c.decoders, name)
	c.only = nil // there may be another, or none
}
