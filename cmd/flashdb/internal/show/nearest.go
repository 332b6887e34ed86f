package show

import (
	"cmp"
	"slices"
	"strings"
)

// A NearSearch finds the words that are most like one that is not known: those a few letters away,
// then those that hold it.
type NearSearch struct {
	word  string // in lower case
	limit int    // letters to change at most
	most  int
	found []nearWord // best first
}

type nearWord struct {
	word string
	away int
}

// NewNearSearch looks for at most so many words like word.
func NewNearSearch(word string, most int) *NearSearch {
	return &NearSearch{word: strings.ToLower(word), limit: min(3, max(1, len(word)/3)), most: most}
}

// Add looks at one word.
func (n *NearSearch) Add(word string) {
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

// Words returns what was found, most alike first.
func (n *NearSearch) Words() []string {
	words := make([]string, len(n.found))
	for i, w := range n.found {
		words[i] = w.word
	}
	return words
}

// away says how unlike a word is, or -1 for too unlike.
func (n *NearSearch) away(word string) int {
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

// edits counts the letters to put in, take out or change to make b of a; of more than limit it only
// says so.
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

// Nearest returns at most so many of the words that are like word.
func Nearest(word string, words []string, most int) []string {
	n := NewNearSearch(word, most)
	for _, w := range words {
		n.Add(w)
	}
	return n.Words()
}

// DidYouMean asks for what an unknown word may have been, or is empty.
func DidYouMean(words []string) string {
	if len(words) == 0 {
		return ""
	}
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = Text(w)
	}
	return "did you mean " + strings.Join(texts, " or ") + "?"
}
