package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Results are JSON lines, one record each; "kind" says which. A line without a kind is a result:
// that is what the scripts in peers write.
const (
	kindMachine = "machine"
	kindBuild   = "build"
	kindQueries = "queries"
	kindResult  = "result"
	kindGrowth  = "growth"
)

// machineRecord says what a run was measured on.
type machineRecord struct {
	Kind        string   `json:"kind"`
	CPU         string   `json:"cpu,omitempty"`
	Features    []string `json:"cpu_features,omitempty"` // of kernelFeatures
	Cores       int      `json:"cores"`
	MemoryBytes int64    `json:"memory_bytes,omitempty"`
	OS          string   `json:"os"`
	Arch        string   `json:"arch"`
	Go          string   `json:"go"`
	Revision    string   `json:"revision,omitempty"`
	Date        string   `json:"date"`
	Load        string   `json:"load,omitempty"` // processes running before the run, mean of a minute
}

// buildRecord says what it cost to import and index a graph, with default options, and what that
// takes on disk.
type buildRecord struct {
	Kind          string  `json:"kind"`
	Graph         string  `json:"graph"`
	Rows          int64   `json:"rows"`       // imported and indexed, of all collections
	Candidates    int64   `json:"candidates"` // those that queries search
	Dim           int     `json:"dim"`
	Lists         int     `json:"lists"` // of the candidates' index
	ImportSeconds float64 `json:"import_s"`
	BuildSeconds  float64 `json:"build_s"`
	// CalibrateSources is how many sources plans were measured on in CalibrateSeconds; 0 where they
	// were not.
	CalibrateSeconds float64 `json:"calibrate_s,omitempty"`
	CalibrateSources int     `json:"calibrate_sources,omitempty"`
	// Sizes are of files, of all collections together.
	StoreBytes int64 `json:"store_bytes"`
	LogBytes   int64 `json:"log_bytes"`
	IndexBytes int64 `json:"index_bytes"`
	// Peaks are of import and build together; see memoryPeak.
	PeakBytes          int64 `json:"peak_bytes,omitempty"`
	PeakAnonymousBytes int64 `json:"peak_anonymous_bytes,omitempty"`
}

// queriesRecord is the most memory that all queries of a run took.
type queriesRecord struct {
	Kind               string `json:"kind"`
	Graph              string `json:"graph"`
	PeakBytes          int64  `json:"peak_bytes"`
	PeakAnonymousBytes int64  `json:"peak_anonymous_bytes"`
}

// flashdbPeer is the peer of our own results.
const flashdbPeer = "flashdb"

// resultRecord is what one setting did on one graph.
type resultRecord struct {
	Kind    string `json:"kind,omitempty"`
	Peer    string `json:"peer"` // flashdb or another program
	Graph   string `json:"graph"`
	Setting string `json:"setting"`
	Grid    bool   `json:"grid,omitempty"` // of the grid of plans
	Plan    string `json:"plan,omitempty"` // as the query's statistics say it

	Sources int `json:"sources,omitempty"` // distinct ones asked
	K       int `json:"k,omitempty"`
	// Shares of the true top-k found: the mean, the 5th percentile and the smallest over the
	// sources.
	RecallMean  float64 `json:"recall_mean"`
	RecallP5    float64 `json:"recall_p5"`
	RecallWorst float64 `json:"recall_worst"`
	// Milliseconds of one query at a time, on one core.
	P50 float64 `json:"ms_p50"`
	P99 float64 `json:"ms_p99"`
	// Threads of one query, of a peer that uses several: its rate is then QPS1 all the same.
	Threads int `json:"threads,omitempty"`
	// Queries per second on one core, and by two goroutines on two.
	QPS1 float64 `json:"qps1"`
	QPS2 float64 `json:"qps2,omitempty"`
	// VersusExact is the time of our exact scan, measured in the same rotation, divided by this
	// setting's: the median over the rotations.
	VersusExact float64 `json:"versus_exact,omitempty"`
	// Means per query.
	RowsScored   float64 `json:"rows_scored,omitempty"`
	CodesScanned float64 `json:"codes_scanned,omitempty"`
	VisitedShare float64 `json:"visited_share,omitempty"` // of the candidates, in visited lists
}

// growthRecord is what one setting did on a subset of a graph.
type growthRecord struct {
	Kind       string  `json:"kind"`
	Graph      string  `json:"graph"`
	Rows       int64   `json:"rows"`
	Lists      int     `json:"lists"`
	Setting    string  `json:"setting"`
	Plan       string  `json:"plan"`
	P50        float64 `json:"ms_p50"`
	Sources    int     `json:"sources"`
	RecallMean float64 `json:"recall_mean"`
	// RecallSources is how many sources the recall is the mean of.
	RecallSources int     `json:"recall_sources"`
	VisitedShare  float64 `json:"visited_share,omitempty"` // mean, of the rows, in visited lists
}

// A resultSet is all that a file of results holds, in its order.
type resultSet struct {
	machines []machineRecord
	builds   []buildRecord
	queries  []queriesRecord
	results  []resultRecord
	growth   []growthRecord
}

// add puts a record where it belongs.
func (r *resultSet) add(record any) {
	switch record := record.(type) {
	case machineRecord:
		r.machines = append(r.machines, record)
	case buildRecord:
		r.builds = append(r.builds, record)
	case queriesRecord:
		r.queries = append(r.queries, record)
	case resultRecord:
		r.results = append(r.results, record)
	case growthRecord:
		r.growth = append(r.growth, record)
	default:
		panic(fmt.Sprintf("bench: no record: %T", record))
	}
}

// readFile adds the records of a file of JSON lines.
func (r *resultSet) readFile(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := r.parse(lines.Bytes()); err != nil {
			return fmt.Errorf("read results: %s: line %d: %w", path, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read results: %s: %w", path, err)
	}
	return nil
}

func (r *resultSet) parse(line []byte) error {
	var head struct {
		Kind string `json:"kind"`
		Peer string `json:"peer"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return err
	}
	switch head.Kind {
	case kindMachine:
		return parseInto(&r.machines, line)
	case kindBuild:
		return parseInto(&r.builds, line)
	case kindQueries:
		return parseInto(&r.queries, line)
	case kindGrowth:
		return parseInto(&r.growth, line)
	case kindResult, "":
		if head.Peer == "" {
			return errors.New(`a result without "peer", the program it is of`)
		}
		return parseInto(&r.results, line)
	default:
		return fmt.Errorf("unknown kind of record %q", head.Kind)
	}
}

func parseInto[T any](records *[]T, line []byte) error {
	var record T
	if err := json.Unmarshal(line, &record); err != nil {
		return err
	}
	*records = append(*records, record)
	return nil
}

// An emitter collects records, and writes each at once where JSON lines are wanted.
type emitter struct {
	resultSet
	json *json.Encoder // nil: text, at the end
}

func newEmitter(jsonLines bool, out io.Writer) *emitter {
	e := &emitter{}
	if jsonLines {
		e.json = json.NewEncoder(out)
	}
	return e
}

func (e *emitter) emit(record any) error {
	e.add(record)
	if e.json == nil {
		return nil
	}
	return e.json.Encode(record)
}
