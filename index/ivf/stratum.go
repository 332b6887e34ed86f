package ivf

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/flashdb/flashdb/internal/kmeans"
)

// Rows of very different length are not clustered together. One row of length 1e30 among others of
// length 1 would attract all centroids, and squares in float32 overflow above 1.8e19 and underflow
// below 1e-19. So the rows are divided into strata by the magnitude of their norms. Each stratum
// has its own lists, and one whose norms are far from 1 is scaled while it is clustered. Rows of
// ordinary data are one stratum that is not scaled.
//
// If the rows share an offset that is far larger than their differences, it is subtracted first.
// With a constant dimension of 1e10, for example, float32 distances would be only rounding errors.

const (
	// A stratum reaches from strataBelow binary orders of magnitude below its median norm to
	// strataAbove above it. Real embeddings span less than that. The range below is larger, because
	// in training short rows disturb the others less than long ones.
	strataAbove, strataBelow = 6, 20
	// A stratum is scaled only if the magnitude of its median norm is above unscaled or below minus
	// unscaled.
	unscaled = 20
	// offsetRows rows of the sample decide whether there is an offset. It must be offsetLeast times
	// as large as the median distance from it.
	offsetRows, offsetLeast = 1024, 256
	// Magnitudes of norms of finite rows lie between these. noMagnitude is that of rows of zeros.
	leastMagnitude, mostMagnitude = -150, 136
	noMagnitude                   = leastMagnitude - 1
	// Rows in no stratum are in lists by magnitude. strayShift is the binary logarithm of the
	// number of magnitudes that share such a list.
	strayShift = 3
)

// stratum is the rows of magnitudes from first to last.
type stratum struct {
	first, last int
	scale       float64   // of its rows, while they are clustered
	rows        []float32 // of the sample, moved and scaled, row-major; nil once trained
	lists       int
	begin       int              // number of its first list among those of all strata
	assigner    *kmeans.Assigner // nil when it has one list
}

// partition is the strata of a build.
type partition struct {
	dim    int
	offset []float32 // subtracted from every row; nil for none
	strata []stratum // the one with the most rows of the sample first, the others by magnitude
	lists  int       // trained, of all strata

	order   []int // scratch of assign: stratum of each row
	rows    []float32
	numbers []uint32
	found   []uint32
}

// newPartition divides the rows of the sample into strata, and the lists among these. It takes over
// the memory of the sample.
func newPartition(sample []float32, dim, lists int) *partition {
	p := &partition{dim: dim, offset: commonOffset(sample, dim)}
	var counts [mostMagnitude - leastMagnitude + 1]int
	for i := 0; i < len(sample); i += dim {
		if m := p.magnitude(sample[i : i+dim]); m != noMagnitude {
			counts[m-leastMagnitude]++
		}
	}
	p.part(counts[:], leastMagnitude, mostMagnitude)
	if len(p.strata) == 0 { // all rows are zeros
		p.strata = []stratum{{first: leastMagnitude, last: mostMagnitude, scale: 1}}
	}
	size := func(s *stratum) (n int) {
		for m := s.first; m <= s.last; m++ {
			n += counts[m-leastMagnitude]
		}
		return n
	}
	slices.SortStableFunc(p.strata, func(a, b stratum) int { return cmp.Compare(a.first, b.first) })
	most := 0
	for i := range p.strata {
		if size(&p.strata[i]) > size(&p.strata[most]) {
			most = i
		}
	}
	main := p.strata[most]
	p.strata = slices.Insert(slices.Delete(p.strata, most, most+1), 0, main)
	p.divide(sample)
	p.deal(lists, len(sample)/dim)
	return p
}

// part adds to p the strata of the magnitudes from first to last: one around the median norm, and
// those above and below it.
func (p *partition) part(counts []int, first, last int) {
	total := 0
	for m := first; m <= last; m++ {
		total += counts[m-leastMagnitude]
	}
	if total == 0 {
		return
	}
	median, seen := first, 0
	for ; ; median++ {
		if seen += counts[median-leastMagnitude]; 2*seen >= total {
			break
		}
	}
	s := stratum{first: max(first, median-strataBelow), last: min(last, median+strataAbove), scale: 1}
	if median < -unscaled || median > unscaled {
		s.scale = math.Ldexp(1, -median)
	}
	p.strata = append(p.strata, s)
	p.part(counts, s.last+1, last)
	p.part(counts, first, s.first-1)
}

// divide gives each stratum its rows of the sample, the first one in the sample's memory.
func (p *partition) divide(sample []float32) {
	d := p.dim
	kept := 0
	for i := 0; i < len(sample); i += d {
		row := sample[i : i+d]
		if at := p.stratumOf(row); at > 0 {
			s := &p.strata[at]
			s.rows = append(s.rows, row...)
		} else {
			kept += copy(sample[kept:], row)
		}
	}
	p.strata[0].rows = sample[:kept]
	for i := range p.strata {
		s := &p.strata[i]
		p.moved(s.rows, s.rows, s)
	}
}

// deal gives each stratum its share of the lists: at least one, and at most as many as it has of
// the n rows in the sample.
func (p *partition) deal(lists, n int) {
	left := lists
	for i := len(p.strata) - 1; i >= 0; i-- {
		s := &p.strata[i]
		rows := len(s.rows) / p.dim
		s.lists = int(int64(lists) * int64(rows) / int64(n))
		if i == 0 {
			s.lists = left
		}
		s.lists = max(1, min(s.lists, rows))
		left -= s.lists
	}
	for i := range p.strata {
		p.strata[i].begin = p.lists
		p.lists += p.strata[i].lists
	}
}

