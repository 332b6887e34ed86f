package shell

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Split returns the words of a line.
func Split(line string) ([]string, error) {
	p := parser{line: line}
	for p.next() {
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.words, nil
}

// A Partial is a line that is being typed, up to the cursor.
type Partial struct {
	Words []string // whole ones
	Last  string   // what there is of the word at the cursor, unquoted; "" after a blank
	Start int      // where that word begins in the line
}

// SplitPartial is Split for a line whose last word, and its quote, may not have ended.
func SplitPartial(line string) Partial {
	p := parser{line: line, open: true}
	for p.next() {
	}
	out := Partial{Words: p.words, Start: len(line)}
	if n := len(p.words); n > 0 && p.end == len(line) && p.start < p.end {
		out.Words, out.Last, out.Start = p.words[:n-1], p.words[n-1], p.start
	}
	return out
}

// parser splits a line, one word per call of next.
type parser struct {
	line       string
	at         int
	open       bool // quotes may be missing at the end
	words      []string
	start, end int // of the last word
	err        error
}

// next reads the next word, and returns false when there is none.
func (p *parser) next() bool {
	for p.at < len(p.line) {
		r, size := utf8.DecodeRuneInString(p.line[p.at:])
		if !unicode.IsSpace(r) {
			break
		}
		p.at += size
	}
	if p.at == len(p.line) || p.line[p.at] == '#' {
		return false
	}
	p.start = p.at
	var word strings.Builder
	for p.at < len(p.line) && p.err == nil {
		r, size := utf8.DecodeRuneInString(p.line[p.at:])
		if unicode.IsSpace(r) {
			break
		}
		switch r {
		case '\'', '"':
			word.WriteString(p.quoted(byte(r)))
		case '\\':
			p.at++
			if p.at == len(p.line) {
				if !p.open {
					p.err = errors.New(`the line ends in a \ with nothing after it`)
				}
				break
			}
			_, size = utf8.DecodeRuneInString(p.line[p.at:])
			fallthrough
		default:
			word.WriteString(p.line[p.at : p.at+size])
			p.at += size
		}
	}
	p.words, p.end = append(p.words, word.String()), p.at
	return p.err == nil
}

// quoted reads a quoted part, from its first quote to the last.
func (p *parser) quoted(quote byte) string {
	start := p.at
	for p.at++; p.at < len(p.line) && p.line[p.at] != quote; p.at++ {
		if quote == '"' && p.line[p.at] == '\\' {
			p.at++
		}
	}
	if p.at >= len(p.line) {
		p.at = len(p.line)
		if p.open {
			return p.line[start+1:]
		}
		p.err = fmt.Errorf("the quote %c at column %d is never closed", quote, start+1)
		return ""
	}
	p.at++
	if quote == '\'' {
		return p.line[start+1 : p.at-1]
	}
	text, err := strconv.Unquote(p.line[start:p.at])
	if err != nil {
		p.err = fmt.Errorf(`%s at column %d has an escape that is none: use \n, \t, \", \\ or \xHH`, p.line[start:p.at], start+1)
	}
	return text
}

// Quote writes a word so that Split reads it back.
func Quote(word string) string {
	plain := word != "" && utf8.ValidString(word) && word[0] != '#' && !strings.ContainsFunc(word, func(r rune) bool {
		return r == '\'' || r == '"' || r == '\\' || unicode.IsSpace(r) || !strconv.IsPrint(r)
	})
	if plain {
		return word
	}
	return strconv.Quote(word)
}
