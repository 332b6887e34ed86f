package graph

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/flashdb/flashdb/internal/codec"
)

// sampleLines is how many lines are looked at to find out what a file is.
const sampleLines = 10_000

// A separator is what stands between the columns of a line.
type separator struct {
	name   string // in words
	split  func(l *codec.Lines, fields [][]byte, line []byte) ([][]byte, error)
	strict bool // every line must have as many columns: a key with a blank in it would make one more
}

func by(c byte) func(l *codec.Lines, fields [][]byte, line []byte) ([][]byte, error) {
	return func(l *codec.Lines, fields [][]byte, line []byte) ([][]byte, error) { return l.Split(fields, line, c) }
}

// separators, in the order in which they are tried.
var separators = []separator{
	{"tabs", by('\t'), false},
	{"double colons", func(_ *codec.Lines, fields [][]byte, line []byte) ([][]byte, error) {
		return append(fields, bytes.Split(line, []byte("::"))...), nil
	}, true},
	{"commas", by(','), false},
	{"semicolons", by(';'), false},
	{"blanks", func(_ *codec.Lines, fields [][]byte, line []byte) ([][]byte, error) {
		return append(fields, bytes.Fields(line)...), nil
	}, true},
}

// text reads lines of columns.
type text struct {
	name   string
	lines  *codec.Lines
	sep    separator
	width  int // columns of the first line
	at     places
	split  [][]byte
	fields []string
}

func (r *Reader) openText(path, kind string, o ReadOptions) error {
	sample, comments, err := readSample(path, r.name, sampleLines)
	if err != nil {
		return err
	}
	if o.Format == "" && isObject(sample.text[0]) { // as of standard input, which has no name
		return r.openJSON(path, o)
	}
	t := &text{name: r.name}
	if t.sep, err = sample.separator(kind); err != nil {
		return err
	}
	if err := t.recognise(sample, o, &r.layout); err != nil {
		return err
	}
	r.layout.Separator, r.layout.Comments = t.sep.name, comments
	if t.lines, err = codec.OpenLines(path, r.name); err != nil {
		return err
	}
	skip := comments
	if r.layout.Header {
		skip++
	}
	for range skip {
		if _, _, err := t.lines.Next(); err != nil {
			return errors.Join(err, t.lines.Close())
		}
	}
	r.next, r.close = t.next, t.lines.Close
	return nil
}

// next reads an edge.
func (t *text) next(e *Edge) (int, error) {
	line, number, err := t.lines.Next()
	if err != nil {
		return number, err
	}
	if t.split, err = t.sep.split(t.lines, t.split[:0], line); err != nil {
		return number, err
	}
	if err := checkText(line); err != nil {
		return number, err
	}
	if n := len(t.split); n < t.at.needs() || (t.sep.strict && n != t.width) {
		return number, fmt.Errorf("%s, where the first line has %d, separated by %s: %s", columnsText(n), t.width, t.sep.name, unevenHint(line, t.sep))
	}
	t.fields = t.fields[:0]
	for _, field := range t.split {
		t.fields = append(t.fields, string(bytes.TrimSpace(field)))
	}
	return number, t.at.fill(e, t.fields)
}

// checkText refuses bytes that no line of a text has. Lines that end in a carriage return alone
// would be read as one.
func checkText(line []byte) error {
	switch {
	case bytes.IndexByte(line, 0) >= 0:
		return errors.New("a zero byte, as no text has: want lines of text, or a file whose name tells its format")
	case bytes.IndexByte(line, '\r') >= 0:
		return errors.New("a carriage return without a newline: want lines that end in a newline")
	}
	return nil
}

// unevenHint says what to do about a line that does not have the columns of the first.
func unevenHint(line []byte, sep separator) string {
	if isComment(line) {
		return "comments are read before the first edge only: remove this one"
	}
	for _, other := range []struct{ name, mark string }{{"tabs", "\t"}, {"commas", ","}, {"semicolons", ";"}, {"blanks", " "}} {
		if other.name != sep.name && bytes.Contains(line, []byte(other.mark)) {
			return "this one has " + other.name + ": separate all lines in one way"
		}
	}
	return "want one edge per line, and as many columns in each"
}

// isComment tells a line of comment, where the file may have some.
func isComment(line []byte) bool { return line[0] == '#' || line[0] == '%' }

// A sample is the first lines of a file, without comments.
type sample struct {
	name  string
	lines *codec.Lines // closed; splits lines
	text  [][]byte
}

// readSample reads the first lines that are no comments, at most so many. It also counts the
// comments before them.
func readSample(path, name string, most int) (*sample, int, error) {
	lines, err := codec.OpenLines(path, name)
	if err != nil {
		return nil, 0, err
	}
	s := &sample{name: name, lines: lines}
	comments := 0
	matrix, sized := false, false // a file of MatrixMarket, and whether the line of its size was read
	for len(s.text) < most {
		line, number, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			if err = checkText(line); err != nil {
				err = fmt.Errorf("%s: line %d: %w", name, number, err)
			}
		}
		if err != nil {
			return nil, 0, errors.Join(err, lines.Close())
		}
		if len(s.text) == 0 && !sized && isComment(line) {
			comments++
			matrix = matrix || bytes.HasPrefix(line, []byte("%%MatrixMarket"))
			continue
		}
		if matrix && !sized { // rows, columns and entries
			comments, sized = comments+1, true
			continue
		}
		s.text = append(s.text, bytes.Clone(line))
	}
	if err := lines.Close(); err != nil {
		return nil, 0, err
	}
	if len(s.text) == 0 && comments > 0 {
		return nil, 0, fmt.Errorf("%s holds no edges: all of its lines begin with # or %%, as comments do", name)
	}
	if len(s.text) == 0 {
		return nil, 0, fmt.Errorf("%s holds no edges", name)
	}
	return s, comments, nil
}

