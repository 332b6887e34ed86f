package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/parquet"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/internal/codec"
)

// A nameReader reads a --keys file.
type nameReader interface {
	next() (rowName, error)
	at() string           // where the row returned last stands, or the fault: a prefix of messages
	attributes() []string // columns of rowBeside.values
	unused() []string     // columns that are not read
	close() error
}

// openNames opens the --keys file.
func (im *importer) openNames() (nameReader, error) {
	name := im.keysFile.name
	if extension(name) == formatParquet {
		if isCompressed(name) {
			return nil, fmt.Errorf("%s: Parquet is compressed inside: decompress the file", name)
		}
		r, err := parquet.OpenNames(name, im.keyColumns)
		if err != nil {
			return nil, err
		}
		return &parquetNames{r: r, name: name, columns: r.Attributes()}, nil
	}
	table, err := im.keysFile.open()
	if err != nil {
		return nil, err
	}
	t := &tableNames{table: table, name: name}
	if err := t.begin(im.keyColumns); err != nil {
		return nil, errors.Join(fmt.Errorf("%s%w", t.at(), err), table.Close())
	}
	return t, nil
}

// parquetNames are the names of a Parquet file.
type parquetNames struct {
	r       *parquet.Names
	name    string
	columns []string
	read    bool
}

func (p *parquetNames) next() (rowName, error) {
	row, meta, err := p.r.Next()
	if err != nil {
		p.read = false // the error says where
		return rowName{}, err
	}
	p.read = true
	n := rowName{row: row, key: meta.Key, payload: string(meta.Payload)}
	var values []any
	for i, column := range p.columns {
		if x, ok := meta.Attributes[column]; ok {
			if values == nil {
				values = make([]any, len(p.columns))
			}
			values[i] = x
		}
	}
	n.setBeside(meta.Tags, values)
	return n, nil
}

func (p *parquetNames) at() string {
	if !p.read {
		return ""
	}
	return fmt.Sprintf("%s: %s: ", p.name, p.r.Position())
}

func (p *parquetNames) attributes() []string { return p.columns }
func (p *parquetNames) unused() []string     { return nil } // such tables have many
func (p *parquetNames) close() error         { return p.r.Close() }

// tableNames are the names of a table of lines. The first line is a header if columns are named, or
// if its first field is no row number. Without a header the columns are row number, key and
// payload.
type tableNames struct {
	table   tableReader
	name    string
	header  []string
	rows    int64    // read so far
	first   []string // line, not yet returned
	line    int
	located bool // errors of the table say where they are

	row, key, tags, payload int // columns; -1: there is none
	attrs                   []int
	columns                 []string // names of attrs
}

// begin reads the first line.
func (t *tableNames) begin(columns codec.Columns) error {
	fields, err := t.read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	named := columns.Key+columns.Tags+columns.Payload != "" || len(columns.Attributes) > 0
	if _, err := parseRow(fields[0]); err == nil && !named {
		t.first = slices.Clone(fields)
		return nil
	}
	for _, field := range fields {
		t.header = append(t.header, strings.TrimSpace(field))
	}
	return t.choose(columns)
}

// choose finds the columns by the header.
func (t *tableNames) choose(columns codec.Columns) (err error) {
	t.row = t.find("row", "") // pandas writes its row numbers under an empty name
	if t.key, err = t.named(columns.Key, "key", "id", "name"); err != nil {
		return err
	}
	if t.key < 0 {
		return fmt.Errorf("%s is not a row number; and as a header the line has no column key, id or name, but %s: --key-column names that of the keys",
			strconv.Quote(show.Clip(t.header[0], 40)), t.shownHeader())
	}
	if t.tags, err = t.named(columns.Tags, "tags"); err != nil {
		return err
	}
	if t.payload, err = t.named(columns.Payload, "payload"); err != nil {
		return err
	}
	for _, name := range columns.Attributes {
		at, err := t.named(name)
		if err != nil {
			return err
		}
		t.attrs, t.columns = append(t.attrs, at), append(t.columns, name)
	}
	for at, field := range t.header {
		if name, ok := strings.CutPrefix(field, "@"); ok && !slices.Contains(t.attrs, at) {
			t.attrs, t.columns = append(t.attrs, at), append(t.columns, name)
		}
	}
	used := t.used()
	for i, at := range used {
		if at >= 0 && slices.Contains(used[:i], at) {
			return fmt.Errorf("column %s is named for two things", show.Text(t.header[at]))
		}
	}
	return nil
}

