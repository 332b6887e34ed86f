package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestShownCannotMoveTheCursor(t *testing.T) {
	for in, want := range map[string]string{
		"sync.(*Mutex).Lock": "sync.(*Mutex).Lock",
		"naïve 日本":           "naïve 日本",
		"a\x1b[2Jb":          `"a\x1b[2Jb"`,
		"line\nbreak":        `"line\nbreak"`,
		"bad \xff utf-8":     `"bad \xff utf-8"`,
		"\u202egnp.exe":      `"\u202egnp.exe"`, // right-to-left override
	} {
		assert.Equal(t, want, shown(in))
	}
	assert.Equal(t, "a\x1b", jsonText("a\x1b"), "JSON escapes it itself")
	assert.Equal(t, `"\xff"`, jsonText("\xff"))
}

func TestClip(t *testing.T) {
	assert.Equal(t, "abc", clip("abc", 3))
	assert.Equal(t, "ab…yz", clip("abcdefxyz", 5))
	for width := 3; width < 12; width++ {
		assert.LessOrEqual(t, utf8.RuneCountInString(clip("日本語日本語日本語日本語", width)), width)
	}
}

func TestNumbersForPeople(t *testing.T) {
	assert.Equal(t, "0", grouped(0))
	assert.Equal(t, "999", grouped(999))
	assert.Equal(t, "1,000", grouped(1000))
	assert.Equal(t, "-12,345,678", grouped(-12345678))
	assert.Equal(t, "1 row", counted(1, "row"))
	assert.Equal(t, "33,445 rows", counted(33445, "row"))
	assert.Equal(t, "999 B", sized(999))
	assert.Equal(t, "1 kB", sized(1000))
	assert.Equal(t, "1 MB", sized(999_999))
	assert.Equal(t, "4.28 MB", sized(4281088))
	assert.Equal(t, "250 µs", took(250*time.Microsecond))
	assert.Equal(t, "1.23 ms", took(1234*time.Microsecond))
	assert.Equal(t, "4.5 s", took(4480*time.Millisecond))
	assert.Equal(t, "2m5s", took(125*time.Second))
}

func TestProbabilityIsNotRoundedToCertainty(t *testing.T) {
	assert.Equal(t, "0.5000", probability(.5))
	assert.Equal(t, ">.9999", probability(.99999))
	assert.Equal(t, "1.0000", probability(1))
	assert.Equal(t, "<.0001", probability(1e-9))
	assert.Equal(t, "0.0000", probability(0))
}

func TestJSONScoreKeepsFloat32Digits(t *testing.T) {
	assert.Equal(t, jsonNumber(0.1), jsonScore(0.1))
	assert.Equal(t, jsonNumber(-12.345678), jsonScore(-12.345678))
}

func TestProgressIsSilentOffTheTerminal(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b)
	p.update("import", 1, 2)
	p.clear()
	assert.Empty(t, b.String())
}

func TestProgressDrawsOverItself(t *testing.T) {
	var b bytes.Buffer
	p := &progress{w: &b}
	p.update("a long stage", 1, 2)
	p.update("too soon", 1, 2)
	p.drawn = time.Time{}
	p.update("short", 12, 0)
	p.clear()
	lines := strings.Split(b.String(), "\r")
	assert.Equal(t, "a long stage [############------------]  50%", lines[1])
	assert.Equal(t, "short 12", strings.TrimRight(lines[2], " "))
	assert.Equal(t, len(lines[1]), len(lines[2]), "blanks cover the longer line")
	assert.Empty(t, strings.TrimSpace(lines[3]))
	assert.NotContains(t, b.String(), "too soon")
}

func TestShellQuote(t *testing.T) {
	assert.Equal(t, "/tmp/a-b_1/go.flash", shellQuote("/tmp/a-b_1/go.flash"))
	assert.Equal(t, "'/tmp/it'\\''s here'", shellQuote("/tmp/it's here"))
	assert.Equal(t, "''", shellQuote(""))
}

// TestProgressOffATerminal prints no line for short work, and few for long.
func TestProgressOffATerminal(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b)
	p.update("import x.npy", 0, 100)
	p.clear()
	assert.Empty(t, b.String())

	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	p.since, p.began, p.drawn = ago(4*time.Second), ago(4*time.Second), p.drawn.Add(-4*time.Second)
	p.update("import x.npy", 40, 100)
	p.update("import x.npy", 41, 100)
	assert.Equal(t, "import x.npy 40% 9/s, 6s left\n", b.String())

	b.Reset()
	p.since, p.drawn = ago(time.Hour), ago(5*time.Minute)
	p.update("import x.npy", 50, 100)
	assert.Empty(t, b.String(), "six minutes pass between two lines of an hour's work")
	p.drawn = ago(7 * time.Minute)
	p.update("read", 5000, 0)
	assert.Equal(t, "read 5,000\n", b.String())
	p.clear()
	assert.Equal(t, "read 5,000\n", b.String())
	newProgress(nil).update("read", 1, 2)
}
