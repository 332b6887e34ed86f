package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/output"
)

// manySources is how many sources are asked before their answers are made durable: what a killed
// run does again.
const manySources = 256

// A manyRequest asks for very many sources at once and writes a file.
type manyRequest struct {
	predictRequest
	all      bool
	keysFrom string
	out      string // "" or "-": standard output
	format   string
	shard    shard
	restart  bool
	rows     string // of how many rows the shard is a part; set by sources

	remark func(flashdb.QueryStats) error // on the first answer
}

// A shard is one of count parts of the sources, each of which follows on the one before: the files
// of all parts, one behind the other, are that of the whole. The zero value is the whole.
type shard struct{ index, count int }

func parseShard(s string) (shard, error) {
	if s == "" {
		return shard{}, nil
	}
	i, n, ok := strings.Cut(s, "/")
	index, err1 := strconv.Atoi(i)
	count, err2 := strconv.Atoi(n)
	if !ok || err1 != nil || err2 != nil || index < 1 || index > count {
		return shard{}, fmt.Errorf("--shard %q: want I/N with 1 <= I <= N, such as 2/8", s)
	}
	return shard{index, count}, nil
}

// of returns which of n rows or keys the shard has: from the first up to the end.
func (s shard) of(n int) (first, end int) {
	if s.count == 0 {
		return 0, n
	}
	share := func(i int) int { return int(uint64(n) * uint64(i) / uint64(s.count)) }
	return share(s.index - 1), share(s.index)
}

// A manySource is one source and its place in the order of all, which does not change when others
// come or go: the id of a node, or the line in a file.
type manySource struct {
	position uint32
	key      string
}

// validate refuses what does not go together, and settles the format.
func (r *manyRequest) validate() error {
	switch {
	case r.all && r.keysFrom != "":
		return errors.New("--all and --keys-from exclude each other")
	case len(r.keys) > 0:
		return errors.New("--all and --keys-from take the place of the KEYs: name none")
	case r.opts.Explain, r.opts.Verify, r.why:
		return errors.New("--explain, --verify and --why are for single sources, not for --all or --keys-from")
	}
	var err error
	r.format, err = answerFormat(r.format, r.out)
	return err
}

// predictMany asks for every source and writes the answers in the order of the sources. A file is
// written under another name until it is whole, and the same command continues a run that was
// killed.
func (a *app) predictMany(ctx context.Context, r manyRequest) error {
	if err := r.validate(); err != nil {
		return err
	}
	target, err := r.target()
	if err != nil {
		return err
	}
	return a.withCollection(ctx, r.dir, r.collection, flashdb.Options{ReadOnly: true}, func(db database, c collection) error {
		r.remark = func(s flashdb.QueryStats) error { return a.remarkOn(ctx, db, c, s) }
		from, err := sourceCollectionOf(ctx, db, c, r.opts.SourceCollection)
		if err != nil {
			return err
		}
		sources, err := r.sources(ctx, from)
		if err != nil {
			return err
		}
		print, err := r.fingerprint(ctx, c, sources)
		if err != nil {
			return err
		}
		if target.Path == "" {
			_, err = a.answerMany(ctx, r, c, sources, func(text []byte, _ uint32) error {
				_, err := a.data().Write(text)
				return err
			})
			return err
		}
		if target.Stream {
			return a.predictStream(ctx, r, c, sources, target)
		}
		return a.predictFile(ctx, r, target.Path, c, sources, print)
	})
}

// target says where the answers go: no path means standard output.
func (r *manyRequest) target() (t output.Target, err error) {
	if r.out == "" || r.out == standardInput {
		return t, nil
	}
	t, err = output.Resolve(r.out, r.dir)
	if err == nil && t.Stream && r.format == formatParquet {
		err = fmt.Errorf("%s is not a regular file, and a .parquet can only be written to a regular file: name one with --out", r.out)
	}
	return t, err
}

// predictStream writes the answers to a device or a pipe.
func (a *app) predictStream(ctx context.Context, r manyRequest, c collection, sources []manySource, target output.Target) error {
	return target.Write(func(w io.Writer) error {
		_, err := a.answerMany(ctx, r, c, sources, func(text []byte, _ uint32) error {
			piece, err := compressed(r.out, text)
			if err == nil {
				_, err = w.Write(piece)
			}
			return err
		})
		return err
	})
}

func (a *app) predictFile(ctx context.Context, r manyRequest, name string, c collection, sources []manySource, print string) (err error) {
	var join func(io.ReadSeeker, io.Writer) error
	if r.format == formatParquet {
		join = joinAnswers
	}
	file, err := openResultFile(name, print, r.restart, join)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.close()) }()
	first, _ := slices.BinarySearchFunc(sources, file.next, func(s manySource, next uint32) int { return int(s.position) - int(next) })
	if first > 0 {
		fmt.Fprintf(a.err, "%s: %s were answered by an earlier run; continuing after them\n", r.out, show.Count(first, "source"))
	}
	start := time.Now()
	skipped, err := a.answerMany(ctx, r, c, sources[first:], file.append)
	if err != nil {
		return goesOn(err)
	}
	if err := file.publish(); err != nil {
		return err
	}
	elapsed := time.Since(start)
	if a.json {
		return a.emit(map[string]any{"file": r.out, "sources": len(sources), "resumed_at": first, "skipped": skipped, "elapsed_ms": show.Millis(elapsed)})
	}
	fmt.Fprintf(a.out, "%s: %s, %s each, %s (%.0f sources per second)\n", r.out, show.Count(len(sources), "source"),
		show.Count(r.k, "hit"), show.Duration(elapsed), float64(len(sources)-first)/elapsed.Seconds())
	return nil
}