// find returns the first column that has one of the names, in upper or lower case, or -1.
func (t *tableNames) find(names ...string) int {
	for _, name := range names {
		if at := slices.IndexFunc(t.header, func(field string) bool { return strings.EqualFold(field, name) }); at >= 0 {
			return at
		}
	}
	return -1
}

// named returns the column that was asked for, or else the one with a usual name, or -1.
func (t *tableNames) named(name string, usual ...string) (int, error) {
	if name == "" {
		return t.find(usual...), nil
	}
	at := slices.Index(t.header, name)
	switch {
	case at < 0:
		return -1, fmt.Errorf("no column is named %s; the header has %s", show.Text(name), t.shownHeader())
	case slices.Contains(t.header[at+1:], name):
		return -1, fmt.Errorf("several columns are named %s", show.Text(name))
	}
	return at, nil
}

// used are the columns that are read, and -1 for those that are not there.
func (t *tableNames) used() []int {
	return slices.Concat([]int{t.row, t.key, t.tags, t.payload}, t.attrs)
}

// unused are the columns of the header that nothing is read from.
func (t *tableNames) unused() (names []string) {
	used := t.used()
	for at, field := range t.header {
		if !slices.Contains(used, at) {
			names = append(names, show.Text(field))
		}
	}
	return names
}

// shownHeader is the beginning of the header, for a message.
func (t *tableNames) shownHeader() string {
	names := make([]string, len(t.header))
	for i, name := range t.header {
		names[i] = show.Clip(name, 40)
	}
	return shownList(names, 12)
}

// read returns the next line.
func (t *tableNames) read() (fields []string, err error) {
	if t.first != nil {
		fields, t.first = t.first, nil
		return fields, nil
	}
	t.located = true
	if fields, t.line, err = t.table.Next(); err == nil {
		t.located = false
	}
	return fields, err
}

func (t *tableNames) next() (n rowName, err error) {
	fields, err := t.read()
	if err != nil {
		return n, err
	}
	if t.header == nil {
		if len(fields) < 2 {
			return n, errors.New("1 column: want row number, key and optional further columns, separated by tabs")
		}
		n.key, n.payload = fields[1], strings.Join(fields[2:], "\t")
		n.row, err = parseRow(fields[0])
		return n, err
	}
	if len(fields) != len(t.header) {
		return n, fmt.Errorf("%s, the header has %d", show.Count(len(fields), "field"), len(t.header))
	}
	n.row = t.rows
	t.rows++
	if t.row >= 0 {
		if n.row, err = parseRow(fields[t.row]); err != nil {
			return n, err
		}
	}
	n.key = fields[t.key]
	if t.payload >= 0 {
		n.payload = fields[t.payload]
	}
	var tags []string
	if t.tags >= 0 {
		if tags, err = codec.SplitTags(fields[t.tags]); err != nil {
			return n, err
		}
	}
	n.setBeside(tags, t.values(fields))
	return n, nil
}

// values returns the attributes of a line, or nil if there are none.
func (t *tableNames) values(fields []string) (values []any) {
	for i, at := range t.attrs {
		if fields[at] == "" {
			continue // the node has none
		}
		if values == nil {
			values = make([]any, len(t.attrs))
		}
		values[i] = codec.Field(fields[at])
	}
	return values
}

func (t *tableNames) at() string {
	if t.located {
		return ""
	}
	return fmt.Sprintf("%s: line %d: ", t.name, t.line)
}

func (t *tableNames) attributes() []string { return t.columns }
func (t *tableNames) close() error         { return t.table.Close() }
