package flashdb

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/RoaringBitmap/roaring/v2"
)

// maxFilterDepth bounds the nesting of a filter expression, so that no input can exhaust the stack.
const maxFilterDepth = 200

// filterNode is a parsed tag expression. A leaf has a tag. An inner node has op and args.
type filterNode struct {
	op   string // "", "and", "or", "not"
	tag  string
	args []*filterNode
}

// parseFilter parses
//
//	expr   = term { "or" term }
//	term   = factor { "and" factor }
//	factor = "not" factor | "(" expr ")" | tag
//
// A tag is a bare word or a Go-quoted string. A tag that is spelt like an operator must be quoted.
// The empty string parses to nil, which means no filter.
func parseFilter(s string) (*filterNode, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	p := filterParser{src: s}
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

type filterToken int

const (
	tokEnd filterToken = iota
	tokOpen
	tokClose
	tokTag
	tokAnd
	tokOr
	tokNot
)

type filterParser struct {
	src  string
	pos  int // of the first byte after the current token
	at   int // of the current token
	kind filterToken
	text string
	err  error
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

func (p *filterParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: filter %q at byte %d: %s (example: `go and not (test or \"old name\")`)",
			ErrInvalid, around(p.src, p.at), p.at, fmt.Sprintf(format, args...))
	}
	p.kind = tokEnd
}

// meant says what to write instead of the current token.
func (p *filterParser) meant() string {
	switch p.text {
	case "&&", "&", ",", "+":
		return "write and"
	case "||", "|":
		return "write or"
	}
	return "join tags by \"and\" or \"or\", and put one with blanks between double quotes"
}

func (p *filterParser) describe() string {
	if p.kind == tokEnd {
		return "end of the expression"
	}
	return strconv.Quote(around(p.src[p.at:p.pos], 0))
}

// next reads one token into p.kind and p.text.
func (p *filterParser) next() {
	rest := strings.TrimLeftFunc(p.src[p.pos:], unicode.IsSpace)
	p.at = len(p.src) - len(rest)
	p.pos = p.at
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
		p.kind, p.text, p.pos = tokTag, text, p.at+len(quoted)
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

func (p *filterParser) expr(depth int) *filterNode {
	return p.chain(tokOr, "or", depth, func(d int) *filterNode {
		return p.chain(tokAnd, "and", d, p.factor)
	})
}

// chain parses one operand, or several joined by the operator.
func (p *filterParser) chain(kind filterToken, op string, depth int, operand func(int) *filterNode) *filterNode {
	first := operand(depth)
	if p.kind != kind {
		return first
	}
	n := &filterNode{op: op, args: []*filterNode{first}}
	for p.kind == kind {
		p.next()
		n.args = append(n.args, operand(depth))
	}
	return n
}

func (p *filterParser) factor(depth int) *filterNode {
	if depth > maxFilterDepth {
		p.fail("nested deeper than %d", maxFilterDepth)
		return nil
	}
	switch p.kind {
	case tokNot:
		p.next()
		return &filterNode{op: "not", args: []*filterNode{p.factor(depth + 1)}}
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
		n := &filterNode{tag: p.text}
		p.next()
		return n
	}
	p.fail("expected a tag, not or ( but found %s", p.describe())
	return nil
}

// eval returns the ids that match, as a bitmap that the caller owns. tag returns the ids that have
// a tag, or nil. all holds every live id, from which `not` subtracts.
func (n *filterNode) eval(tag func(string) *roaring.Bitmap, all *roaring.Bitmap) *roaring.Bitmap {
	switch n.op {
	case "not":
		return roaring.AndNot(all, n.args[0].eval(tag, all))
	case "and", "or":
		b := n.args[0].eval(tag, all)
		for _, a := range n.args[1:] {
			if n.op == "and" {
				b.And(a.eval(tag, all))
			} else {
				b.Or(a.eval(tag, all))
			}
		}
		return b
	}
	if b := tag(n.tag); b != nil {
		return b.Clone()
	}
	return roaring.New()
}
