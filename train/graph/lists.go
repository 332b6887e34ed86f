package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/internal/codec"
)

// A List is the negatives of one edge: other targets for its source.
type List struct {
	Source  string   // key, or number in decimal; empty if the file does not give it
	Target  string   // of the edge; empty if the file does not give it
	Keys    []string // of the negatives; valid until the next call
	Numbers []int64  // in place of Keys, of an array; valid until the next call
}

// Lists reads a file that has negatives for each edge, in the order of the edges.
type Lists struct {
	file Reader
	next func(*List) (line int, err error)
}

// listSample is how many lines are read to detect whether a text has lists. A line of wideLine
// columns or more is a list: an edge has two or three, often with a weight.
const (
	listSample = 20
	wideLine   = 4
)

// negativeWords are what fields of negatives are called, without case, blanks, dashes and
// underscores.
var negativeWords = words("negatives negative neg negs candidates candidate targetnodeneg")

// OpenLists opens a file of negatives for each edge:
//
//	.tsv .csv .txt ...   one line per edge: its source, then the negatives
//	.jsonl .ndjson       one object per line, {"source": "a", "negatives": ["b", "c"]}
//	.npy .npz .pt        m x n numbers, row i for edge i; target_node_neg as in ogbl-citation2
//
// Lines may have different numbers of negatives. Of the options only name and format are read.
//
// ok is false, and nothing is open, if the file is a list of edges instead: a text of fewer than
// four columns, or with a header that does not name negatives; objects without an array of
// negatives; an array that may be edges (see [Open]) and is not named target_node_neg. With sure
// such a text or array is read as lists, and objects without negatives are an error.
//
// Memory: of text one line. An array is held whole, as it is stored and as int64.
func OpenLists(path string, opts *ReadOptions, sure bool) (l *Lists, ok bool, err error) {
	o := opts.orDefaults(path)
	l = &Lists{file: Reader{name: o.Name, unit: "line"}}
	switch kind := kindOf(o.Name, o.Format); kind {
	case "npy", "npz", "pt", "pth", "safetensors":
		ok, err = l.openArray(path, sure)
	case "jsonl", "ndjson", "json":
		ok, err = l.openJSON(path, sure)
	default:
		ok, err = l.openText(path, kind, sure)
	}
	if !ok || err != nil {
		return nil, false, err
	}
	return l, true, nil
}

// Next reads the negatives of the next edge into e. At the end it returns io.EOF.
func (l *Lists) Next(e *List) error {
	keys := e.Keys[:0]
	*e = List{Keys: keys}
	line, err := l.next(e)
	l.file.line = line
	var located *codec.Error
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.As(err, &located):
		return err
	case err == nil:
		err = e.check()
	}
	if err != nil {
		return l.Fault(err)
	}
	return nil
}

// Fault locates an error at the line read last.
func (l *Lists) Fault(err error) error { return l.file.fault(err) }

// Close closes the file.
func (l *Lists) Close() error { return l.file.Close() }

// check refuses an edge without negatives, and keys that no collection takes.
func (e *List) check() error {
	if len(e.Keys) == 0 && len(e.Numbers) == 0 {
		return errors.New("no negatives: want a source and then its negatives")
	}
	for i, key := range e.Keys {
		switch {
		case key == "":
			return fmt.Errorf("negative %d is empty: want keys", i+1)
		case len(key) > maxKey:
			return fmt.Errorf("key %s has %d bytes, at most %d are allowed", quote(key), len(key), maxKey)
		}
	}
	for _, node := range e.Numbers {
		if node < 0 {
			return fmt.Errorf("node %d: numbers of nodes count from 0", node)
		}
	}
	return nil
}

// openArray reads the array of negatives.
func (l *Lists) openArray(path string, sure bool) (ok bool, err error) {
	arrays, wanted, err := readArrays(path)
	if err != nil {
		return false, err
	}
	a, ok, err := pickLists(arrays, wanted, sure)
	if !ok || err != nil {
		if err != nil {
			err = fmt.Errorf("%s: %w", l.file.name, err)
		}
		return false, err
	}
	ends, err := endsOf(arrays)
	if err == nil && ends != nil && ends.count != a.Shape[0] {
		err = fmt.Errorf("%s has shape %v: want a row for each of %d edges", a.Name, a.Shape, ends.count)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", l.file.name, err)
	}
	l.file.unit = "row"
	row, width := -1, a.Shape[1]
	l.next = func(e *List) (int, error) {
		row++
		if row >= a.Shape[0] {
			return row, io.EOF
		}
		if ends != nil {
			e.Source, e.Target = strconv.FormatInt(ends.at(row, 0), 10), strconv.FormatInt(ends.at(row, 1), 10)
		}
		e.Numbers = a.Data[row*width : (row+1)*width]
		return row, nil
	}
	return true, nil
}

