package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
	"github.com/flashdb/flashdb/internal/codec"
)

// A dataset is one graph with embeddings, a trained decoder and exact answers, in a folder of its
// own:
//
//	info.json             {"nodes", "dim", "candidates_from"}; sources are the rows
//	                      below candidates_from and candidates the others, and all
//	                      rows are both where it is 0 or the file is missing
//	embeddings.npy        nodes x dim; or embeddings.npy.zst
//	decoder.safetensors   weights, which decoder.json describes
//	oracle.jsonl.zst      {"source": row, "top": [rows], "logit": [numbers]} per line,
//	                      best first; only the source itself is left out
type dataset struct {
	name    string
	dir     string
	info    datasetInfo
	decoder decoder.Decoder
}

type datasetInfo struct {
	Nodes          int64 `json:"nodes"`
	Dim            int   `json:"dim"`
	CandidatesFrom int64 `json:"candidates_from"`
}

// candidates is the number of rows that may be returned.
func (d *dataset) candidates() int64 { return d.info.Nodes - d.info.CandidatesFrom }

// demoGraph is the graph that is part of the repository, at demoFolder as seen from bench.
const demoGraph = "go-stdlib"

var demoFolder = filepath.Join("..", "cmd", "flashdb", "demodata")

// openDataset reads what describes the graph in data/name, or the demo's where data is empty; rows
// and answers are streamed when they are needed.
func openDataset(data, name string) (*dataset, error) {
	d := &dataset{name: name, dir: filepath.Join(data, name)}
	if data == "" {
		if name != demoGraph {
			return nil, fmt.Errorf("open graph %q: only %s comes with flashdb: name the folder that holds the others by -data or FLASHDB_DATA", name, demoGraph)
		}
		d.dir = demoFolder
	}
	if err := d.open(); err != nil {
		return nil, fmt.Errorf("open graph %q: %w", name, err)
	}
	return d, nil
}

func (d *dataset) open() error {
	if err := d.readInfo(); err != nil {
		return err
	}
	if d.info.Dim < 1 || d.info.CandidatesFrom < 0 || d.candidates() < 1 {
		return fmt.Errorf("%s: %d nodes of dim %d with candidates from row %d: nothing to search",
			d.path("info.json"), d.info.Nodes, d.info.Dim, d.info.CandidatesFrom)
	}
	text, err := os.ReadFile(d.path("decoder.json"))
	if err != nil {
		return err
	}
	spec, err := decoder.ParseSpec(text)
	if err != nil {
		return fmt.Errorf("%s: %w", d.path("decoder.json"), err)
	}
	d.decoder, err = weights.Read(d.path("decoder.safetensors"), &weights.Options{Spec: &spec})
	return err
}

// readInfo reads info.json, or takes the shape of the embeddings where there is none.
func (d *dataset) readInfo() error {
	text, err := os.ReadFile(d.path("info.json"))
	switch {
	case err == nil:
		if err := json.Unmarshal(text, &d.info); err != nil {
			return fmt.Errorf("%s: %w", d.path("info.json"), err)
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	r, err := codec.OpenRows(d.embeddings(), nil)
	if err != nil {
		return err
	}
	d.info = datasetInfo{Nodes: r.Count(), Dim: r.Dim()}
	return r.Close()
}

// embeddings is the path of the file of rows.
func (d *dataset) embeddings() string {
	plain := d.path("embeddings.npy")
	if _, err := os.Stat(plain); errors.Is(err, fs.ErrNotExist) {
		return plain + ".zst"
	}
	return plain
}

func (d *dataset) path(file string) string { return filepath.Join(d.dir, file) }

// key is that of a row's node, as "flashdb import" makes it without --keys.
func key(row int64) string { return strconv.FormatInt(row, 10) }

// rows calls fn for the rows from first on, up to and without end. fn may keep neither the slice
// nor its values.
func (d *dataset) rows(ctx context.Context, first, end int64, fn func(row int64, values []float32) error) (err error) {
	r, err := codec.OpenRows(d.embeddings(), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.Dim() != d.info.Dim {
		return fmt.Errorf("%s: its rows have %d values, info.json says %d", d.embeddings(), r.Dim(), d.info.Dim)
	}
	values := make([]float32, r.Dim())
	for row := int64(0); row < end; row++ {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := r.Next(values); err != nil {
			return fmt.Errorf("%s: row %d of %d: %w", d.embeddings(), row, end, err)
		}
		if row < first {
			continue
		}
		if err := fn(row, values); err != nil {
			return err
		}
	}
	return nil
}

// A question is a source to predict for.
type question struct {
	key    string    // of a source that is a node of the collection searched
	vector []float32 // of any other source; nil for a node
	truth  *truth    // nil where the exact answer is not known
}

type oracleLine struct {
	Source int64     `json:"source"`
	Top    []int64   `json:"top"`
	Logit  []float64 `json:"logit"`
}

// questions reads the oracle's sources, at most limit of them (0: all), with their exact top-k.
func (d *dataset) questions(ctx context.Context, k, limit int) ([]question, error) {
	lines, err := d.oracle(k, limit)
	if err != nil {
		return nil, err
	}
	questions := make([]question, len(lines))
	wanted := make(map[int64]*question, len(lines))
	for i, l := range lines {
		keys := make([]string, k)
		for j, row := range l.Top[:k] {
			keys[j] = key(row)
		}
		t := newTruth(keys, l.Logit[:k])
		questions[i] = question{key: key(l.Source), truth: &t}
		wanted[l.Source] = &questions[i]
	}
	if d.info.CandidatesFrom == 0 {
		return questions, nil
	}
	err = d.rows(ctx, 0, d.info.CandidatesFrom, func(row int64, values []float32) error {
		if q := wanted[row]; q != nil {
			q.vector = slices.Clone(values)
		}
		return nil
	})
	return questions, err
}

// oracle reads and checks the lines of the oracle.
func (d *dataset) oracle(k, limit int) (lines []oracleLine, err error) {
	table, err := codec.OpenTable(d.path("oracle.jsonl.zst"), nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	sources := d.info.CandidatesFrom
	if sources == 0 {
		sources = d.info.Nodes
	}
	for limit == 0 || len(lines) < limit {
		fields, number, err := table.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var l oracleLine
		err = json.Unmarshal([]byte(strings.Join(fields, "\t")), &l)
		switch {
		case err != nil:
		case len(l.Top) != len(l.Logit) || len(l.Top) < k:
			err = fmt.Errorf("%d rows and %d logits: want the same number, at least -k = %d", len(l.Top), len(l.Logit), k)
		case l.Source < 0 || l.Source >= sources:
			err = fmt.Errorf("source %d is outside the %d rows of sources", l.Source, sources)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", d.path("oracle.jsonl.zst"), number, err)
		}
		lines = append(lines, l)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s holds no sources", d.path("oracle.jsonl.zst"))
	}
	return lines, nil
}
