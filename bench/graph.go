package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"
)

// graphFlags are what the graph command takes.
type graphFlags struct {
	data, graph  string
	dir          string
	k            int
	sources      int
	rotations    int
	exactPerTurn int
	grid         bool
	only         string
	wanted       *regexp.Regexp // of only
	json         bool
	plot         string
	peers        string
	cpuProfile   string
}

func graphCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var f graphFlags
	fs := newFlags("graph", stderr)
	fs.StringVar(&f.data, "data", os.Getenv("FLASHDB_DATA"), "`folder` that holds one folder per graph (default $FLASHDB_DATA; "+demoGraph+" needs none)")
	fs.StringVar(&f.graph, "graph", demoGraph, "`name` of the graph: go-stdlib, debian, genes, or another folder")
	fs.StringVar(&f.dir, "dir", "", "keep the database in this `directory`, and use the one that is there (default: temporary)")
	fs.IntVar(&f.k, "k", 100, "nodes asked for")
	fs.IntVar(&f.sources, "sources", 0, "sources of the oracle to ask (default all)")
	fs.IntVar(&f.rotations, "rotations", 5, "times that every setting has its turn")
	fs.IntVar(&f.exactPerTurn, "exact", 6, "sources of an exact scan's turn")
	fs.BoolVar(&f.grid, "grid", false, "measure a grid of plans, too")
	fs.StringVar(&f.only, "only", "", "beside the exact scan, measure only settings whose name matches this regular `expression`")
	fs.BoolVar(&f.json, "json", false, "print JSON lines")
	fs.StringVar(&f.plot, "plot", "", "draw recall against queries per second into this SVG `file`")
	fs.StringVar(&f.peers, "peers", "", "take results of other programs from this `file` of JSON lines into table and plot")
	fs.StringVar(&f.cpuProfile, "cpuprofile", "", "write a profile of the queries, without the exact scan's, to this `file`")
	if err := parse(fs, args); err != nil {
		return err
	}
	if f.k < 1 || f.sources < 0 || f.rotations < 1 || f.exactPerTurn < 1 {
		return errors.New("-k, -rotations and -exact want a positive number, -sources 0 or more")
	}
	var err error
	if f.wanted, err = regexp.Compile(f.only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	d, err := openDataset(f.data, f.graph)
	if err != nil {
		return err
	}
	e := newEmitter(f.json, stdout)
	if err := e.emit(thisMachine(stderr)); err != nil {
		return err
	}
	if err := benchGraph(ctx, d, f, e, stderr); err != nil {
		return err
	}
	if f.peers != "" {
		if err := e.readFile(f.peers); err != nil {
			return err
		}
	}
	if !f.json {
		if err := e.printGraph(stdout, f.graph); err != nil {
			return err
		}
	}
	if f.plot != "" {
		return plotRecall(f.plot, f.graph, e.results)
	}
	return nil
}

// benchGraph builds or opens the database and measures every setting.
func benchGraph(ctx context.Context, d *dataset, f graphFlags, e *emitter, log io.Writer) (err error) {
	questions, err := d.questions(ctx, f.k, f.sources)
	if err != nil {
		return err
	}
	dir, remove, err := scratchDir(f.dir)
	if err != nil {
		return err
	}
	defer remove()
	db, c, build, err := openPart(ctx, d, part{sources: true}, dir, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := e.emit(build); err != nil {
		return err
	}

	lanes := []*lane{newLane(exact(), c, questions, f.k, f.exactPerTurn)}
	for _, s := range f.settings(d) {
		lanes = append(lanes, newLane(s, c, questions, f.k, 0))
	}
	cores := []int{1}
	if runtime.NumCPU() >= 2 {
		cores = append(cores, 2)
	}
	watch := watchMemory()
	defer watch.stop()
	if err := measure(ctx, lanes, f.rotations, cores, log); err != nil {
		return err
	}
	peak := watch.stop()
	if f.cpuProfile != "" {
		if err := profileTurns(ctx, f.cpuProfile, lanes[1:]); err != nil {
			return err
		}
	}
	for _, l := range lanes {
		if err := e.emit(l.result(d.name, lanes[0], d.candidates())); err != nil {
			return err
		}
	}
	return e.emit(queriesRecord{Kind: kindQueries, Graph: d.name, PeakBytes: peak.resident, PeakAnonymousBytes: peak.anonymous})
}

// settings are those to measure beside the exact scan.
func (f *graphFlags) settings(d *dataset) []setting {
	settings := namedSettings()
	if f.grid {
		settings = append(settings, gridSettings(d.candidates())...)
	}
	return slices.DeleteFunc(settings, func(s setting) bool { return !f.wanted.MatchString(s.name) })
}

// profileTurns gives the lanes turns for some seconds under the profiler; they are not measured.
func profileTurns(ctx context.Context, path string, lanes []*lane) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := pprof.StartCPUProfile(file); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	defer pprof.StopCPUProfile()
	const long = 5 * time.Second
	for start := time.Now(); len(lanes) > 0 && time.Since(start) < long; {
		for _, l := range lanes {
			for i := range l.questions {
				if _, _, err := l.ask(ctx, i); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// printGraph prints all that was measured on one graph.
func (e *emitter) printGraph(w io.Writer, graph string) error {
	for _, t := range []table{
		machineTable(e.machines),
		buildTable(e.builds, e.queries),
		resultTable(e.results, graph, everyResult),
	} {
		if err := t.text(w); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return nil
}
