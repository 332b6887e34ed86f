package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/internal/codec"
)

// An importer reads nodes from a file of embeddings. The file is read twice: check looks at every
// row, then store stores them.
type importer struct {
	name         string // of the file, for messages
	open         func() (codec.RowReader, error)
	file         *inputFile // what open opens; nil for the demo
	notes        io.Writer  // takes what is to be known before the end; nil: nothing is told
	announced    bool       // how large the file is
	columns      codec.Columns
	keysFile     *tableFile // nil without --keys
	keyColumns   codec.Columns
	keysIdentity string
	tags         []string // of every node
	tagsOf       func(key string, payload []byte) []string
	start, count int64 // rows to take; count 0: to the end
	schema       flashdb.Schema
	upsert       func(ctx context.Context, nodes ...flashdb.Node) error // nil: the collection's
	apply        applyRelease                                           // nil: the database's

	types     columnTypes
	attrFlags []string // of --attributes

	keys  *rowNames // nil without --keys
	state importState
	end   int64 // row after the last one to take, once all are checked
}

// wants reports whether a row is selected.
func (im *importer) wants(row int64) bool {
	return row >= im.start && (im.count == 0 || row-im.start < im.count)
}

// wanted is how many rows of a file of so many are selected.
func (im *importer) wanted(rows int64) int64 {
	rows = max(0, rows-im.start)
	if im.count > 0 {
		rows = min(rows, im.count)
	}
	return rows
}

// A scanned row is a selected row as the node it becomes.
type scannedRow struct {
	node  flashdb.Node
	named bool   // the file itself gives a key
	at    string // position of a named one, for messages
}

// scan calls fn for every selected row. The embedding is read into dst(), which fn may keep.
func (im *importer) scan(ctx context.Context, p *terminal.Progress, stage string, dst func() []float32, fn func(scannedRow) error) (rows int64, err error) {
	r, err := im.open()
	if err != nil {
		return 0, fmt.Errorf("%w%s", err, openHint(err))
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.Dim() != im.schema.Dim {
		return 0, fmt.Errorf("%s: its rows have %s, the collection holds %d%s", im.name, show.Count(r.Dim(), "value"), im.schema.Dim, im.widthHint(r))
	}
	im.announce(im.wanted(r.Count()))
	skipped := make([]float32, im.schema.Dim)
	for row := int64(0); im.wants(row) || row < im.start; row++ {
		if row%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return rows, err
			}
			p.Update(stage+" "+im.name, row, cmp.Or(max(0, r.Count()), im.end))
		}
		if row < im.start {
			if _, err := r.Next(skipped); errors.Is(err, io.EOF) {
				return 0, fmt.Errorf("%s: --start is %d, but the file has %s", im.name, im.start, show.Count(row, "row"))
			} else if err != nil {
				return 0, err
			}
			continue
		}
		embedding := dst()
		meta, err := r.Next(embedding)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return rows, err
		}
		n, err := im.node(row, meta, embedding)
		if err == nil {
			scanned := scannedRow{node: n, named: meta.HasKey}
			if scanned.named {
				scanned.at = r.Position()
			}
			err = fn(scanned)
		}
		if err != nil {
			return rows, fmt.Errorf("%s: %s: %w", im.name, r.Position(), err)
		}
		rows++
	}
	if rows == 0 && im.start > 0 {
		return 0, fmt.Errorf("%s: --start is %d, but the file has %s", im.name, im.start, show.Count(im.start, "row"))
	}
	return rows, nil
}

// announceBytes is how large embeddings are announced before they are read.
const announceBytes = 256 << 20

// announce says once how many rows are to be imported where that may take a while.
func (im *importer) announce(rows int64) {
	size := float64(rows) * 4 * float64(im.schema.Dim)
	if im.notes == nil || im.announced || size < announceBytes {
		return
	}
	fmt.Fprintf(im.notes, "%s: %s of %s, %.1f GB\n", im.name, show.Count(rows, "row"), show.Count(im.schema.Dim, "value"), size/1e9)
	im.announced = true
}

// node puts together what the files and flags say of a row.
func (im *importer) node(row int64, meta codec.Row, embedding []float32) (flashdb.Node, error) {
	n := flashdb.Node{Embedding: embedding, Payload: meta.Payload, Tags: slices.Clip(im.tags)}
	if len(meta.Tags) > 0 {
		n.Tags = append(meta.Tags, im.tags...)
	}
	attributes := meta.Attributes
	switch {
	case im.keys != nil:
		name, ok := im.keys.of(row)
		if !ok {
			return n, fmt.Errorf("row %d has no key in %s", row, im.keysFile.name)
		}
		n.Key = name.key
		if name.payload != "" {
			n.Payload = []byte(name.payload)
		}
		if b := name.beside; b != nil {
			n.Tags = append(slices.Clone(b.tags), n.Tags...)
			attributes = b.merge(attributes, im.keys.attributes)
		}
	case meta.HasKey:
		n.Key = meta.Key
	default:
		n.Key = strconv.FormatInt(row, 10)
	}
	if im.tagsOf != nil {
		n.Tags = append(n.Tags, im.tagsOf(n.Key, n.Payload)...)
	}
	var err error
	n.Attributes, err = im.types.of(attributes)
	return n, err
}

// check reads every selected row and refuses what Upsert would, so that a bad row late in the file
// changes nothing. Each one is given to sound, unless that is nil. It returns the number of rows.
func (im *importer) check(ctx context.Context, p *terminal.Progress, sound func(flashdb.Node)) (int64, error) {
	embedding := make([]float32, im.schema.Dim)
	keys := fileKeys{}
	rows, err := im.scan(ctx, p, "check", func() []float32 { return embedding }, func(r scannedRow) error {
		if im.keys == nil {
			if err := keys.add(r); err != nil {
				return err
			}
		}
		if err := im.schema.ValidateNodes(r.node); err != nil || sound == nil {
			return err
		}
		sound(r.node)
		return nil
	})
	if said := im.types.settle(); err == nil && said != "" && im.notes != nil {
		p.Clear()
		fmt.Fprintf(im.notes, "%s: %s\n", im.name, said)
	}
	return rows, err
}

// fileKeys are the keys that a file of embeddings gives its rows: all of them one each, or none at
// all. Row numbers that stand in for missing keys could be keys of other rows.
type fileKeys struct {
	seen map[string]string // position of each key
	bare bool              // some row has no key
}

func (f *fileKeys) add(r scannedRow) error {
	if !r.named {
		f.bare = true
	}
	if f.bare && (r.named || len(f.seen) > 0) {
		return errors.New("some rows have a key and some have none: give all of them a key, or none")
	}
	if !r.named {
		return nil
	}
	if other, ok := f.seen[r.node.Key]; ok {
		return fmt.Errorf("key %s is that of %s, too", strconv.Quote(show.Clip(r.node.Key, 60)), other)
	}
	if f.seen == nil {
		f.seen = map[string]string{}
	}
	f.seen[r.node.Key] = r.at
	return nil
}
