package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/decoder"
)

// relationNames is a pflag.Value: a file whose names it reads.
type relationNames struct{ names *[]string }

func (f relationNames) Type() string   { return "file" }
func (f relationNames) String() string { return "" }

func (f relationNames) Set(file string) (err error) {
	*f.names, err = readRelations(file)
	return err
}

// readRelations reads the names of the rows of a table of relations: one on each line, in order, or
// in two columns with the number of its row, whichever of the two comes first. A first line without
// a number is a header then.
func readRelations(file string) (names []string, err error) {
	table, err := tableAt(file).open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	var rows [][]string
	for {
		fields, line, err := table.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(fields) > 2 || (len(rows) > 0 && len(fields) != len(rows[0])) {
			return nil, fmt.Errorf("%s: line %d: %s; want one, a name, or two on every line, a name and its number", file, line, show.Count(len(fields), "column"))
		}
		if len(rows) > decoder.MaxRelations {
			return nil, fmt.Errorf("%s: line %d: more than %d relations", file, line, decoder.MaxRelations)
		}
		rows = append(rows, append([]string(nil), fields...))
	}
	switch {
	case len(rows) == 0:
		return nil, fmt.Errorf("%s holds no names", file)
	case len(rows[0]) == 1:
		for _, row := range rows {
			names = append(names, row[0])
		}
		return names, nil
	}
	return numbered(file, rows)
}

// numbered puts names in the order of their numbers.
func numbered(file string, rows [][]string) ([]string, error) {
	at := 1 // the column of numbers
	if _, err := strconv.Atoi(rows[len(rows)-1][0]); err == nil {
		at = 0
	}
	if _, err := strconv.Atoi(rows[0][at]); err != nil {
		rows = rows[1:]
	}
	names := make([]string, len(rows))
	for _, row := range rows {
		n, err := strconv.Atoi(row[at])
		if err != nil || n < 0 || n >= len(rows) || names[n] != "" {
			return nil, fmt.Errorf("%s: relation %s has number %q; want 0 to %d, each once", file, show.Text(row[1-at]), row[at], len(rows)-1)
		}
		names[n] = row[1-at]
	}
	return names, nil
}
