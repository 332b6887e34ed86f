package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestProgressIsSilentOffTheTerminal(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b)
	p.Update("import", 1, 2)
	p.Clear()
	assert.Empty(t, b.String())
}

func TestProgressDrawsOverItself(t *testing.T) {
	var b bytes.Buffer
	p := &Progress{w: &b}
	p.Update("a long stage", 1, 2)
	p.Update("too soon", 1, 2)
	p.drawn = time.Time{}
	p.Update("short", 12, 0)
	p.Clear()
	lines := strings.Split(b.String(), "\r")
	assert.Equal(t, "a long stage [############------------]  50%", lines[1])
	assert.Equal(t, "short 12", strings.TrimRight(lines[2], " "))
	assert.Equal(t, len(lines[1]), len(lines[2]), "blanks cover the longer line")
	assert.Empty(t, strings.TrimSpace(lines[3]))
	assert.NotContains(t, b.String(), "too soon")
}

// TestProgressOffATerminal prints no line for short work, and few for long.
func TestProgressOffATerminal(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b)
	p.Update("import x.npy", 0, 100)
	p.Clear()
	assert.Empty(t, b.String())

	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	p.since, p.began, p.drawn = ago(4*time.Second), ago(4*time.Second), p.drawn.Add(-4*time.Second)
	p.Update("import x.npy", 40, 100)
	p.Update("import x.npy", 41, 100)
	assert.Equal(t, "import x.npy 40% 9/s, 6s left\n", b.String())

	b.Reset()
	p.since, p.drawn = ago(time.Hour), ago(5*time.Minute)
	p.Update("import x.npy", 50, 100)
	assert.Empty(t, b.String(), "six minutes pass between two lines of an hour's work")
	p.drawn = ago(7 * time.Minute)
	p.Update("read", 5000, 0)
	assert.Equal(t, "read 5,000\n", b.String())
	p.Clear()
	assert.Equal(t, "read 5,000\n", b.String())
	NewProgress(nil).Update("read", 1, 2)
}
