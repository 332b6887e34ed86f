package ivf

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// dropped marks a trained list that no row was assigned to.
const dropped = math.MaxUint32

// layout is the result of the second pass: which row goes where.
type layout struct {
	dim        int
	ids        []uint32 // in ascending order
	at         []uint32 // position of each of ids
	begin      []uint32 // list l holds the positions begin[l] to begin[l+1]
	centroids  []float32
	variances  []float32 // of list l times 4^exponents[l]
	exponents  []int8    // of every list, see exponentOf
	spread     []float32 // of every list, see spreads
	groups     []uint32  // group g holds the lists groups[g] to groups[g+1]; nil: none
	renumbered []uint32  // trained list -> list of the file, or dropped
}

func (y *layout) lists() int               { return len(y.begin) - 1 }
func (y *layout) centroid(l int) []float32 { return y.centroids[l*y.dim : (l+1)*y.dim] }

// assign reads the rows for the second time, assigns each to a list, and lays the lists out. The
// centroid of a list becomes the mean of its rows: a last step of Lloyd's algorithm, over all rows.
func (b *builder) assign(ctx context.Context) error {
	y := &b.layout
	y.dim = b.opt.Dim
	sums := newMoments(b.partition.maxLists())
	err := b.batches(ctx, func(ids []uint32, rows []float32) error {
		lists := make([]uint32, len(ids))
		if err := b.partition.assign(ctx, lists, rows, b.opt.Workers); err != nil {
			return err
		}
		y.ids = append(y.ids, ids...)
		y.at = append(y.at, lists...) // positions take their place below
		for i, l := range lists {
			sums.add(int(l), rows[i*y.dim:(i+1)*y.dim])
		}
		b.opt.Progress(StageAssign, int64(len(y.ids)), b.total)
		return nil
	})
	if err != nil {
		return err
	}
	if len(y.ids) == 0 {
		return fmt.Errorf("%w: they have vanished since the first pass", ErrRowsGone)
	}
	return b.place(ctx, sums)
}

// moments sums up rows list by list, in the order of the rows so that the result does not depend on
// the workers.
type moments struct {
	count   []uint32
	first   [][]float32 // the first row of each list; nil for lists without rows
	sum     [][]float64
	squares [][]float64 // of differences from the first row; squares of rows far from zero would lose the variance to rounding
}

func newMoments(lists int) *moments {
	return &moments{
		count: make([]uint32, lists), first: make([][]float32, lists),
		sum: make([][]float64, lists), squares: make([][]float64, lists),
	}
}

func (m *moments) add(l int, row []float32) {
	if m.count[l] == 0 {
		m.first[l] = slices.Clone(row)
		m.sum[l], m.squares[l] = make([]float64, len(row)), make([]float64, len(row))
	}
	m.count[l]++
	first, sum, squares := m.first[l], m.sum[l], m.squares[l]
	for j, x := range row {
		by := float64(x) - float64(first[j])
		sum[j] += float64(x)
		squares[j] += by * by
	}
}

// mean returns the mean of a list in dimension j.
func (m *moments) mean(l, j int) float64 { return m.sum[l][j] / float64(m.count[l]) }

// variance returns the variance of a list in dimension j.
func (m *moments) variance(l, j int) float64 {
	by := m.mean(l, j) - float64(m.first[l][j])
	return max(0, m.squares[l][j]/float64(m.count[l])-by*by)
}

// place numbers the lists that have rows, computes their centroids and variances, and turns the
// list of each row into its position.
func (b *builder) place(ctx context.Context, m *moments) error {
	y := &b.layout
	order, err := b.order(ctx, m)
	if err != nil {
		return err
	}
	y.renumbered = slices.Repeat([]uint32{dropped}, len(m.count))
	y.begin = []uint32{0}
	for _, list := range order {
		trained := int(list)
		y.renumbered[trained] = uint32(y.lists())
		y.begin = append(y.begin, y.begin[y.lists()]+m.count[trained])
		var total float64
		for j := range y.dim {
			total += m.variance(trained, j)
		}
		exponent := exponentOf(total / float64(y.dim))
		y.exponents = append(y.exponents, exponent)
		for j := range y.dim {
			y.centroids = append(y.centroids, float32(m.mean(trained, j)))
			y.variances = append(y.variances, float32(math.Ldexp(m.variance(trained, j), 2*int(exponent))))
		}
	}
	y.spread = spreads(y.variances, y.exponents, y.dim)
	next := append([]uint32(nil), y.begin...)
	for i, trained := range y.at {
		l := y.renumbered[trained]
		y.at[i] = next[l]
		next[l]++
	}
	return nil
}

