package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fileList is a flag that may be given several times.
type fileList []string

func (l *fileList) String() string     { return strings.Join(*l, " ") }
func (l *fileList) Set(s string) error { *l = append(*l, s); return nil }

func reportCommand(args []string, stderr io.Writer) error {
	var in, peers fileList
	var doc, img string
	fs := newFlags("report", stderr)
	fs.Var(&in, "in", "`file` of results that graph and growth wrote with -json; may be repeated")
	fs.Var(&peers, "peers", "`file` of results of other programs; may be repeated")
	fs.StringVar(&doc, "doc", "", "Markdown `file` whose tables are rewritten in place")
	fs.StringVar(&img, "img", "", "`folder` for recall-GRAPH.svg and growth.svg")
	if err := parse(fs, args); err != nil {
		return err
	}
	if len(in) == 0 || doc == "" && img == "" {
		return errors.New("report: give -in, and -doc, -img or both")
	}
	var r resultSet
	for _, path := range slices.Concat(in, peers) {
		if err := r.readFile(path); err != nil {
			return err
		}
	}
	if doc != "" {
		if err := rewriteFile(doc, &r); err != nil {
			return err
		}
	}
	if img != "" {
		return r.plotAll(img)
	}
	return nil
}

// plotAll draws a plot a graph, and the growth where there is any.
func (r *resultSet) plotAll(dir string) error {
	var graphs []string
	for _, res := range r.results {
		if res.Peer == flashdbPeer && !slices.Contains(graphs, res.Graph) {
			graphs = append(graphs, res.Graph)
		}
	}
	for _, graph := range graphs {
		if err := plotRecall(filepath.Join(dir, "recall-"+graph+".svg"), graph, r.results); err != nil {
			return err
		}
	}
	if len(r.growth) == 0 {
		return nil
	}
	return plotGrowth(filepath.Join(dir, "growth.svg"), r.growth)
}

// A Markdown file says with a line of its own where a table belongs, and which. Everything down to
// the end mark is replaced.
const (
	markBegin = "<!-- bench: "
	markClose = " -->"
	markEnd   = "<!-- end of bench table -->"
)

func rewriteFile(path string, r *resultSet) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("rewrite tables: %w", err)
	}
	out, err := rewrite(string(text), r.named)
	if err != nil {
		return fmt.Errorf("rewrite tables: %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(out), 0o644); err != nil {
		return fmt.Errorf("rewrite tables: %w", err)
	}
	return nil
}

// rewrite replaces the tables between marks; named gives a table by the words of its mark.
func rewrite(text string, named func(words []string) (table, error)) (string, error) {
	var out strings.Builder
	inside := 0 // line of the mark that is open, 0 for none
	number := 0
	for line := range strings.Lines(text) {
		number++
		trimmed := strings.TrimSpace(line)
		words, begins := strings.CutPrefix(trimmed, markBegin)
		switch {
		case begins && inside > 0:
			return "", fmt.Errorf("line %d: a table begins before the one of line %d has ended", number, inside)
		case begins:
			t, err := named(strings.Fields(strings.TrimSuffix(words, markClose)))
			if err != nil {
				return "", fmt.Errorf("line %d: %w", number, err)
			}
			inside = number
			out.WriteString(line)
			out.WriteString(t.markdown())
		case trimmed == markEnd && inside == 0:
			return "", fmt.Errorf("line %d: a table ends that has not begun", number)
		case trimmed == markEnd:
			inside = 0
			out.WriteString(line)
		case inside == 0:
			out.WriteString(line)
		}
	}
	if inside > 0 {
		return "", fmt.Errorf("the table of line %d has no end: add the line %s", inside, markEnd)
	}
	return out.String(), nil
}

// named returns a table by its words: machine, build, growth, "results GRAPH" or "frontier GRAPH".
func (r *resultSet) named(words []string) (table, error) {
	var graph string
	if len(words) == 2 {
		graph = words[1]
	}
	switch name := strings.Join(words, " "); {
	case name == "machine":
		return machineTable(r.machines), nil
	case name == "build":
		return buildTable(r.builds, r.queries), nil
	case name == "growth":
		return growthTable(r.growth), nil
	case graph != "" && words[0] == "results":
		return resultTable(r.results, graph, namedResult), nil
	case graph != "" && words[0] == "frontier":
		return resultTable(frontier(r.results, flashdbPeer, graph), graph, everyResult), nil
	default:
		return table{}, fmt.Errorf("unknown table %q: use machine, build, growth, results GRAPH or frontier GRAPH", name)
	}
}
