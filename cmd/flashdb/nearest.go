package main

import (
	"cmp"
	"slices"
	"strings"
)

// A nearSearch finds the words that are most like one that is not known: those a
// few letters away, then those that hold it.
type nearSearch struct {
	word  string // in lower case
	limit int    // letters to change at most
	most  int
	found []nearWord // best first
}

type nearWord struct {
	word string
	away int
}

// newNearSearch looks for at most so many words like word.
func newNearSearch(word string, most int) *nearSearch {
	return &nearSearch{word: strings.ToLower(word), limit: min(3, max(1, len(word)/3)), most: most}
}

// add looks at one word.
func (n *nearSearch) add(word string) {
	away := n.away(strings.ToLower(word))
	if away < 0 {
		return
	}
	if len(n.found) == n.most {
		if away >= n.found[n.most-1].away {
			return
		}
		n.found = n.found[:n.most-1]
	}
	at, _ := slices.BinarySearchFunc(n.found, away+1, func(w nearWord, away int) int { return cmp.Compare(w.away, away) })
	n.found = slices.Insert(n.found, at, nearWord{word, away})
}

// words returns what was found, most alike first.
func (n *nearSearch) words() []string {
	words := make([]string, len(n.found))
	for i, w := range n.found {
		words[i] = w.word
	}
	return words
}

// away says how unlike a word is, or -1 for too unlike.
func (n *nearSearch) away(word string) int {
	more := len(word) - len(n.word)
	if max(more, -more) <= n.limit {
		if d := edits(n.word, word, n.limit); d <= n.limit {
			return d
		}
	}
	if len(n.word) >= 3 && more > 0 && strings.Contains(word, n.word) {
		return n.limit + more
	}
	return -1
}

// edits counts the letters to put in, take out or change to make b of a; of more
// than limit it only says so.
func edits(a, b string, limit int) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, least := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			changed := before
			if a[i] != b[j] {
				changed++
			}
			before = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
			least = min(least, row[j+1])
		}
		if least > limit {
			return limit + 1
		}
	}
	return row[len(b)]
}

// nearest returns at most so many of the words that are like word.
func nearest(word string, words []string, most int) []string {
	n := newNearSearch(word, most)
	for _, w := range words {
		n.add(w)
	}
	return n.words()
}

// didYouMean asks for what an unknown word may have been, or is empty.
func didYouMean(words []string) string {
	if len(words) == 0 {
		return ""
	}
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = shown(w)
	}
	return "did you mean " + strings.Join(texts, " or ") + "?"
}
