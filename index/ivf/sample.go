package ivf

import (
	"context"
	"fmt"
	"math"
)

// sample is a random part of the rows, which the first pass keeps. The number of rows is not known
// beforehand.
//
// A row is kept when its hash is in the lowest share of all hashes that BuildOptions.sampleShare
// asks for. The share only falls as more rows are read, so a row that is dropped early would also
// be dropped at the end. The sample depends only on the ids and the seed.
type sample struct {
	ids  []uint32
	rows []float32 // row-major
	seen int64     // rows read
}

// sampleSlack is how many times its size the sample may grow to before it is thinned.
const sampleSlack = 1.25

// sample reads the rows for the first time.
func (b *builder) sample(ctx context.Context) (*sample, error) {
	s, limit := b.newSample()
	d := b.opt.Dim
	err := b.batches(ctx, func(ids []uint32, rows []float32) error {
		s.seen += int64(len(ids))
		for i, id := range ids {
			if hash(id, b.opt.Seed) <= limit {
				s.ids = append(s.ids, id)
				s.rows = append(s.rows, rows[i*d:(i+1)*d]...)
			}
		}
		share := b.opt.sampleShare(s.seen)
		if float64(len(s.ids)) > sampleSlack*share*float64(s.seen) {
			limit = lowest(share)
			s.thin(limit, b.opt.Seed, d)
		}
		b.opt.Progress(StageSample, s.seen, 0)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if s.seen == 0 {
		return nil, ErrRowsGone
	}
	if s.seen > math.MaxUint32 {
		return nil, fmt.Errorf("%d rows: an index holds at most %d", s.seen, uint32(math.MaxUint32))
	}
	s.thin(lowest(b.opt.sampleShare(s.seen)), b.opt.Seed, d)
	return s, nil
}

// lowest returns the largest hash that is in the lowest share of all hashes.
func lowest(share float64) uint64 {
	if share >= 1 {
		return math.MaxUint64
	}
	return uint64(share * (1 << 64))
}

// thin drops the rows whose hash is above limit.
func (s *sample) thin(limit, seed uint64, d int) {
	kept := 0
	for i, id := range s.ids {
		if hash(id, seed) <= limit {
			s.ids[kept] = id
			copy(s.rows[kept*d:(kept+1)*d], s.rows[i*d:])
			kept++
		}
	}
	s.ids, s.rows = s.ids[:kept], s.rows[:kept*d]
}

// some returns a copy of about n rows, evenly spread over the sample.
func (s *sample) some(n, d int) []float32 {
	step := max(1, len(s.ids)/n)
	out := make([]float32, 0, (len(s.ids)/step+1)*d)
	for i := 0; i < len(s.ids); i += step {
		out = append(out, s.rows[i*d:(i+1)*d]...)
	}
	return out
}

// hash spreads ids evenly over 64 bits (the finalizer of SplitMix64, over the id and the seed).
func hash(id uint32, seed uint64) uint64 {
	x := (uint64(id) + 1) * 0x9e3779b97f4a7c15
	x ^= seed
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

const (
	batchBytes = 16 << 20 // of rows
	batchRows  = 16_384
)

// batches reads all rows and passes them on in batches, whose size does not depend on the blocks of
// the source. It refuses rows that are out of order, of another dimension, or not finite.
func (b *builder) batches(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	d := b.opt.Dim
	size := b.batchSize()
	ids, rows := make([]uint32, 0, size), make([]float32, 0, size*d)
	flush := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := fn(ids, rows)
		ids, rows = ids[:0], rows[:0]
		return err
	}
	last := int64(-1)
	err := b.src.Rows(ctx, func(newIDs []uint32, newRows []float32) error {
		if len(newRows) != len(newIDs)*d {
			return fmt.Errorf("%d values for %d rows of dimension %d", len(newRows), len(newIDs), d)
		}
		for i, id := range newIDs {
			row := newRows[i*d : (i+1)*d]
			if int64(id) <= last {
				return fmt.Errorf("id %d after id %d: want ascending ids", id, last)
			}
			if !finite(row) {
				return fmt.Errorf("the row of id %d has a value that is not finite", id)
			}
			last = int64(id)
			ids, rows = append(ids, id), append(rows, row...)
			if len(ids) == size {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		return flush()
	}
	return ctx.Err()
}

// finite reports whether row holds neither NaN nor an infinity.
func finite(row []float32) bool {
	var zero float32
	for _, x := range row {
		zero += x * 0 // NaN for both
	}
	return zero == 0
}