// train trains the lists of every stratum.
func (p *partition) train(ctx context.Context, seed uint64, workers int) error {
	for i := range p.strata {
		s := &p.strata[i]
		rows := s.rows
		s.rows = nil
		if s.lists == 1 {
			continue
		}
		centroids, err := kmeans.Train(ctx, rows, p.dim, kmeans.Options{
			K: s.lists, Seed: seed, Workers: workers, PointsPerCentroid: len(rows)/p.dim/s.lists + 1,
		})
		if err != nil {
			return err
		}
		if s.assigner, err = kmeans.NewAssigner(ctx, centroids, p.dim, workers); err != nil {
			return err
		}
	}
	return nil
}

// maxLists returns a number above that of every list that assign may give.
func (p *partition) maxLists() int { return p.lists + (mostMagnitude-leastMagnitude)>>strayShift + 1 }

// assign sets dst[i] to the list of row i of rows, row-major.
func (p *partition) assign(ctx context.Context, dst []uint32, rows []float32, workers int) error {
	d := p.dim
	p.order = resize(p.order, len(dst))
	outside := 0 // the first stratum
	for i := range dst {
		row := rows[i*d : (i+1)*d]
		if p.order[i] = p.stratumOf(row); p.order[i] != 0 {
			outside++
		}
		if p.order[i] < 0 { // too rare to be in the sample
			dst[i] = uint32(p.lists + (p.magnitude(row)-leastMagnitude)>>strayShift)
		}
	}
	if s := &p.strata[0]; outside == 0 && p.plain(s) {
		return s.assign(ctx, dst, rows, workers)
	}
	for at := range p.strata {
		s := &p.strata[at]
		p.rows, p.numbers = p.rows[:0], p.numbers[:0]
		for i, of := range p.order {
			if of == at {
				p.rows, p.numbers = append(p.rows, rows[i*d:(i+1)*d]...), append(p.numbers, uint32(i))
			}
		}
		p.moved(p.rows, p.rows, s)
		p.found = resize(p.found, len(p.numbers))
		if err := s.assign(ctx, p.found, p.rows, workers); err != nil {
			return err
		}
		for i, number := range p.numbers {
			dst[number] = p.found[i]
		}
	}
	return nil
}

// assign is partition.assign for rows of the stratum that are moved and scaled already.
func (s *stratum) assign(ctx context.Context, dst []uint32, rows []float32, workers int) error {
	if s.assigner == nil {
		for i := range dst {
			dst[i] = uint32(s.begin)
		}
		return ctx.Err()
	}
	err := s.assigner.Assign(ctx, dst, rows, workers)
	for i := range dst {
		dst[i] += uint32(s.begin)
	}
	return err
}

// stratumOf returns the number of the stratum of a row, or -1. Rows of zeros have no magnitude and
// belong to the first stratum.
func (p *partition) stratumOf(row []float32) int {
	m := p.magnitude(row)
	if m == noMagnitude {
		return 0
	}
	return slices.IndexFunc(p.strata, func(s stratum) bool { return s.first <= m && m <= s.last })
}

// magnitude returns the binary order of magnitude of the norm of a row, less the offset.
func (p *partition) magnitude(row []float32) int {
	var sum float64
	if p.offset == nil {
		for _, x := range row {
			sum += float64(x) * float64(x)
		}
	} else {
		for j, x := range row {
			by := float64(x) - float64(p.offset[j])
			sum += by * by
		}
	}
	if sum == 0 {
		return noMagnitude
	}
	_, exponent := math.Frexp(sum)
	return (exponent - 1) >> 1
}

// plain reports whether rows of the stratum are clustered as they are.
func (p *partition) plain(s *stratum) bool { return p.offset == nil && s.scale == 1 }

// uniform reports whether there is one stratum, whose rows are clustered as they are.
func (p *partition) uniform() bool { return len(p.strata) == 1 && p.plain(&p.strata[0]) }

// moved sets dst to rows of a stratum as they are clustered: moved by the offset and scaled. dst
// may be rows.
func (p *partition) moved(dst, rows []float32, s *stratum) {
	if p.plain(s) {
		return
	}
	for i, x := range rows {
		y := float64(x)
		if p.offset != nil {
			y -= float64(p.offset[i%p.dim])
		}
		dst[i] = float32(y * s.scale)
	}
}

// commonOffset returns the median of some rows in each dimension if it is far larger than the
// distance of most of them from it, otherwise nil.
func commonOffset(rows []float32, d int) []float32 {
	n := len(rows) / d
	step := max(1, n/offsetRows)
	offset, column := make([]float32, d), []float32(nil)
	var norm float64
	for j := range offset {
		column = column[:0]
		for i := 0; i < n; i += step {
			column = append(column, rows[i*d+j])
		}
		slices.Sort(column)
		offset[j] = column[len(column)/2]
		norm += float64(offset[j]) * float64(offset[j])
	}
	var distances []float64
	for i := 0; i < n; i += step {
		var sum float64
		for j, x := range rows[i*d : (i+1)*d] {
			by := float64(x) - float64(offset[j])
			sum += by * by
		}
		distances = append(distances, sum)
	}
	slices.Sort(distances)
	if norm <= offsetLeast*offsetLeast*distances[len(distances)/2] {
		return nil
	}
	return offset
}
