package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

// Files of edges and oracles name nodes by their row in the file of embeddings. A collection
// remembers in its metadata which row its id 0 has, and how many ids from there on are rows of that
// file, as long as imports keep row and id in step.
const (
	// Names of meta values that begin with this are not a user's: see SetMeta.
	reserved = "flashdb."

	metaFirstRow = reserved + "first_row"
	metaRowCount = reserved + "row_count"
)

// A nodeIndex finds nodes by key and by row number, for commands that look up very many of them. It
// is a copy of the collection's keys as they were then.
type nodeIndex struct {
	collection string
	keys       []string          // by id; "" where there is no node
	ids        map[string]uint32 // by key, made when first needed
	rowless    map[uint32]bool   // nodes without an embedding; nil: none, or not looked for

	// Row r is id r - first for first <= r < first+rows; rows is 0 when the collection does not
	// know. Keys are then taken for row numbers in decimal, as import makes them without --keys.
	first, rows int64
}

func newNodeIndex(ctx context.Context, c collection) (*nodeIndex, error) {
	x := &nodeIndex{collection: c.Name()}
	var err error
	if x.first, x.rows, err = rowSpan(ctx, c); err != nil {
		return nil, err
	}
	x.keys, err = allRows(ctx, c)
	return x, err
}

// rowsPerPage is how many keys are asked for at a time.
const rowsPerPage = 4096

// allRows returns the keys of a collection's nodes by row, "" for deleted ones.
func allRows(ctx context.Context, c collection) (keys []string, err error) {
	for {
		page, err := c.RowKeys(ctx, uint32(len(keys)), rowsPerPage)
		if err != nil {
			return nil, err
		}
		if keys = append(keys, page...); len(page) < rowsPerPage {
			return keys, nil
		}
	}
}

// rowCount returns how many rows a collection has had, those of deleted nodes included.
func rowCount(ctx context.Context, c collection) (int, error) {
	low, high := uint64(0), uint64(math.MaxUint32) // row low-1 was given out, row high was not
	for low < high {
		row := low + (high-low)/2
		keys, err := c.RowKeys(ctx, uint32(row), 1)
		switch {
		case err != nil:
			return 0, err
		case len(keys) > 0:
			low = row + 1
		default:
			high = row
		}
	}
	return int(low), nil
}

// rowOf returns the row of the node under key, or -1.
func rowOf(ctx context.Context, c collection, key string) (int64, error) {
	for from := uint32(0); ; from += rowsPerPage {
		page, err := c.RowKeys(ctx, from, rowsPerPage)
		if err != nil {
			return 0, err
		}
		if i := slices.Index(page, key); i >= 0 {
			return int64(from) + int64(i), nil
		}
		if len(page) < rowsPerPage {
			return -1, nil
		}
	}
}

// rowSpan returns what the collection remembers of row numbers.
func rowSpan(ctx context.Context, c collection) (first, rows int64, err error) {
	firstText, err := ownMeta(ctx, c, metaFirstRow)
	if err != nil {
		return 0, 0, err
	}
	rowsText, err := ownMeta(ctx, c, metaRowCount)
	if err != nil {
		return 0, 0, err
	}
	first, ferr := strconv.ParseInt(firstText, 10, 64)
	rows, rerr := strconv.ParseInt(rowsText, 10, 64)
	if ferr != nil || rerr != nil {
		return 0, 0, nil // never set, or not by an import
	}
	return first, rows, nil
}

// ownMeta returns a value of the command's own. Earlier versions stored them without what is
// reserved before their names.
func ownMeta(ctx context.Context, c collection, name string) (string, error) {
	text, err := c.Meta(ctx, name)
	if err == nil && text == "" {
		text, err = c.Meta(ctx, strings.TrimPrefix(name, reserved))
	}
	return text, err
}

func setRowSpan(ctx context.Context, c collection, first, rows int64) error {
	if err := c.SetMeta(ctx, metaFirstRow, strconv.FormatInt(first, 10)); err != nil {
		return err
	}
	return c.SetMeta(ctx, metaRowCount, strconv.FormatInt(rows, 10))
}

// byKey returns the id of the node under key.
func (x *nodeIndex) byKey(key string) (uint32, error) {
	if x.ids == nil {
		x.ids = make(map[string]uint32, len(x.keys))
		for id, k := range x.keys {
			if k != "" {
				x.ids[k] = uint32(id)
			}
		}
	}
	id, ok := x.ids[key]
	if !ok {
		return 0, fmt.Errorf("collection %q has no node %q", x.collection, key)
	}
	return id, nil
}

// has tells whether there is a node under key.
func (x *nodeIndex) has(key string) bool {
	_, err := x.byKey(key)
	return err == nil
}

// find returns the id of a node that text names by its key, or by its row.
func (x *nodeIndex) find(text string, byRow bool) (uint32, error) {
	if !byRow {
		return x.byKey(text)
	}
	row, err := parseRow(text)
	if err != nil {
		return 0, err
	}
	return x.byRow(row)
}

// byRow returns the id of the node that was imported from a row.
func (x *nodeIndex) byRow(row int64) (uint32, error) {
	if x.rows == 0 {
		id, err := x.byKey(strconv.FormatInt(row, 10))
		if err != nil {
			return 0, fmt.Errorf("collection %q has no node of row %d", x.collection, row)
		}
		return id, nil
	}
	if row < x.first || row >= x.first+x.rows {
		return 0, fmt.Errorf("collection %q has no node of row %d: it holds rows %d to %d", x.collection, row, x.first, x.first+x.rows-1)
	}
	id := row - x.first
	if id >= int64(len(x.keys)) || x.keys[id] == "" {
		return 0, fmt.Errorf("the node of row %d was deleted from collection %q", row, x.collection)
	}
	return uint32(id), nil
}

// parseRow reads a row number of a text file.
func parseRow(s string) (int64, error) {
	row, err := strconv.ParseUint(s, 10, 62)
	if err != nil {
		return 0, fmt.Errorf("%s is not a row number", strconv.Quote(show.Clip(s, 40)))
	}
	return int64(row), nil
}
