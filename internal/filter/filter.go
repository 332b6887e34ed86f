// Package filter parses expressions of tags and attributes, such as `go and not (test or "old
// name")` and `price < 20 and brand in ("A", "B")`.
package filter

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// maxDepth bounds the nesting of an expression, so that no input can exhaust the stack.
const maxDepth = 200

// Op joins the arguments of a Node.
type Op string

// The operators.
const (
	And Op = "and"
	Or  Op = "or"
	Not Op = "not" // of one argument
)

// A Node is a parsed expression. A leaf has a tag or a comparison. An inner node has an operator
// and arguments.
type Node struct {
	Op   Op // empty for a leaf
	Tag  string
	Args []*Node

	// Quoted says that the tag was written in quotes, and so is no attribute.
	Quoted bool
	// Compare, if not nil, is what a leaf asks of an attribute. Tag is then empty.
	Compare *Compare
	// Span, if not nil, asks for a tag between two texts. Parse makes none: see Lower.
	Span *Span
}

// A Span is the tags from From on, and before To, in the order of their bytes.
type Span struct{ From, To string }

// Parse parses
//
//	expr   = term { "or" term }
//	term   = factor { "and" factor }
//	factor = "not" factor | "(" expr ")" | tag | compare
//	compare = name ("=" | "!=" | "<" | "<=" | ">" | ">=") value
//	        | name [ "not" ] "in" "(" value { "," value } ")" | "has" name
//
// A tag, a name and a value are a bare word or a Go-quoted string. A tag that is spelt like an
// operator must be quoted. A bare word ends at a blank, a parenthesis or a quote, and a value in a
// list also at a comma: `a<b` is one word. It is the tag of that name, as ever, or if no node has
// that and there is an attribute a, the comparison: see Find. The empty string parses to nil, which
// means no filter.
func Parse(s string) (*Node, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	p := parser{src: s}
	p.next()
	n := p.expr(0)
	if p.err == nil && p.kind != tokEnd {
		p.fail("unexpected %s: %s", p.describe(), p.meant())
	}
	if p.err != nil {
		return nil, p.err
	}
	return n, nil
}

type token int

const (
	tokEnd token = iota
	tokOpen
	tokClose
	tokTag
	tokAnd
	tokOr
	tokNot
)

type parser struct {
	src  string
	pos  int // of the first byte after the current token
	at   int // of the current token
	kind token
	text string
	// quoted says that the text of a tokTag was in quotes.
	quoted bool
	err    error
}

// around returns the part of a filter that an error quotes: at most 100 bytes before and after a
// place.
func around(src string, at int) string {
	from, to := max(0, at-100), min(len(src), at+100)
	text := src[from:to]
	if from > 0 {
		text = "..." + text
	}
	if to < len(src) {
		text += "..."
	}
	return text
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("filter %q at byte %d: %s (example: `go and not (test or \"old name\") and price < 20`)",
			around(p.src, p.at), p.at, fmt.Sprintf(format, args...))
	}
	p.kind = tokEnd
}

// meant says what to write instead of the current token.
func (p *parser) meant() string {
	switch p.text {
	case "&&", "&", ",", "+":
		return "write and"
	case "||", "|":
		return "write or"
	}
	return "join tags by \"and\" or \"or\", and put one with blanks between double quotes"
}

func (p *parser) describe() string {
	if p.kind == tokEnd {
		return "end of the expression"
	}
	return strconv.Quote(around(p.src[p.at:p.pos], 0))
}

// next reads one token into p.kind and p.text.
func (p *parser) next() {
	rest := strings.TrimLeftFunc(p.src[p.pos:], unicode.IsSpace)
	p.at = len(p.src) - len(rest)
	p.pos, p.quoted = p.at, false
	if rest == "" {
		p.kind = tokEnd
		return
	}
	switch rest[0] {
	case '(':
		p.kind, p.pos = tokOpen, p.at+1
		return
	case ')':
		p.kind, p.pos = tokClose, p.at+1
		return
	case '"':
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			p.fail("the quoted tag does not end")
			return
		}
		text, err := strconv.Unquote(quoted)
		if err != nil {
			p.fail("the quoted tag has a bad escape")
			return
		}
		p.kind, p.text, p.pos, p.quoted = tokTag, text, p.at+len(quoted), true
		return
	}
	end := strings.IndexFunc(rest, func(r rune) bool {
		return unicode.IsSpace(r) || r == '(' || r == ')' || r == '"'
	})
	if end < 0 {
		end = len(rest)
	}
	p.pos = p.at + end
	p.text = rest[:end]
	switch strings.ToLower(p.text) {
	case "and":
		p.kind = tokAnd
	case "or":
		p.kind = tokOr
	case "not":
		p.kind = tokNot
	default:
		p.kind = tokTag
	}
}

func (p *parser) expr(depth int) *Node {
	return p.chain(tokOr, Or, depth, func(d int) *Node {
		return p.chain(tokAnd, And, d, p.factor)
	})
}

// chain parses one operand, or several joined by the operator.
func (p *parser) chain(kind token, op Op, depth int, operand func(int) *Node) *Node {
	first := operand(depth)
	if p.kind != kind {
		return first
	}
	n := &Node{Op: op, Args: []*Node{first}}
	for p.kind == kind {
		p.next()
		n.Args = append(n.Args, operand(depth))
	}
	return n
}

func (p *parser) factor(depth int) *Node {
	if depth > maxDepth {
		p.fail("nested deeper than %d", maxDepth)
		return nil
	}
	switch p.kind {
	case tokNot:
		p.next()
		return &Node{Op: Not, Args: []*Node{p.factor(depth + 1)}}
	case tokOpen:
		p.next()
		n := p.expr(depth + 1)
		if p.kind != tokClose {
			p.fail("expected ) but found %s", p.describe())
			return nil
		}
		p.next()
		return n
	case tokTag:
		return p.leaf()
	}
	p.fail("expected a tag, not or ( but found %s", p.describe())
	return nil
}
