package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Marks around the table in its page.
const (
	tableBegin = "<!-- table: go run ./internal/reliability -->\n"
	tableEnd   = "<!-- end of the table -->\n"
)

// describe says what ran, where and when.
func describe(quick bool, elapsed time.Duration) string {
	mode := ""
	if quick {
		mode = " with `-quick`"
	}
	version := "an unknown version"
	if out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude", "*").Output(); err == nil {
		version = "version " + strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("Run%s on %s: %s, %s, %s/%s, %d cores, in %s.", mode, time.Now().UTC().Format(time.DateOnly), version,
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), elapsed.Round(time.Second))
}

// tried says how often.
func (r row) tried() string {
	var parts []string
	for _, c := range r.counts {
		parts = append(parts, grouped(c.n)+" "+c.what)
	}
	if len(parts) == 0 && r.runs > 0 {
		parts = []string{"once"}
	}
	for _, reason := range r.skipped {
		parts = append(parts, "skipped: "+reason)
	}
	return strings.Join(parts, ", ")
}

// found says what came of it.
func (r row) found() string {
	switch {
	case len(r.failed) > 0:
		return "**failed**: " + strings.Join(r.failed, ", ")
	case r.runs == 0:
		return "not run"
	}
	return "nothing"
}

func table(rows []row, described string) string {
	var b strings.Builder
	b.WriteString(described + "\n\n| tried | how often | found |\n|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(r.what), cell(r.tried()), cell(r.found()))
	}
	b.WriteString("\nRow by row, the commands:\n\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "    %s\n", r.command)
	}
	return b.String()
}

func cell(s string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s) }

func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// replaceTable puts a text between the marks of a page.
func replaceTable(file, text string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	replaced, err := between(string(page), text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(replaced), 0o644)
}

func between(page, text string) (string, error) {
	head, rest, ok := strings.Cut(page, tableBegin)
	_, tail, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("it has not both of the lines %q and %q", strings.TrimSpace(tableBegin), strings.TrimSpace(tableEnd))
	}
	return head + tableBegin + text + tableEnd + tail, nil
}
