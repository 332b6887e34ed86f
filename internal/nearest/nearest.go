// Package nearest finds the known words that an unknown one may have been meant for.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// A Search finds the words that are most like one that is not known: those a few letters away, then
// those that hold it.
type Search struct {
	word  string // in lower case
	limit int    // letters to change at most
	most  int
	found []candidate // best first
}

type candidate struct {
	word string
	away int
}

// New looks for at most so many words like word.
func New(word string, most int) *Search {
	return &Search{word: strings.ToLower(word), limit: min(3, max(1, len(word)/3)), most: most}
}

// Add looks at one word.
func (n *Search) Add(word string) {
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
	at, _ := slices.BinarySearchFunc(n.found, away+1, func(w candidate, away int) int { return cmp.Compare(w.away, away) })
	n.found = slices.Insert(n.found, at, candidate{word, away})
}

// Words returns what was found, most alike first.
func (n *Search) Words() []string {
	words := make([]string, len(n.found))
	for i, w := range n.found {
		words[i] = w.word
	}
	return words
}

// away says how unlike a word is, or -1 for too unlike.
func (n *Search) away(word string) int {
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

// edits counts the letters to put in, take out, change, or swap with the next, to make b of a; of
// more than limit it only says so.
func edits(a, b string, limit int) int {
	// The last three rows of the table: row[j] is of what was read of a, and the first j bytes of
	// b.
	n := len(b) + 1
	rows := make([]int, 3*n)
	two, one, row := rows[:n], rows[n:2*n], rows[2*n:]
	for j := range row {
		row[j] = j
	}
	before := 0 // the least of the row before
	for i := range len(a) {
		two, one, row = one, row, two
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			changed := one[j]
			if a[i] != b[j] {
				changed++
			}
			row[j+1] = min(changed, row[j]+1, one[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], two[j-1]+1)
			}
			least = min(least, row[j+1])
		}
		if min(least, before+1) > limit { // a swap goes back two rows
			return limit + 1
		}
		before = least
	}
	return row[len(b)]
}

// Among returns at most so many of the words that are like word.
func Among(word string, words []string, most int) []string {
	n := New(word, most)
	for _, w := range words {
		n.Add(w)
	}
	return n.Words()
}
