// Package attempts lets a test report how often it tried something, so that internal/reliability
// can count it. It is for tests alone.
package attempts

import (
	"strconv"
	"strings"
)

// prefix begins the lines that are counted.
const prefix = "tried: "

// Count logs that a test tried n things, such as 40 "processes killed". Calls with the same words
// add up, those of subtests too. Call it when they are done.
func Count(t interface {
	Helper()
	Logf(format string, args ...any)
}, n int, what string,
) {
	t.Helper()
	t.Logf("%s%d %s", prefix, n, what)
}

// Parse returns what a line of a test's log says was tried.
func Parse(line string) (n int, what string, ok bool) {
	_, text, ok := strings.Cut(line, prefix)
	if !ok {
		return 0, "", false
	}
	number, what, _ := strings.Cut(strings.TrimSpace(text), " ")
	n, err := strconv.Atoi(number)
	return n, what, err == nil && what != ""
}
