package show

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestTextCannotMoveTheCursor(t *testing.T) {
	for in, want := range map[string]string{
		"sync.(*Mutex).Lock": "sync.(*Mutex).Lock",
		"naïve 日本":           "naïve 日本",
		"a\x1b[2Jb":          `"a\x1b[2Jb"`,
		"line\nbreak":        `"line\nbreak"`,
		"bad \xff utf-8":     `"bad \xff utf-8"`,
		"\u202egnp.exe":      `"\u202egnp.exe"`, // right-to-left override
	} {
		assert.Equal(t, want, Text(in))
	}
	assert.Equal(t, "a\x1b", JSON("a\x1b"), "JSON escapes it itself")
	assert.Equal(t, `"\xff"`, JSON("\xff"))
}

func TestClip(t *testing.T) {
	assert.Equal(t, "abc", Clip("abc", 3))
	assert.Equal(t, "ab…yz", Clip("abcdefxyz", 5))
	for width := 3; width < 12; width++ {
		assert.LessOrEqual(t, utf8.RuneCountInString(Clip("日本語日本語日本語日本語", width)), width)
	}
}

func TestNumbersForPeople(t *testing.T) {
	assert.Equal(t, "0", Number(0))
	assert.Equal(t, "999", Number(999))
	assert.Equal(t, "1,000", Number(1000))
	assert.Equal(t, "-12,345,678", Number(-12345678))
	assert.Equal(t, "1 row", Count(1, "row"))
	assert.Equal(t, "33,445 rows", Count(33445, "row"))
	assert.Equal(t, "999 B", Bytes(999))
	assert.Equal(t, "1 kB", Bytes(1000))
	assert.Equal(t, "1 MB", Bytes(999_999))
	assert.Equal(t, "4.28 MB", Bytes(4281088))
	assert.Equal(t, "250 µs", Duration(250*time.Microsecond))
	assert.Equal(t, "1.23 ms", Duration(1234*time.Microsecond))
	assert.Equal(t, "4.5 s", Duration(4480*time.Millisecond))
	assert.Equal(t, "2m5s", Duration(125*time.Second))
}

func TestDidYouMean(t *testing.T) {
	assert.Equal(t, "did you mean a or b?", DidYouMean([]string{"a", "b"}))
	assert.Empty(t, DidYouMean(nil))
}

func TestWord(t *testing.T) {
	for text, want := range map[string]string{
		"/tmp/a-b_1/go.flash": "/tmp/a-b_1/go.flash",
		`C:\data\go.flash`:    `C:\data\go.flash`,
		"Zürich":              "Zürich",
		"/tmp/it's here":      `'/tmp/it'\''s here'`,
		"a;b":                 "'a;b'",
		"~":                   "'~'",
		"a\x1bb":              `'"a\x1bb"'`,
		"":                    "''",
	} {
		assert.Equal(t, want, Word(text))
	}
}
