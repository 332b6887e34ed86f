package graph

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The names of columns in headers, in lower case without blanks, dashes and underscores.
var (
	sourceWords   = words("source src from user userid uid head subject follower citing node1 nodeid1 id1 u fromnode fromnodeid sourceid sourcenode customer customerid person reader buyer author a i")
	targetWords   = words("target dst dest destination to item itemid iid tail object followee cited node2 nodeid2 id2 v tonode tonodeid targetid targetnode movie movieid product productid book bookid article articleid artist artistid song songid track trackid page pageid business businessid isbn asin paper b j")
	relationWords = words("relation rel relationid predicate relationship edgetype type label")
	otherWords    = words("weight rating score stars count value index")
	timeWords     = words("time timestamp date datetime year ts created createdat unixtime unixreviewtime when")
)

func words(list string) []string { return strings.Fields(list) }

// word is a name of a header as the lists above have it.
func word(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" _-:.\"'", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// places are the columns of the parts of an edge, counted from 0. -1 means none.
type places struct{ source, target, relation, time int }

// fill takes an edge from the fields of a line.
func (p places) fill(e *Edge, fields []string) error {
	if need := p.needs(); len(fields) < need {
		return fmt.Errorf("%s, want at least %d", columnsText(len(fields)), need)
	}
	e.Source, e.Target = fields[p.source], fields[p.target]
	if p.relation >= 0 {
		e.Relation = fields[p.relation]
	}
	if p.time >= 0 {
		var err error
		e.Time, err = parseTime(fields[p.time])
		return err
	}
	return nil
}

// needs returns how many columns a line must have.
func (p places) needs() int { return max(p.source, p.target, p.relation, p.time) + 1 }

func columnsText(n int) string {
	if n == 1 {
		return "1 column"
	}
	return fmt.Sprintf("%d columns", n)
}

// byNumber reports whether no column is given by a name of the header.
func (c Columns) byNumber() bool {
	for _, name := range []string{c.Source, c.Target, c.Relation, c.Time} {
		if name != "" && number(name) < 0 {
			return false
		}
	}
	return true
}

// number returns the place of a column that is given by its number, counted from 1, or -1.
func number(name string) int {
	n, err := strconv.Atoi(name)
	if err != nil || n < 1 {
		return -1
	}
	return n - 1
}

// columnsByName finds the columns in a header: the given ones, and the others by their usual names.
func columnsByName(header []string, asked Columns) (places, Columns, error) {
	p := places{-1, -1, -1, -1}
	taken := map[int]bool{}
	for i, name := range header {
		if w := word(name); w == "" || strings.HasPrefix(w, "unnamed") || slices.Contains(otherWords, w) {
			taken[i] = true // a column of row numbers, as pandas writes it, or of what is not read
		}
	}
	wanted := []struct {
		asked string
		words []string
		at    *int
	}{
		{asked.Source, sourceWords, &p.source},
		{asked.Target, targetWords, &p.target},
		{asked.Relation, relationWords, &p.relation},
		{asked.Time, timeWords, &p.time},
	}
	for _, c := range wanted {
		if c.asked != "" {
			if *c.at = slices.Index(header, c.asked); *c.at < 0 {
				*c.at = number(c.asked)
			}
			if *c.at < 0 || *c.at >= len(header) {
				return p, Columns{}, fmt.Errorf("no column is %s; the header has %s", quote(c.asked), list(header))
			}
			taken[*c.at] = true
		}
	}
	for _, c := range wanted {
		if *c.at >= 0 {
			continue
		}
		*c.at = slices.IndexFunc(header, func(name string) bool { return slices.Contains(c.words, word(name)) })
		if *c.at >= 0 && taken[*c.at] {
			*c.at = -1
		}
		if *c.at >= 0 {
			taken[*c.at] = true
		}
	}
	for _, at := range []*int{&p.source, &p.target} { // else the first that are nothing else
		for i := 0; *at < 0 && i < len(header); i++ {
			if !taken[i] {
				*at, taken[i] = i, true
			}
		}
	}
	if p.source < 0 || p.target < 0 {
		return p, Columns{}, fmt.Errorf("%s: want two, source and target", columnsText(len(header)))
	}
	if p.source == p.target {
		return p, Columns{}, errors.New("source and target are the same column")
	}
	return p, p.names(header), nil
}

// byName is columnsByName without the column of times, unless times are wanted.
func (o *ReadOptions) byName(header []string) (places, Columns, error) {
	p, found, err := columnsByName(header, o.Columns)
	if !o.Times && o.Columns.Time == "" {
		p.time, found.Time = -1, ""
	}
	return p, found, err
}

// names are those of the columns in a header.
func (p places) names(header []string) Columns {
	at := func(i int) string {
		if i < 0 {
			return ""
		}
		return header[i]
	}
	return Columns{at(p.source), at(p.target), at(p.relation), at(p.time)}
}

// numbers are those of the columns, from 1.
func (p places) numbers() Columns {
	at := func(i int) string {
		if i < 0 {
			return ""
		}
		return strconv.Itoa(i + 1)
	}
	return Columns{at(p.source), at(p.target), at(p.relation), at(p.time)}
}

// unread are the columns of a first line that hold something, and are no part of an edge: by their
// names, or by their numbers from 1.
func (p places) unread(first []string, header bool) (names []string) {
	for i, field := range first {
		switch {
		case field == "" || i == p.source || i == p.target || i == p.relation || i == p.time:
		case header:
			names = append(names, field)
		default:
			names = append(names, strconv.Itoa(i+1))
		}
	}
	return names
}

// timeLayouts are the formats of dates that are accepted besides numbers.
var timeLayouts = []string{time.RFC3339, time.DateTime, time.DateOnly, "2006-01", "2006/01/02"}

// parseTime reads a number or a date. Only the order matters: dates count in seconds since 1970.
func parseTime(text string) (float64, error) {
	if t, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil && !math.IsNaN(t) {
		return t, nil
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return float64(t.Unix()), nil
		}
	}
	return 0, fmt.Errorf("%s is no time: want a number or a date such as 2026-01-31", quote(text))
}

// quote quotes a text of a file for a message.
func quote(text string) string {
	const most = 60
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}

// list quotes the first few of names.
func list(names []string) string {
	const most = 8
	var quoted []string
	for _, name := range names[:min(most, len(names))] {
		quoted = append(quoted, quote(name))
	}
	text := strings.Join(quoted, ", ")
	if n := len(names) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
