package filter

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A Comparison is what a Compare asks of the value of an attribute.
type Comparison string

// The comparisons.
const (
	Equal        Comparison = "="
	NotEqual     Comparison = "!=" // of the nodes that have the attribute
	Less         Comparison = "<"
	LessEqual    Comparison = "<="
	Greater      Comparison = ">"
	GreaterEqual Comparison = ">="
	In           Comparison = "in"
	NotIn        Comparison = "not in" // of the nodes that have the attribute
	Has          Comparison = "has"    // the node has the attribute
)

// A Compare is a comparison of an attribute with values: of one, or of several for In and NotIn.
type Compare struct {
	Name   string
	Op     Comparison
	Values []Literal
}

// A Literal is a value as it is written. Its type is that of the attribute.
type Literal struct {
	Text   string
	Quoted bool
}

// String returns the literal as it was written.
func (l Literal) String() string {
	if l.Quoted {
		return strconv.Quote(l.Text)
	}
	return l.Text
}

// operatorRunes are what comparison operators are made of.
const operatorRunes = "<>=!"

// operators in the order in which they are tried.
var operators = []string{"<=", ">=", "!=", "==", "<", ">", "="}

// leaf parses a tag, or a comparison. The current token is a tokTag.
func (p *parser) leaf() *Node {
	name, quoted := p.text, p.quoted
	if op, ok := p.operator(); ok {
		return p.compare(name, op, nil)
	}
	p.next()
	switch {
	case p.kind == tokNot && p.word(p.pos, "in"):
		p.next()
		return p.list(name, NotIn)
	case p.kind != tokTag:
		return &Node{Tag: name, Quoted: quoted}
	case !p.quoted && strings.EqualFold(p.text, "in"):
		return p.list(name, In)
	case !quoted && strings.EqualFold(name, "has"):
		n := &Node{Compare: &Compare{Name: p.text, Op: Has}}
		p.next()
		return n
	case !quoted: // price< 20
		if name, op, rest, ok := split(name); ok && rest == "" {
			value := Literal{p.text, p.quoted}
			p.next()
			return p.compare(name, op, &value)
		}
	}
	return &Node{Tag: name, Quoted: quoted} // whatever follows is unexpected
}

// word reports whether the next word from a place on is one, in any case.
func (p *parser) word(from int, word string) bool {
	rest := strings.TrimLeftFunc(p.src[from:], unicode.IsSpace)
	if len(rest) < len(word) || !strings.EqualFold(rest[:len(word)], word) {
		return false
	}
	rest = rest[len(word):]
	return rest == "" || rest[0] == '(' || strings.IndexFunc(rest, unicode.IsSpace) == 0
}

// operator reads a comparison operator behind the current token, if there is one.
func (p *parser) operator() (Comparison, bool) {
	rest := strings.TrimLeftFunc(p.src[p.pos:], unicode.IsSpace)
	n := len(rest) - len(strings.TrimLeft(rest, operatorRunes))
	if n == 0 {
		return "", false
	}
	p.at = len(p.src) - len(rest)
	p.pos = p.at + n
	op, ok := comparison(rest[:n])
	if !ok {
		p.fail("unknown comparison %q: use =, !=, <, <=, > or >=", rest[:n])
	}
	return op, true
}

func comparison(s string) (Comparison, bool) {
	if s == "==" {
		return Equal, true
	}
	return Comparison(s), slices.Contains(operators, s)
}

// compare parses the value of a comparison, unless it is given, and goes on to the next token.
func (p *parser) compare(name string, op Comparison, value *Literal) *Node {
	if value == nil {
		v, ok := p.literal(false)
		if !ok {
			return nil
		}
		value = &v
		p.next()
	}
	return &Node{Compare: &Compare{Name: name, Op: op, Values: []Literal{*value}}}
}

// literal reads a value behind the current token. In a list it ends at a comma too.
func (p *parser) literal(list bool) (Literal, bool) {
	if p.err != nil {
		return Literal{}, false
	}
	p.next()
	if p.kind == tokTag && p.quoted {
		return Literal{p.text, true}, true
	}
	if p.kind == tokTag && list {
		if at := strings.IndexByte(p.text, ','); at >= 0 {
			p.text = p.text[:at]
			p.pos = p.at + at
		}
	}
	if p.kind != tokTag || p.text == "" {
		p.fail("expected a value but found %s: quote a text that is spelt like a word of the filter", p.describe())
		return Literal{}, false
	}
	return Literal{p.text, false}, true
}

// list parses the values of In and NotIn. The current token is the word in.
func (p *parser) list(name string, op Comparison) *Node {
	p.next()
	if p.kind != tokOpen {
		p.fail(`expected ( after in, but found %s: write in ("A", "B")`, p.describe())
		return nil
	}
	c := &Compare{Name: name, Op: op}
	for {
		value, ok := p.literal(true)
		if !ok {
			return nil
		}
		c.Values = append(c.Values, value)
		rest := strings.TrimLeftFunc(p.src[p.pos:], unicode.IsSpace)
		p.at = len(p.src) - len(rest)
		switch {
		case strings.HasPrefix(rest, ","):
			p.pos = p.at + 1
		case strings.HasPrefix(rest, ")"):
			p.pos = p.at + 1
			p.next()
			return &Node{Compare: c}
		default:
			p.next()
			p.fail("expected , or ) in the list of values but found %s", p.describe())
			return nil
		}
	}
}

// split takes a bare word such as price<20 apart.
func split(word string) (name string, op Comparison, rest string, ok bool) {
	at := strings.IndexAny(word, operatorRunes)
	if at < 1 {
		return "", "", "", false
	}
	rest = strings.TrimLeft(word[at:], operatorRunes)
	op, ok = comparison(word[at : len(word)-len(rest)])
	return word[:at], op, rest, ok
}
