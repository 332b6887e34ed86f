package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb"
)

// growthFlags are what the growth command takes.
type growthFlags struct {
	data, graph   string
	dir           string
	sizes         string
	k             int
	sources       int
	recallSources int
	rotations     int
	json          bool
	plot          string
}

func growthCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var f growthFlags
	fs := newFlags("growth", stderr)
	fs.StringVar(&f.data, "data", os.Getenv("FLASHDB_DATA"), "`folder` that holds one folder per graph (default $FLASHDB_DATA)")
	fs.StringVar(&f.graph, "graph", "genes", "`name` of the graph; its sources may not be candidates")
	fs.StringVar(&f.dir, "dir", "", "keep a database a size in this `directory`, and use those that are there (default: temporary)")
	fs.StringVar(&f.sizes, "sizes", "50000,100000,200000,400000,750000", "`numbers` of rows, ascending, with commas between")
	fs.IntVar(&f.k, "k", 100, "nodes asked for")
	fs.IntVar(&f.sources, "sources", 0, "sources of the oracle to ask (default all)")
	fs.IntVar(&f.recallSources, "recall-sources", 30, "sources to scan exactly for the recall")
	fs.IntVar(&f.rotations, "rotations", 5, "times that every size has its turn")
	fs.BoolVar(&f.json, "json", false, "print JSON lines")
	fs.StringVar(&f.plot, "plot", "", "draw the growth into this SVG `file`")
	if err := parse(fs, args); err != nil {
		return err
	}
	if f.k < 1 || f.sources < 0 || f.recallSources < 1 || f.rotations < 1 {
		return errors.New("-k, -recall-sources and -rotations want a positive number, -sources 0 or more")
	}
	d, err := openDataset(f.data, f.graph)
	if err != nil {
		return err
	}
	sizes, err := parseSizes(f.sizes, d)
	if err != nil {
		return err
	}
	e := newEmitter(f.json, stdout)
	if err := e.emit(thisMachine(stderr)); err != nil {
		return err
	}
	if err := benchGrowth(ctx, d, sizes, f, e, stderr); err != nil {
		return err
	}
	if !f.json {
		for _, t := range []table{machineTable(e.machines), growthTable(e.growth)} {
			if err := t.text(stdout); err != nil {
				return err
			}
			fmt.Fprintln(stdout)
		}
	}
	if f.plot != "" {
		return plotGrowth(f.plot, e.growth)
	}
	return nil
}

// parseSizes reads numbers of candidates that the graph has.
func parseSizes(text string, d *dataset) ([]int64, error) {
	if d.info.CandidatesFrom == 0 {
		return nil, fmt.Errorf("graph %q: its sources are candidates, which a subset would lack: use one like genes", d.name)
	}
	var sizes []int64
	for _, field := range strings.Split(text, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(field), 10, 64)
		switch {
		case err != nil || n < 1:
			return nil, fmt.Errorf("-sizes: %q is not a positive number", field)
		case n > d.candidates():
			return nil, fmt.Errorf("-sizes: %d rows: graph %q has %d candidates", n, d.name, d.candidates())
		case len(sizes) > 0 && n <= sizes[len(sizes)-1]:
			return nil, fmt.Errorf("-sizes: %d does not follow %d: they must ascend", n, sizes[len(sizes)-1])
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// A sized is one subset of the graph as it is measured.
type sized struct {
	build         buildRecord
	exact, auto   *lane
	recallSources int
}

// benchGrowth measures all sizes in the same rotations.
func benchGrowth(ctx context.Context, d *dataset, sizes []int64, f growthFlags, e *emitter, log io.Writer) (err error) {
	questions, err := d.questions(ctx, f.k, f.sources)
	if err != nil {
		return err
	}
	dir, remove, err := scratchDir(f.dir)
	if err != nil {
		return err
	}
	defer remove()
	var lanes []*lane
	var subsets []sized
	for _, n := range sizes {
		db, c, build, err := openPart(ctx, d, part{candidates: n}, filepath.Join(dir, fmt.Sprintf("%d.flash", n)), log)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		s, err := newSized(ctx, c, build, questions, f)
		if err != nil {
			return fmt.Errorf("%d rows: %w", n, err)
		}
		fmt.Fprintf(log, "%d rows: %d exact answers\n", n, s.recallSources)
		subsets = append(subsets, s)
		lanes = append(lanes, s.exact, s.auto)
	}
	if err := measure(ctx, lanes, f.rotations, []int{1}, log); err != nil {
		return err
	}
	for _, s := range subsets {
		for _, l := range []*lane{s.exact, s.auto} {
			if err := e.emit(s.record(d.name, l)); err != nil {
				return err
			}
		}
	}
	return nil
}

// newSized finds the exact answers of a subset and prepares its lanes.
func newSized(ctx context.Context, c *flashdb.Collection, build buildRecord, questions []question, f growthFlags) (sized, error) {
	asked := slices.Clone(questions)
	for i := range asked {
		asked[i].truth = nil // the oracle's is of all candidates
	}
	const exactPerTurn = 3
	s := sized{
		build:         build,
		exact:         newLane(exact(), c, asked, f.k, exactPerTurn),
		auto:          newLane(setting{name: defaultSetting}, c, asked, f.k, 0),
		recallSources: min(f.recallSources, len(asked)),
	}
	for i := range s.recallSources {
		res, _, err := s.exact.ask(ctx, i)
		if err != nil {
			return s, err
		}
		t := truthOf(res.Hits)
		asked[i].truth = &t
	}
	return s, nil
}

// record sums one lane of the subset up.
func (s sized) record(graph string, l *lane) growthRecord {
	r := l.result(graph, s.exact, s.build.Candidates)
	return growthRecord{
		Kind:          kindGrowth,
		Graph:         graph,
		Rows:          s.build.Candidates,
		Lists:         s.build.Lists,
		Setting:       l.name,
		Plan:          r.Plan,
		P50:           r.P50,
		Sources:       r.Sources,
		RecallMean:    r.RecallMean,
		RecallSources: len(l.recall()),
		VisitedShare:  r.VisitedShare,
	}
}