// sources lists what is to be asked, by position.
func (r *manyRequest) sources(ctx context.Context, from collection) ([]manySource, error) {
	var list []manySource
	add := func(position int, key string) { list = append(list, manySource{uint32(position), key}) }
	if !r.all {
		if err := readKeys(r.keysFrom, add); err != nil {
			return nil, err
		}
		first, end := r.shard.of(len(list))
		return list[first:end], nil
	}
	rows, err := rowCount(ctx, from)
	if err != nil {
		return nil, err
	}
	first, end := r.shard.of(rows)
	if r.shard.count > 0 {
		r.rows = fmt.Sprintf(" of %d rows", rows)
	}
	for first < end {
		keys, err := from.RowKeys(ctx, uint32(first), min(rowsPerPage, end-first))
		if err != nil {
			return nil, err
		}
		if len(keys) == 0 {
			break // the last ones may have been deleted with their collection
		}
		for i, key := range keys {
			if key != "" {
				add(first+i, key)
			}
		}
		first += len(keys)
	}
	return list, nil
}

// readKeys calls fn for the key in the first column of every line of a file.
func readKeys(file string, fn func(line int, key string)) (err error) {
	table, err := tableAt(file).open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	for {
		fields, line, err := table.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if fields[0] == "" {
			return fmt.Errorf("%s: line %d: the key is empty", file, line)
		}
		fn(line, fields[0])
	}
}

// fingerprint tells apart the requests whose answers must not be mixed in one file: other options,
// another decoder, other lines of keys, a shard of more rows, which begins and ends elsewhere.
// Otherwise the nodes of a collection may change meanwhile, as they may under any query.
func (r *manyRequest) fingerprint(ctx context.Context, c collection, sources []manySource) (string, error) {
	d, err := c.Decoder(ctx, r.opts.Decoder)
	if err != nil {
		return "", err
	}
	keys := crc32.NewIEEE()
	if !r.all {
		for _, s := range sources {
			fmt.Fprintf(keys, "%d\t%s\n", s.position, s.key)
		}
	}
	opts, minScore := r.opts, ""
	if opts.MinScore != nil { // perhaps an infinity, for which JSON has no number
		minScore, opts.MinScore = digits(*opts.MinScore), nil
	}
	text, err := json.Marshal(struct {
		Collection, Format string
		K                  int
		Options            flashdb.PredictOptions
		MinScore           string
		Shard              string
		Decoder, Keys      uint32
	}{
		r.collection, r.format, r.k, opts, minScore, fmt.Sprint(r.shard) + r.rows, crc32.ChecksumIEEE(decoder.Marshal(d)), keys.Sum32(),
	})
	return string(text), err
}

// answerMany hands the answers on in text, some sources at a time, with the position that comes
// after them. Sources that are not there are skipped.
func (a *app) answerMany(ctx context.Context, r manyRequest, c collection, sources []manySource, write func(text []byte, next uint32) error) (skipped int, err error) {
	p := terminal.NewProgress(a.err)
	defer p.Clear()
	ask := func(key string) (flashdb.Result, error) { return c.Predict(ctx, key, r.k, &r.opts) }
	done, remarked := int64(0), false
	var text []byte
	for part := range slices.Chunk(sources, manySources) {
		results, errs := askAll(part, ask)
		text = text[:0]
		for i, res := range results {
			res.Source = part[i].key
			switch {
			case errors.Is(errs[i], flashdb.ErrNotFound):
				if skipped++; skipped == 1 {
					p.Clear()
					fmt.Fprintf(a.err, "skipped: %v\n", errs[i])
				}
			case errs[i] != nil:
				return skipped, errs[i]
			default:
				if !remarked {
					remarked = true
					if err := r.remark(res.Stats); err != nil {
						return skipped, err
					}
				}
				text = appendAnswer(text, r.format, res)
			}
		}
		if err := write(text, part[len(part)-1].position+1); err != nil {
			return skipped, err
		}
		done += int64(len(part))
		p.Update("predicting", done, int64(len(sources)))
	}
	if skipped > 1 {
		p.Clear()
		fmt.Fprintf(a.err, "skipped %s that were not found\n", show.Count(skipped, "source"))
	}
	return skipped, nil
}

// askAll asks for every source, as many at a time as there are processors.
func askAll(sources []manySource, ask func(key string) (flashdb.Result, error)) ([]flashdb.Result, []error) {
	results, errs := make([]flashdb.Result, len(sources)), make([]error, len(sources))
	var next atomic.Int64
	var work sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(sources)) {
		work.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(sources)); i = next.Add(1) - 1 {
				results[i], errs[i] = ask(sources[i].key)
			}
		})
	}
	work.Wait()
	return results, errs
}
