package show

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
		{"zzzzzz", []string{}},
		{"", []string{"a"}},
	} {
		assert.Equal(t, c.want, Nearest(c.word, words, 2), c.word)
	}
	assert.Equal(t, "did you mean a or b?", DidYouMean([]string{"a", "b"}))
	assert.Empty(t, DidYouMean(nil))
}

func TestEdits(t *testing.T) {
	assert.Equal(t, 3, edits("kitten", "sitting", 5))
	assert.Equal(t, 0, edits("same", "same", 0))
	assert.Equal(t, 2, edits("", "ab", 3))
	assert.Equal(t, 2, edits("abcdef", "uvwxyz", 1), "more than the limit, however many")
}
