package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/internal/attempts"
)

// A row is what came of a suite.
type row struct {
	what, command string
	counts        []count  // in the order in which they were told
	failed        []string // names of tests
	skipped       []string // reasons, each once, of subtests too
	runs          int      // tests that passed, but those that skipped all their subtests
}

type count struct {
	n    int
	what string
}

// add adds to the count of the same words.
func (r *row) add(n int, what string) {
	for i := range r.counts {
		if r.counts[i].what == what {
			r.counts[i].n += n
			return
		}
	}
	r.counts = append(r.counts, count{n, what})
}

// event is a line of go test -json.
type event struct{ Action, Test, Output string }

// run runs the tests of a suite. What they find is no error of run.
func (s suite) run(c counts) (row, error) {
	pattern := "^(" + s.test + ")$"
	args := []string{"test", "-json", "-count=1", "-timeout=24h", "-run", pattern, s.pkg}
	r := row{what: s.what}
	env := os.Environ()
	var flags, shown []string
	for _, setting := range s.settings {
		for name, value := range c {
			setting = strings.ReplaceAll(setting, "{"+name+"}", *value)
		}
		if strings.HasPrefix(setting, "-") {
			flags = append(flags, setting)
		} else if !strings.HasSuffix(setting, "=") {
			shown = append(shown, setting)
		}
		env = append(env, setting)
	}
	r.command = strings.Join(append(append(shown, "go test -run '"+pattern+"' "+s.pkg), flags...), " ")
	cmd := exec.Command("go", append(args, flags...)...)
	cmd.Env, cmd.Stderr = env, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := cmd.Start(); err != nil {
		return r, err
	}
	err = r.read(out)
	waited := cmd.Wait()
	if err != nil {
		return r, err
	}
	if waited != nil && len(r.failed) == 0 { // it did not even build
		r.failed = []string{s.pkg + ": " + waited.Error()}
	}
	if r.runs == 0 && len(r.failed) == 0 && len(r.skipped) == 0 {
		return r, fmt.Errorf("%s: no test of %s matches %s", s.what, s.pkg, pattern)
	}
	return r, nil
}

var skipReason = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)`)

// read takes the counts and verdicts from the events of a test run.
func (r *row) read(out io.Reader) error {
	said := map[string]string{} // last line of a test
	parents := map[string]bool{}
	worked := map[string]bool{} // tests of which some part counted something, or passed and has no parts
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("go test -json: %w", err)
		}
		top, _, sub := strings.Cut(e.Test, "/")
		if sub {
			parents[e.Test[:strings.LastIndex(e.Test, "/")]] = true
		}
		switch e.Action {
		case "output":
			if n, what, ok := attempts.Parse(e.Output); ok {
				r.add(n, what)
				worked[top] = true
			} else if m := skipReason.FindStringSubmatch(e.Output); m != nil {
				said[e.Test] = m[1]
			}
		case "fail":
			if e.Test != "" && !sub {
				r.failed = append(r.failed, e.Test)
			}
		case "skip":
			if reason := said[e.Test]; e.Test != "" && !slices.Contains(r.skipped, reason) {
				r.skipped = append(r.skipped, reason)
			}
		case "pass":
			if !parents[e.Test] {
				worked[top] = true
			}
			if e.Test != "" && !sub && worked[top] {
				r.runs++
			}
		}
	}
	return lines.Err()
}

const fuzzing = "feed bytes to every parser of outside bytes (fuzzing)"

var (
	fuzzTarget = regexp.MustCompile(`^Fuzz\w+$`)
	fuzzExecs  = regexp.MustCompile(`execs: (\d+)`)
)

// fuzz runs every fuzz target of the module for some time.
func fuzz(time string) (row, error) {
	r := row{what: fuzzing, command: "go test -run '^$' -fuzz '^NAME$' -fuzztime " + time + " PACKAGE"}
	packages, err := exec.Command("go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...").Output()
	if err != nil {
		return r, fmt.Errorf("go list: %w", err)
	}
	targets, execs := 0, 0
	for _, pkg := range strings.Fields(string(packages)) {
		list, err := exec.Command("go", "test", "-list", "^Fuzz", pkg).CombinedOutput()
		if err != nil {
			return r, fmt.Errorf("go test -list %s: %w: %s", pkg, err, list)
		}
		for _, name := range strings.Fields(string(list)) {
			if !fuzzTarget.MatchString(name) {
				continue
			}
			targets++
			out, err := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+name+"$", "-fuzztime", time, pkg).CombinedOutput()
			var exit *exec.ExitError
			if errors.As(err, &exit) && !cutOff(out) {
				r.failed = append(r.failed, pkg+" "+name)
				fmt.Fprintf(os.Stderr, "%s\n", out)
			} else if err != nil && exit == nil {
				return r, err
			}
			if all := fuzzExecs.FindAllSubmatch(out, -1); all != nil {
				n, _ := strconv.Atoi(string(all[len(all)-1][1]))
				execs += n
			}
		}
	}
	r.add(execs, "inputs")
	r.add(targets, "targets")
	r.runs = targets
	return r, nil
}

// cutOff tells whether a fuzz run failed only because its time ended while a worker was busy, which
// go test reports as a failure now and then: https://go.dev/issue/48591. An input that fails or
// hangs is written to a file, and named.
func cutOff(out []byte) bool {
	return bytes.Contains(out, []byte("context deadline exceeded")) && !bytes.Contains(out, []byte("Failing input written"))
}
