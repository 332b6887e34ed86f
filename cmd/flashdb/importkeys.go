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

// rowName is a line of the --keys file.
type rowName struct {
	row          int64
	key, payload string
}

// rowNames are the names of the selected rows. Files list them in the order of the rows as a rule,
// so that one is found by its place.
type rowNames struct {
	names []rowName          // ascending by row, once all are there
	keys  map[string]int64   // row of each key
	rows  map[int64]struct{} // of names; nil as long as the file is in order
}

// loadKeys reads the names of the selected rows.
func (im *importer) loadKeys() (err error) {
	if im.keysFile == nil {
		return nil
	}
	table, err := im.keysFile.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	im.keys = &rowNames{keys: map[string]int64{}}
	for {
		fields, line, err := table.Next()
		if errors.Is(err, io.EOF) {
			im.keys.finish()
			return nil
		}
		if err == nil {
			if err = im.addKey(fields); err != nil {
				err = fmt.Errorf("%s: line %d: %w", im.keysFile.name, line, err)
			}
		}
		if err != nil {
			return err
		}
	}
}

func (im *importer) addKey(fields []string) error {
	if len(fields) < 2 {
		return errors.New("1 column: want row number, key and optional further columns, separated by tabs")
	}
	row, err := parseRow(fields[0])
	if err != nil {
		return err
	}
	if !im.wants(row) {
		return nil
	}
	if fields[1] == "" {
		return errors.New("the key is empty")
	}
	return im.keys.add(rowName{row: row, key: fields[1], payload: strings.Join(fields[2:], "\t")})
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
