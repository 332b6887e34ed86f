package nearest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNearest(t *testing.T) {
	words := []string{"net/http.Get", "net/http.Head", "net/http.Set", "net/url.Parse", "os.Open", "a"}
	for _, c := range []struct {
		word string
		want []string
	}{
		{"net/http.Gett", []string{"net/http.Get", "net/http.Set"}},
		{"NET/HTTP.GET", []string{"net/http.Get", "net/http.Set"}},
		{"Parse", []string{"net/url.Parse"}},
		{"open", []string{"os.Open"}},
		{"b", []string{"a"}},
		{"so.Open", []string{"os.Open"}},
		{"zzzzzz", []string{}},
		{"", []string{"a"}},
	} {
		assert.Equal(t, c.want, Among(c.word, words, 2), c.word)
	}
}

func TestEdits(t *testing.T) {
	assert.Equal(t, 3, edits("kitten", "sitting", 5))
	assert.Equal(t, 0, edits("same", "same", 0))
	assert.Equal(t, 2, edits("", "ab", 3))
	assert.Equal(t, 1, edits("fucn", "func", 1), "two letters swapped")
	assert.Equal(t, 2, edits("fucnt", "func", 2))
	assert.Equal(t, 2, edits("fcun", "func", 2), "a letter two places on")
	assert.Equal(t, 2, edits("abcdef", "uvwxyz", 1), "more than the limit, however many")
}
