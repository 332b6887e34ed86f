package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

// rowName is what the --keys file says of a row.
type rowName struct {
	row          int64
	key, payload string
	beside       *rowBeside // nil: nothing
}

// A rowBeside is what few --keys files have of a row.
type rowBeside struct {
	tags   []string
	values []any // of the attributes, in the order of their columns
}

// setBeside keeps tags and attributes, if there are any.
func (n *rowName) setBeside(tags []string, values []any) {
	if len(tags)+len(values) > 0 {
		n.beside = &rowBeside{tags, values}
	}
}

// rowNames are the names of the selected rows. Files list them in the order of the rows as a rule,
// so that one is found by its place.
type rowNames struct {
	names      []rowName          // ascending by row, once all are there
	keys       map[string]int64   // row of each key
	rows       map[int64]struct{} // of names; nil as long as the file is in order
	attributes []string           // their columns
}

// loadKeys reads the names of the selected rows.
func (im *importer) loadKeys() (err error) {
	if im.keysFile == nil {
		return nil
	}
	names, err := im.openNames()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, names.close()) }()
	im.keys = &rowNames{keys: map[string]int64{}, attributes: names.attributes()}
	for {
		name, err := names.next()
		if errors.Is(err, io.EOF) {
			im.keys.finish()
			if unused := names.unused(); len(unused) > 0 && im.notes != nil {
				fmt.Fprintf(im.notes, "%s: not read: %s; --attributes, --tags-column and --payload-column name columns\n",
					im.keysFile.name, strings.Join(unused, ", "))
			}
			return nil
		}
		if err == nil {
			err = im.addKey(name)
		}
		if err != nil {
			return fmt.Errorf("%s%w", names.at(), err)
		}
	}
}

func (im *importer) addKey(name rowName) error {
	if !im.wants(name.row) {
		return nil
	}
	if name.key == "" {
		return errors.New("the key is empty")
	}
	return im.keys.add(name)
}

// merge adds the attributes of a row to those that the file of embeddings has of it.
func (b *rowBeside) merge(all map[string]any, columns []string) map[string]any {
	for i, x := range b.values {
		if x == nil {
			continue
		}
		if all == nil {
			all = map[string]any{}
		}
		all[columns[i]] = x
	}
	return all
}

func (n *rowNames) add(name rowName) error {
	if last := len(n.names) - 1; last >= 0 && name.row <= n.names[last].row && n.rows == nil {
		n.rows = make(map[int64]struct{}, len(n.names))
		for _, other := range n.names {
			n.rows[other.row] = struct{}{}
		}
	}
	if n.rows != nil {
		if _, ok := n.rows[name.row]; ok {
			return fmt.Errorf("row %d is named twice", name.row)
		}
		n.rows[name.row] = struct{}{}
	}
	if other, ok := n.keys[name.key]; ok {
		return fmt.Errorf("key %s names row %d and row %d", strconv.Quote(show.Clip(name.key, 60)), other, name.row)
	}
	n.keys[name.key] = name.row
	n.names = append(n.names, name)
	return nil
}

// finish prepares for lookups, and lets go of what only add needs.
func (n *rowNames) finish() {
	if n.rows != nil {
		slices.SortFunc(n.names, func(a, b rowName) int { return cmp.Compare(a.row, b.row) })
	}
	n.keys, n.rows = nil, nil
}

// of returns the name of a row.
func (n *rowNames) of(row int64) (rowName, bool) {
	if len(n.names) == 0 {
		return rowName{}, false
	}
	if at := row - n.names[0].row; at >= 0 && at < int64(len(n.names)) && n.names[at].row == row {
		return n.names[at], true // none before it is missing
	}
	at, ok := slices.BinarySearchFunc(n.names, row, func(name rowName, row int64) int { return cmp.Compare(name.row, row) })
	if !ok {
		return rowName{}, false
	}
	return n.names[at], true
}
