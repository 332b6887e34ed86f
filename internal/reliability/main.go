// Command reliability runs the suites that try to break a database, as often as its flags say, and
// writes what they tried and found into the table of docs/reliability.md:
//
//	go run ./internal/reliability -quick      # some minutes on two cores
//	go run ./internal/reliability             # a night
//
// It runs in the root of the repository. The rows are in suites.go; one more, of all fuzz targets
// that the packages have, is made by itself. The exit code is 1 if a suite failed.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// counts say how often is tried, by the names that suites use.
type counts map[string]*string

func main() {
	quick := flag.Bool("quick", false, "try less often, for some minutes instead of a night")
	only := flag.String("only", "", "run the suites whose `words` hold this, and print the table instead of writing it")
	file := flag.String("o", "docs/reliability.md", "`file` that has the table between its marks")
	c, defaults := counts{}, map[string][2]string{}
	for _, f := range []struct{ name, long, short, usage string }{
		{"kills", "1000", "40", "processes killed"},
		{"syscalls", "20", "2", "system calls of a kind that kill or fail"},
		{"corruptions", "2000", "40", "damages at random to a file"},
		{"exhaustive", "1", "", "if not empty, damage every byte of headers, tables and borders"},
		{"histories", "5000", "20", "random histories"},
		{"steps", "100", "30", "steps of a history"},
		{"fuzz", "10m", "300x", "time, or number of inputs, to fuzz a target for; 0 leaves fuzzing out"},
	} {
		c[f.name] = flag.String(f.name, "", fmt.Sprintf("%s (default %q, with -quick %q)", f.usage, f.long, f.short))
		defaults[f.name] = [2]string{f.long, f.short}
	}
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, values := range defaults {
		if !given[name] {
			*c[name] = values[0]
			if *quick {
				*c[name] = values[1]
			}
		}
	}
	if err := run(c, *quick, *only, *file); err != nil {
		fmt.Fprintln(os.Stderr, "reliability:", err)
		os.Exit(1)
	}
}

func run(c counts, quick bool, only, file string) error {
	start := time.Now()
	var rows []row
	failed := 0
	note := func(r row, err error) error {
		if err != nil {
			return err
		}
		if len(r.failed) > 0 {
			failed++
		}
		fmt.Fprintf(os.Stderr, "%s: %s; found: %s\n", r.what, r.tried(), r.found())
		rows = append(rows, r)
		return nil
	}
	for _, s := range suites {
		if strings.Contains(s.what, only) {
			if err := note(s.run(c)); err != nil {
				return err
			}
		}
	}
	if *c["fuzz"] != "0" && strings.Contains(fuzzing, only) {
		if err := note(fuzz(*c["fuzz"])); err != nil {
			return err
		}
	}
	text := table(rows, describe(quick, time.Since(start)))
	if only != "" {
		fmt.Print(text)
	} else if err := replaceTable(file, text); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d suites failed", failed, len(rows))
	}
	return nil
}
