package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// copiesFlags are what the copies command takes.
type copiesFlags struct {
	data, graph, out string
	rows             int64
	noise            float64
	seed             uint64
}

// copiesCommand writes a larger graph of the same shape: the candidates of a graph over and over,
// each copy but the first with Gaussian noise.
func copiesCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var f copiesFlags
	fs := newFlags("copies", stderr)
	fs.StringVar(&f.data, "data", os.Getenv("FLASHDB_DATA"), "`folder` that holds one folder per graph (default $FLASHDB_DATA)")
	fs.StringVar(&f.graph, "graph", "genes", "`name` of the graph")
	fs.StringVar(&f.out, "out", "", "write the larger graph to this `folder`, which must not exist")
	fs.Int64Var(&f.rows, "rows", 3_000_000, "`number` of candidates to write")
	fs.Float64Var(&f.noise, "noise", 0.1, "`share` of each dimension's standard deviation that the noise has")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of the noise")
	if err := parse(fs, args); err != nil {
		return err
	}
	if f.out == "" || f.rows < 1 || !(f.noise >= 0) {
		return errors.New("-out wants a folder, -rows a positive number, -noise 0 or more")
	}
	d, err := openDataset(f.data, f.graph)
	if err != nil {
		return err
	}
	if err := writeCopies(ctx, d, f); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %d sources and %d candidates\n", f.out, d.info.CandidatesFrom, f.rows)
	return err
}

// writeCopies makes the folder and fills it. A folder that exists is an error: it may be that of
// the graph itself. Where writing fails, the new folder is removed.
func writeCopies(ctx context.Context, d *dataset, f copiesFlags) error {
	if err := os.MkdirAll(filepath.Dir(filepath.Clean(f.out)), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(f.out, 0o755); err != nil {
		return err
	}
	if err := fillCopies(ctx, d, f); err != nil {
		return errors.Join(err, os.RemoveAll(f.out))
	}
	return nil
}

// fillCopies writes the files. There is no oracle among them: exact answers are found by scanning.
func fillCopies(ctx context.Context, d *dataset, f copiesFlags) error {
	for _, name := range []string{"decoder.json", "decoder.safetensors"} {
		text, err := os.ReadFile(d.path(name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(f.out, name), text, 0o644); err != nil {
			return err
		}
	}
	info := d.info
	info.Nodes = info.CandidatesFrom + f.rows
	text, err := json.Marshal(info)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.out, "info.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return writeCopiedRows(ctx, d, f)
}

// writeCopiedRows writes embeddings.npy: the rows of sources, if they are not candidates, and then
// the candidates.
func writeCopiedRows(ctx context.Context, d *dataset, f copiesFlags) (err error) {
	spread, err := d.spread(ctx)
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(f.out, "embeddings.npy"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := bufio.NewWriterSize(file, 1<<20)
	if _, err := w.WriteString(npyHeader(d.info.CandidatesFrom+f.rows, d.info.Dim)); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(f.seed, 0))
	var b []byte
	put := func(values []float32, noise float64) error {
		b = b[:0]
		for i, v := range values {
			if noise > 0 {
				v += float32(noise * spread[i] * rng.NormFloat64())
			}
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		_, err := w.Write(b)
		return err
	}
	err = d.rows(ctx, 0, d.info.CandidatesFrom, func(_ int64, values []float32) error { return put(values, 0) })
	for written := int64(0); err == nil && written < f.rows; written += d.candidates() {
		noise := f.noise
		if written == 0 {
			noise = 0
		}
		end := d.info.CandidatesFrom + min(d.candidates(), f.rows-written)
		err = d.rows(ctx, d.info.CandidatesFrom, end, func(_ int64, values []float32) error { return put(values, noise) })
	}
	return errors.Join(err, w.Flush())
}

// spread returns the standard deviation of the candidates in each dimension.
func (d *dataset) spread(ctx context.Context) ([]float64, error) {
	sum, squares := make([]float64, d.info.Dim), make([]float64, d.info.Dim)
	err := d.rows(ctx, d.info.CandidatesFrom, d.info.Nodes, func(_ int64, values []float32) error {
		for i, v := range values {
			sum[i] += float64(v)
			squares[i] += float64(v) * float64(v)
		}
		return nil
	})
	n := float64(d.candidates())
	for i := range sum {
		mean := sum[i] / n
		squares[i] = math.Sqrt(max(0, squares[i]/n-mean*mean))
	}
	return squares, err
}

// npyHeader is that of a NumPy file of float32, rows x dim, version 1.0.
func npyHeader(rows int64, dim int) string {
	const prefix, block = 10, 64 // magic, version and length; what the header is padded to
	text := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, dim)
	text += strings.Repeat(" ", block-1-(prefix+len(text))%block) + "\n"
	return "\x93NUMPY\x01\x00" + string([]byte{byte(len(text)), byte(len(text) >> 8)}) + text
}
