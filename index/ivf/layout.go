package ivf

import (
	"context"
	"fmt"
	"math"
)

// dropped marks a trained list that no row was assigned to.
const dropped = math.MaxUint32

// layout is what the second pass finds out: which row goes where.
type layout struct {
	dim        int
	ids        []uint32 // in ascending order
	at         []uint32 // position of each of ids
	begin      []uint32 // list l holds the positions begin[l] to begin[l+1]
	centroids  []float32
	variances  []float32
	spread     []float32 // of every list, see spreads
	renumbered []uint32  // trained list -> list of the file, or dropped
}

func (y *layout) lists() int               { return len(y.begin) - 1 }
func (y *layout) centroid(l int) []float32 { return y.centroids[l*y.dim : (l+1)*y.dim] }

// assign reads the rows for the second time, assigns each to a list, and lays the lists out. The centroid of a list
// becomes the mean of its rows: a last step of Lloyd's algorithm, over all rows.
func (b *builder) assign(ctx context.Context) error {
	y := &b.layout
	y.dim = b.opt.Dim
	var sums moments
	err := b.batches(ctx, func(ids []uint32, rows []float32) error {
		lists := make([]uint32, len(ids))
		if err := b.assigner.Assign(ctx, lists, rows, b.opt.Workers); err != nil {
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
	y.place(&sums)
	return nil
}

// moments sums up rows list by list, in the order of the rows so that the result does not depend on the workers.
type moments struct {
	count   []uint32
	sum     [][]float64 // nil for lists without rows
	squares [][]float64
}

func (m *moments) add(l int, row []float32) {
	for len(m.count) <= l {
		m.count, m.sum, m.squares = append(m.count, 0), append(m.sum, nil), append(m.squares, nil)
	}
	if m.count[l] == 0 {
		m.sum[l], m.squares[l] = make([]float64, len(row)), make([]float64, len(row))
	}
	m.count[l]++
	sum, squares := m.sum[l], m.squares[l]
	for j, x := range row {
		sum[j] += float64(x)
		squares[j] += float64(x) * float64(x)
	}
}

// place numbers the lists that have rows, computes their centroids and variances, and turns the list of each row into
// its position.
func (y *layout) place(m *moments) {
	y.renumbered = make([]uint32, len(m.count))
	y.begin = []uint32{0}
	for trained, count := range m.count {
		if count == 0 {
			y.renumbered[trained] = dropped
			continue
		}
		y.renumbered[trained] = uint32(y.lists())
		y.begin = append(y.begin, y.begin[y.lists()]+count)
		for j, sum := range m.sum[trained] {
			mean := sum / float64(count)
			variance := m.squares[trained][j]/float64(count) - mean*mean
			y.centroids = append(y.centroids, float32(mean))
			y.variances = append(y.variances, float32(min(max(0, variance), math.MaxFloat32)))
		}
	}
	y.spread = spreads(y.variances, y.dim)
	next := append([]uint32(nil), y.begin...)
	for i, trained := range y.at {
		l := y.renumbered[trained]
		y.at[i] = next[l]
		next[l]++
	}
}

// spreads returns the standard deviation of the residuals of each list, over all dimensions. Residuals are divided by it
// before they are quantized: real lists differ by orders of magnitude, and one codebook for all would see every row of a
// tight list in the same place.
func spreads(variances []float32, dim int) []float32 {
	out := make([]float32, len(variances)/dim)
	for l := range out {
		var sum float64
		for _, v := range variances[l*dim : (l+1)*dim] {
			sum += float64(v)
		}
		out[l] = float32(math.Sqrt(sum / float64(dim)))
	}
	return out
}

// profile returns the variance of the residuals of all rows in each dimension, as a multiple of their mean variance over
// all dimensions: how a residual of spread 1 is shaped, on average.
func profile(variances []float32, begin []uint32, dim int) []float32 {
	sums, total := make([]float64, dim), 0.0
	for l := range len(begin) - 1 {
		n := float64(begin[l+1] - begin[l])
		for j, v := range variances[l*dim : (l+1)*dim] {
			sums[j] += n * float64(v)
			total += n * float64(v)
		}
	}
	out := make([]float32, dim)
	for j, sum := range sums {
		if total > 0 {
			out[j] = float32(float64(dim) * (sum / total))
		}
	}
	return out
}

// residual turns a row of list l into what is quantized of it.
func (y *layout) residual(row []float32, l int) { residualOf(row, y.centroid(l), y.spread[l]) }

// residualOf turns a row into what is quantized of it, in a list of that centroid and spread.
func residualOf(row, centroid []float32, spread float32) {
	scale := float32(0) // the rows of a list without spread are their centroid
	if spread > 0 {
		scale = 1 / spread
	}
	for j, c := range centroid {
		row[j] = (row[j] - c) * scale
	}
}