// pickLists finds the array of negatives; ok is false where the file may be edges.
func pickLists(arrays []codec.Integers, wanted string, sure bool) (a codec.Integers, ok bool, err error) {
	found, has := arrayNamed(arrays, negativeArray)
	if wanted != "" {
		sure = sure || wanted == negativeArray
		if found, has = arrayNamed(arrays, wanted); !has {
			return a, false, fmt.Errorf("holds no array of integers named %s", quote(wanted))
		}
	}
	if wanted == "" && !has {
		tables := slices.DeleteFunc(slices.Clone(arrays), func(a codec.Integers) bool { return len(a.Shape) != 2 })
		if len(tables) != 1 {
			if sure {
				err = fmt.Errorf("holds %d arrays of rows: name the negatives %s, or name one after a #", len(tables), negativeArray)
			}
			return a, false, err
		}
		found = tables[0]
	} else if wanted == "" {
		sure = true
	}
	if _, edges := asPairs(found); edges && !sure {
		return a, false, nil
	}
	if len(found.Shape) != 2 {
		return a, false, fmt.Errorf("array %s has shape %v: want a row of negatives for each edge", quote(found.Name), found.Shape)
	}
	return found, true, nil
}

// openText opens lines of a source and its negatives.
func (l *Lists) openText(path, kind string, sure bool) (ok bool, err error) {
	s, skip, err := readSample(path, l.file.name, listSample)
	if err != nil {
		return false, err
	}
	sep, err := s.separator(kind)
	if err != nil {
		return false, err
	}
	rows := make([][][]byte, len(s.text))
	for i := range s.text {
		rows[i] = s.fields(sep, i)
	}
	header := isListHeader(rows[0])
	if !sure && !header && (len(rows[0]) < wideLine || isHeader(rows)) {
		return false, nil
	}
	if header {
		skip++
	}
	lines, err := codec.OpenLines(path, l.file.name)
	if err != nil {
		return false, err
	}
	for range skip {
		if _, _, err := lines.Next(); err != nil {
			return false, errors.Join(err, lines.Close())
		}
	}
	var fields [][]byte
	l.file.close = lines.Close
	l.next = func(e *List) (int, error) {
		line, number, err := lines.Next()
		if err != nil {
			return number, err
		}
		if fields, err = sep.split(lines, fields[:0], line); err != nil {
			return number, err
		}
		for len(fields) > 0 && len(bytes.TrimSpace(fields[len(fields)-1])) == 0 {
			fields = fields[:len(fields)-1] // a table is filled up to its longest row
		}
		for i, field := range fields {
			if text := string(bytes.TrimSpace(field)); i == 0 {
				e.Source = text
			} else {
				e.Keys = append(e.Keys, text)
			}
		}
		if e.Source == "" {
			return number, errors.New("a key is empty: want a source and then its negatives")
		}
		return number, nil
	}
	return true, nil
}

// isListHeader tells whether the first line names a source and its negatives: source, neg_1, neg_2
// or source, 0, 1, 2.
func isListHeader(first [][]byte) bool {
	if !contains(sourceWords, word(string(first[0]))) {
		return false
	}
	for _, field := range first[1:] {
		name := word(string(field))
		if !isNumber(field) && !strings.HasPrefix(name, "neg") && !strings.HasPrefix(name, "candidate") {
			return false
		}
	}
	return true
}

// openJSON opens a file of one object per line. Its first object names the fields.
func (l *Lists) openJSON(path string, sure bool) (ok bool, err error) {
	s, _, err := readSample(path, l.file.name, 1)
	if err != nil {
		return false, err
	}
	names, err := jsonFields(s.text[0])
	if err != nil {
		return false, fmt.Errorf("%s: line 1: %w", l.file.name, err)
	}
	find := func(words []string) string {
		at := slices.IndexFunc(names, func(name string) bool { return slices.Contains(words, word(name)) })
		if at < 0 {
			return ""
		}
		return names[at]
	}
	source, target, negatives := find(sourceWords), find(targetWords), find(negativeWords)
	if negatives == "" {
		if sure {
			err = fmt.Errorf("%s: line 1: no field is called negatives; the object has %s", l.file.name, list(names))
		}
		return false, err
	}
	lines, err := codec.OpenLines(path, l.file.name)
	if err != nil {
		return false, err
	}
	named := []string{source, target}
	l.file.close = lines.Close
	l.next = func(e *List) (int, error) {
		line, number, err := lines.Next()
		if err != nil {
			return number, err
		}
		object, err := parseJSON(line)
		if err != nil {
			return number, err
		}
		ends, err := object.texts(named)
		if err != nil {
			return number, err
		}
		e.Source, e.Target = ends[0], ends[1]
		e.Keys, err = object.appendKeys(e.Keys, negatives)
		return number, err
	}
	return true, nil
}

// appendKeys appends the values of an array in a field.
func (object jsonLine) appendKeys(keys []string, name string) ([]string, error) {
	var values []json.RawMessage
	raw, ok := object[name]
	if !ok {
		return keys, fmt.Errorf("no field is %s", quote(name))
	}
	if err := json.Unmarshal(raw, &values); err != nil {
		return keys, fmt.Errorf("field %s is %s: want an array of keys", quote(name), quote(string(raw)))
	}
	for _, value := range values {
		key, err := jsonText(name, value)
		if err != nil {
			return keys, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}