// order returns the trained lists that have rows, in the order of the file: as they were trained,
// or by groups.
func (b *builder) order(ctx context.Context, m *moments) ([]uint32, error) {
	var order []uint32
	for trained, count := range m.count {
		if count > 0 {
			order = append(order, uint32(trained))
		}
	}
	if len(order) < groupedLists || !b.partition.uniform() || int(order[len(order)-1]) >= b.partition.lists {
		return order, nil
	}
	var centroids []float32
	for _, trained := range order {
		for j := range b.layout.dim {
			centroids = append(centroids, float32(m.mean(int(trained), j)))
		}
	}
	return order, b.layout.groupLists(ctx, order, centroids, b.opt.Seed, b.opt.Workers)
}

// exponentOf returns the exponent for a list of that mean variance. It is 0 unless the variance is
// too large or too small for a float32. The stored variances of the list are those of its rows
// times 2^exponent.
func exponentOf(variance float64) int8 {
	_, e := math.Frexp(variance)
	if variance == 0 || (e >= -varianceBits && e <= varianceBits) {
		return 0
	}
	return int8(min(math.MaxInt8, max(math.MinInt8, -e/2)))
}

// varianceBits is how many binary orders of magnitude a mean variance may be from 1 without an
// exponent. That leaves room in a float32 for the variances of single dimensions.
const varianceBits = 80

// spreads returns the standard deviation of the residuals of each list, over all dimensions. Nil
// exponents mean all 0. Residuals are divided by it before they are quantized. Real lists differ in
// it by orders of magnitude, and with one codebook for all, every row of a tight list would get the
// same code.
func spreads(variances []float32, exponents []int8, dim int) []float32 {
	out := make([]float32, len(variances)/dim)
	for l := range out {
		var sum float64
		for _, v := range variances[l*dim : (l+1)*dim] {
			sum += float64(v)
		}
		spread := math.Sqrt(sum / float64(dim))
		if exponents != nil {
			spread = math.Ldexp(spread, -int(exponents[l]))
		}
		out[l] = float32(min(spread, math.MaxFloat32))
	}
	return out
}

// profile returns the variance of the residuals of all rows in each dimension, as a multiple of
// their mean variance over all dimensions. Lists that are far wider than most are left out: a few
// rows a thousand times as long as the others would dominate.
func profile(variances, spread []float32, begin []uint32, dim int) []float32 {
	most := profiled * medianSpread(spread)
	sums, total := make([]float64, dim), 0.0
	for l := range len(begin) - 1 {
		s := float64(spread[l])
		if s == 0 || s > most {
			continue
		}
		var mean float64
		for _, v := range variances[l*dim : (l+1)*dim] {
			mean += float64(v) / float64(dim)
		}
		n := float64(begin[l+1]-begin[l]) * (s / most) * (s / most)
		for j, v := range variances[l*dim : (l+1)*dim] {
			sums[j] += n * (float64(v) / mean)
		}
		total += n
	}
	out := make([]float32, dim)
	for j, sum := range sums {
		if total > 0 {
			out[j] = float32(sum / total)
		}
	}
	return out
}

// profiled is how many times as wide as the median a list may be to count in the profile.
const profiled = 64

// medianSpread returns the median of the spreads that are not zero, or zero.
func medianSpread(spread []float32) float64 {
	sorted := slices.DeleteFunc(slices.Clone(spread), func(s float32) bool { return s == 0 })
	if len(sorted) == 0 {
		return 0
	}
	slices.Sort(sorted)
	return float64(sorted[len(sorted)/2])
}

// residual turns a row of list l into the vector that is quantized.
func (y *layout) residual(row []float32, l int) { residualOf(row, y.centroid(l), y.spread[l]) }

// residualOf turns a row of a list with that centroid and spread into the vector that is quantized.
func residualOf(row, centroid []float32, spread float32) {
	const most = 1 << 60 // between its inverse and it, float32 neither overflows nor underflows
	switch {
	case spread == 0: // the rows of a list without spread equal their centroid
		clear(row)
	case spread <= most && spread >= 1./most:
		scale := 1 / spread
		for j, c := range centroid {
			row[j] = (row[j] - c) * scale
		}
	default:
		for j, c := range centroid {
			row[j] = float32((float64(row[j]) - float64(c)) / float64(spread))
		}
	}
}
