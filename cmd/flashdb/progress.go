package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// progressEvery is how often the progress line is drawn anew.
const progressEvery = 100 * time.Millisecond

// A progress is one line on a terminal that is written over and over, and
// nothing at all elsewhere. It is safe for concurrent use.
type progress struct {
	mu    sync.Mutex
	w     io.Writer // nil: silent
	drawn time.Time
	width int // runes on the line now

	stage string    // the one shown
	began time.Time // when it was first
}

func newProgress(w io.Writer) *progress {
	if !isTerminal(w) {
		w = nil
	}
	return &progress{w: w}
}

// isTerminal tells whether a stream is a file that a person looks at or types in.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// update shows that done of total units of a stage are finished; total <= 0
// means that nobody knows how many there are.
func (p *progress) update(stage string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil || time.Since(p.drawn) < progressEvery {
		return
	}
	p.drawn = time.Now()
	if stage != p.stage {
		p.stage, p.began = stage, p.drawn
	}
	text := fmt.Sprintf("%s %s", stage, grouped(done))
	if total > 0 {
		const cells = 24
		filled := int(cells * min(done, total) / total)
		bar := strings.Repeat("#", filled) + strings.Repeat("-", cells-filled)
		text = fmt.Sprintf("%s [%s] %3d%%", stage, bar, 100*min(done, total)/total)
	}
	p.draw(text + pace(done, total, p.drawn.Sub(p.began)))
}

// pace says how fast a stage goes and how long it will still take, once it has
// gone on for a second.
func pace(done, total int64, elapsed time.Duration) string {
	if elapsed < time.Second || done <= 0 {
		return ""
	}
	text := fmt.Sprintf(" %s/s", grouped(int64(float64(done)/elapsed.Seconds())))
	if left := total - done; left > 0 {
		eta := time.Duration(float64(elapsed) * float64(left) / float64(done))
		text += fmt.Sprintf(", %s left", eta.Round(time.Second))
	}
	return text
}

// clear takes the line away, before other output.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w != nil && p.width > 0 {
		p.draw("")
		fmt.Fprint(p.w, "\r")
	}
}

// draw writes text over the line, and blanks over what was longer.
func (p *progress) draw(text string) {
	width := len([]rune(text))
	fmt.Fprint(p.w, "\r", text, strings.Repeat(" ", max(0, p.width-width)))
	p.width = width
}
