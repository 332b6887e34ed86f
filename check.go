package flashdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/calibrate"
	"github.com/flashdb/flashdb/storage"
	"github.com/flashdb/flashdb/wal"
)

// Check verifies the whole database and returns what it found wrong, one line for each finding.
// Without findings the database is sound. Check reads every file. It verifies
//
//   - the structure of the bbolt file, every checksum in it, and that its buckets agree;
//   - every frame of the log, or of a snapshot the checksum of each file;
//   - every checksum of the served generations, and a sample of their codes;
//   - that each live node is in the generation or in the delta;
//   - that the keys and rows of the generation are those of the store;
//   - that decoders and calibrations can be read, and that decoders fit the collection.
//
// Damage is a finding, not an error. The finding names the file, the part of it and the offset.
//
// An unusable index is a finding too, although queries still scan exactly without it. Rebuild
// repairs it.
func (db *DB) Check(ctx context.Context) (findings []string, err error) {
	leave, err := db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	found := func(format string, args ...any) {
		findings = append(findings, fmt.Sprintf(format, args...))
	}
	// Writes wait while the files are read, so that the files do not change.
	err = db.log.Locked(func(wal.LSN) error {
		_, unsettled := db.settle()
		if unsettled != nil && !errors.Is(unsettled, ErrCorrupt) {
			return unsettled
		}
		if db.sealed != nil {
			if err := db.checkSeal(ctx, found); err != nil {
				return err
			}
		} else if err := wal.Check(db.fs, walDir); err != nil {
			found("log: %v", err)
		}
		damaged := false
		db.store.Check(func(f string) {
			damaged = true
			found("store: %s", f)
		})
		if unsettled != nil { // the parts cannot be compared
			found("store: %v", unsettled)
			return nil
		}
		checks, err := db.toCheck(found)
		for _, c := range checks {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				err = c.collection(ctx)
			}
			if damaged && errors.Is(err, ErrCorrupt) {
				err = nil // it is among the findings of the store; what depends on it cannot be compared
			}
		}
		return err
	})
	if err != nil {
		return findings, fmt.Errorf("check: %w", err)
	}
	return findings, nil
}

// A checked is a collection to check, as one release has it.
type checked struct {
	db      *DB
	info    storage.Info
	release string // "" is the live one
	found   func(string, ...any)
}

// toCheck lists the collections, and then those of the releases that are not live.
func (db *DB) toCheck(found func(string, ...any)) (all []*checked, err error) {
	err = db.store.View(func(v *storage.View) error {
		for _, info := range v.Collections() {
			all = append(all, &checked{db, info, "", found})
		}
		for _, r := range v.Releases() {
			if r.State == storage.Live {
				continue
			}
			of := func(format string, args ...any) { found("release %q: "+format, append([]any{r.Name}, args...)...) }
			for _, info := range r.Collections {
				all = append(all, &checked{db, info, r.Name, of})
			}
		}
		return nil
	})
	return all, err
}

func (c *checked) collection(ctx context.Context) error {
	info := c.info
	c.plans()
	var live *roaring.Bitmap
	err := c.db.store.ViewOf(c.release, func(v *storage.View) error {
		for _, name := range v.Decoders(info.UID) {
			blob, _ := v.Decoder(info.UID, name)
			d, err := decoder.Unmarshal(blob)
			switch {
			case err != nil:
				c.found("collection %q: decoder %q: %v", info.Name, name, err)
			case d.Dim() != info.Schema.Dim:
				c.found("collection %q: decoder %q takes %d values, the collection holds %d", info.Name, name, d.Dim(), info.Schema.Dim)
			}
		}
		live = liveIDs(v, info)
		if held := v.RowIDs(info.UID); held != nil { // the others are in no index
			live.And(held)
		}
		return nil
	})
	if err != nil || info.Generation == 0 {
		return err
	}
	return c.index(ctx, live)
}

// plans verifies the stored calibrations. They are derived data, so damage in them is a
// finding and does not stop the check.
func (c *checked) plans() {
	info := c.info
	var names []string
	_ = c.db.store.ViewOf(c.release, func(v *storage.View) error {
		names = v.Decoders(info.UID)
		return nil
	})
	for _, name := range names {
		err := c.db.store.ViewOf(c.release, func(v *storage.View) error {
			blob, ok := v.Plans(info.UID, name)
			if !ok {
				return nil
			}
			_, err := calibrate.Unmarshal(blob)
			return err
		})
		if err != nil {
			c.found("collection %q: calibration of decoder %q: %v (it is not used; calibrate repairs it)", info.Name, name, err)
		}
	}
}

func cardinality(b *roaring.Bitmap) uint64 {
	if b == nil {
		return 0
	}
	return b.GetCardinality()
}
