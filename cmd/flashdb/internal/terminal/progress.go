package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

// progressEvery is how often the progress line is drawn anew.
const progressEvery = 100 * time.Millisecond

// progressLinesEvery is how often a line of JSON tells the progress of a stage that goes on: a
// job's log is to show that it lives, and stay short.
const progressLinesEvery = 10 * time.Second

// TextFrom is how long work goes on before its first line for people comes off a terminal. Tests
// that compare all a command prints set it higher, because a slow machine would add that line.
var TextFrom = 3 * time.Second

// After that first line others come, at first every progressTextEvery and then ever more rarely: a
// log of a night is to stay short.
const (
	progressTextEvery = 10 * time.Second
	progressTextShare = 10 // of the time so far passes between two lines
)

// A Progress is one line on a terminal that is written over and over, or lines of text or JSON, or
// nothing at all. It is safe for concurrent use.
type Progress struct {
	mu    sync.Mutex
	w     io.Writer // nil: silent
	lines bool      // of JSON
	text  bool      // lines of it
	since time.Time // of text
	drawn time.Time
	width int // runes on the line now

	stage     string
	began     time.Time // the stage
	beganDone int64     // units that were done by then
}

// NewProgress returns the progress of long work: a bar on a terminal, and elsewhere lines of text,
// few of them. With w nil it is silent.
func NewProgress(w io.Writer) *Progress {
	now := time.Now()
	return &Progress{w: w, text: !Is(w), since: now, drawn: now.Add(TextFrom - progressTextEvery)}
}

// NewBar is NewProgress for work that is short: nothing is told off a terminal.
func NewBar(w io.Writer) *Progress {
	if !Is(w) {
		w = nil
	}
	return NewProgress(w)
}

// ProgressModes are what --progress takes.
var ProgressModes = []string{"auto", "bar", "json", "none"}

// NewProgressAs returns a progress of one of the modes: auto is a bar on a terminal and lines of
// JSON elsewhere.
func NewProgressAs(mode string, w io.Writer) *Progress {
	switch {
	case mode == "none":
		return &Progress{}
	case mode == "json" || (mode == "auto" && !Is(w)):
		return &Progress{w: w, lines: true}
	}
	return &Progress{w: w}
}

// Update shows that done of total units of a stage are finished; total <= 0 means that nobody knows
// how many there are.
func (p *Progress) Update(stage string, done, total int64) { p.UpdateWith(stage, done, total, "") }

// UpdateWith is Update for work that is followed by something else than its units: detail, such as
// a loss, is shown in place of how many of them are done in a second.
func (p *Progress) UpdateWith(stage string, done, total int64, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil {
		return
	}
	now := time.Now()
	begins := stage != p.stage
	if begins {
		p.stage, p.began, p.beganDone = stage, now, done
	}
	every := progressEvery
	switch {
	case p.lines:
		every = progressLinesEvery
	case p.text:
		every = max(progressTextEvery, now.Sub(p.since)/progressTextShare)
	}
	if now.Sub(p.drawn) < every && !(p.lines && begins) {
		return
	}
	p.drawn = now
	pace := paceOf(done-p.beganDone, total-done, now.Sub(p.began))
	pace.detail = detail
	if p.lines {
		p.line(stage, done, total, pace)
		return
	}
	text := fmt.Sprintf("%s %s", stage, show.Number(done))
	switch {
	case p.text && total > 0:
		fmt.Fprintf(p.w, "%s %d%%%s\n", stage, 100*min(done, total)/total, pace)
		return
	case p.text:
		fmt.Fprintf(p.w, "%s%s\n", text, pace)
		return
	case total > 0:
		const cells = 24
		filled := int(cells * min(done, total) / total)
		bar := strings.Repeat("#", filled) + strings.Repeat("-", cells-filled)
		text = fmt.Sprintf("%s [%s] %3d%%", stage, bar, 100*min(done, total)/total)
	}
	p.draw(text + pace.String())
}

// A pace is how fast a stage goes, and how long it will go on; zero where that cannot be told.
type pace struct {
	perSecond float64
	left      time.Duration
	detail    string // in place of perSecond
}

// paceOf returns the pace of a stage that did so many units in some time, once it has gone on for a
// second.
func paceOf(done, left int64, elapsed time.Duration) pace {
	if done <= 0 || elapsed < time.Second {
		return pace{}
	}
	p := pace{perSecond: float64(done) / elapsed.Seconds()}
	if left > 0 {
		p.left = time.Duration(float64(left) / p.perSecond * float64(time.Second))
	}
	return p
}

func (p pace) String() string {
	text := ""
	switch {
	case p.detail != "":
		text = " " + p.detail
	case p.perSecond == 0:
		return ""
	default:
		text = fmt.Sprintf(" %s/s", show.Number(int64(p.perSecond)))
	}
	if p.left > 0 {
		text += fmt.Sprintf(", %s left", p.left.Round(time.Second))
	}
	return text
}

// line writes the progress for a program.
func (p *Progress) line(stage string, done, total int64, pace pace) {
	e := json.NewEncoder(p.w)
	e.SetEscapeHTML(false)
	_ = e.Encode(struct { // nobody is told less than the result for want of it
		Stage     string  `json:"stage"`
		Done      int64   `json:"done"`
		Total     int64   `json:"total,omitempty"`
		PerSecond float64 `json:"per_second,omitempty"`
		Left      float64 `json:"seconds_left,omitempty"`
		Detail    string  `json:"detail,omitempty"`
	}{stage, done, max(0, total), math.Round(pace.perSecond), math.Round(pace.left.Seconds()), pace.detail})
}

// Remark prints a remark as a line of JSON where the progress is such lines, so that who reads them
// need not expect another kind, and tells whether it did.
func (p *Progress) Remark(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil || !p.lines {
		return false
	}
	line, err := json.Marshal(struct {
		Remark string `json:"remark"`
	}{text})
	if err == nil {
		fmt.Fprintf(p.w, "%s\n", line)
	}
	return err == nil
}

// Clear takes the line away, before other output.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w != nil && p.width > 0 {
		p.draw("")
		fmt.Fprint(p.w, "\r")
	}
}

// draw writes text over the line, and blanks over what was longer.
func (p *Progress) draw(text string) {
	width := len([]rune(text))
	fmt.Fprint(p.w, "\r", text, strings.Repeat(" ", max(0, p.width-width)))
	p.width = width
}
