package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/internal/vfs"
)

// scanShares are the parts of the lists that a scan visits, and scanKeeps how many rows it returns:
// few is nearly the kernel alone, many what a query re-scores. peers/faiss_ivfpq.py has the same.
var (
	scanShares = []float64{0.1, 0.3, 1}
	scanKeeps  = []int{10, 2000}
)

// scanRecord is the speed of searches of the index alone, on one thread. Its fields are those that
// peers/faiss_ivfpq.py writes.
type scanRecord struct {
	Peer    string  `json:"peer"`
	Graph   string  `json:"graph"`
	Setting string  `json:"setting"`
	Threads int     `json:"threads"`
	Lists   int     `json:"lists"`
	Probes  int     `json:"probes"`
	Rows    float64 `json:"rows"`        // in the lists, per query
	Codes   float64 `json:"codes"`       // scanned, per query
	MS      float64 `json:"ms"`          // of a search
	ScanMS  float64 `json:"ms_scan"`     // of a search that is given its lists
	Rate    float64 `json:"codes_per_s"` // of a search
	Scan    float64 `json:"codes_per_s_scan"`
}

func scanCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := newFlags("scan", stderr)
	data := fs.String("data", os.Getenv("FLASHDB_DATA"), "`folder` that holds one folder per graph (default $FLASHDB_DATA; "+demoGraph+" needs none)")
	graph := fs.String("graph", demoGraph, "`name` of the graph")
	lists := fs.String("lists", "0", "`numbers` of lists, with commas between them; 0: as many as by default")
	sources := fs.Int("sources", 100, "sources of the oracle to ask")
	rotations := fs.Int("rotations", 5, "times that every setting has its turn")
	asJSON := fs.Bool("json", false, "print JSON lines")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *sources < 1 || *rotations < 1 {
		return errors.New("-sources and -rotations want a positive number")
	}
	d, err := openDataset(*data, *graph)
	if err != nil {
		return err
	}
	rows, queries, err := scanData(ctx, d, *sources)
	if err != nil {
		return err
	}
	var records []scanRecord
	for text := range strings.SplitSeq(*lists, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("-lists: %q is no number of lists", text)
		}
		fmt.Fprintf(stderr, "%s: building the index of %d rows\n", d.name, len(rows.values)/d.info.Dim)
		measured, err := scanIndex(ctx, d, rows, n, queries, *rotations)
		if err != nil {
			return err
		}
		records = append(records, measured...)
	}
	if !*asJSON {
		return scanTable(records).text(stdout)
	}
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s\n", line)
	}
	return nil
}

// memoryRows is the candidates in memory, as ivf.Build reads them.
type memoryRows struct {
	dim    int
	values []float32 // row-major
}

// Rows implements ivf.RowSource.
func (m *memoryRows) Rows(_ context.Context, fn func(ids []uint32, rows []float32) error) error {
	const block = 4096
	ids := make([]uint32, block)
	for first := 0; first*m.dim < len(m.values); first += block {
		n := min(block, len(m.values)/m.dim-first)
		for i := range n {
			ids[i] = uint32(first + i)
		}
		if err := fn(ids[:n], m.values[first*m.dim:(first+n)*m.dim]); err != nil {
			return err
		}
	}
	return nil
}

// scanData reads the candidates, and makes the first query that Flashlight asks for each of some
// sources.
func scanData(ctx context.Context, d *dataset, sources int) (*memoryRows, [][]float32, error) {
	lines, err := d.oracle(1, sources)
	if err != nil {
		return nil, nil, err
	}
	m := &memoryRows{dim: d.info.Dim}
	seeds := map[int64][]float32{}
	for _, l := range lines {
		seeds[l.Source] = make([]float32, d.info.Dim)
	}
	err = d.rows(ctx, 0, d.info.Nodes, func(row int64, values []float32) error {
		if seed := seeds[row]; seed != nil {
			d.decoder.Bind(nil, values).Ones(seed)
		}
		if row >= d.info.CandidatesFrom {
			m.values = append(m.values, values...)
		}
		return nil
	})
	queries := make([][]float32, len(lines))
	for i, l := range lines {
		queries[i] = seeds[l.Source]
	}
	return m, queries, err
}

// scanIndex builds an index without rows, so that what is found is ranked by codes alone, and
// searches it.
func scanIndex(ctx context.Context, d *dataset, rows *memoryRows, lists int, queries [][]float32, rotations int) (records []scanRecord, err error) {
	dir, remove, err := scratchDir("")
	if err != nil {
		return nil, err
	}
	defer remove()
	path := filepath.Join(dir, "index.ivf")
	if err := ivf.Build(ctx, vfs.OS(), path, rows, ivf.BuildOptions{Dim: d.info.Dim, Lists: lists, OmitRows: true}); err != nil {
		return nil, err
	}
	ix, err := ivf.Open(vfs.OS(), path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ix.Release()) }()
	for _, share := range scanShares {
		for _, keep := range scanKeeps {
			record, err := scanSetting(ctx, ix, share, keep, queries, rotations)
			if err != nil {
				return nil, err
			}
			record.Graph = d.name
			records = append(records, record)
		}
	}
	return records, nil
}

// scanSetting asks every query, each time twice: the second search finds its lists visited, and has
// only to scan them.
func scanSetting(ctx context.Context, ix *ivf.Index, share float64, keep int, queries [][]float32, rotations int) (scanRecord, error) {
	lists := ix.Info().Lists
	r := scanRecord{Peer: flashdbPeer, Threads: 1, Lists: lists, Probes: max(1, int(math.Round(share*float64(lists))))}
	r.Setting = fmt.Sprintf("IVF%d, %d bytes per code, %d probes, best %d", lists, ix.Info().Dim/4, r.Probes, keep)
	probes := index.Probes{Lists: r.Probes}
	if share == 1 {
		probes = index.Probes(everyList)
	}
	search := ix.NewSearch()
	dst := make([][]index.Candidate, 1)
	var ms, scanMS []float64 // of each rotation, mean of a query
	for range rotations + 1 {
		var took [2]time.Duration
		r.Rows, r.Codes = 0, 0
		for _, q := range queries {
			search.Reset()
			for i := range took {
				start := time.Now()
				if err := search.Search(ctx, [][]float32{q}, keep, probes, index.Filter{}, dst); err != nil {
					return r, err
				}
				took[i] += time.Since(start)
			}
			cost := search.Cost()
			r.Rows += float64(cost.Rows) / float64(len(queries))
			r.Codes += float64(cost.Codes) / 2 / float64(len(queries))
		}
		ms = append(ms, milliseconds(took[0])/float64(len(queries)))
		scanMS = append(scanMS, milliseconds(took[1])/float64(len(queries)))
	}
	r.MS, r.ScanMS = median(ms[1:]), median(scanMS[1:]) // the first warms up
	r.Rate, r.Scan = 1e3*r.Codes/r.MS, 1e3*r.Codes/r.ScanMS
	return r, nil
}

func scanTable(records []scanRecord) table {
	t := table{title: "searches of the index alone, one thread", header: []string{"index", "rows of lists", "codes scanned", "search ms", "M codes/s", "scan ms", "M codes/s"}}
	for _, r := range records {
		t.add(r.Graph+" "+r.Setting, grouped(int64(math.Round(r.Rows))), grouped(int64(math.Round(r.Codes))), fmt.Sprintf("%.3f", r.MS), fmt.Sprintf("%.0f", r.Rate/1e6),
			fmt.Sprintf("%.3f", r.ScanMS), fmt.Sprintf("%.0f", r.Scan/1e6))
	}
	return t
}