// separator is the first that divides the first line and at least half of the others into columns,
// or else the first that divides the first line. That of the format is tried first.
func (s *sample) separator(kind string) (separator, error) {
	order := separators
	if kind == "csv" {
		order = append([]separator{separators[2]}, separators...)
	}
	var found *separator
	for _, sep := range order {
		if len(s.fields(sep, 0)) < 2 {
			continue
		}
		divided := 0
		for i := range s.text {
			if len(s.fields(sep, i)) >= 2 {
				divided++
			}
		}
		if 2*divided >= len(s.text) {
			return sep, nil
		}
		if found == nil {
			found = &sep
		}
	}
	if found != nil {
		return *found, nil
	}
	first := quote(string(s.text[0]))
	return separator{}, fmt.Errorf("%s: line %s has 1 column: want a source and a target, separated by a tab, a comma or blanks", s.name, first)
}

// fields are those of a line of the sample.
func (s *sample) fields(sep separator, i int) [][]byte {
	fields, err := sep.split(s.lines, nil, bytes.Clone(s.text[i]))
	if err != nil {
		return nil
	}
	for i := range fields {
		fields[i] = bytes.TrimSpace(fields[i])
	}
	return fields
}

// recognise finds the header and the columns.
func (t *text) recognise(s *sample, o ReadOptions, layout *Layout) (err error) {
	var rows [][][]byte
	for i := range s.text {
		rows = append(rows, s.fields(t.sep, i))
	}
	first := make([]string, len(rows[0]))
	for i, field := range rows[0] {
		first[i] = string(field)
	}
	t.width = len(first)
	layout.Header = !o.Columns.byNumber() || isHeader(rows)
	if layout.Header {
		if len(rows) == 1 {
			return fmt.Errorf("%s holds a header and no edges", s.name)
		}
		t.at, layout.Columns, err = o.byName(first)
	} else {
		t.at, err = columnsByNumber(rows, o.Columns)
		layout.Columns = t.at.numbers()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	layout.Unread = t.at.unread(first, layout.Header)
	return nil
}

// isHeader tells whether the first row names the columns.
func isHeader(rows [][][]byte) bool {
	source, target := false, false
	for i, field := range rows[0] {
		name := word(string(field))
		source = source || contains(sourceWords, name)
		target = target || contains(targetWords, name)
		if len(rows) > 1 && !isNumber(field) && numericBelow(rows, i) {
			return true
		}
	}
	return source && target
}

func contains(list []string, name string) bool {
	return len(name) > 1 && slices.Contains(list, name) // single letters are keys as well
}

// numericBelow tells whether a column holds numbers alone, but for the first row.
func numericBelow(rows [][][]byte, column int) bool {
	for _, row := range rows[1:] {
		if column >= len(row) || !isNumber(row[column]) {
			return false
		}
	}
	return true
}

func isNumber(field []byte) bool {
	_, err := strconv.ParseFloat(string(field), 64)
	return err == nil
}

// columnsByNumber finds the columns of rows without a header.
func columnsByNumber(rows [][][]byte, asked Columns) (places, error) {
	p := places{number(asked.Source), number(asked.Target), number(asked.Relation), number(asked.Time)}
	width := len(rows[0])
	for _, at := range []int{p.source, p.target, p.relation, p.time} {
		if at >= width {
			return p, fmt.Errorf("no column %d: the first line has %s", at+1, columnsText(width))
		}
	}
	if p.source < 0 && p.target < 0 && p.relation < 0 && width == 3 && middleIsRelation(rows) {
		return places{0, 2, 1, p.time}, nil
	}
	for _, at := range []*int{&p.source, &p.target} {
		for i := 0; *at < 0 && i < width; i++ {
			if i != p.source && i != p.target && i != p.relation && i != p.time {
				*at = i
			}
		}
	}
	switch {
	case p.source < 0 || p.target < 0:
		return p, fmt.Errorf("%s: want two, source and target", columnsText(width))
	case p.source == p.target:
		return p, errors.New("source and target are the same column")
	}
	return p, nil
}

// middleIsRelation tells triples of a knowledge graph, head relation tail, from an edge and its
// weight or time: the middle column has far fewer different values than the last. Where all are
// numbers, tails must be heads as well, as times are not.
func middleIsRelation(rows [][][]byte) bool {
	const enough = 20
	heads, relations, tails := map[string]bool{}, map[string]bool{}, map[string]bool{}
	numbers := true
	for _, row := range rows {
		if len(row) != 3 {
			return false
		}
		heads[string(row[0])], relations[string(row[1])], tails[string(row[2])] = true, true, true
		numbers = numbers && isNumber(row[2])
	}
	if len(rows) < enough || 2*len(relations) > len(tails) {
		return false
	}
	if !numbers {
		return true
	}
	both := 0
	for tail := range tails {
		if heads[tail] {
			both++
		}
	}
	return 20*both >= len(tails)
}
